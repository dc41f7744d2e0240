//! The worlds of `check`: those in which the design is checked, and for each guard the one in which it is missed.

use leaseproof_rules::{Guard, Guards, Instruments, OnUnknown, Property};

use crate::fail_over::AfterFailOver;
use crate::world::{World, WorldError};

const NONE: Instruments = Instruments::NONE;
const KEY: Instruments = Instruments { idempotency_key: true, ..NONE };
const QUERY: Instruments = Instruments { status_query: true, ..NONE };
const BOTH: Instruments = Instruments { execution_token: true, ..QUERY };
const FENCED_KEY: Instruments = Instruments { execution_token: true, ..KEY };

/// The worlds in which the design is checked by default.
///
/// # Errors
/// None in a released build: a test builds them all.
pub fn default_worlds() -> Result<Vec<World>, WorldError> {
    let steps = |instruments| Instruments { checkpoints: true, ..instruments };
    let saga = |instruments| Instruments { checkpoints: true, compensation: true, ..instruments };
    Ok(vec![
        World::lease(1, 3)?.errors().hangs(),
        World::lease(1, 3)?.errors().reruns(1),
        World::lease(1, 2)?.errors().hangs().reruns(1),
        World::lease(1, 2)?.errors().bad_input().fail_when_exhausted(),
        World::lease(2, 2)?.errors(),
        World::lease(1, 2)?.effect(NONE, OnUnknown::Escalate).errors().reruns(1),
        World::lease(1, 3)?.effect(NONE, OnUnknown::Escalate).errors(),
        World::lease(2, 2)?.effect(NONE, OnUnknown::Escalate),
        World::lease(1, 2)?.effect(NONE, OnUnknown::Skip).errors(),
        World::lease(1, 2)?.effect(NONE, OnUnknown::Repeat).errors(),
        World::lease(1, 2)?.effect(KEY, OnUnknown::Escalate).errors(),
        World::lease(1, 2)?.effect(QUERY, OnUnknown::Escalate).errors(),
        World::lease(1, 2)?.effect(QUERY, OnUnknown::Skip).errors(),
        World::lease(1, 2)?.effect(BOTH, OnUnknown::Escalate).errors(),
        World::lease(1, 3)?.effect(BOTH, OnUnknown::Escalate),
        World::lease(1, 2)?.effect(NONE, OnUnknown::Escalate).parts(3).errors(),
        World::lease(1, 2)?.effect(NONE, OnUnknown::Escalate).parts(2).reruns(1),
        World::lease(1, 2)?.effect(KEY, OnUnknown::Escalate).parts(3).errors(),
        World::lease(1, 2)?.effect(QUERY, OnUnknown::Escalate).parts(3),
        World::lease(1, 2)?.effect(BOTH, OnUnknown::Escalate).parts(3).errors(),
        World::lease(1, 2)?.effect(BOTH, OnUnknown::Skip).parts(3),
        World::lease(1, 2)?.effect(steps(NONE), OnUnknown::Escalate).parts(3).errors(),
        World::lease(1, 2)?.effect(steps(NONE), OnUnknown::Escalate).parts(2).reruns(1),
        World::lease(1, 2)?.effect(steps(NONE), OnUnknown::Skip).parts(3),
        World::lease(1, 2)?.effect(steps(KEY), OnUnknown::Escalate).parts(3).errors(),
        World::lease(1, 2)?.effect(steps(BOTH), OnUnknown::Escalate).parts(3).errors(),
        World::lease(1, 2)?.effect(steps(BOTH), OnUnknown::Escalate).parts(3).errors().partial_to_a_person(),
        World::lease(2, 2)?.outbox(NONE, OnUnknown::Escalate),
        World::lease(2, 2)?.outbox(KEY, OnUnknown::Escalate),
        World::lease(2, 1)?.outbox(BOTH, OnUnknown::Escalate).errors(),
        World::lease(2, 1)?.outbox(NONE, OnUnknown::Repeat).errors(),
        World::lease(1, 2)?.effect(saga(NONE), OnUnknown::Escalate).parts(2).errors().budgets(1, 0),
        World::lease(1, 2)?.effect(saga(KEY), OnUnknown::Escalate).parts(2).budgets(1, 0),
        World::lease(1, 1)?.effect(saga(BOTH), OnUnknown::Escalate).parts(2).errors().budgets(1, 1),
        World::lease(1, 2)?.effect(saga(FENCED_KEY), OnUnknown::Escalate).parts(2).budgets(1, 0),
        World::lease(1, 1)?.effect(saga(QUERY), OnUnknown::Escalate).parts(2).bad_input().hangs().budgets(1, 1),
        World::lease(1, 3)?.restarts(),
        World::lease(1, 2)?.restarts().errors(),
        World::lease(1, 3)?.restarts().effect(NONE, OnUnknown::Escalate),
        World::lease(1, 2)?.restarts().effect(QUERY, OnUnknown::Skip),
        World::lease(1, 2)?.restarts().effect(BOTH, OnUnknown::Escalate),
        World::lease(1, 2)?.restarts().effect(steps(NONE), OnUnknown::Escalate).parts(3),
        World::lease(2, 1)?.two_sweepers(),
        World::lease(1, 2)?.two_sweepers().errors().hangs(),
        World::lease(1, 1)?.two_sweepers().effect(BOTH, OnUnknown::Escalate),
        World::lease(1, 2)?.two_sweepers().effect(NONE, OnUnknown::Escalate).errors(),
        World::lease(1, 2)?.two_sweepers().restarts().effect(NONE, OnUnknown::Escalate),
        World::lease(1, 2)?.clock_back().errors().hangs(),
        World::lease(1, 2)?.clock_back().effect(BOTH, OnUnknown::Escalate).errors(),
        World::lease(1, 2)?.clock_back().effect(steps(NONE), OnUnknown::Escalate).parts(2).reruns(1),
        World::lease(1, 2)?.deploys(2).errors(),
        World::lease(1, 2)?.deploys(2).effect(NONE, OnUnknown::Escalate).errors(),
        World::lease(1, 1)?.deploys(2).effect(BOTH, OnUnknown::Escalate).errors(),
        World::lease(1, 2)?.writes_twice().errors(),
        World::lease(1, 2)?.writes_twice().restarts(),
        World::lease(1, 1)?.writes_twice().effect(NONE, OnUnknown::Escalate).reruns(1),
        World::lease(1, 1)?.writes_twice().effect(BOTH, OnUnknown::Escalate),
        World::lease(1, 2)?.writes_twice().effect(steps(NONE), OnUnknown::Escalate).parts(2),
        World::lease(1, 2)?.calls_twice().effect(KEY, OnUnknown::Escalate).errors(),
        World::lease(1, 2)?.unreachable().effect(NONE, OnUnknown::Escalate).errors(),
        World::lease(1, 1)?.unreachable().effect(NONE, OnUnknown::Escalate).reruns(1),
        World::lease(1, 2)?.unreachable().effect(NONE, OnUnknown::Repeat),
        World::lease(1, 2)?.unreachable().effect(KEY, OnUnknown::Escalate),
        World::lease(1, 2)?.unreachable().effect(BOTH, OnUnknown::Escalate),
        World::lease(1, 2)?.unreachable().effect(steps(NONE), OnUnknown::Escalate).parts(2),
    ])
}

