//! The state of the lease design: rows, effect journals, the third party, the runs, the sweeper and the person.
//!
//! It has no time in it. In the free worlds time is nondeterminism (a lease *may* end); stories put a clock beside it.

use leaseproof_rules::{Answer, Entry, Property, Reason, Row, Signal, Status};

use crate::bits::{Coder, Field, Piece, Pieces};
use crate::extra::{Extra, Extras};

/// Tasks at most.
pub const MAX_TASKS: usize = 4;
/// Slots at most, over all executors.
pub const MAX_RUNS: usize = 16;
/// Epochs, and so execution tokens, are below this.
pub const MAX_EPOCH: u8 = 32;
pub(crate) const EPOCH_BITS: u32 = 5;
/// Parts of an effect at most. Three stand for the ten thousand: a test shows that four bring nothing new.
pub const MAX_PARTS: usize = 4;

/// A task: its row, its effect's journal entry, and what the third party knows of the effect.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Task {
    /// The row's status.
    pub status: Status,
    /// The row's epoch.
    pub epoch: u8,
    /// Claimable, and its due time has come.
    pub due: bool,
    /// RUNNING, and the lease has ended.
    pub expired: bool,
    /// RUNNING, and over the expected time.
    pub overrun: bool,
    /// Failed attempts recorded.
    pub attempts: u8,
    /// Lost owners recorded.
    pub interruptions: u8,
    /// The journal entry of its effect; with checkpoints, of the step it is at.
    pub journal: Option<Entry>,
    /// With checkpoints: how many steps come before the one that `journal` speaks of. They are past.
    pub step: u8,
    /// Why it is in WAIT_MANUAL or was given up.
    pub reason: Option<Reason>,
    /// Where starts of processes are told apart: the place of its owner, see [`crate::boots`].
    pub owner: u8,
    /// RUNNING, and its owner's start is known to be superseded (A2).
    pub superseded: bool,
    /// Ghost: the row's epoch when a person last decided, 0 before. Runs with an epoch up to this one were claimed
    /// before the decision.
    pub decided: u8,
    /// By part: how often it has happened. Saturates at [`State::LEDGER_MAX`].
    pub ledger: [u8; MAX_PARTS],
    /// The newest execution token that the third party has seen.
    pub fence: u8,
    /// A saga that goes back: the row's epoch when it turned, 0 before. Runs with a later one undo. See [`crate::saga`].
    pub turned: u8,
    /// By part: how often its compensation was made. Saturates at [`State::LEDGER_MAX`].
    pub undone: [u8; MAX_PARTS],
    /// Calls under way to the third party, see [`Shape::call_bit`]. They outlive their sender.
    pub calls: u32,
}

impl Task {
    /// As enqueued.
    pub const NEW: Task = Task {
        status: Status::Pending,
        epoch: 0,
        due: true,
        expired: false,
        overrun: false,
        attempts: 0,
        interruptions: 0,
        journal: None,
        step: 0,
        reason: None,
        owner: 0,
        superseded: false,
        decided: 0,
        ledger: [0; MAX_PARTS],
        fence: 0,
        turned: 0,
        undone: [0; MAX_PARTS],
        calls: 0,
    };

    /// An entry of an outbox that nobody has written yet: it is not due before it is.
    pub const UNWRITTEN: Task = Task { due: false, ..Task::NEW };

    /// What the database knows of the row when it judges a write.
    pub fn row(&self) -> Row {
        Row {
            status: self.status,
            epoch: u64::from(self.epoch),
            due: self.due,
            lease_live: !self.expired,
            owner_superseded: self.superseded,
            overrun: self.overrun,
        }
    }

    /// Steps that the journal has as done or past; of a saga that goes back, those that are left to undo.
    pub fn recorded(&self) -> u8 {
        let done = u8::from(self.journal == Some(Entry::Done));
        if self.turned > 0 { self.step + 1 - done } else { self.step + done }
    }

