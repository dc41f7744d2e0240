//! What the instruments of an outside effect bring in the free worlds, and what each rests on.

use std::collections::BTreeSet;

use leaseproof_model::check::{CheckRow, Holds, Selection, check_worlds};
use leaseproof_model::free::LeaseModel;
use leaseproof_model::graph::{Limits, explore};
use leaseproof_model::properties;
use leaseproof_model::state::State;
use leaseproof_model::world::{Flaw, World, WorldError};
use leaseproof_rules::{Instruments, OnUnknown, Property, Reason, Status};

const NONE: Instruments = Instruments::NONE;
const KEY: Instruments = Instruments { idempotency_key: true, ..NONE };
const QUERY: Instruments = Instruments { status_query: true, ..NONE };
const BOTH: Instruments = Instruments { execution_token: true, ..QUERY };

fn steps(instruments: Instruments) -> Instruments {
    Instruments { checkpoints: true, ..instruments }
}

fn lease() -> World {
    World::lease(1, 2).unwrap()
}

fn rows(world: World) -> Vec<CheckRow> {
    check_worlds(vec![world], Selection::default()).unwrap()
}

fn violated(rows: &[CheckRow]) -> BTreeSet<String> {
    let broken = |row: &&CheckRow| row.holds == Holds::Violated && Property::from_name(&row.property).is_some();
    rows.iter().filter(broken).map(|row| row.property.clone()).collect()
}

fn shortest(rows: &[CheckRow], property: Property) -> usize {
    rows.iter().find(|row| row.property == property.name()).unwrap().trace_len
}

/// Whether some state of the world is like this.
fn reachable(world: &World, like: impl Fn(&State) -> bool) -> bool {
    let model = LeaseModel::new(world.clone());
    let graph = explore(&model, Limits::default()).unwrap();
    assert!(!graph.stats().cut);
    graph.states().iter().any(|packed| like(&packed.unpack()))
}

fn handed_over(world: &World, reason: Reason) -> bool {
    reachable(world, |state| properties::some_task_because(&world.setup, state, reason))
}

/// Three parts stand for ten thousand: four bring no new verdict, with every instrument, with what they rest on and
/// without.
#[test]
fn the_verdicts_do_not_depend_on_the_number_of_parts_from_three_on() {
    let mut worlds = Vec::new();
    for instruments in [NONE, KEY, QUERY, BOTH] {
        for instruments in [instruments, steps(instruments)] {
            worlds.push(lease().effect(instruments, OnUnknown::Escalate));
        }
    }
    worlds.push(lease().effect(NONE, OnUnknown::Repeat));
    worlds.push(lease().effect(NONE, OnUnknown::Skip));
    worlds.push(lease().effect(steps(BOTH), OnUnknown::Escalate).partial_to_a_person());
    worlds.push(lease().effect(steps(NONE), OnUnknown::Escalate).flaw(Flaw::FromTheStart));
    let mut seen = BTreeSet::new();
    for world in worlds {
        let answers = |parts| {
            let rows = rows(world.clone().parts(parts));
            rows.into_iter().map(|row| (row.property, row.holds)).collect::<Vec<_>>()
        };
        let three = answers(3);
        assert_eq!(three, answers(4), "{}", world.name);
        seen.extend(three);
    }
    // The comparison can tell: it has seen properties held and violated, and cases met and not met.
    assert!(seen.contains(&("effect_at_most_once".to_owned(), Holds::Violated)));
    assert!(seen.contains(&("effect_at_most_once".to_owned(), Holds::Holds)));
    assert!(seen.contains(&(format!("some task is handed over because of {}", Reason::PartlyDone), Holds::Holds)));
    assert!(seen.contains(&(format!("some task is handed over because of {}", Reason::PartlyDone), Holds::Violated)));
}

/// E-C: a call of several parts may stop in between. Whoever calls again repeats what was done.
#[test]
fn a_call_of_several_parts_may_stop_in_between_and_is_then_no_longer_all_or_nothing() {
    let partial = |state: &State| state.tasks[0].is_done(0..3).is_none();
    assert!(reachable(&lease().effect(NONE, OnUnknown::Escalate).parts(3), partial));
    assert!(!reachable(&lease().effect(NONE, OnUnknown::Escalate), |state| state.tasks[0].is_done(0..1).is_none()));
    // Behind a token a part is a fact that a person has to act on, else a doubt.
    assert!(handed_over(&lease().effect(BOTH, OnUnknown::Escalate).parts(3), Reason::PartlyDone));
    assert!(!handed_over(&lease().effect(QUERY, OnUnknown::Escalate).parts(3), Reason::PartlyDone));
    assert!(!handed_over(&lease().effect(BOTH, OnUnknown::Escalate), Reason::PartlyDone));
}

