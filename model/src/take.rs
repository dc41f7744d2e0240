//! What the steps of the free worlds do.

use leaseproof_rules::{Answer, Status};

use crate::bits::Pieces;
use crate::boots;
use crate::database::{Request, apply};
use crate::executor::{self, Heard, Next};
use crate::fail_over;
use crate::free::{Action, Fate, LeaseModel};
use crate::outside;
use crate::person::{self, Act};
use crate::state::{Desk, Phase, Run, Seen, State};
use crate::sweeper;

impl LeaseModel {
    /// What a step writes to the database, if anything; for traces.
    pub fn request_of(&self, state: &State, action: &Action) -> Option<Request> {
        let setup = &self.world.setup;
        match *action {
            Action::Exchange { run, .. } => match executor::next(setup, state, run.into()) {
                Next::Write(request) => Some(request),
                _ => None,
            },
            Action::Heartbeat { run } => Some(executor::heartbeat(state.runs[usize::from(run)])),
            Action::Release { run, .. } => executor::release(state, run.into()),
            Action::SweeperWrites { by, task, .. } => {
                let index = usize::from(task);
                match sweeper::next(setup, state, index, state.memory(by, index)) {
                    sweeper::Next::Write(request) => Some(request),
                    _ => None,
                }
            }
            Action::Decide { by, act } => {
                let desk = state.desks[usize::from(by)];
                Some(person::request(setup, state, desk.task.into(), desk.epoch, act, desk.truth))
            }
            _ => None,
        }
    }

    /// What a step changes at most, besides what is no piece. Where there are extras it is not asked for.
    #[inline]
    pub(crate) fn changed_by(&self, state: &State, action: &Action) -> Pieces {
        // SUCCESS of a task writes what it puts into the outbox.
        let row = |task: usize| {
            let entry = self.world.setup.entry_of(task).map_or(Pieces::NONE, Pieces::task);
            Pieces::task(task).and(entry)
        };
        let both = |slot: usize| Pieces::run(slot).and(row(state.runs[slot].task.into()));
        match *action {
            Action::Look { run, .. }
            | Action::Work { run, .. }
            | Action::NotSent { run }
            | Action::Deadline { run }
            | Action::SelfFence { run }
            | Action::Crash { run } => Pieces::run(run.into()),
            Action::Exchange { run, .. }
            | Action::Call { run }
            | Action::Query { run, .. }
            | Action::Heartbeat { run }
            | Action::Release { run, .. } => both(run.into()),
            Action::Deliver { task, .. } => Pieces::task(task.into()).and(Pieces::RUNS),
            Action::DeliverPart { task, .. }
            | Action::DeliverCopy { task, .. }
            | Action::CallLost { task, .. }
            | Action::Expire { task }
            | Action::Overrun { task }
            | Action::ClockBack { task }
            | Action::Due { task } => Pieces::task(task.into()),
            Action::Sweep { task, .. } => Pieces::seen(task.into()),
            Action::SweeperAsks { task, .. } | Action::SweeperWrites { task, .. } => {
                row(task.into()).and(Pieces::seen(task.into()))
            }
            Action::Open { by, .. } | Action::FindOut { by } => Pieces::desk(by.into()),
            Action::Decide { by, .. } => Pieces::desk(by.into()).and(row(state.desks[usize::from(by)].task.into())),
            Action::Calm => Pieces::NONE,
            Action::Start { .. } | Action::Deploy | Action::Copy { .. } | Action::CopyArrives | Action::FailOver => {
                Pieces::ALL
            }
        }
    }