    /// How often the part that happened most often has happened.
    pub fn happened(&self) -> u8 {
        self.ledger.into_iter().max().unwrap_or(0)
    }

    /// Whether all of these parts have happened (`Some(true)`), none, or some.
    pub fn is_done(&self, parts: std::ops::Range<usize>) -> Option<bool> {
        let parts = &self.ledger[parts];
        let all = parts.iter().all(|&times| times > 0);
        let none = parts.iter().all(|&times| times == 0);
        (all || none).then_some(all)
    }

    /// What the database has of it: the row and its journal.
    #[inline(always)]
    pub(crate) fn code_row(&mut self, shape: Shape, c: &mut impl Coder) {
        c.field(&mut self.status);
        c.small(&mut self.epoch, EPOCH_BITS);
        c.field(&mut self.due);
        c.field(&mut self.expired);
        c.field(&mut self.overrun);
        c.small(&mut self.attempts, 4);
        c.small(&mut self.interruptions, 4);
        c.field(&mut self.journal);
        c.field(&mut self.reason);
        if shape.parts > 1 {
            c.small(&mut self.step, 2);
        }
        if shape.extras.boots {
            c.small(&mut self.owner, 2);
            c.field(&mut self.superseded);
        }
        if shape.extras.saga {
            c.small(&mut self.turned, EPOCH_BITS);
        }
    }
}

impl Piece for Task {
    #[inline(always)]
    fn code(&mut self, shape: Shape, c: &mut impl Coder) {
        self.code_row(shape, c);
        c.small(&mut self.decided, EPOCH_BITS);
        for times in &mut self.ledger[..shape.parts] {
            c.small(times, 2);
        }
        c.small(&mut self.fence, EPOCH_BITS);
        if shape.extras.saga {
            for times in &mut self.undone[..shape.parts] {
                c.small(times, 2);
            }
        }
        c.bits(&mut self.calls, 32);
    }
}

/// Where a run is in the protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Phase {
    /// The slot is free.
    Idle = 0,
    /// It has read a candidate; the epoch is the one it read.
    Claiming = 1,
    /// Works towards its outside call.
    Working = 2,
    /// Works towards an outside call of which only a person can say whether it may be made.
    Doomed = 3,
    /// Is to journal the intent.
    Intending = 4,
    /// Is to make the call.
    Calling = 5,
    /// Has made the call and waits for the reply.
    Waiting = 6,
    /// Is to journal the outcome.
    Recording = 7,
    /// Works, with no call ahead.
    Finishing = 8,
    /// Is to report success.
    Completing = 9,
    /// Has failed with an error that may be retried, and is to say so.
    Failing = 10,
    /// Has failed with an error that is never retried, and is to say so.
    FailingBad = 11,
    /// Has failed without knowing whether its call was done.
    Unsure = 12,
    /// Is to journal that its call surely did not happen.
    Retracting = 13,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Phase; 14] = [
        Phase::Idle,
        Phase::Claiming,
        Phase::Working,
        Phase::Doomed,
        Phase::Intending,
        Phase::Calling,
        Phase::Waiting,
        Phase::Recording,
        Phase::Finishing,
        Phase::Completing,
        Phase::Failing,
        Phase::FailingBad,
        Phase::Unsure,
        Phase::Retracting,
    ];

    /// Whether a handler is running: it holds, or believes that it holds, a claim.
    pub const fn is_executing(self) -> bool {
        !matches!(self, Phase::Idle | Phase::Claiming)
    }

    /// Whether the handler still has something to do, as against a run that has ended and reports.
    pub const fn is_at_work(self) -> bool {
        self.is_executing() && !matches!(self, Phase::Completing)
    }
}

impl Field for Phase {
    const WIDTH: u32 = 4;
    #[inline]
    fn to_bits(self) -> u32 {
        self as u32
    }
    #[inline]
    fn from_bits(bits: u32) -> Phase {
        Phase::ALL[bits as usize]
    }
}

