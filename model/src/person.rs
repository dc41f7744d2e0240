//! A person at the desk: finds out the truth about the outside, but acts late, and zombies may still be about.

use leaseproof_rules::{Entry, Judgement, Status, Verb};

use crate::database::{Request, apply};
use crate::outside;
use crate::saga;
use crate::state::{Phase, State};
use crate::world::Setup;

/// What a person decides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Act {
    /// Run it again.
    Rerun,
    /// It has failed.
    MarkFailed,
    /// It has succeeded.
    MarkSucceeded,
}

impl Act {
    /// Every act.
    pub const ALL: [Act; 3] = [Act::Rerun, Act::MarkFailed, Act::MarkSucceeded];

    /// The write, and the status it reaches.
    pub const fn write(self) -> (Verb, Status) {
        match self {
            Act::Rerun => (Verb::Rerun, Status::Pending),
            Act::MarkFailed => (Verb::MarkFailed, Status::Fail),
            Act::MarkSucceeded => (Verb::MarkSucceeded, Status::Success),
        }
    }
}

/// Whether a call of this task may still come to be executed: it is under way, or a run is about to make it. Nobody can
/// know the truth before.
pub fn call_is_pending(setup: &Setup, state: &State, index: usize) -> bool {
    let task = &state.tasks[index];
    task.calls != 0
        || state.runs[..setup.shape.runs]
            .iter()
            .any(|run| run.phase == Phase::Calling && usize::from(run.task) == index)
}

/// Whether a person who knows the truth may let it run again: no call can come any more and, unless parts are told apart
/// by key or step, the effect has happened wholly or not at all. The rest of a part is then done by hand.
pub fn may_rerun(setup: &Setup, state: &State, index: usize) -> bool {
    let by_key = setup.effects[index].is_some_and(|rule| rule.instruments.idempotency_key);
    let whole = truth(setup, state, index).is_some();
    (by_key || whole) && !call_is_pending(setup, state, index)
}

/// Whether the call of this task, of a saga that goes back its compensation, has happened, as somebody who looks now finds
/// out; `None`: in part.
pub fn truth(setup: &Setup, state: &State, index: usize) -> Option<bool> {
    let task = &state.tasks[index];
    if task.turned > 0 {
        return Some(saga::is_undone(setup, task, task.step));
    }
    task.is_done(outside::parts_of(setup, index, task.step))
}

/// What a person writes who decides about a task as it was read at `epoch`. With a re-run the truth about its call, as it
/// was found out then, goes into the journal.
pub fn request(setup: &Setup, state: &State, index: usize, epoch: u8, act: Act, truth: Option<bool>) -> Request {
    let (verb, to) = act.write();
    let task = &state.tasks[index];
    let truth = match (act, truth, task.journal) {
        (Act::Rerun, Some(true), _) if setup.effects[index].is_some() => Some(Entry::Done),
        (Act::Rerun, Some(false), Some(Entry::Intent)) => Some(Entry::NotDone),
        _ => None,
    };
    Request { learnt: truth, ..Request::plain(index, verb, to, epoch).at_step(task.step) }
}

/// The person decides, see [`request`].
pub fn decide(
    setup: &Setup,
    state: &mut State,
    index: usize,
    epoch: u8,
    act: Act,
    truth: Option<bool>,
) -> (Request, Judgement) {
    let request = request(setup, state, index, epoch, act, truth);
    (request, apply(setup, state, request))
}
