//! What must happen some day in the free worlds.

use leaseproof_rules::Guard;

use crate::free::{Action, Fate, LeaseModel};
use crate::graph::Fair;
use crate::packed::Packed;
use crate::state::State;

/// Fairness classes of an executor, from its own base.
const CLASSES_PER_RUN: u8 = 8;
const TASK_CLASSES: u8 = CLASSES_PER_RUN * crate::world::FREE_RUNS as u8;
const CLASSES_PER_TASK: u8 = 10;
const CALM_CLASS: u8 = TASK_CLASSES + CLASSES_PER_TASK * crate::world::FREE_TASKS as u8;

impl LeaseModel {
    /// Whether a lease that nobody renews ends some day. One that a worker's clock has dated does not: the clock may be
    /// ahead by years.
    fn leases_end(&self) -> bool {
        self.world.setup.guards.has(Guard::DatabaseClock) || !self.world.faults.wrong_clocks
    }
}

impl Fair for LeaseModel {
    fn fair_class(&self, state: &Packed, action: &Action) -> Option<u8> {
        self.class_of(&state.unpack(), action)
    }

    fn successors(&self, packed: &Packed, actions: &mut Vec<Action>, mut each: impl FnMut(Option<u8>, Packed)) {
        let state = packed.unpack();
        self.actions_of(&state, actions);
        for action in actions.drain(..) {
            let class = self.class_of(&state, &action);
            let changed = self.changed_by(&state, &action);
            let mut after = state;
            self.step(&mut after, action);
            each(class, packed.repack(&mut after, self.world.setup.shape, changed));
        }
    }
}

impl LeaseModel {
    /// Processes that could act for ever do so some day, messages that are not lost arrive, time passes. Nothing forces
    /// a fault, a handler that may hang, a person, or the end of a lease that is being renewed.
    #[inline]
    fn class_of(&self, state: &State, action: &Action) -> Option<u8> {
        let of_run = |run: u8, kind: u8| Some(run * CLASSES_PER_RUN + kind);
        let of_task = |task: u8, kind: u8| Some(TASK_CLASSES + task * CLASSES_PER_TASK + kind);
        match *action {
            Action::Look { run, .. } => of_run(run, 0),
            Action::Exchange { run, fate: Fate::Fine } => of_run(run, 1),
            Action::Work { run, .. } if !self.world.ends.hang => of_run(run, 2),
            Action::Call { run } => of_run(run, 3),
            Action::Deadline { run } => of_run(run, 4),
            Action::Query { run, fate: Fate::Fine } => of_run(run, 5),
            Action::Heartbeat { run } => of_run(run, 6),
            Action::Expire { task } if self.leases_end() && !state.is_renewed(task.into()) => of_task(task, 0),
            Action::Overrun { task } => of_task(task, 1),
            Action::Deliver { task, lost: false, .. } => of_task(task, 2),
            Action::Due { task } => of_task(task, 3),
            Action::Sweep { by, task } => of_task(task, 4 + 3 * by),
            Action::SweeperAsks { by, task, fate: Fate::Fine } => of_task(task, 5 + 3 * by),
            Action::SweeperWrites { by, task, fate: Fate::Fine } => of_task(task, 6 + 3 * by),
            Action::Calm => Some(CALM_CLASS),
            Action::Exchange { .. }
            | Action::Work { .. }
            | Action::NotSent { .. }
            | Action::DeliverPart { .. }
            | Action::CallLost { .. }
            | Action::Query { .. }
            | Action::SelfFence { .. }
            | Action::Crash { .. }
            | Action::Start { .. }
            | Action::Release { .. }
            | Action::Deploy
            | Action::ClockBack { .. }
            | Action::DeliverCopy { .. }
            | Action::Copy { .. }
            | Action::CopyArrives
            | Action::FailOver
            | Action::Expire { .. }
            | Action::Deliver { .. }
            | Action::SweeperAsks { .. }
            | Action::SweeperWrites { .. }
            | Action::Open { .. }
            | Action::FindOut { .. }
            | Action::Decide { .. } => None,
        }
    }
}
