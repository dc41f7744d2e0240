//! A database that loses its last commit: a fail-over to a replica that was behind.
//!
//! The row is then as it was before the last write to it; everybody else keeps what they know. The design rests on a
//! database that keeps what it has committed, and does not promise to survive this. What breaks, and what would help, is
//! computed all the same (`check --beyond`). It happens once in a run, and one commit is lost.

use leaseproof_rules::{Entry, Property, Status};

use crate::properties::bit;
use crate::state::{State, Task};
use crate::world::Setup;

/// What is done about the rows when the replica takes over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AfterFailOver {
    /// Nothing.
    Nothing,
    /// Every epoch is moved above all that were ever given: they come from a source that does not go back.
    FreshEpochs,
    /// That, and every call of a task that has not ended counts as begun: its intent may be what was lost.
    FreshEpochsAndIntents,
}

impl AfterFailOver {
    /// Every choice.
    pub const ALL: [AfterFailOver; 3] =
        [AfterFailOver::Nothing, AfterFailOver::FreshEpochs, AfterFailOver::FreshEpochsAndIntents];

    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            AfterFailOver::Nothing => "nothing done",
            AfterFailOver::FreshEpochs => "epochs raised",
            AfterFailOver::FreshEpochsAndIntents => "epochs raised, open calls unknown",
        }
    }
}

/// Keeps a row as it was before a write: what the replica may have.
pub(crate) fn keep(state: &mut State, before: &Task) {
    if !state.extra.failed_over {
        let Task { decided, ledger, fence, calls, .. } = Task::NEW;
        state.extra.past = Some(Task { decided, ledger, fence, calls, ..*before });
    }
}

/// The last commit is lost.
pub(crate) fn lose(setup: &Setup, state: &mut State, after: AfterFailOver) {
    let Some(past) = state.extra.past.take() else { return };
    state.extra.failed_over = true;
    let lost = state.tasks[0];
    let row = &mut state.tasks[0];
    // What a person has decided stays decided, and what the third party has seen stays seen.
    let Task { decided, ledger, fence, calls, .. } = lost;
    *row = Task { decided, ledger, fence, calls, ..past };
    if after != AfterFailOver::Nothing {
        row.epoch = lost.epoch + 1;
    }
    let open = !row.status.is_final() && setup.effects[0].is_some() && row.journal != Some(Entry::Done);
    if after == AfterFailOver::FreshEpochsAndIntents && open {
        row.journal = Some(Entry::Intent);
    }
    let moved = row.status != lost.status;
    if moved && lost.status.is_final() {
        state.bad |= bit(Property::FinalIsFinal);
    }
    if moved && lost.status == Status::WaitManual {
        state.bad |= bit(Property::OnlyAPersonLeavesWaitManual);
    }
}
