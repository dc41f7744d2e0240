//! The faults that only some worlds have: restarts in the same slot, two sweepers, a clock set back, deploys.

use leaseproof_model::check::{CheckRow, Holds, Selection, check_worlds};
use leaseproof_model::describe::describe;
use leaseproof_model::fail_over::AfterFailOver;
use leaseproof_model::free::{Action, LeaseModel};
use leaseproof_model::graph::{Limits, Outcome, StepProperty, explore, explore_states};
use leaseproof_model::state::{Phase, State};
use leaseproof_model::world::{Faults, World};
use leaseproof_rules::{Entry, Guard, Guards, Instruments, OnUnknown, Property, Status};
use stateright::Model;

const NONE: Instruments = Instruments::NONE;
const BOTH: Instruments = Instruments { status_query: true, execution_token: true, ..NONE };

fn lease(executors: usize) -> World {
    World::lease(1, executors).unwrap()
}

fn rows(world: World) -> Vec<CheckRow> {
    check_worlds(vec![world], Selection::default()).unwrap()
}

fn holds(world: World, property: Property) -> Holds {
    rows(world).iter().find(|row| row.property == property.name()).unwrap().holds
}

/// Takes the steps of these words, one after the other; each must be offered.
fn walk(world: &World, words: &[&str]) -> State {
    let model = LeaseModel::new(world.clone());
    let mut state = model.init_states()[0].unpack();
    for word in words {
        let mut offered = Vec::new();
        model.actions(&leaseproof_model::packed::Packed::pack(&state, world.setup.shape), &mut offered);
        let told: Vec<String> = offered.iter().map(|action| describe(&model, &state, action)).collect();
        let place = told.iter().position(|told| told == word);
        let place = place.unwrap_or_else(|| panic!("{word:?} is not among {told:#?}"));
        model.step(&mut state, offered[place]);
    }
    state
}

const CLAIMED: [&str; 2] = ["w1: reads t1 as a candidate", "w1: claim t1 epoch 0"];

fn after_claim(world: &World, words: &[&str]) -> State {
    walk(world, &[&CLAIMED[..], words].concat())
}

#[test]
fn a_known_death_is_taken_back_at_once_and_its_zombie_stays_fenced() {
    let world = lease(2).restarts();
    let lost = after_claim(&world, &["w2: a new start registers"]);
    let row = &lost.tasks[0];
    assert!(row.superseded && !row.expired && row.row().owner_lost(), "{row:?}");
    let swept = [&["w2: a new start registers", "sweeper: reads t1", "sweeper: requeue t1"][..]].concat();
    let back = after_claim(&world, &swept);
    assert_eq!((back.tasks[0].status, back.tasks[0].epoch, back.tasks[0].interruptions), (Status::Pending, 2, 1));
    assert!(!back.tasks[0].superseded);
    // The old start has only been paused. It goes on, is refused, and nothing changes.
    let again = [&swept[..], &["w2: reads t1 as a candidate", "w2: claim t1 epoch 2"]].concat();
    let zombie = [&again[..], &["w1: work done, t1 epoch 1", "w1: complete t1 epoch 1"]].concat();
    let (before, after) = (after_claim(&world, &again), after_claim(&world, &zombie));
    assert_eq!((before.tasks[0], after.bad), (after.tasks[0], 0));
}

/// Only rows of starts that are known to be superseded: not those of the newest start, nor those of another executor.
#[test]
fn a_new_start_takes_back_its_own_earlier_rows_only() {
    let world = lease(3).restarts();
    let other = ["w3: reads t1 as a candidate", "w3: claim t1 epoch 0", "w2: a new start registers"];
    assert!(!walk(&world, &other).tasks[0].superseded);
    let newest = ["w2: a new start registers", "w2: reads t1 as a candidate", "w2: claim t1 epoch 0"];
    assert!(!walk(&world, &newest).tasks[0].superseded);
    // At the same place: the boot id is another one.
    assert!(after_claim(&world, &["w1: a new start registers"]).tasks[0].superseded);
    let model = LeaseModel::new(world);
    let graph = explore_states(&model, Limits::default()).unwrap();
    let superseded = |state: &State| state.tasks[0].superseded;
    assert!(graph.states().iter().map(|state| state.unpack()).filter(superseded).all(|state| {
        // Nobody's newest start owns it.
        state.tasks[0].owner < 2 && state.tasks[0].status == Status::Running
    }));
}

