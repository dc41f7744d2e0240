//! The properties of the rules, told on the model's state and steps.
//!
//! Each is watched where it can break, and what broke stays in the ghost [`State::bad`]: so every safety property is a
//! predicate on states, for this crate's checker and for stateright's alike.

use leaseproof_rules::{Actor, Judgement, OnUnknown, Property, Reason, Status, Verb, Write};
use stateright::{Model, Property as Checked};

use crate::packed::Packed;
use crate::state::{State, Task};
use crate::world::{Setup, World};

/// The bit of a safety property in [`State::bad`].
pub fn bit(property: Property) -> u16 {
    match property {
        // Told by the fair runs, not by a state.
        Property::EventuallyResolved => 0,
        _ => 1 << property as u8,
    }
}

/// The first property, in their order, that is broken in this state.
pub fn broken(state: &State) -> Option<Property> {
    Property::ALL.into_iter().find(|property| state.bad & bit(*property) != 0)
}

fn mask(broken: &[(Property, bool)]) -> u16 {
    broken.iter().filter(|(_, is_broken)| *is_broken).fold(0, |mask, (property, _)| mask | bit(*property))
}

/// What a committed write breaks.
///
/// The owner of a task is whoever made the claim of the row's epoch, as long as the row is RUNNING: claims make an
/// owner, and whatever leaves RUNNING ends it.
pub(crate) fn broken_by_write(
    setup: &Setup,
    index: usize,
    before: &Task,
    write: Write,
    judgement: Judgement,
    after: &Task,
) -> u16 {
    let moved = before.status != after.status;
    let by_owner = write.verb.actor() == Actor::Owner;
    let applied = matches!(judgement, Judgement::Applied { .. });
    let succeeded = write.verb == Verb::Complete && after.status == Status::Success;
    let policy = &setup.policy;
    mask(&[
        (Property::OneCurrentOwner, write.verb == Verb::Claim && before.status == Status::Running),
        (Property::StaleWriteChangesNothing, by_owner && applied && write.epoch != u64::from(before.epoch)),
        (Property::SuccessMeansEffect, succeeded && is_missed(setup, index, after)),
        (Property::FinalIsFinal, moved && before.status.is_final()),
        (
            Property::OnlyAPersonLeavesWaitManual,
            moved && before.status == Status::WaitManual && write.verb.actor() != Actor::Person,
        ),
        // Epochs begin at 1, so nothing is older than a decision that was not made.
        (Property::DecisionStands, by_owner && moved && write.epoch <= u64::from(before.decided)),
        (
            Property::AttemptsAreBounded,
            // The loss that goes over the budget is counted too; it is the one that ends the automatic reclaims.
            u32::from(after.attempts) > policy.max_attempts
                || u32::from(after.interruptions) > policy.max_interruptions.saturating_add(1),
        ),
        (
            Property::OnlyFailuresUseUpAttempts,
            applied
                && after.reason == Some(Reason::AttemptsExhausted)
                && u32::from(after.attempts) < policy.max_attempts
                // A saga that turns begins to count anew, and keeps why it has turned.
                && after.turned == 0,
        ),
        (
            Property::CompensationLeavesNothing,
            after.turned > 0 && write.verb == Verb::GiveUp && after.status == Status::Fail && something_is_left(after),
        ),
    ])
}

/// What a committed claim breaks besides: of an epoch that is given a second time there would be two owners.
pub(crate) fn broken_by_claim(setup: &Setup, state: &State, index: usize) -> u16 {
    let epoch = state.tasks[index].epoch;
    let mut runs = state.runs[..setup.shape.runs].iter();
    let given = runs.any(|run| run.phase.is_executing() && usize::from(run.task) == index && run.epoch == epoch);
    mask(&[(Property::OneCurrentOwner, given)])
}

fn is_missed(setup: &Setup, index: usize, task: &Task) -> bool {
    let missing = || task.is_done(0..setup.shape.parts) != Some(true);
    setup.effects[index].is_some_and(|rule| rule.on_unknown != OnUnknown::Skip && missing())
}

fn something_is_left(task: &Task) -> bool {
    task.ledger.iter().zip(task.undone).any(|(&happened, undone)| happened > 0 && undone == 0)
}