/// Worlds with faults that the design does not promise to survive, to show what breaks then and what does not: a
/// database that loses its last commit, with what may be done about it, and calls that are delivered twice.
///
/// # Errors
/// None in a released build: a test builds them all.
pub fn beyond_worlds() -> Result<Vec<World>, WorldError> {
    let call = |world: World, instruments| world.effect(instruments, OnUnknown::Escalate);
    let mut all = Vec::new();
    for after in AfterFailOver::ALL {
        all.push(World::lease(1, 2)?.fail_over(after));
        all.push(call(World::lease(1, 2)?.fail_over(after), NONE));
        all.push(call(World::lease(1, 2)?.fail_over(after), KEY));
        all.push(call(World::lease(1, 1)?.fail_over(after), BOTH));
    }
    for instruments in [NONE, QUERY, BOTH, KEY] {
        all.push(call(World::lease(1, 2)?.calls_twice(), instruments));
    }
    Ok(all)
}

/// The small world in which a guard is missed.
///
/// # Errors
/// None in a released build: a test builds them all.
pub fn ablation_world(guard: Guard) -> Result<World, WorldError> {
    let calls = |world: World, instruments| world.effect(instruments, OnUnknown::Escalate);
    let world = match guard {
        Guard::FenceComplete | Guard::FenceHeartbeat | Guard::CasAtClaim => World::lease(1, 2)?,
        Guard::StatusAtWrite | Guard::BoundedInterruptions | Guard::TwoBudgets | Guard::DatabaseClock => {
            World::lease(1, 1)?
        }
        Guard::FenceFailure => World::lease(1, 2)?.errors(),
        Guard::BoundedAttempts => World::lease(1, 1)?.errors(),
        Guard::ManualIsClosed => World::lease(1, 1)?.bad_input(),
        Guard::BumpOnDecision | Guard::BumpOnEscalate => World::lease(1, 2)?.reruns(1),
        Guard::OverrunRule | Guard::EndedIsEnded => World::lease(1, 1)?.hangs(),
        Guard::FenceJournal | Guard::StableKey => calls(World::lease(1, 2)?, KEY),
        Guard::IntentBeforeCall => calls(World::lease(1, 2)?, NONE),
        Guard::UnknownIsUnknown => calls(World::lease(1, 1)?, NONE),
        Guard::TokenForNotDone => calls(World::lease(1, 2)?, QUERY),
        Guard::TokenInQuery => calls(World::lease(1, 2)?, BOTH),
        Guard::CasAtSweep => calls(World::lease(1, 2)?, BOTH).errors(),
        Guard::BootIdentity => World::lease(1, 2)?.restarts(),
        Guard::KnownBeforeUndo => {
            let saga = Instruments { checkpoints: true, compensation: true, ..KEY };
            calls(World::lease(1, 1)?, saga).parts(2).errors().budgets(1, 1)
        }
        Guard::CasAtDecision => calls(World::lease(1, 1)?, NONE).reruns(2).two_persons(),
    };
    Ok(world.guards(Guards::without(guard)))
}