#[test]
fn a_superseded_start_claims_nothing() {
    let world = lease(2).restarts();
    let refused = walk(&world, &["w1: reads t1 as a candidate", "w2: a new start registers", "w1: claim t1 epoch 0"]);
    assert_eq!((refused.tasks[0].status, refused.tasks[0].epoch), (Status::Pending, 0));
}

/// The address of a start that is known to be gone is used again: told by the address the new start is dead for ever.
#[test]
fn told_by_their_addresses_the_living_are_taken_for_the_dead() {
    let by_address = lease(2).restarts().guards(Guards::without(Guard::BootIdentity));
    assert_eq!(holds(lease(2).restarts(), Property::EventuallyResolved), Holds::Holds);
    let rows = rows(by_address);
    let row = rows.iter().find(|row| row.property == Property::EventuallyResolved.name()).unwrap();
    assert_eq!((row.holds, row.trace_len), (Holds::Violated, 3), "{:#?}", row.trace);
    // And one whose address is its own again keeps the rows of the dead one, until the lease ends.
    let world = lease(2).restarts().guards(Guards::without(Guard::BootIdentity));
    assert!(!after_claim(&world, &["w1: a new start registers"]).tasks[0].superseded);
}

#[test]
fn two_sweepers_that_have_read_the_same_write_once() {
    let world = lease(1).two_sweepers();
    let both = ["database: lease of t1 ends", "sweeper: reads t1", "second sweeper: reads t1"];
    let first = [&both[..], &["second sweeper: requeue t1"]].concat();
    // By the row's budget as it is now; it makes no difference, the epoch is not the one it has read.
    let second = [&first[..], &["sweeper: escalate t1"]].concat();
    let (once, twice) = (after_claim(&world, &first), after_claim(&world, &second));
    assert_eq!((once.tasks[0], once.tasks[0].epoch, once.tasks[0].interruptions), (twice.tasks[0], 2, 1));
    // One dies between reading and writing: the other goes on.
    let dies = [&both[..], &["sweeper: requeue t1, request lost", "second sweeper: requeue t1"]].concat();
    assert_eq!(after_claim(&world, &dies).tasks[0], once.tasks[0]);
}

/// Of the next run the other one has read nothing: its write is fenced, and is not without compare-and-set.
#[test]
fn what_the_second_sweeper_has_read_of_one_run_it_does_not_write_to_the_next() {
    let steps = [
        "database: lease of t1 ends",
        "sweeper: reads t1",
        "second sweeper: reads t1",
        "sweeper: requeue t1",
        "w1: work done, t1 epoch 1",
        "w1: crashes, t1 epoch 1",
        "w1: reads t1 as a candidate",
        "w1: claim t1 epoch 2",
        "database: lease of t1 ends",
        "second sweeper: escalate t1",
    ];
    let world = lease(1).two_sweepers();
    assert_eq!(after_claim(&world, &steps).tasks[0].status, Status::Running);
    let without = world.guards(Guards::without(Guard::CasAtSweep));
    assert_eq!(after_claim(&without, &steps).tasks[0].status, Status::WaitManual);
}

