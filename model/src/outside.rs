//! The third party: a ledger, an idempotency key, a status query and an execution token, as far as they are declared.
//!
//! An effect may consist of parts. A call does them one after the other and may stop in between (E-C); with checkpoints
//! each part is a step with a call of its own (E4).

use std::ops::Range;

use leaseproof_rules::{Answer, Guard, Instruments, query_token};

use crate::properties;
use crate::saga;
use crate::state::State;
use crate::world::Setup;

fn instruments(setup: &Setup, task: usize) -> Instruments {
    setup.effects[task].map(|rule| rule.instruments).unwrap_or_default()
}

/// The parts that a call for this step does.
pub fn parts_of(setup: &Setup, task: usize, step: u8) -> Range<usize> {
    let step = usize::from(step);
    if instruments(setup, task).checkpoints { step..step + 1 } else { 0..setup.shape.parts }
}

/// A call leaves for the third party, with the epoch of its run as execution token.
pub fn send_call(setup: &Setup, state: &mut State, task: usize, token: u8, step: u8) {
    state.tasks[task].calls |= setup.shape.call_bit(token, step);
}

/// A call is no longer under way: it has arrived, or never will.
pub fn take_call(setup: &Setup, state: &mut State, task: usize, token: u8, step: u8) {
    state.tasks[task].calls &= !setup.shape.call_bit(token, step);
}

/// The third party executes a call, or refuses it for the token. Says whether it is done, now or by an earlier call.
///
/// `stops_after`: it does only so many of the parts. A repeated key is known part by part.
pub fn call(setup: &Setup, state: &mut State, index: usize, token: u8, step: u8, stops_after: Option<u8>) -> bool {
    if state.tasks[index].goes_back(token) {
        return saga::undo(setup, state, index, token, step);
    }
    let has = instruments(setup, index);
    let task = &mut state.tasks[index];
    if has.execution_token {
        if token < task.fence {
            return false;
        }
        task.fence = token;
    }
    let parts = parts_of(setup, index, step);
    let count = stops_after.map_or(parts.len(), usize::from);
    let before = *task;
    // A key that is another one in every run is never a repeated one.
    let knows = has.idempotency_key && setup.guards.has(Guard::StableKey);
    for times in &mut task.ledger[parts][..count] {
        if !(knows && *times > 0) {
            *times = (*times + 1).min(State::LEDGER_MAX);
        }
    }
    let after = *task;
    state.bad |= properties::broken_by_call(setup, index, &before, &after);
    true
}

/// The token of a question about the call of the run with this epoch.
pub fn token_of_query(setup: &Setup, epoch: u8) -> u8 {
    query_token(epoch.into(), setup.guards) as u8
}

/// The third party is asked about a step of the run with this epoch.
pub fn query(setup: &Setup, state: &mut State, index: usize, epoch: u8, step: u8) -> Answer {
    let token = token_of_query(setup, epoch);
    let task = &mut state.tasks[index];
    if instruments(setup, index).execution_token {
        task.fence = task.fence.max(token);
    }
    if task.goes_back(epoch) {
        return if saga::is_undone(setup, task, step) { Answer::Done } else { Answer::NotDone };
    }
    match task.is_done(parts_of(setup, index, step)) {
        Some(true) => Answer::Done,
        Some(false) => Answer::NotDone,
        None => Answer::Partial,
    }
}
