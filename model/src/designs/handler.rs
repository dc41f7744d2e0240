//! What both older designs have in common: an executor's handler with its outside call, and what may go wrong.
//!
//! One task. Pauses of any length need no step of their own: whoever pauses takes no step while others do.

use leaseproof_rules::Property;

use crate::properties::bit;

/// Executors of a world at most; each works on one task at a time.
pub const MAX_EXECUTORS: usize = 3;
/// Where ghosts that count calls and effects stop: one more shows nothing new.
const COUNT_MAX: u8 = 2;

/// What may go wrong. All of it ends some day: a system whose every message is lost for ever resolves nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Faults {
    /// A process dies; its kernel lives and closes its connections. It is there again at once, knowing nothing.
    pub crash: bool,
    /// A peer falls silent: its host dies, or the network is cut. Nothing closes its connection.
    pub silence: bool,
    /// A handler hangs for ever and keeps its connection; its process goes on with other tasks.
    pub hang: bool,
    /// A request is lost.
    pub lost_request: bool,
    /// A reply is lost.
    pub lost_reply: bool,
}

impl Faults {
    /// All of them.
    pub const ALL: Faults = Faults { crash: true, silence: true, hang: true, lost_request: true, lost_reply: true };
    /// None.
    pub const NONE: Faults =
        Faults { crash: false, silence: false, hang: false, lost_request: false, lost_reply: false };
}

/// What a world of an older design is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    /// How many executors, 1 to [`MAX_EXECUTORS`].
    pub executors: u8,
    /// The handler makes one outside call. It has no instrument, and no policy that allows repeats.
    pub calls: bool,
    /// The handler may fail. Neither design runs it again: the task ends in FAIL.
    pub errors: bool,
    /// What may go wrong.
    pub faults: Faults,
    /// Interruptions that a policy would allow. Neither design counts them; a ghost in the state does, unless this is
    /// `None`.
    pub max_interruptions: Option<u8>,
}

impl Setup {
    /// This many executors (1 to [`MAX_EXECUTORS`]), an outside call, errors, every fault, and one interruption allowed
    /// as in the lease's worlds.
    pub const fn new(executors: u8) -> Setup {
        Setup { executors, calls: true, errors: true, faults: Faults::ALL, max_interruptions: Some(1) }
    }

    /// Counts one more lost run, and says what that breaks. The loss that goes over the budget may be counted; it is
    /// the one that has to end the automatic runs.
    pub(super) fn interrupted(&self, lost: &mut u8) -> u16 {
        let Some(budget) = self.max_interruptions else { return 0 };
        *lost = (*lost + 1).min(budget + 2);
        if *lost > budget + 1 { bit(Property::AttemptsAreBounded) } else { 0 }
    }
}

/// Where an executor is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    /// Looks for a task.
    Idle,
    /// Has read the task as PENDING and is to claim it.
    Claiming,
    /// Its handler works.
    Working,
    /// Has sent its call, which is under way, and waits for the reply.
    Waiting,
    /// Waits for a reply that will not come.
    Deaf,
    /// Its handler has succeeded, and it is to say so.
    Succeeding,
    /// Its handler has failed, and it is to say so.
    Failing,
    /// Has sent its commit and heard nothing. Single-transaction only.
    Unsure,
}

impl Phase {
    /// A handler is running, or has ended and its end is not reported.
    pub const fn is_executing(self) -> bool {
        !matches!(self, Phase::Idle | Phase::Claiming | Phase::Unsure)
    }

    /// A handler is running.
    pub const fn is_at_work(self) -> bool {
        matches!(self, Phase::Working | Phase::Waiting | Phase::Deaf)
    }

    /// The handler has ended.
    pub const fn has_ended(self) -> bool {
        matches!(self, Phase::Succeeding | Phase::Failing)
    }

    /// A word for traces.
    pub const fn word(self) -> &'static str {
        match self {
            Phase::Idle => "idle",
            Phase::Claiming => "about to claim",
            Phase::Working => "working",
            Phase::Waiting => "waiting, its call under way",
            Phase::Deaf => "waiting in vain",
            Phase::Succeeding => "about to report success",
            Phase::Failing => "about to report failure",
            Phase::Unsure => "not knowing whether it has committed",
        }
    }
}