/// What happens in one slot of an executor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Run {
    /// Where it is.
    pub phase: Phase,
    /// Index of its task; 0 if idle.
    pub task: u8,
    /// The epoch of its claim; 0 if idle.
    pub epoch: u8,
    /// What the third party answered about the unknown call.
    pub answer: Option<Answer>,
    /// With checkpoints: the step it is at.
    pub step: u8,
    /// Until its call is over: of an earlier call of the same, nothing was heard.
    pub earlier_open: bool,
}

impl Run {
    /// Nothing to do.
    pub const IDLE: Run = Run { phase: Phase::Idle, task: 0, epoch: 0, answer: None, step: 0, earlier_open: false };
}

impl Piece for Run {
    #[inline(always)]
    fn code(&mut self, shape: Shape, c: &mut impl Coder) {
        c.field(&mut self.phase);
        c.small(&mut self.task, 2);
        c.small(&mut self.epoch, EPOCH_BITS);
        c.field(&mut self.answer);
        c.field(&mut self.earlier_open);
        if shape.parts > 1 {
            c.small(&mut self.step, 2);
        }
    }
}

/// What a sweeper has read of a task and acts on, however old it has become.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Seen {
    /// Why the task was picked; `None`: nothing is remembered of it.
    pub signal: Option<Picked>,
    /// The row's epoch when it was read.
    pub epoch: u8,
    /// The journal had an intent without an outcome.
    pub intent: bool,
    /// What the third party has answered since.
    pub answer: Option<Answer>,
    /// Steps that the journal had as done or past.
    pub recorded: u8,
}

/// Why the sweeper picks a task.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Picked {
    /// The lease had ended.
    Expired = 0,
    /// The lease was live, the run over its expected time.
    Overrun = 1,
    /// The lease was live, the owner's start known to be superseded (A2).
    Superseded = 2,
}

impl Picked {
    /// As the rules call it.
    pub const fn signal(self) -> Signal {
        match self {
            Picked::Expired => Signal::LeaseExpired,
            Picked::Overrun => Signal::Beating,
            Picked::Superseded => Signal::OwnerSuperseded,
        }
    }
}

impl Field for Option<Picked> {
    const WIDTH: u32 = 2;
    #[inline]
    fn to_bits(self) -> u32 {
        self.map_or(0, |picked| picked as u32 + 1)
    }
    #[inline]
    fn from_bits(bits: u32) -> Option<Picked> {
        [None, Some(Picked::Expired), Some(Picked::Overrun), Some(Picked::Superseded)][bits as usize]
    }
}

impl Seen {
    /// Nothing remembered.
    pub const NOTHING: Seen = Seen { signal: None, epoch: 0, intent: false, answer: None, recorded: 0 };
}

impl Piece for Seen {
    #[inline(always)]
    fn code(&mut self, shape: Shape, c: &mut impl Coder) {
        c.field(&mut self.signal);
        c.small(&mut self.epoch, EPOCH_BITS);
        c.field(&mut self.intent);
        c.field(&mut self.answer);
        if shape.parts > 1 {
            c.small(&mut self.recorded, 3);
        }
    }
}

/// What a person at the desk is looking at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Desk {
    /// A task is open.
    pub open: bool,
    /// Its index.
    pub task: u8,
    /// The row's epoch when it was read.
    pub epoch: u8,
    /// The person has found out about the outside call,
    pub found_out: bool,
    /// namely whether it has happened; `None`: in part.
    pub truth: Option<bool>,
}

impl Desk {
    /// Looks at nothing.
    pub const EMPTY: Desk = Desk { open: false, task: 0, epoch: 0, found_out: false, truth: None };
}

impl Piece for Desk {
    #[inline(always)]
    fn code(&mut self, _shape: Shape, c: &mut impl Coder) {
        c.field(&mut self.open);
        c.small(&mut self.task, 2);
        c.small(&mut self.epoch, EPOCH_BITS);
        c.field(&mut self.found_out);
        c.field(&mut self.truth);
    }
}

