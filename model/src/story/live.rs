//! The state of a story: the protocol's state, and the clock with everything that waits for it.

use leaseproof_rules::{Answer, Entry, Reason, Status, Verb};

use super::script::{MAX_FAULTS, NEVER, Script, TICK_BITS, Ticks};
use crate::bits::{Coder, Field, Reader, Writer};
use crate::database::Request;
use crate::executor::Heard;
use crate::state::{EPOCH_BITS, MAX_RUNS, MAX_TASKS, State};

/// Executors at most.
pub(crate) const MAX_EXECUTORS: usize = 4;
/// Requests without a sender at most.
pub(crate) const MAX_ORPHANS: usize = 6;

/// How an exchange stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Stage {
    /// There is none.
    Quiet,
    /// The sender stands still before the request leaves; it leaves when the sender goes on, whatever else happens.
    Held,
    /// The request is under way.
    Sent,
    /// The receiver has answered; the sender has not read it.
    Replied(Heard),
    /// Nothing will come.
    Lost,
    /// There is no connection to the third party yet: nothing has been sent.
    Connecting,
}

const HEARD: [Heard; 8] = [
    Heard::Accepted,
    Heard::Refused,
    Heard::Unknown,
    Heard::CallDone,
    Heard::CallNotDone,
    Heard::Answer(Answer::Done),
    Heard::Answer(Answer::NotDone),
    Heard::Answer(Answer::Unavailable),
];

impl Field for Stage {
    const WIDTH: u32 = 4;
    fn to_bits(self) -> u32 {
        match self {
            Stage::Quiet => 0,
            Stage::Held => 1,
            Stage::Sent => 2,
            Stage::Lost => 3,
            Stage::Connecting => 4,
            Stage::Replied(heard) => 5 + HEARD.iter().position(|h| *h == heard).unwrap_or(0) as u32,
        }
    }
    fn from_bits(bits: u32) -> Stage {
        match bits {
            0 => Stage::Quiet,
            1 => Stage::Held,
            2 => Stage::Sent,
            3 => Stage::Lost,
            4 => Stage::Connecting,
            _ => Stage::Replied(HEARD[bits as usize - 5]),
        }
    }
}

/// An exchange of one client.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Wire {
    pub stage: Stage,
    /// When the sender began to wait.
    pub sent: Ticks,
}

impl Wire {
    pub const QUIET: Wire = Wire { stage: Stage::Quiet, sent: 0 };

    fn code(&mut self, c: &mut impl Coder) {
        c.field(&mut self.stage);
        c.bits(&mut self.sent, TICK_BITS);
    }
}

/// How a process is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Life {
    Up,
    /// Until it is started (again).
    Down(Ticks),
    /// Until it goes on.
    Paused(Ticks),
}

impl Life {
    fn code(&mut self, c: &mut impl Coder) {
        let (mut kind, mut until) = match *self {
            Life::Up => (0, 0),
            Life::Down(until) => (1, until),
            Life::Paused(until) => (2, until),
        };
        c.bits(&mut kind, 2);
        c.bits(&mut until, TICK_BITS);
        *self = match kind {
            0 => Life::Up,
            1 => Life::Down(until),
            _ => Life::Paused(until),
        };
    }
}

/// The moments of a task, on the database's clock. Those that do not apply are 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct TaskClock {
    pub lease_end: Ticks,
    pub claimed_at: Ticks,
    pub due_at: Ticks,
    pub waiting_since: Ticks,
    /// Claims so far.
    pub runs: u8,
}

/// What a slot waits for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SlotClock {
    /// Its exchange, all but claims and heartbeats.
    pub wire: Wire,
    /// The write of that exchange; kept when the outcome is unknown, to be sent again.
    pub write: Option<Request>,
    /// The exchange is a question to the third party.
    pub asks: bool,
    /// When it began to ask the third party; 0: it has not.
    pub asking_since: Ticks,
    /// When the handler comes to its call or its end.
    pub work_due: Ticks,
    /// When the last accepted heartbeat, or the claim, was sent.
    pub beat_sent: Ticks,
    /// The claim is committed, its reply not read yet.
    pub unborn: bool,
    /// Which run of the task it is, from 1.
    pub run: u8,
}