/// What an executed call breaks.
pub(crate) fn broken_by_call(setup: &Setup, index: usize, before: &Task, after: &Task) -> u16 {
    let may_repeat = setup.effects[index].is_some_and(|rule| rule.on_unknown == OnUnknown::Repeat);
    let parts = before.ledger.iter().zip(after.ledger).zip(after.undone);
    let too_late = parts.into_iter().any(|((&before, after), undone)| after > before && undone > 0);
    mask(&[
        (Property::EffectAtMostOnce, after.happened() > 1 && !may_repeat),
        (Property::CompensationComesAfter, too_late),
        (
            Property::CompensationLeavesNothing,
            after.turned > 0 && after.status == Status::Fail && something_is_left(after),
        ),
    ])
}

/// What the compensation of a part breaks. With a key, to undo what has not happened does nothing.
pub(crate) fn broken_by_undo(setup: &Setup, index: usize, after: &Task, part: usize) -> u16 {
    let by_key = setup.effects[index].is_some_and(|rule| rule.instruments.idempotency_key);
    let later = part + 1..setup.shape.parts;
    let out_of_order = later.into_iter().any(|later| after.ledger[later] > 0 && after.undone[later] == 0);
    let too_early = after.ledger[part] == 0 && !by_key;
    mask(&[
        (Property::EffectAtMostOnce, after.undone[part] > 1),
        (Property::CompensationComesAfter, out_of_order || too_early),
    ])
}

/// Every task is in SUCCESS, FAIL or WAIT_MANUAL; an outbox entry is, or is not to be: its task has not succeeded. Or a
/// property is broken, since free worlds end there.
pub fn all_resolved(setup: &Setup, state: &State) -> bool {
    let tasks = &state.tasks[..setup.shape.tasks];
    let needless = |index: usize| {
        setup.is_entry(index) && tasks[index] == Task::UNWRITTEN && tasks[index - 1].status != Status::Success
    };
    state.bad != 0 || (0..tasks.len()).all(|index| tasks[index].status.is_resolved() || needless(index))
}

/// Two handlers work on the same task: one of them has lost its claim and has not noticed. Excluded is that both are
/// owners, not that both work.
pub fn concurrent_execution(setup: &Setup, state: &State) -> bool {
    let runs = &state.runs[..setup.shape.runs];
    runs.iter()
        .enumerate()
        .any(|(i, a)| a.phase.is_at_work() && runs[..i].iter().any(|b| b.phase.is_at_work() && a.task == b.task))
}

/// Some task's effect has happened in part.
pub fn some_effect_is_partial(setup: &Setup, state: &State) -> bool {
    state.tasks[..setup.shape.tasks].iter().any(|task| task.is_done(0..setup.shape.parts).is_none())
}

/// Some task has this status.
pub fn some_task_is(setup: &Setup, state: &State, status: Status) -> bool {
    state.tasks[..setup.shape.tasks].iter().any(|task| task.status == status)
}

/// Some task was ended for this reason.
pub fn some_task_because(setup: &Setup, state: &State, reason: Reason) -> bool {
    state.tasks[..setup.shape.tasks].iter().any(|task| task.reason == Some(reason))
}

/// The properties as stateright takes them: all safety properties, and that two handlers may work on one task.
pub(crate) fn declared<M: Model<State = Packed> + AsRef<World>>() -> Vec<Checked<M>> {
    macro_rules! safe {
        ($($property:ident),*) => {
            vec![$(Checked::always(Property::$property.name(), |_, state: &Packed| {
                state.unpack().bad & bit(Property::$property) == 0
            })),*]
        };
    }
    let mut all = safe![
        OneCurrentOwner,
        StaleWriteChangesNothing,
        EffectAtMostOnce,
        SuccessMeansEffect,
        FinalIsFinal,
        OnlyAPersonLeavesWaitManual,
        DecisionStands,
        AttemptsAreBounded,
        OnlyFailuresUseUpAttempts,
        CompensationLeavesNothing,
        CompensationComesAfter
    ];
    all.push(Checked::sometimes(crate::witness::CONCURRENT_EXECUTION, |model: &M, state| {
        concurrent_execution(&model.as_ref().setup, &state.unpack())
    }));
    all
}