/// What the third party has seen, and what may still reach it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Outside {
    /// How often the effect has happened; stops at 2.
    pub ledger: u8,
    /// Calls under way whose sender has died or given up; stops at 2.
    pub stray: u8,
}

impl Outside {
    /// A call arrives and is done. Returns the bits of what that breaks.
    pub fn execute(&mut self) -> u16 {
        self.ledger = (self.ledger + 1).min(COUNT_MAX);
        if self.ledger > 1 { bit(Property::EffectAtMostOnce) } else { 0 }
    }

    /// A sender goes away and leaves its call under way.
    pub fn stray(&mut self) {
        self.stray = (self.stray + 1).min(COUNT_MAX);
    }
}

/// What a handler, or its call, does next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Turn {
    /// The handler sends its call.
    Call,
    /// The handler succeeds, without a call.
    Succeed,
    /// The handler fails.
    Fail,
    /// The call arrives, is done, and the reply arrives.
    Reply,
    /// The call arrives and is done; the reply is lost.
    ReplyLost,
    /// The call is lost.
    CallLost,
    /// The handler waits no longer. It does not know whether its call was done, and fails.
    Deadline,
}

impl Turn {
    /// Every turn.
    pub const ALL: [Turn; 7] =
        [Turn::Call, Turn::Succeed, Turn::Fail, Turn::Reply, Turn::ReplyLost, Turn::CallLost, Turn::Deadline];

    /// A word for traces.
    pub const fn word(self) -> &'static str {
        match self {
            Turn::Call => "calls the third party",
            Turn::Succeed => "work done",
            Turn::Fail => "work failed",
            Turn::Reply => "its call is done, and it is told",
            Turn::ReplyLost => "its call is done, reply lost",
            Turn::CallLost => "its call is lost",
            Turn::Deadline => "no reply in time, fails",
        }
    }

    /// The number of its fairness class, among three: the handler goes on, a call arrives, patience ends.
    pub(super) const fn fair_kind(self) -> Option<u8> {
        match self {
            Turn::Call | Turn::Succeed | Turn::Fail => Some(0),
            Turn::Reply => Some(1),
            Turn::Deadline => Some(2),
            Turn::ReplyLost | Turn::CallLost => None,
        }
    }
}

/// The turns that a handler in this phase may take.
pub(super) fn turns(setup: &Setup, phase: Phase, calm: bool) -> impl Iterator<Item = Turn> + use<> {
    let (setup, faults) = (*setup, setup.faults);
    Turn::ALL.into_iter().filter(move |turn| match turn {
        Turn::Call => phase == Phase::Working && setup.calls,
        Turn::Succeed => phase == Phase::Working && !setup.calls,
        Turn::Fail => phase == Phase::Working && setup.errors,
        Turn::Reply => phase == Phase::Waiting,
        Turn::ReplyLost => phase == Phase::Waiting && faults.lost_reply && !calm,
        Turn::CallLost => phase == Phase::Waiting && faults.lost_request && !calm,
        Turn::Deadline => matches!(phase, Phase::Waiting | Phase::Deaf),
    })
}

/// Takes a turn. Returns the bits of what it breaks.
pub(super) fn take(phase: &mut Phase, outside: &mut Outside, turn: Turn) -> u16 {
    let before = *phase;
    *phase = match turn {
        Turn::Call => Phase::Waiting,
        Turn::Succeed | Turn::Reply => Phase::Succeeding,
        Turn::ReplyLost | Turn::CallLost => Phase::Deaf,
        Turn::Fail | Turn::Deadline => Phase::Failing,
    };
    match turn {
        Turn::Reply | Turn::ReplyLost => return outside.execute(),
        Turn::Deadline if before == Phase::Waiting => outside.stray(),
        _ => {}
    }
    0
}

/// An executor forgets what it did, by death or otherwise; a call of it that is under way stays so.
pub(super) fn forget(phase: &mut Phase, outside: &mut Outside) {
    if *phase == Phase::Waiting {
        outside.stray();
    }
    *phase = Phase::Idle;
}

/// What the report of a handler's end breaks when it takes effect: SUCCESS although the effect never happened.
pub(super) fn broken_by_success(setup: &Setup, outside: &Outside) -> u16 {
    if setup.calls && outside.ledger == 0 { bit(Property::SuccessMeansEffect) } else { 0 }
}
