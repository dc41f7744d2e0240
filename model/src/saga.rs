//! Sagas (E5): an effect in steps that can not go on forward is undone, in reverse order.
//!
//! The row turns once, in the write that puts it back into the queue. A run whose epoch is later undoes: the same protocol
//! as forward, with an intent and an outcome a step, but from the last step to the first, and FAIL where a run forward
//! would report SUCCESS. So the direction of a run, and of a call, is told by its epoch.

use leaseproof_rules::{Entry, Status, Verb};

use crate::database::Request;
use crate::properties;
use crate::state::{Run, State, Task};
use crate::world::{Flaw, Setup};

impl Task {
    /// Whether a run, a call or a reader of this epoch goes back.
    pub fn goes_back(&self, epoch: u8) -> bool {
        self.turned > 0 && epoch > self.turned
    }
}

/// The row turns. What is recorded is to be undone and, if the step at hand is unknown, so is that.
pub(crate) fn turn(task: &mut Task) {
    task.turned = task.epoch;
    // The way back has budgets of its own.
    (task.attempts, task.interruptions) = (0, 0);
    let at_hand = matches!(task.journal, Some(Entry::Done | Entry::Intent));
    (task.step, task.journal) = match task.step {
        step if at_hand => (step, None),
        0 => (0, Some(Entry::Done)),
        step => (step - 1, None),
    };
}

/// Enters what became of a compensation into the journal. Once it is made the journal goes on to the step before.
pub(crate) fn record(setup: &Setup, task: &mut Task, step: u8, entry: Entry) {
    // The journal is past this step.
    if step > task.step {
        return;
    }
    let more = step > 0 && setup.flaw != Some(Flaw::UndoesOnlyTheLast);
    (task.step, task.journal) = match entry {
        Entry::Done if more => (step - 1, None),
        Entry::Done => (0, Some(Entry::Done)),
        _ => (step, Some(entry)),
    };
}

/// A run that has undone all says so: the task ends in FAIL, for the reason for which it turned.
pub(crate) fn ends(task: &Task, run: Run) -> Request {
    let end = Request::plain(run.task.into(), Verb::GiveUp, Status::Fail, run.epoch);
    Request { reason: task.reason, ..end }
}

/// The part that a compensation for this step undoes.
fn part(setup: &Setup, step: u8) -> usize {
    match setup.flaw {
        Some(Flaw::UndoesInOrder) => setup.shape.parts - 1 - usize::from(step),
        _ => step.into(),
    }
}

/// The third party makes a compensation, or refuses it for the token. Says whether it is made, now or by an earlier call.
pub(crate) fn undo(setup: &Setup, state: &mut State, index: usize, token: u8, step: u8) -> bool {
    let has = setup.effects[index].map(|rule| rule.instruments).unwrap_or_default();
    let part = part(setup, step);
    let task = &mut state.tasks[index];
    if has.execution_token {
        if token < task.fence {
            return false;
        }
        task.fence = token;
    }
    if !(has.idempotency_key && task.undone[part] > 0) {
        task.undone[part] = (task.undone[part] + 1).min(State::LEDGER_MAX);
    }
    let after = *task;
    state.bad |= properties::broken_by_undo(setup, index, &after, part);
    true
}

/// Whether the compensation for a step was made.
pub(crate) fn is_undone(setup: &Setup, task: &Task, step: u8) -> bool {
    task.undone[part(setup, step)] > 0
}