impl SlotClock {
    pub const IDLE: SlotClock = SlotClock {
        wire: Wire::QUIET,
        write: None,
        asks: false,
        asking_since: 0,
        work_due: 0,
        beat_sent: 0,
        unborn: false,
        run: 0,
    };
}

/// An executor's own timers and its common exchanges.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ExecutorClock {
    pub life: Life,
    pub next_poll: Ticks,
    pub next_beat: Ticks,
    /// The claim for all its slots in phase `Claiming` or unborn.
    pub claim: Wire,
    pub beat: Wire,
    /// The heartbeat's runs, a bit for each of its slots.
    pub beat_slots: u8,
    /// Those that were refused.
    pub beat_refused: u8,
}

/// The sweeper's timer and its exchange. What it remembers is in [`State::seen`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SweeperClock {
    pub life: Life,
    pub next_sweep: Ticks,
    pub wire: Wire,
    /// The exchange concerns this task; `None`: it is the read.
    pub about: Option<u8>,
    /// The write of the exchange; `None`: it asks, or reads.
    pub write: Option<Request>,
}

/// A request whose sender is gone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Orphan {
    pub request: Request,
    /// It was the sweeper's; else an executor's.
    pub by_sweeper: bool,
}

/// Everything about a story at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Live {
    pub core: State,
    pub now: Ticks,
    pub tasks: [TaskClock; MAX_TASKS],
    pub slots: [SlotClock; MAX_RUNS],
    pub executors: [ExecutorClock; MAX_EXECUTORS],
    pub sweeper: SweeperClock,
    pub database: Life,
    pub third_party: Life,
    /// How often the node of each fault was at its point; for a fault by time: whether its moment is past.
    pub passes: [u8; MAX_FAULTS],
    /// The faults that have struck, a bit each.
    pub struck: u8,
    /// When the cut of each fault heals; 0: there is none.
    pub cut_until: [Ticks; MAX_FAULTS],
    /// The decisions that were taken, a bit each.
    pub taken: u8,
    pub orphans: Vec<Orphan>,
    /// Ghost: one more than the moment of the first fault; 0: none yet.
    pub first_fault: Ticks,
    /// Ghost: why the first task came to a person.
    pub first_reason: Option<Reason>,
    /// Ghost: one more than the moment since when every task is resolved; 0: not all are.
    pub resolved: Ticks,
}

impl Live {
    /// How it begins.
    pub fn new(script: &Script) -> Live {
        let executor = |index: usize| ExecutorClock {
            life: match script.starts.get(index) {
                Some(0) => Life::Up,
                Some(start) => Life::Down(*start),
                None => Life::Down(NEVER),
            },
            next_poll: 0,
            next_beat: script.heartbeat,
            claim: Wire::QUIET,
            beat: Wire::QUIET,
            beat_slots: 0,
            beat_refused: 0,
        };
        Live {
            core: State::NEW,
            now: 0,
            tasks: [TaskClock { lease_end: 0, claimed_at: 0, due_at: 0, waiting_since: 0, runs: 0 }; MAX_TASKS],
            slots: [SlotClock::IDLE; MAX_RUNS],
            executors: std::array::from_fn(executor),
            sweeper: SweeperClock {
                life: Life::Up,
                next_sweep: script.sweep,
                wire: Wire::QUIET,
                about: None,
                write: None,
            },
            database: Life::Up,
            third_party: Life::Up,
            passes: [0; MAX_FAULTS],
            struck: 0,
            cut_until: [0; MAX_FAULTS],
            taken: 0,
            orphans: Vec::new(),
            first_fault: 0,
            first_reason: None,
            resolved: 0,
        }
    }