/// A lease that had ended is live again: its owner may renew it and begin a call, though a sweeper has read it as lost.
/// Nothing in the queue keeps "once ended, ended" against such a clock, and no property rests on it.
#[test]
fn a_clock_that_is_set_back_makes_an_ended_lease_live_again() {
    let world = lease(1).clock_back().effect(NONE, OnUnknown::Escalate);
    let ended = ["w1: comes to its call, t1 epoch 1", "database: lease of t1 ends", "sweeper: reads t1"];
    let back = [&ended[..], &["database: the clock is set back before the time of t1"]].concat();
    // Refused while it has ended, accepted when it is live again.
    let refused = [&ended[..], &["w1: intent t1 epoch 1"]].concat();
    let begun = [&back[..], &["w1: intent t1 epoch 1"]].concat();
    assert_eq!(after_claim(&world, &refused).tasks[0].journal, None);
    assert!(after_claim(&world, &begun).tasks[0].journal.is_some());
    // What the sweeper has read is refused while the lease lives, and does no harm when it has ended again.
    let write = [&begun[..], &["sweeper: requeue t1"]].concat();
    assert_eq!(after_claim(&world, &write).tasks[0].status, Status::Running);
    let late = [&begun[..], &["database: lease of t1 ends", "sweeper: requeue t1"]].concat();
    let late = after_claim(&world, &late);
    assert_eq!((late.tasks[0].status, late.bad), (Status::Pending, 0));
    assert!(late.tasks[0].journal.is_some(), "the next run sees the intent");
}

#[test]
fn what_was_due_is_not_and_is_again() {
    let world = lease(1).clock_back();
    let back = walk(&world, &["database: the clock is set back before the time of t1"]);
    assert!(!back.tasks[0].due);
    let again = ["database: the clock is set back before the time of t1", "database: t1 is due"];
    assert_eq!(walk(&world, &again), State::NEW);
}

/// Deploys alone, however many: attempts are for failures.
#[test]
fn a_deploy_uses_up_no_attempts() {
    let deploys = Faults {
        crash: false,
        lost_request: false,
        lost_reply: false,
        partial: false,
        wrong_clocks: false,
        deploy: true,
        ..Faults::default()
    };
    for world in [lease(2).deploys(2), lease(2).deploys(2).effect(NONE, OnUnknown::Escalate)] {
        let world = world.faults(deploys);
        let answers = rows(world.clone());
        for row in answers.iter().filter(|row| Property::from_name(&row.property).is_some()) {
            assert_eq!(row.holds, Holds::Holds, "{} in {}", row.property, world.name);
        }
        let one_budget = world.guards(Guards::without(Guard::TwoBudgets));
        assert_eq!(holds(one_budget, Property::OnlyFailuresUseUpAttempts), Holds::Violated);
    }
}

/// In good order a stop costs neither an attempt nor an interruption, and is not possible while a call may be under way.
#[test]
fn a_release_costs_nothing_and_leaves_no_call_behind() {
    let model = LeaseModel::new(lease(2).deploys(2).effect(NONE, OnUnknown::Escalate).errors());
    let graph = explore(&model, Limits::default()).unwrap();
    let free = StepProperty::<LeaseModel> {
        name: "a release costs nothing",
        condition: |_, before, action, after| {
            let (before, after) = (before.unpack().tasks[0], after.unpack().tasks[0]);
            let counts = (after.attempts, after.interruptions) == (before.attempts, before.interruptions);
            !matches!(action, Action::Release { .. }) || (counts && before.journal == after.journal)
        },
    };
    let released = StepProperty::<LeaseModel> {
        name: "nothing is ever put back",
        condition: |_, before, action, after| {
            let puts_back = matches!(action, Action::Release { .. });
            !puts_back || before.unpack().tasks[0].status == after.unpack().tasks[0].status
        },
    };
    let reports = graph.check_steps(&[free, released]).unwrap();
    assert!(matches!(reports[0].outcome, Outcome::Holds));
    assert!(matches!(reports[1].outcome, Outcome::Violated(_)), "no release was applied");
}

