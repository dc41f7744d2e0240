//! Goal: what the two older designs hold and what they do not, each answer with its shortest run, and that every answer
//! could have been another one.

use std::collections::BTreeSet;

use leaseproof_model::check::{CheckRow, Holds, RowKind};
use leaseproof_model::designs::commit_running::State;
use leaseproof_model::designs::handler::{Faults, Setup};
use leaseproof_model::designs::single_transaction::Sessions;
use leaseproof_model::designs::{
    APPLICABLE, CommitRunning, Design, Older, SingleTransaction, check_design, check_older,
};
use leaseproof_model::graph::{Counterexample, Limits, Outcome, Trigger, check_lasso, check_trace, explore};
use leaseproof_model::properties::bit;
use leaseproof_rules::{Kind, Property, Status};
use stateright::Checker;

/// The answers about properties: world, property, steps of the shortest counterexample if it is violated.
fn answers(rows: &[CheckRow]) -> Vec<(&str, &str, Option<usize>)> {
    let of_properties = rows.iter().filter(|row| row.kind != RowKind::Sometimes);
    of_properties
        .map(|row| {
            assert_ne!(row.holds, Holds::Cut);
            let violated = row.holds == Holds::Violated;
            (row.worlds[0].as_str(), row.property.as_str(), violated.then_some(row.trace_len))
        })
        .collect()
}

/// Steps of the shortest run against a property in one world; `None`: it holds. The run is checked against the model.
fn shortest<M: Older<Action: PartialEq>>(model: &M, property: Property) -> Option<usize> {
    let graph = explore(model, Limits::default()).unwrap();
    let goal = |state: &M::State| M::status(state).is_resolved();
    let report = match property.kind() {
        Kind::Eventually => graph.check_leads_to("resolved", Trigger::Anywhere, goal),
        Kind::Always => graph.check_always("safe", |state| M::bad(state) & bit(property) == 0),
    };
    let Outcome::Violated(counterexample) = report.unwrap().outcome else { return None };
    match &counterexample {
        Counterexample::Run(run) => assert_eq!(check_trace(model, run), Ok(())),
        Counterexample::Lasso(lasso) => {
            assert!(lasso.shortest);
            assert_eq!(check_lasso(model, lasso, Trigger::Anywhere, goal), Ok(()));
        }
        Counterexample::NoState => panic!("no run"),
    }
    Some(counterexample.len())
}

fn setup(faults: Faults) -> Setup {
    Setup { faults, ..Setup::new(2) }
}

#[test]
fn commit_running_is_safe_and_leaves_tasks_running_for_ever() {
    let rows = check_design(Design::CommitRunning).unwrap();
    let (meant, reset) = ("1 task × 2 executors, a call", "RUNNING is reset after a while");
    let expected = [
        (meant, "one_current_owner", None),
        (meant, "stale_write_changes_nothing", None),
        (meant, "effect_at_most_once", None),
        (meant, "success_means_effect", None),
        (meant, "final_is_final", None),
        (meant, "attempts_are_bounded", None),
        // No crash is needed: a claim whose reply is lost is enough.
        (meant, "eventually_resolved", Some(3)),
        ("nothing goes wrong", "eventually_resolved", None),
        ("processes die", "eventually_resolved", Some(4)),
        ("handlers hang", "eventually_resolved", Some(4)),
        ("messages are lost", "eventually_resolved", Some(3)),
        // The other horn of P1.
        (reset, "one_current_owner", None),
        (reset, "stale_write_changes_nothing", Some(7)),
        (reset, "effect_at_most_once", Some(9)),
        (reset, "success_means_effect", None),
        (reset, "final_is_final", None),
        (reset, "attempts_are_bounded", Some(9)),
        (reset, "eventually_resolved", None),
    ];
    assert_eq!(answers(&rows), expected);
    let dies = rows.iter().find(|row| row.worlds == ["processes die"]).unwrap();
    let steps: Vec<&str> = dies.trace.iter().filter_map(|line| line.split(" ⇒ ").next()).collect();
    let told = ["w1: reads PENDING", "w1: sets RUNNING", "w1: crashes", "world: no more faults"];
    assert_eq!(steps[..4], told);
    assert!(dies.trace[3].contains("task: RUNNING") && steps[4].contains("nothing that must happen"), "{steps:?}");
}