/// Persons at most.
pub const MAX_PERSONS: usize = 2;

/// How many tasks and slots of the arrays are in use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// Up to [`MAX_TASKS`].
    pub tasks: usize,
    /// Up to [`MAX_RUNS`].
    pub runs: usize,
    /// Of how many parts an effect consists: 1 to [`MAX_PARTS`].
    pub parts: usize,
    /// What else is kept.
    pub extras: Extras,
}

impl Shape {
    /// The bit in [`Task::calls`] of the call for a step with an execution token. A run makes one call at a time.
    pub fn call_bit(self, token: u8, step: u8) -> u32 {
        1 << (usize::from(token) * self.parts + usize::from(step))
    }

    /// The calls of these bits: token and step of each.
    pub fn calls(self, bits: u32) -> impl Iterator<Item = (u8, u8)> + use<> {
        let at = move |bit: usize| ((bit / self.parts) as u8, (bit % self.parts) as u8);
        (0..32).filter(move |bit| bits & (1 << bit) != 0).map(at)
    }
}

/// Everything but time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct State {
    /// By index; entries beyond the world's tasks stay as new.
    pub tasks: [Task; MAX_TASKS],
    /// By slot; entries beyond the world's slots stay idle.
    pub runs: [Run; MAX_RUNS],
    /// By task: what the first sweeper remembers.
    pub seen: [Seen; MAX_TASKS],
    /// By person.
    pub desks: [Desk; MAX_PERSONS],
    /// Ghost: how often a person let a task run again.
    pub reruns: u8,
    /// Ghost: no fault happens from now on.
    pub calm: bool,
    /// Ghost: the properties violated so far, one bit each by the discriminant of `Property`.
    pub bad: u16,
    /// Ghost: refused completions, kept as evidence. Stays 0 in the free worlds.
    pub late: u8,
    /// What only some worlds have.
    pub extra: Extra,
}

impl State {
    /// Where the ledger stops counting: this often, or more.
    pub const LEDGER_MAX: u8 = 3;
    /// Where late results stop counting.
    pub const LATE_MAX: u8 = 15;

    /// Everything is new and idle.
    pub const NEW: State = State {
        tasks: [Task::NEW; MAX_TASKS],
        runs: [Run::IDLE; MAX_RUNS],
        seen: [Seen::NOTHING; MAX_TASKS],
        desks: [Desk::EMPTY; MAX_PERSONS],
        reruns: 0,
        calm: false,
        bad: 0,
        late: 0,
        extra: Extra::NONE,
    };

    /// Inlined, and so are its parts: a caller with a constant shape gets code without loops.
    #[inline(always)]
    pub(crate) fn code(&mut self, shape: Shape, c: &mut impl Coder) {
        for (i, task) in self.tasks[..shape.tasks].iter_mut().enumerate() {
            c.piece(Pieces::task(i), task, shape);
        }
        for (i, run) in self.runs[..shape.runs].iter_mut().enumerate() {
            c.piece(Pieces::run(i), run, shape);
        }
        for (i, seen) in self.seen[..shape.tasks].iter_mut().enumerate() {
            c.piece(Pieces::seen(i), seen, shape);
        }
        for (i, desk) in self.desks.iter_mut().enumerate() {
            c.piece(Pieces::desk(i), desk, shape);
        }
        c.small(&mut self.reruns, 3);
        c.field(&mut self.calm);
        let mut bad = u32::from(self.bad);
        c.bits(&mut bad, Property::ALL.len() as u32);
        self.bad = bad as u16;
        c.small(&mut self.late, 4);
        self.extra.code(shape, c);
    }

    /// Whether a task's current claim is held by a run that still renews it.
    pub fn is_renewed(&self, task: usize) -> bool {
        let epoch = self.tasks[task].epoch;
        self.runs.iter().any(|run| run.phase.is_executing() && usize::from(run.task) == task && run.epoch == epoch)
    }
}
