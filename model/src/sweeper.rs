//! The sweeper: reads, decides on what it has read, and writes by compare-and-set, each in its own step.

use leaseproof_rules::{Decision, Entry, Observation, Status, UnknownEffect, Verb};

use crate::database::Request;
use crate::state::{Picked, Seen, State, Task};
use crate::world::Setup;

/// What the sweeper does next about a task it has read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Next {
    /// Leave it for now.
    Forget,
    /// Ask the third party.
    Query,
    /// Take it back or hand it to a person.
    Write(Request),
}

/// What the sweeper would read of this task now; `None` if it is not one to look at.
pub fn read(state: &State, index: usize) -> Option<Seen> {
    let task = &state.tasks[index];
    if task.status != Status::Running {
        return None;
    }
    let picked = match task {
        Task { expired: true, .. } => Picked::Expired,
        Task { superseded: true, .. } => Picked::Superseded,
        Task { overrun: true, .. } => Picked::Overrun,
        _ => return None,
    };
    let intent = task.journal == Some(Entry::Intent);
    Some(Seen { signal: Some(picked), epoch: task.epoch, intent, answer: None, recorded: task.recorded() })
}

/// All that the sweeper may decide on, of what was read; `None` if nothing was. The budgets are taken from the row: they
/// do not change without the epoch, and with another epoch the write is refused.
pub fn observe(setup: &Setup, state: &State, index: usize, seen: &Seen) -> Option<Observation> {
    let picked = seen.signal?;
    let row = &state.tasks[index];
    let over_ms = setup.policy.expected_run_ms.map_or(0, |expected| expected.saturating_add(1));
    Some(Observation {
        signal: picked.signal(),
        running_ms: if picked == Picked::Overrun { over_ms } else { 0 },
        attempts: u32::from(row.attempts),
        interruptions: u32::from(row.interruptions),
        unknown: setup.effects[index].filter(|_| seen.intent).map(|rule| UnknownEffect {
            rule,
            answer: seen.answer,
            asked_ms: 0,
        }),
        progress: setup.progress(index, seen.recorded, row.goes_back(seen.epoch)),
    })
}

/// The step at which it was: the one after those that are recorded or, on the way back, the last that is left.
pub fn step_at_hand(state: &State, index: usize, seen: &Seen) -> u8 {
    seen.recorded - u8::from(seen.recorded > 0 && state.tasks[index].goes_back(seen.epoch))
}

/// What follows from what was read.
pub fn next(setup: &Setup, state: &State, index: usize, seen: &Seen) -> Next {
    next_after(setup, state, index, seen, 0)
}

/// [`next`] where the third party could be asked for so long.
pub fn next_after(setup: &Setup, state: &State, index: usize, seen: &Seen, asked_ms: u64) -> Next {
    let Some(mut observation) = observe(setup, state, index, seen) else { return Next::Forget };
    if let Some(unknown) = &mut observation.unknown {
        unknown.asked_ms = asked_ms;
    }
    let decision = setup.decide(index, &observation);
    match Request::of_decision(index, seen.epoch, decision, Verb::Requeue, Verb::Escalate) {
        Some(request) => Next::Write(request.at_step(step_at_hand(state, index, seen))),
        None if decision == Decision::Ask => Next::Query,
        None => Next::Forget,
    }
}