/// A copy of an earlier write comes when somebody else owns the task, or when nobody does: it is refused or says nothing
/// new.
#[test]
fn a_late_copy_of_a_write_is_harmless_and_would_not_be_without_the_fence() {
    let world = lease(2).writes_twice();
    let next_run = [
        "w1: work done, t1 epoch 1",
        "network: copies complete of w1",
        "w1: crashes, t1 epoch 1",
        "database: lease of t1 ends",
        "sweeper: reads t1",
        "sweeper: requeue t1",
    ];
    let claimed = [&next_run[..], &["w2: reads t1 as a candidate", "w2: claim t1 epoch 2"]].concat();
    let late = [&claimed[..], &["database: a copy arrives, complete t1 epoch 1"]].concat();
    assert_eq!(after_claim(&world, &claimed).tasks, after_claim(&world, &late).tasks);
    let unfenced = world.clone().guards(Guards::without(Guard::FenceComplete));
    assert_ne!(after_claim(&unfenced, &late).bad, 0);
    // Before anybody has claimed it again it is a late result like any other.
    let adopted = [&next_run[..], &["database: a copy arrives, complete t1 epoch 1"]].concat();
    assert_eq!(after_claim(&world, &adopted).tasks[0].status, Status::Success);
    // And once its sender has been told that it has succeeded, it changes nothing.
    let told = ["w1: work done, t1 epoch 1", "network: copies complete of w1", "w1: complete t1 epoch 1"];
    let again = [&told[..], &["database: a copy arrives, complete t1 epoch 1"]].concat();
    assert_eq!(after_claim(&world, &told).tasks, after_claim(&world, &again).tasks);
}

#[test]
fn a_late_copy_of_a_decision_is_refused() {
    let world = lease(1).writes_twice().bad_input().reruns(1);
    let decided = [
        "w1: input is bad, t1 epoch 1",
        "w1: give_up t1 epoch 1",
        "person: opens t1",
        "network: copies rerun of person",
        "w1: reads t1 as a candidate",
        "w1: claim t1 epoch 3",
    ];
    let late = [&decided[..], &["database: a copy arrives, rerun t1 epoch 2"]].concat();
    let (before, after) = (after_claim(&world, &decided), after_claim(&world, &late));
    assert_eq!((before.tasks[0].epoch, before.tasks), (4, after.tasks));
}

/// What the third party is told twice it does twice: of the instruments only a key knows that it is the same call.
#[test]
fn a_call_delivered_twice_needs_a_key() {
    let key = Instruments { idempotency_key: true, ..NONE };
    for (instruments, answer) in [(NONE, Holds::Violated), (BOTH, Holds::Violated), (key, Holds::Holds)] {
        let world = lease(2).calls_twice().effect(instruments, OnUnknown::Escalate);
        assert_eq!(holds(world, Property::EffectAtMostOnce), answer, "{instruments:?}");
    }
}

/// The design rests on a database that keeps what it has committed; this is what breaks if it does not.
#[test]
fn what_a_lost_commit_breaks_and_what_helps() {
    use AfterFailOver::{FreshEpochs, FreshEpochsAndIntents, Nothing};
    // The loss itself takes a final status, or a handing over, back; nothing can help that.
    let itself = [Property::FinalIsFinal, Property::OnlyAPersonLeavesWaitManual];
    let also = |after, instruments: Option<Instruments>| {
        let world = lease(if instruments == Some(BOTH) { 1 } else { 2 }).fail_over(after);
        let world = match instruments {
            Some(instruments) => world.effect(instruments, OnUnknown::Escalate),
            None => world,
        };
        let broken = rows(world).into_iter().filter(|row| row.holds == Holds::Violated);
        let all: Vec<Property> = broken.filter_map(|row| Property::from_name(&row.property)).collect();
        assert!(itself.iter().all(|property| all.contains(property)), "{all:?}");
        all.into_iter().filter(|property| !itself.contains(property)).collect::<Vec<_>>()
    };
    let key = Some(Instruments { idempotency_key: true, ..NONE });
    let (owner, effect) = (Property::OneCurrentOwner, Property::EffectAtMostOnce);
    assert_eq!(also(Nothing, None), [owner]);
    assert_eq!(also(Nothing, Some(NONE)), [owner, effect]);
    assert_eq!(also(Nothing, key), [owner]);
    assert_eq!(also(FreshEpochs, None), []);
    assert_eq!(also(FreshEpochs, Some(NONE)), [effect]);
    assert_eq!(also(FreshEpochs, Some(BOTH)), [effect]);
    assert_eq!(also(FreshEpochs, key), []);
    for instruments in [Some(NONE), Some(BOTH), key] {
        assert_eq!(also(FreshEpochsAndIntents, instruments), []);
    }
}

