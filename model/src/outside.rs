//! The third party: a ledger, an idempotency key, a status query and an execution token, as far as they are declared.

use leaseproof_rules::{Answer, Instruments};

use crate::properties;
use crate::state::State;
use crate::world::Setup;

fn instruments(setup: &Setup, task: usize) -> Instruments {
    setup.effects[task].map(|rule| rule.instruments).unwrap_or_default()
}

/// A call leaves for the third party, with the epoch of its run as execution token.
pub fn send_call(state: &mut State, task: usize, token: u8) {
    state.tasks[task].calls |= 1 << token;
}

/// A call is no longer under way: it has arrived, or never will.
pub fn take_call(state: &mut State, task: usize, token: u8) {
    state.tasks[task].calls &= !(1 << token);
}

/// The third party executes a call, or refuses it for the token. Says whether it is done, now or by an earlier call.
pub fn call(setup: &Setup, state: &mut State, index: usize, token: u8) -> bool {
    let has = instruments(setup, index);
    let task = &mut state.tasks[index];
    if has.execution_token {
        if token < task.fence {
            return false;
        }
        task.fence = token;
    }
    if !(has.idempotency_key && task.ledger > 0) {
        task.ledger = (task.ledger + 1).min(State::LEDGER_MAX);
    }
    let after = *task;
    state.bad |= properties::broken_by_call(setup, index, &after);
    true
}

/// The third party is asked, with the token that the next owner will have, so that it refuses what is still under way.
pub fn query(setup: &Setup, state: &mut State, index: usize, token: u8) -> Answer {
    let task = &mut state.tasks[index];
    if instruments(setup, index).execution_token {
        task.fence = task.fence.max(token);
    }
    if task.ledger > 0 { Answer::Done } else { Answer::NotDone }
}
