//! Sagas (E5): what can not go on is undone in reverse order, and what that rests on.

use std::collections::BTreeSet;

use leaseproof_model::check::{CheckRow, Holds, Selection, ablation_world, check_worlds};
use leaseproof_model::free::LeaseModel;
use leaseproof_model::graph::{Limits, explore};
use leaseproof_model::state::State;
use leaseproof_model::world::{Flaw, World, WorldError};
use leaseproof_rules::{Guard, Guards, Instruments, OnUnknown, Property, Reason, Status};

const NONE: Instruments = Instruments::NONE;
const KEY: Instruments = Instruments { idempotency_key: true, ..NONE };
const BOTH: Instruments = Instruments { status_query: true, execution_token: true, ..NONE };
const FENCED_KEY: Instruments = Instruments { execution_token: true, ..KEY };

fn saga(executors: usize, instruments: Instruments) -> World {
    let instruments = Instruments { checkpoints: true, compensation: true, ..instruments };
    World::lease(1, executors).unwrap().effect(instruments, OnUnknown::Escalate).parts(2).budgets(1, 0)
}

fn rows(world: World) -> Vec<CheckRow> {
    check_worlds(vec![world], Selection::default()).unwrap()
}

fn violated(world: World) -> BTreeSet<String> {
    let broken = |row: &CheckRow| row.holds == Holds::Violated && Property::from_name(&row.property).is_some();
    rows(world).into_iter().filter(broken).map(|row| row.property).collect()
}

fn reachable(world: &World, like: impl Fn(&State) -> bool) -> bool {
    let model = LeaseModel::new(world.clone());
    let graph = explore(&model, Limits::default()).unwrap();
    assert!(!graph.stats().cut);
    graph.states().iter().any(|packed| like(&packed.unpack()))
}

fn names(properties: &[Property]) -> BTreeSet<String> {
    properties.iter().map(|property| property.name().to_owned()).collect()
}

/// Both ends are reached: FAIL with nothing left, and a person where undoing fails too.
#[test]
fn a_compensated_saga_leaves_no_effect_and_one_that_fails_to_goes_to_a_person() {
    for world in [saga(2, NONE).errors(), saga(1, BOTH).errors(), saga(2, FENCED_KEY)] {
        assert_eq!(violated(world.clone()), BTreeSet::new(), "{}", world.name);
        assert!(reachable(&world, |state| {
            let task = &state.tasks[0];
            task.status == Status::Fail && task.ledger[..2] == [1, 1] && task.undone[..2] == [1, 1]
        }));
        assert!(reachable(&world, |state| {
            let task = &state.tasks[0];
            task.reason == Some(Reason::CompensationFailed) && task.ledger[..2] == [1, 1] && task.undone[0] == 0
        }));
    }
}

/// A task that ends in FAIL says why it turned, not that its undoing came to an end.
#[test]
fn a_compensated_saga_keeps_why_it_has_failed() {
    let world = saga(1, NONE).errors().bad_input();
    let because = |reason| {
        reachable(&world, |state: &State| {
            let task = &state.tasks[0];
            task.status == Status::Fail && task.turned > 0 && task.reason == Some(reason)
        })
    };
    for reason in [Reason::AttemptsExhausted, Reason::InterruptionsExhausted, Reason::NotRetryable] {
        assert!(because(reason), "{reason}");
    }
}

/// A compensation is an outside call like any other: its outcome may be unknown, and its instruments decide then.
#[test]
fn a_compensation_of_unknown_outcome_is_not_repeated_without_a_key() {
    let unknown = |state: &State| {
        let task = &state.tasks[0];
        task.turned > 0 && task.reason == Some(Reason::OutcomeUnknown)
    };
    assert!(reachable(&saga(1, NONE), unknown));
    assert!(!reachable(&saga(1, FENCED_KEY), unknown));
    let twice = |state: &State| state.tasks[0].undone.iter().any(|&times| times > 1);
    assert!(!reachable(&saga(1, NONE), twice));
}

/// A person who lets a half undone saga run again lets it be undone to the end.
#[test]
fn a_rerun_goes_on_undoing() {
    let world = saga(1, NONE).errors().reruns(1);
    assert_eq!(violated(world.clone()), BTreeSet::new());
    assert!(reachable(&world, |state| {
        let task = &state.tasks[0];
        state.reruns == 1 && task.turned > 0 && task.status == Status::Fail && task.undone[..2] == [1, 1]
    }));
}

#[test]
fn what_may_still_happen_is_not_undone() {
    assert_eq!(violated(ablation_world(Guard::KnownBeforeUndo).unwrap()), names(&[Property::CompensationComesAfter]));
    // With the guard a key alone is not enough, and a person is asked; behind a token it is.
    let undone_unknown = |state: &State| state.tasks[0].ledger[0] == 0 && state.tasks[0].undone[0] > 0;
    assert!(!reachable(&saga(1, KEY).budgets(1, 1).errors(), undone_unknown));
    assert!(reachable(&saga(1, FENCED_KEY).errors(), undone_unknown));
    let without = saga(1, FENCED_KEY).errors().guards(Guards::without(Guard::KnownBeforeUndo));
    assert_eq!(violated(without), BTreeSet::new(), "key and token need no knowledge");
}

#[test]
fn steps_are_undone_from_the_last_to_the_first_and_all_of_them() {
    let in_order = violated(saga(1, NONE).errors().flaw(Flaw::UndoesInOrder));
    assert!(in_order.contains(Property::CompensationComesAfter.name()), "{in_order:?}");
    let only_last = violated(saga(1, NONE).errors().flaw(Flaw::UndoesOnlyTheLast));
    assert_eq!(only_last, names(&[Property::CompensationLeavesNothing]));
}

#[test]
fn what_can_not_be_undone_is_refused_as_a_saga() {
    let plain = |instruments, on_unknown| {
        World::lease(1, 1).unwrap().effect(Instruments { compensation: true, ..instruments }, on_unknown).parts(2)
    };
    let steps = Instruments { checkpoints: true, ..NONE };
    let refused = |world: World| matches!(world.validate(), Err(WorldError::Effect { .. }));
    assert!(!refused(plain(steps, OnUnknown::Escalate)));
    assert!(refused(plain(NONE, OnUnknown::Escalate)));
    assert!(refused(plain(steps, OnUnknown::Repeat)) && refused(plain(steps, OnUnknown::Skip)));
    assert!(refused(plain(steps, OnUnknown::Escalate).partial_to_a_person()));
}