/// What is known not to have been sent is journalled as not done, by the rule that the queue follows: only if nothing is
/// open of an earlier call.
#[test]
fn a_call_that_was_never_sent_leaves_an_earlier_one_open() {
    let to_call = |w: u8, epoch: u8| {
        [
            format!("w{w}: comes to its call, t1 epoch {epoch}"),
            format!("w{w}: intent t1 epoch {epoch}"),
            format!("w{w}: can not reach the third party, t1 epoch {epoch}"),
        ]
    };
    let walk = |world: &World, words: &[String]| walk(world, &words.iter().map(String::as_str).collect::<Vec<_>>());
    let repeat = lease(1).unreachable().effect(NONE, OnUnknown::Repeat);
    let begin = CLAIMED.map(str::to_owned);
    let unsent = [&begin[..], &to_call(1, 1)].concat();
    let first = walk(&repeat, &unsent);
    assert_eq!((first.runs[0].phase, first.tasks[0].journal), (Phase::Retracting, Some(Entry::Intent)));
    let retracted = walk(&repeat, &[&unsent[..], &["w1: outcome t1 epoch 1".to_owned()]].concat());
    assert_eq!((retracted.runs[0].phase, retracted.tasks[0].journal), (Phase::Failing, Some(Entry::NotDone)));
    // The first call leaves and is never heard of; the second is not sent. Of the effect nothing is known.
    let open = [
        "w1: comes to its call, t1 epoch 1",
        "w1: intent t1 epoch 1",
        "w1: calls the third party, t1 epoch 1",
        "w1: no reply in time, t1 epoch 1",
        "w1: retry t1 epoch 1",
        "w1: reads t1 as a candidate",
        "w1: claim t1 epoch 2",
    ];
    let second = walk(&repeat, &[&begin[..], &open.map(str::to_owned), &to_call(1, 3)].concat());
    assert_eq!((second.runs[0].phase, second.tasks[0].journal), (Phase::Unsure, Some(Entry::Intent)));
}

/// A refusal for the token is a word on that call as well: it is journalled, and the run fails, unless it is not the owner
/// any more.
#[test]
fn a_refused_call_is_one_that_did_not_happen() {
    let world = lease(1).clock_back().effect(BOTH, OnUnknown::Escalate);
    let asked = [
        "w1: comes to its call, t1 epoch 1",
        "w1: intent t1 epoch 1",
        "w1: calls the third party, t1 epoch 1",
        "database: lease of t1 ends",
        "sweeper: reads t1",
        "sweeper: asks the third party about t1",
        "third party: call of t1 with token 1 arrives",
    ];
    let refused = after_claim(&world, &asked);
    assert_eq!((refused.runs[0].phase, refused.tasks[0].ledger[0]), (Phase::Retracting, 0));
    let owner = after_claim(&world, &[&asked[..], &["w1: outcome t1 epoch 1", "w1: retry t1 epoch 1"]].concat());
    assert_eq!((owner.tasks[0].status, owner.tasks[0].journal), (Status::RetryWait, Some(Entry::NotDone)));
    let gone = after_claim(&world, &[&asked[..], &["sweeper: requeue t1", "w1: outcome t1 epoch 1"]].concat());
    assert_eq!((gone.tasks[0].status, gone.runs[0].phase), (Status::Pending, Phase::Idle));
}