#[test]
fn single_transaction_resolves_only_by_the_server_s_clocks_and_repeats_effects() {
    let rows = check_design(Design::SingleTransaction).unwrap();
    let meant = "1 task × 2 executors, a call";
    let expected = [
        (meant, "one_current_owner", None),
        (meant, "stale_write_changes_nothing", None),
        // Rollback does not undo a call.
        (meant, "effect_at_most_once", Some(9)),
        (meant, "success_means_effect", None),
        (meant, "final_is_final", None),
        // Nor does a count survive it.
        (meant, "attempts_are_bounded", Some(9)),
        (meant, "eventually_resolved", None),
        ("neither keepalive nor idle timeout", "eventually_resolved", Some(7)),
        ("neither, but processes only die cleanly", "eventually_resolved", None),
        ("keepalive alone", "eventually_resolved", Some(8)),
        ("keepalive alone, no handler hangs", "eventually_resolved", None),
        ("idle timeout alone", "eventually_resolved", None),
        ("runs outlast the idle timeout", "eventually_resolved", Some(8)),
    ];
    assert_eq!(answers(&rows), expected);
    let neither = rows.iter().find(|row| row.worlds == ["neither keepalive nor idle timeout"]).unwrap();
    let cycle = neither.trace.iter().skip_while(|line| !line.contains("for ever")).skip(1);
    let met = cycle.filter(|line| line.contains("meets the lock")).count();
    assert_eq!(met, 2, "both executors meet the lock for ever: {:#?}", neither.trace);
}

