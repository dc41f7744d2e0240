//! The database: applies writes as [`judge`] says, and keeps journal, budgets and ghosts.

use leaseproof_rules::{
    Actor, Counts, Decision, Entry, Judgement, Reason, Status, Verb, Write, entry_after_intent, judge,
};

use crate::fail_over;
use crate::properties;
use crate::saga;
use crate::state::{State, Task};
use crate::world::{Flaw, Setup};

/// A write on its way to the database.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Request {
    /// Index of the task.
    pub task: usize,
    /// Which write.
    pub verb: Verb,
    /// The status it wants to reach.
    pub to: Status,
    /// The epoch the writer presents.
    pub epoch: u8,
    /// What was learnt of the effect, journalled in the same write.
    pub learnt: Option<Entry>,
    /// Why the task is given up or handed to a person.
    pub reason: Option<Reason>,
    /// How long RETRY_WAIT lasts, in ms.
    pub delay_ms: u32,
    /// The step of the effect that a journal entry is about.
    pub step: u8,
    /// The task is to be undone from now on (E5).
    pub turns: bool,
}

impl Request {
    /// What a decision asks for: back to the queue by `requeue`, or out of it by `hand_over`. `None`: no write follows.
    ///
    /// The sweeper has no edge to FAIL, and [`leaseproof_rules::decide`] gives it none: a lost owner proves nothing of the work.
    pub fn of_decision(task: usize, epoch: u8, decision: Decision, requeue: Verb, hand_over: Verb) -> Option<Request> {
        let plain = |verb, to| Request::plain(task, verb, to, epoch);
        match decision {
            Decision::Wait | Decision::Ask => None,
            Decision::Requeue { delay_ms, learnt } => {
                let to = if delay_ms == 0 { Status::Pending } else { Status::RetryWait };
                let delay_ms = u32::try_from(delay_ms).unwrap_or(u32::MAX);
                Some(Request { learnt, delay_ms, ..plain(requeue, to) })
            }
            // Both reasons to turn put the task back, as the writer may.
            Decision::Compensate { reason, learnt } => {
                Some(Request { learnt, reason: Some(reason), turns: true, ..plain(requeue, Status::Pending) })
            }
            Decision::Escalate(reason) => {
                Some(Request { reason: Some(reason), ..plain(hand_over, Status::WaitManual) })
            }
            Decision::Fail(reason) => Some(Request { reason: Some(reason), ..plain(hand_over, Status::Fail) }),
        }
    }

    /// A write that carries nothing but its epoch.
    pub fn plain(task: usize, verb: Verb, to: Status, epoch: u8) -> Request {
        Request { task, verb, to, epoch, learnt: None, reason: None, delay_ms: 0, step: 0, turns: false }
    }

    /// The same, about this step of the effect.
    pub fn at_step(self, step: u8) -> Request {
        Request { step, ..self }
    }
}

/// Enters what became of a step into the journal. Once it is done the journal goes on to the next.
fn record(setup: &Setup, index: usize, task: &mut Task, step: u8, entry: Entry) {
    if task.turned > 0 {
        return saga::record(setup, task, step, entry);
    }
    // The journal is past this step: its owner has reported it after somebody had read of the intent.
    if step < task.step {
        return;
    }
    let more = usize::from(step) + 1 < setup.steps_of(index);
    (task.step, task.journal) = match entry {
        Entry::Done if more => (step + 1, None),
        _ => (step, Some(entry)),
    };
}

/// Writes what a task's SUCCESS puts into the outbox, if it has one.
pub fn write_entry(setup: &Setup, state: &mut State, index: usize) {
    if let Some(entry) = setup.entry_of(index).map(|entry| &mut state.tasks[entry]) {
        entry.due |= *entry == Task::UNWRITTEN;
    }
}

/// Commits or refuses a write.
pub fn apply(setup: &Setup, state: &mut State, request: Request) -> Judgement {
    let Request { task: index, verb, to, epoch, learnt, reason, .. } = request;
    let before = state.tasks[index];
    let write = Write { verb, to, epoch: u64::from(epoch) };
    let judgement = judge(before.row(), write, setup.guards);
    let task = &mut state.tasks[index];
    match judgement {
        Judgement::Applied { status, epoch } => {
            task.status = status;
            task.epoch = u8::try_from(epoch).expect("worlds and stories are checked to stay below MAX_EPOCH");
        }
        Judgement::Adopted => task.status = Status::Success,
        Judgement::Already | Judgement::Refused(_) => {
            if verb == Verb::Complete && matches!(judgement, Judgement::Refused(_)) && setup.timed {
                state.late = (state.late + 1).min(State::LATE_MAX);
            }
            return judgement;
        }
    }
    if let Some(entry) = learnt {
        record(setup, index, task, request.step, entry);
    }
    match verb {
        // Of a lease that had ended only without its guard.
        Verb::Heartbeat => task.expired = false,
        Verb::Intent => {
            let before = task.journal.filter(|_| request.step == task.step);
            record(setup, index, task, request.step, entry_after_intent(before));
        }
        _ => {}
    }
    let counts = Counts { attempts: before.attempts.into(), interruptions: before.interruptions.into() };
    let counts = counts.after(&before.row(), verb);
    let count = |count| u8::try_from(count).expect("the budgets of worlds and stories are checked to be small");
    (task.attempts, task.interruptions) = (count(counts.attempts), count(counts.interruptions));
    if verb.actor() == Actor::Person {
        task.decided = before.epoch;
    }
    if request.turns {
        saga::turn(task);
    }
    if !matches!(verb, Verb::Heartbeat | Verb::Intent | Verb::Outcome) {
        // A task that is undone keeps why.
        task.reason = reason.or(task.reason.filter(|_| task.turned > 0));
        (task.expired, task.overrun) = (false, false);
        (task.owner, task.superseded) = (0, false);
        task.due = !(setup.timed && task.status == Status::RetryWait);
    }
    let after = *task;
    // Of a renewal nothing is left but the end of the lease, which may come at any time.
    if setup.shape.extras.past && verb != Verb::Heartbeat {
        fail_over::keep(state, &before);
    }
    // In the same transaction, whoever says SUCCESS.
    if after.status == Status::Success && setup.flaw != Some(Flaw::EntryAfterSuccess) {
        write_entry(setup, state, index);
    }
    if verb == Verb::Claim {
        state.bad |= properties::broken_by_claim(setup, state, index);
    }
    state.bad |= properties::broken_by_write(setup, index, &before, write, judgement, &after);
    judgement
}