#[cfg(test)]
mod tests {
    use leaseproof_rules::{Epoch, Instruments};

    use super::*;
    use crate::world::World;

    /// Each sentence is broken by a write (or a call) that breaks it, and by that sentence's name: the checks can fail.
    #[test]
    fn each_safety_property_can_be_broken() {
        let setup = World::lease(1, 1)
            .map(|world| world.effect(Instruments::default(), OnUnknown::Escalate).setup)
            .expect("one task and one executor fit");
        let row = |status, epoch| Task { status, epoch, ledger: [1, 0, 0, 0], ..Task::NEW };
        let write = |verb, epoch: Epoch| Write { verb, to: Status::Running, epoch };
        let broken = |before: Task, write: Write, after: Task| {
            let applied = Judgement::Applied { status: after.status, epoch: after.epoch.into() };
            broken_by_write(&setup, 0, &before, write, applied, &after)
        };
        use Status::*;
        let once = Task { ledger: [1, 0, 0, 0], ..Task::NEW };
        let decided = Task { decided: 4, ..row(Pending, 5) };
        let cases = [
            (Property::OneCurrentOwner, row(Running, 1), write(Verb::Claim, 0), row(Running, 2)),
            (Property::StaleWriteChangesNothing, row(Running, 3), write(Verb::Heartbeat, 1), row(Running, 3)),
            (
                Property::SuccessMeansEffect,
                row(Running, 1),
                write(Verb::Complete, 1),
                Task { ledger: [0; 4], ..row(Success, 1) },
            ),
            (Property::FinalIsFinal, row(Fail, 1), write(Verb::Claim, 1), row(Running, 2)),
            (Property::OnlyAPersonLeavesWaitManual, row(WaitManual, 2), write(Verb::Claim, 2), row(Running, 3)),
            (Property::DecisionStands, decided, write(Verb::Complete, 5 - 1), Task { status: Success, ..decided }),
            (
                Property::AttemptsAreBounded,
                row(Running, 9),
                write(Verb::Retry, 9),
                Task { attempts: 3, ..row(RetryWait, 10) },
            ),
            (
                Property::AttemptsAreBounded,
                row(Running, 9),
                write(Verb::Requeue, 9),
                Task { interruptions: 3, ..row(Pending, 10) },
            ),
            (
                Property::OnlyFailuresUseUpAttempts,
                row(Running, 9),
                write(Verb::Escalate, 9),
                Task { attempts: 1, reason: Some(Reason::AttemptsExhausted), ..row(WaitManual, 10) },
            ),
        ];
        for (property, before, write, after) in cases {
            assert_ne!(broken(before, write, after) & bit(property), 0, "{property}");
        }
        assert_eq!(
            broken_by_call(&setup, 0, &once, &Task { ledger: [2, 0, 0, 0], ..once }),
            bit(Property::EffectAtMostOnce)
        );
        assert_eq!(broken_by_call(&setup, 0, &Task::NEW, &once), 0);
        let undone = Task { undone: [1, 0, 0, 0], ..once };
        let early = Task { undone: [1, 0, 0, 0], ..Task::NEW };
        assert_eq!(broken_by_undo(&setup, 0, &undone, 0), 0);
        assert_eq!(broken_by_undo(&setup, 0, &early, 0), bit(Property::CompensationComesAfter));
        assert_eq!(broken_by_call(&setup, 0, &early, &undone), bit(Property::CompensationComesAfter));
        let twice = Task { undone: [2, 0, 0, 0], ..once };
        assert_eq!(broken_by_undo(&setup, 0, &twice, 0), bit(Property::EffectAtMostOnce));
        let back = Task { turned: 3, ..row(Running, 4) };
        let given_up = Write { verb: Verb::GiveUp, to: Fail, epoch: 4 };
        let failed = |undone| broken(back, given_up, Task { status: Fail, epoch: 5, undone, ..back });
        assert_eq!(failed([0; 4]), bit(Property::CompensationLeavesNothing));
        assert_eq!(failed([1, 0, 0, 0]), 0);
        let fine = broken(row(Running, 1), write(Verb::Complete, 1), row(Success, 1));
        assert_eq!(fine, 0, "an owner's success breaks nothing");
    }
}