/// The property that a guard protects: what must fail without it.
pub const fn protects(guard: Guard) -> Property {
    match guard {
        Guard::FenceComplete | Guard::FenceHeartbeat | Guard::FenceFailure | Guard::FenceJournal => {
            Property::StaleWriteChangesNothing
        }
        Guard::CasAtClaim => Property::OneCurrentOwner,
        Guard::StatusAtWrite => Property::FinalIsFinal,
        Guard::ManualIsClosed => Property::OnlyAPersonLeavesWaitManual,
        Guard::BumpOnDecision | Guard::BumpOnEscalate => Property::DecisionStands,
        Guard::BoundedAttempts | Guard::BoundedInterruptions => Property::AttemptsAreBounded,
        Guard::TwoBudgets => Property::OnlyFailuresUseUpAttempts,
        Guard::IntentBeforeCall
        | Guard::CasAtSweep
        | Guard::CasAtDecision
        | Guard::UnknownIsUnknown
        | Guard::TokenForNotDone
        | Guard::TokenInQuery
        | Guard::StableKey => Property::EffectAtMostOnce,
        Guard::KnownBeforeUndo => Property::CompensationComesAfter,
        Guard::OverrunRule | Guard::DatabaseClock | Guard::EndedIsEnded | Guard::BootIdentity => {
            Property::EventuallyResolved
        }
    }
}