/// Which silences each clock ends: neither (none), keepalive (a dead host, a cut, not a hang), the idle timeout (all).
#[test]
fn each_clock_of_the_server_ends_its_own_kind_of_silence() {
    let none = Faults::NONE;
    let kinds = [
        ("silence", Faults { silence: true, ..none }),
        ("lost messages", Faults { lost_request: true, lost_reply: true, ..none }),
        ("hangs", Faults { hang: true, ..none }),
        ("clean deaths", Faults { crash: true, ..none }),
    ];
    let mut resolved = BTreeSet::new();
    for (kind, faults) in kinds {
        for (clock, keepalive, idle_timeout) in
            [("neither", false, false), ("keepalive", true, false), ("idle timeout", false, true), ("both", true, true)]
        {
            let sessions = Sessions { keepalive, idle_timeout };
            let model = SingleTransaction { sessions, ..SingleTransaction::new(kind, setup(faults)) };
            if shortest(&model, Property::EventuallyResolved).is_none() {
                resolved.insert(format!("{kind}: {clock}"));
            }
        }
    }
    let expected = [
        "clean deaths: both",
        "clean deaths: idle timeout",
        "clean deaths: keepalive",
        "clean deaths: neither",
        "hangs: both",
        "hangs: idle timeout",
        "lost messages: both",
        "lost messages: idle timeout",
        "lost messages: keepalive",
        "silence: both",
        "silence: idle timeout",
        "silence: keepalive",
    ];
    assert_eq!(resolved.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn without_what_protects_it_each_safety_property_breaks() {
    let s1 = CommitRunning::new("S1", Setup::new(2));
    let blind = CommitRunning { compare_and_set: false, ..s1.clone() };
    let s2 = SingleTransaction::new("S2", Setup::new(2));
    let unlocked = SingleTransaction { row_lock: false, ..s2.clone() };
    let blind2 = SingleTransaction { compare_and_set: false, ..s2.clone() };
    let reconnects = SingleTransaction { reconnects: true, ..s2.clone() };
    // Two candidates read, two claims.
    assert_eq!(shortest(&s1, Property::OneCurrentOwner), None);
    assert_eq!(shortest(&blind, Property::OneCurrentOwner), Some(4));
    assert_eq!(shortest(&s2, Property::OneCurrentOwner), None);
    assert_eq!(shortest(&unlocked, Property::OneCurrentOwner), Some(4));
    // The candidate was read as PENDING, and has ended when it is claimed.
    assert_eq!(shortest(&s1, Property::FinalIsFinal), None);
    assert_eq!(shortest(&blind, Property::FinalIsFinal), Some(6));
    assert_eq!(shortest(&s2, Property::FinalIsFinal), None);
    assert_eq!(shortest(&blind2, Property::FinalIsFinal), Some(6));
    assert_eq!(shortest(&blind2, Property::OneCurrentOwner), None, "the lock alone keeps owners apart");
    // What was to end a transaction runs without it.
    assert_eq!(shortest(&s2, Property::StaleWriteChangesNothing), None);
    assert_eq!(shortest(&reconnects, Property::StaleWriteChangesNothing), Some(5));
}

/// What must be reachable is, and what the designs do not have is not.
#[test]
fn nothing_holds_for_want_of_a_case() {
    for design in [Design::CommitRunning, Design::SingleTransaction] {
        let rows = check_design(design).unwrap();
        let witnesses: Vec<&CheckRow> = rows.iter().filter(|row| row.kind == RowKind::Sometimes).collect();
        assert_eq!(witnesses.len(), if design == Design::CommitRunning { 14 } else { 20 });
        for row in witnesses {
            assert_eq!(row.holds, Holds::Holds, "{design}: {}", row.property);
            assert_eq!(row.trace.len(), row.trace_len, "{design}: {}", row.property);
        }
    }
    fn statuses<M: Older>() -> BTreeSet<Status> {
        let worlds = M::cases().into_iter().flat_map(|case| case.worlds);
        worlds
            .flat_map(|world| {
                explore(&world, Limits::default()).unwrap().states().iter().map(M::status).collect::<BTreeSet<_>>()
            })
            .collect()
    }
    use Status::*;
    assert_eq!(statuses::<CommitRunning>(), BTreeSet::from([Pending, Running, Success, Fail]));
    assert_eq!(statuses::<SingleTransaction>(), BTreeSet::from([Pending, Success, Fail]), "RUNNING is never committed");
}

/// P1 and U1: there are runs that end in the same row, of which one must be left alone and one taken back; whoever takes
/// it back breaks the one, whoever does not breaks the other.
#[test]
fn the_same_row_asks_for_opposite_decisions() {
    let leaves = CommitRunning::new("leaves it", Setup::new(2));
    let resets = CommitRunning { reset: true, ..leaves.clone() };
    let graph = explore(&leaves, Limits::default()).unwrap();
    let running = graph.states().iter().filter(|state| state.status == Status::Running);
    let (works, dead): (Vec<&State>, Vec<&State>) = running.partition(|state| state.owner.is_some());
    assert!(!works.is_empty() && dead.iter().any(|state| state.runs.iter().all(|phase| !phase.is_executing())));
    assert!(shortest(&leaves, Property::EventuallyResolved).is_some());
    assert_eq!(shortest(&leaves, Property::EffectAtMostOnce), None);
    assert_eq!(shortest(&resets, Property::EventuallyResolved), None);
    assert!(shortest(&resets, Property::EffectAtMostOnce).is_some());
}

/// Every kind of step happens, in words and without numbers.
#[test]
fn every_kind_of_step_happens() {
    fn steps<M: Older>() -> BTreeSet<String> {
        let mut seen = BTreeSet::new();
        for world in M::cases().into_iter().flat_map(|case| case.worlds) {
            let graph = explore(&world, Limits::default()).unwrap();
            let mut actions = Vec::new();
            for state in graph.states() {
                world.actions(state, &mut actions);
                let told = actions.drain(..).map(|action| world.tell(state, &action));
                seen.extend(told.map(|text| text.replace(|c: char| c.is_ascii_digit(), "#")));
            }
        }
        seen
    }
    let both = [
        "network: a call without sender is lost",
        "third party: a call without sender is done",
        "w#: calls the third party",
        "w#: its call is done, and it is told",
        "w#: its call is done, reply lost",
        "w#: its call is lost",
        "w#: its handler hangs for ever",
        "w#: no reply in time, fails",
        "w#: reads PENDING",
        "w#: work done",
        "w#: work failed",
        "world: no more faults",
    ];
    let first = [
        "reset: takes RUNNING for dead, sets PENDING",
        "w#: crashes",
        "w#: sets FAIL",
        "w#: sets FAIL, reply lost",
        "w#: sets FAIL, request lost",
        "w#: sets RUNNING",
        "w#: sets RUNNING, # rows",
        "w#: sets RUNNING, reply lost",
        "w#: sets RUNNING, request lost",
        "w#: sets SUCCESS",
        "w#: sets SUCCESS, reply lost",
        "w#: sets SUCCESS, request lost",
    ];
    let second = [
        "network: cut under w#",
        "server: idle timeout ends the session that nobody uses, rolls back",
        "server: idle timeout ends w#'s session, rolls back",
        "server: keepalive ends the session that nobody uses, rolls back",
        "server: keepalive ends w#'s session, rolls back",
        "w#: commits FAIL",
        "w#: commits FAIL, refused: the server has ended the session",
        "w#: commits FAIL, reply lost",
        "w#: commits FAIL, request lost",
        "w#: commits SUCCESS",
        "w#: commits SUCCESS, refused: the server has ended the session",
        "w#: commits SUCCESS, reply lost",
        "w#: commits SUCCESS, request lost",
        "w#: crashes, its connection is reset",
        "w#: gives up asking what became of its commit",
        "w#: its host dies in silence",
        "w#: locks the row and sets RUNNING",
        "w#: locks the row and sets RUNNING, # rows",
        "w#: locks the row and sets RUNNING, meets the lock",
        "w#: locks the row and sets RUNNING, reply lost",
        "w#: locks the row and sets RUNNING, request lost",
    ];
    let expected =
        |own: &[&'static str]| both.iter().chain(own).map(|text| (*text).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(steps::<CommitRunning>(), expected(&first));
    assert_eq!(steps::<SingleTransaction>(), expected(&second));
}

/// The same models, two checkers.
#[test]
fn stateright_finds_as_many_states_and_the_same_safety_answers() {
    fn compare<M>(model: M, broken: &[Property])
    where
        M: Older<Action: PartialEq + std::fmt::Debug + Send + Sync> + Clone + Send + Sync + 'static,
        M::State: std::fmt::Debug + Send + Sync + 'static,
    {
        let ours = explore(&model, Limits::default()).unwrap().stats();
        let theirs = model.clone().checker().spawn_bfs().join();
        let found: BTreeSet<&str> = theirs.discoveries().into_keys().collect();
        assert_eq!(found, broken.iter().map(|property| property.name()).collect(), "{}", model.name());
        for property in APPLICABLE.into_iter().filter(|property| property.kind() == Kind::Always) {
            assert_eq!(shortest(&model, property).is_some(), broken.contains(&property), "{property}");
        }
        assert_eq!(theirs.unique_state_count(), ours.states, "{}", model.name());
    }
    use Property::*;
    compare(CommitRunning::new("S1", Setup::new(2)), &[]);
    compare(CommitRunning::new("S1", Setup::new(3)), &[]);
    compare(SingleTransaction::new("S2", Setup::new(2)), &[EffectAtMostOnce, AttemptsAreBounded]);
    let unlocked = SingleTransaction { row_lock: false, ..SingleTransaction::new("unlocked", Setup::new(2)) };
    let broken = [OneCurrentOwner, EffectAtMostOnce, FinalIsFinal, AttemptsAreBounded];
    compare(unlocked, &broken);
}

#[test]
fn a_search_that_was_cut_proves_nothing() {
    let rows = check_older::<SingleTransaction>(Limits { max_states: 20 }).unwrap();
    let of_properties = rows.iter().filter(|row| row.kind != RowKind::Sometimes);
    for row in of_properties {
        assert_eq!(row.holds, Holds::Cut, "{}", row.property);
    }
}