    /// Takes a step.
    pub fn step(&self, state: &mut State, action: Action) {
        let setup = &self.world.setup;
        match action {
            Action::Look { run, task } => executor::look(state, run.into(), task.into()),
            Action::Exchange { run, fate } => {
                let slot = usize::from(run);
                let Some(request) = self.request_of(state, &action) else { return };
                let heard = match fate {
                    Fate::Fine => boots::write(setup, state, slot, request).into(),
                    Fate::RequestLost => Heard::Unknown,
                    Fate::ReplyLost => {
                        boots::write(setup, state, slot, request);
                        Heard::Unknown
                    }
                };
                executor::hear(setup, state, slot, heard);
            }
            Action::Work { run, turn } => executor::turn(setup, state, run.into(), turn),
            Action::Call { run } => {
                let run = &mut state.runs[usize::from(run)];
                run.phase = Phase::Waiting;
                let (task, token, step) = (run.task.into(), run.epoch, run.step);
                outside::send_call(setup, state, task, token, step);
            }
            Action::NotSent { run } => executor::hear(setup, state, run.into(), Heard::CallNotDone),
            Action::Deliver { task, token, step, lost } => {
                let index = usize::from(task);
                outside::take_call(setup, state, index, token, step);
                let done = outside::call(setup, state, index, token, step, None);
                if let (Some(slot), false) = (self.sender_of(state, task, token), lost) {
                    let heard = if done { Heard::CallDone } else { Heard::CallNotDone };
                    executor::hear(setup, state, slot, heard);
                }
            }
            Action::DeliverPart { task, token, parts } => {
                outside::take_call(setup, state, task.into(), token, 0);
                outside::call(setup, state, task.into(), token, 0, Some(parts));
            }
            Action::DeliverCopy { task, token, step } => {
                outside::call(setup, state, task.into(), token, step, None);
            }
            Action::CallLost { task, token, step } => outside::take_call(setup, state, task.into(), token, step),
            Action::Deadline { run } => executor::hear(setup, state, run.into(), Heard::Unknown),
            Action::Query { run, fate } => {
                let slot = usize::from(run);
                let run = state.runs[slot];
                let answer = self.ask(state, run.task.into(), run.epoch, run.step, fate);
                executor::hear(setup, state, slot, Heard::Answer(answer));
            }
            Action::Heartbeat { run } => {
                let slot = usize::from(run);
                let judgement = apply(setup, state, executor::heartbeat(state.runs[slot]));
                if Heard::from(judgement) == Heard::Refused {
                    executor::cancel(state, slot);
                }
            }
            Action::SelfFence { run } | Action::Crash { run } => executor::cancel(state, run.into()),
            Action::Start { run } => boots::start(setup, state, run.into()),
            Action::Release { run, fate } => {
                if let (true, Some(request)) = (fate != Fate::RequestLost, self.request_of(state, &action)) {
                    apply(setup, state, request);
                }
                state.extra.releases += 1;
                executor::cancel(state, run.into());
            }
            Action::Deploy => (0..setup.shape.runs).for_each(|slot| boots::die(setup, state, slot)),
            Action::Expire { task } => state.tasks[usize::from(task)].expired = true,
            Action::Overrun { task } => state.tasks[usize::from(task)].overrun = true,
            Action::ClockBack { task } => {
                let task = &mut state.tasks[usize::from(task)];
                (task.expired, task.overrun) = (false, false);
                task.due &= task.status == Status::Running;
            }
            Action::Due { task } => state.tasks[usize::from(task)].due = true,
            Action::Sweep { by, task } => {
                let index = usize::from(task);
                *state.memory_mut(by, index) = sweeper::read(state, index).unwrap_or(Seen::NOTHING);
            }
            Action::SweeperAsks { by, task, fate } => {
                let index = usize::from(task);
                let seen = *state.memory(by, index);
                let step = sweeper::step_at_hand(state, index, &seen);
                let answer = self.ask(state, index, seen.epoch, step, fate);
                let told = Seen { answer: Some(answer), ..seen };
                let forgets = sweeper::next(setup, state, index, &told) == sweeper::Next::Forget;
                *state.memory_mut(by, index) = if forgets { Seen::NOTHING } else { told };
            }
            Action::SweeperWrites { by, task, fate } => {
                if let (true, Some(request)) = (fate != Fate::RequestLost, self.request_of(state, &action)) {
                    apply(setup, state, request);
                }
                *state.memory_mut(by, task.into()) = Seen::NOTHING;
            }
            Action::Open { by, task } => {
                let epoch = state.tasks[usize::from(task)].epoch;
                state.desks[usize::from(by)] = Desk { open: true, task, epoch, ..Desk::EMPTY };
            }
            Action::FindOut { by } => {
                let by = usize::from(by);
                state.desks[by].found_out = true;
                state.desks[by].truth = person::truth(setup, state, state.desks[by].task.into());
            }
            Action::Decide { by, act } => {
                let Desk { task, epoch, truth, .. } = state.desks[usize::from(by)];
                person::decide(setup, state, task.into(), epoch, act, truth);
                state.reruns += u8::from(act == Act::Rerun);
                state.desks[usize::from(by)] = Desk::EMPTY;
            }
            Action::Copy { of } => self.copy(state, of),
            Action::CopyArrives => self.copy_arrives(state),
            Action::FailOver => {
                if let Some(after) = self.world.fail_over {
                    fail_over::lose(setup, state, after);
                }
            }
            Action::Calm => state.calm = true,
        }
    }

    /// The slot of the run that waits for the reply to this call, if it still does.
    pub(crate) fn sender_of(&self, state: &State, task: u8, token: u8) -> Option<usize> {
        let waits = |run: &Run| run.phase == Phase::Waiting && run.task == task && run.epoch == token;
        state.runs[..self.world.setup.shape.runs].iter().position(waits)
    }

    fn ask(&self, state: &mut State, index: usize, epoch: u8, step: u8, fate: Fate) -> Answer {
        match fate {
            Fate::Fine => outside::query(&self.world.setup, state, index, epoch, step),
            Fate::RequestLost => Answer::Unavailable,
            Fate::ReplyLost => {
                outside::query(&self.world.setup, state, index, epoch, step);
                Answer::Unavailable
            }
        }
    }
}