    fn code(&mut self, script: &Script, c: &mut impl Coder) {
        let shape = script.setup.shape;
        self.core.code(shape, c);
        c.bits(&mut self.now, TICK_BITS);
        for task in &mut self.tasks[..shape.tasks] {
            for moment in [&mut task.lease_end, &mut task.claimed_at, &mut task.due_at, &mut task.waiting_since] {
                c.bits(moment, TICK_BITS);
            }
            c.small(&mut task.runs, 6);
        }
        for slot in &mut self.slots[..shape.runs] {
            slot.wire.code(c);
            code_write(&mut slot.write, c);
            c.field(&mut slot.asks);
            c.bits(&mut slot.asking_since, TICK_BITS);
            c.bits(&mut slot.work_due, TICK_BITS);
            c.bits(&mut slot.beat_sent, TICK_BITS);
            c.field(&mut slot.unborn);
            c.small(&mut slot.run, 6);
        }
        for executor in &mut self.executors[..script.executor_names.len()] {
            executor.life.code(c);
            c.bits(&mut executor.next_poll, TICK_BITS);
            c.bits(&mut executor.next_beat, TICK_BITS);
            executor.claim.code(c);
            executor.beat.code(c);
            c.small(&mut executor.beat_slots, 4);
            c.small(&mut executor.beat_refused, 4);
        }
        self.sweeper.life.code(c);
        c.bits(&mut self.sweeper.next_sweep, TICK_BITS);
        self.sweeper.wire.code(c);
        let mut about = self.sweeper.about.map_or(0, |task| task + 1);
        c.small(&mut about, 3);
        self.sweeper.about = about.checked_sub(1);
        code_write(&mut self.sweeper.write, c);
        self.database.code(c);
        self.third_party.code(c);
        for fault in 0..script.faults.len() {
            c.small(&mut self.passes[fault], 8);
            c.bits(&mut self.cut_until[fault], TICK_BITS);
        }
        c.small(&mut self.struck, 8);
        c.small(&mut self.taken, 8);
        let mut count = self.orphans.len() as u8;
        c.small(&mut count, 3);
        let blank = Orphan { request: Request::plain(0, Verb::Claim, Status::Pending, 0), by_sweeper: false };
        self.orphans.resize(count.into(), blank);
        for orphan in &mut self.orphans {
            let mut write = Some(orphan.request);
            code_write(&mut write, c);
            if let Some(request) = write {
                orphan.request = request;
            }
            c.field(&mut orphan.by_sweeper);
        }
        c.bits(&mut self.first_fault, TICK_BITS);
        c.field(&mut self.first_reason);
        c.bits(&mut self.resolved, TICK_BITS);
    }
}

fn code_write(write: &mut Option<Request>, c: &mut impl Coder) {
    let mut present = write.is_some();
    c.field(&mut present);
    if !present {
        *write = None;
        return;
    }
    let mut request = write.unwrap_or(Request::plain(0, Verb::Claim, Status::Pending, 0));
    let (mut task, mut verb) = (request.task as u8, request.verb as u8);
    c.small(&mut task, 2);
    c.small(&mut verb, 4);
    c.field(&mut request.to);
    c.small(&mut request.epoch, EPOCH_BITS);
    c.field::<Option<Entry>>(&mut request.learnt);
    c.field::<Option<Reason>>(&mut request.reason);
    c.bits(&mut request.delay_ms, 32);
    (request.task, request.verb) = (task.into(), Verb::ALL[usize::from(verb)]);
    *write = Some(request);
}

/// A [`Live`], packed. Equal exactly when the states are.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PackedLive(Box<[u64]>);

impl PackedLive {
    pub fn pack(live: &Live, script: &Script) -> PackedLive {
        let mut live = live.clone();
        let mut words = Vec::with_capacity(32);
        let mut writer = Writer::new(&mut words);
        live.code(script, &mut writer);
        writer.finish();
        PackedLive(words.into())
    }

    pub fn unpack(&self, script: &Script) -> Live {
        let mut live = Live::new(script);
        live.code(script, &mut Reader::new(&self.0));
        live
    }
}