/// E4: only the step that was under way is unknown; those before it are not repeated, those after it are not lost.
#[test]
fn with_checkpoints_one_step_is_unknown_at_most_and_a_re_run_begins_there() {
    let world = lease().effect(steps(NONE), OnUnknown::Escalate).parts(3).errors();
    assert_eq!(violated(&rows(world.clone())), BTreeSet::new());
    // What is recorded has happened, once; nothing beyond the step at hand has been begun.
    assert!(!reachable(&world, |state| {
        let task = &state.tasks[0];
        let past = usize::from(task.recorded());
        let begun = past + 1;
        task.ledger[..past].iter().any(|&times| times != 1)
            || task.ledger[begun.min(3)..3].iter().any(|&times| times > 0)
    }));
    // A second run goes on in the middle.
    assert!(reachable(&world, |state| state.tasks[0].epoch >= 3 && state.tasks[0].recorded() == 3));
}

#[test]
fn a_re_run_from_the_start_repeats_what_was_recorded() {
    let world = lease().effect(steps(NONE), OnUnknown::Escalate).parts(3);
    let rows = rows(world.flaw(Flaw::FromTheStart));
    assert!(violated(&rows).contains("effect_at_most_once"), "{:?}", violated(&rows));
    assert!(shortest(&rows, Property::EffectAtMostOnce) > 10);
}

/// M4: which steps are done is known and nothing goes on by itself, where the declaration says so.
#[test]
fn what_is_known_to_be_partly_done_is_not_claimed_again_without_a_person() {
    let world = lease().effect(steps(BOTH), OnUnknown::Escalate).parts(3).errors();
    let goes_on = |state: &State| {
        let task = &state.tasks[0];
        task.status == Status::Pending && (1..3).contains(&task.recorded())
    };
    assert!(reachable(&world, goes_on));
    let asks = world.clone().partial_to_a_person();
    assert!(!reachable(&asks, goes_on));
    // The record of what is done goes along with it.
    assert!(reachable(&asks, |state| {
        let task = &state.tasks[0];
        task.reason == Some(Reason::PartlyDone) && task.recorded() == 2 && task.ledger[..3] == [1, 1, 0]
    }));
}

#[test]
fn more_parts_than_there_is_room_for_are_refused() {
    let world = |parts| lease().effect(NONE, OnUnknown::Escalate).parts(parts);
    assert_eq!(world(4).validate(), Ok(()));
    assert_eq!(world(5).validate(), Err(WorldError::Parts { parts: 5, max: 4, needed: 7 }));
    assert_eq!(world(0).validate(), Err(WorldError::Parts { parts: 0, max: 4, needed: 7 }));
    assert_eq!(world(3).reruns(1).validate(), Err(WorldError::Parts { parts: 3, max: 2, needed: 14 }));
}

fn outbox(instruments: Instruments, on_unknown: OnUnknown) -> World {
    World::lease(2, 2).unwrap().outbox(instruments, on_unknown)
}

/// E3: the task itself can run again whatever was lost, since it calls nobody. The question has moved to the entry.
#[test]
fn an_outbox_makes_the_task_safe_to_run_again_and_moves_the_question_to_the_relay() {
    let unknown = |task: usize| move |state: &State| state.tasks[task].reason == Some(Reason::OutcomeUnknown);
    let world = outbox(NONE, OnUnknown::Escalate);
    assert_eq!(violated(&rows(world.clone())), BTreeSet::new());
    assert!(!reachable(&world, unknown(0)));
    assert!(reachable(&world, unknown(1)));
    // The same call without an outbox: it is the task that waits for a person.
    assert!(reachable(&lease().effect(NONE, OnUnknown::Escalate), unknown(0)));
    // Nothing happens before SUCCESS, though the task may have run twice by then.
    let early = |state: &State| state.tasks[1].happened() > 0 && state.tasks[0].status != Status::Success;
    assert!(!reachable(&world, early));
    let after_two_runs = |state: &State| state.tasks[0].epoch >= 3 && state.tasks[1].happened() == 1;
    assert!(reachable(&world, after_two_runs));
}

/// A relay may crash between the call and its mark: what then is safe is for the other instruments to say.
#[test]
fn a_relay_repeats_or_escalates_like_any_caller() {
    let twice = |state: &State| state.tasks[1].happened() > 1;
    let unknown = |state: &State| state.tasks[1].reason == Some(Reason::OutcomeUnknown);
    for (instruments, on_unknown, repeats, escalates) in [
        (NONE, OnUnknown::Escalate, false, true),
        (NONE, OnUnknown::Repeat, true, false),
        (KEY, OnUnknown::Escalate, false, false),
        (QUERY, OnUnknown::Escalate, false, true),
        (BOTH, OnUnknown::Escalate, false, false),
    ] {
        let world = outbox(instruments, on_unknown);
        assert_eq!(reachable(&world, twice), repeats, "{}", world.name);
        assert_eq!(reachable(&world, unknown), escalates, "{}", world.name);
    }
}

#[test]
fn an_entry_that_is_not_in_the_transaction_of_success_can_be_lost() {
    let world = outbox(KEY, OnUnknown::Escalate).flaw(Flaw::EntryAfterSuccess);
    let rows = rows(world);
    assert_eq!(violated(&rows), BTreeSet::from(["eventually_resolved".to_owned()]));
    let trace = rows.iter().find(|row| row.property == "eventually_resolved").unwrap();
    let lost = |line: &String| line.contains("task t1: SUCCESS") && line.contains("task t2: not written yet");
    assert!(trace.trace.iter().any(lost), "{:#?}", trace.trace);
}
