//! A checked story: what every rung executes.

use std::collections::BTreeSet;

use leaseproof_rules::{EffectRule, Guard, Policy};

use crate::verdict::Verdict;

/// A fault story. All times are milliseconds of story time, which begins at 0 with the tasks enqueued and the
/// database, the third party and the sweeper up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Story {
    /// The file's stem: the name on the command line and in reports.
    pub name: String,
    /// One line.
    pub title: String,
    /// The question the story answers.
    pub question: String,
    /// Requirement ids, e.g. `M2`.
    pub requirements: Vec<String>,
    /// Where the story was seen: URLs of public reports.
    pub sources: Vec<String>,
    /// The guard that is off in this story; `None` but in stories that show what a guard is for.
    pub without: Option<Guard>,
    /// The seed of the simulated run that the story records; `None` for a story that is told over many.
    pub seed: Option<u64>,
    /// The policy of every task in the story.
    pub policy: Policy,
    /// Set-up shared by all executors.
    pub timing: Timing,
    /// At least one.
    pub tasks: Vec<Task>,
    /// At least one.
    pub executors: Vec<Executor>,
    /// In the order of the file.
    pub faults: Vec<Fault>,
    /// What people decide about tasks that wait for them.
    pub decisions: Vec<PersonDecision>,
    /// What must come out.
    pub expect: Expect,
}

/// Clocks of the queue's processes, in ms on each process's own monotonic clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// How often an idle executor looks for work.
    pub poll_ms: u64,
    /// How often the sweeper looks.
    pub sweep_ms: u64,
    /// How long a client waits for the reply to a statement or a call before it counts the outcome as unknown.
    pub deadline_ms: u64,
    /// When the story ends: what is unresolved then is stuck. In story time.
    pub horizon_ms: u64,
}

impl Default for Timing {
    /// What the format has where a file says nothing.
    fn default() -> Timing {
        Timing { poll_ms: 1_000, sweep_ms: 5_000, deadline_ms: 5_000, horizon_ms: 600_000 }
    }
}

/// A task: it works, makes its outside call at some moment of the work if it has one, works on and ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    /// Its name in the file.
    pub name: String,
    /// How long its handler works, in ms, outside calls not counted.
    pub work_ms: u64,
    /// How its runs end: the first entry for the first run, the last for all further ones. Never empty.
    pub ends: Vec<RunEnd>,
    /// The outside call, if it makes one.
    pub effect: Option<Effect>,
}

/// How a run's handler ends when nothing interrupts it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RunEnd {
    /// Success.
    Ok,
    /// An error that may be retried.
    Error,
    /// An error that is never retried (M2).
    BadInput,
    /// It does not end: endless loop, a call that never returns (M1).
    Hang,
}

/// An outside call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effect {
    /// Its key within the task.
    pub key: String,
    /// When it is made, in ms of the handler's work.
    pub after_ms: u64,
    /// Its instruments, and what to do where they do not settle it.
    pub rule: EffectRule,
}

/// A worker process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Executor {
    /// Its name in the file.
    pub name: String,
    /// How many tasks it runs at once.
    pub slots: u32,
    /// When it starts, in ms of story time.
    pub start_ms: u64,
}

/// A process or machine of the story.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Node {
    /// Index into [`Story::executors`].
    Executor(usize),
    /// The sweeper's process.
    Sweeper,
    /// The database.
    Database,
    /// The third party.
    ThirdParty,
}

/// A message exchange that faults can name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Op {
    /// An executor claims. Polls that find nothing do not count.
    Claim,
    /// An executor renews its leases.
    Heartbeat,
    /// An executor journals an intent.
    Intent,
    /// An executor calls the third party.
    Call,
    /// An executor journals an outcome.
    Outcome,
    /// An executor reports success.
    Complete,
    /// An executor puts a failed task back.
    Retry,
    /// An executor gives a task up.
    GiveUp,
    /// The sweeper reads what is due. Reads that find nothing do not count.
    Sweep,
    /// The sweeper takes a task back.
    Requeue,
    /// The sweeper hands a task to a person.
    Escalate,
    /// The sweeper, or an executor, asks the third party.
    Query,
}

impl Op {
    /// Every one.
    pub const ALL: [Op; 12] = [
        Op::Claim,
        Op::Heartbeat,
        Op::Intent,
        Op::Call,
        Op::Outcome,
        Op::Complete,
        Op::Retry,
        Op::GiveUp,
        Op::Sweep,
        Op::Requeue,
        Op::Escalate,
        Op::Query,
    ];

    /// The name in files and traces. Statements carry the same name in their tag.
    pub const fn name(self) -> &'static str {
        match self {
            Op::Claim => "claim",
            Op::Heartbeat => "heartbeat",
            Op::Intent => "intent",
            Op::Call => "call",
            Op::Outcome => "outcome",
            Op::Complete => "complete",
            Op::Retry => "retry",
            Op::GiveUp => "give_up",
            Op::Sweep => "sweep",
            Op::Requeue => "requeue",
            Op::Escalate => "escalate",
            Op::Query => "query",
        }
    }

    /// Whether the sweeper, rather than an executor, is its sender.
    pub const fn is_sweepers(self) -> bool {
        matches!(self, Op::Sweep | Op::Requeue | Op::Escalate)
    }

    /// Whether the third party, rather than the database, is its receiver.
    pub const fn is_outside(self) -> bool {
        matches!(self, Op::Call | Op::Query)
    }
}

/// Which half of an exchange.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    /// Before the request leaves: it has had no effect.
    Request,
    /// After the receiver has committed, before the sender has the reply.
    Reply,
}

/// A protocol point, written `claim.reply`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Point {
    /// Which exchange.
    pub op: Op,
    /// Which half.
    pub phase: Phase,
}

/// When a fault strikes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Trigger {
    /// When the node of the fault is at this point for the `nth` time (from 1).
    At {
        /// The point.
        point: Point,
        /// From 1.
        nth: u32,
    },
    /// At this moment, in ms of story time.
    After {
        /// In ms.
        ms: u64,
    },
}

/// What a fault does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Act {
    /// The message at the point is lost, and so are the next `times - 1` at that point. Only with [`Trigger::At`].
    Lose {
        /// At least 1.
        times: u32,
    },
    /// The process dies (kill, OOM) and what it held in memory is gone. The database keeps what it committed.
    Crash {
        /// When it is started again, in ms after the crash, as a new incarnation. `None`: never.
        restart_ms: Option<u64>,
    },
    /// The process stands still (GC, stopped machine), timers included, then goes on as if nothing had been.
    Pause {
        /// In ms.
        ms: u64,
    },
    /// Messages between the node and `peer` are lost.
    Cut {
        /// The other end.
        peer: Node,
        /// Which messages.
        way: Way,
        /// For how long, in ms. `None`: for good.
        ms: Option<u64>,
    },
}

/// The direction of a cut, seen from the fault's node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Way {
    /// Neither end hears the other.
    Both,
    /// What the node sends is lost.
    To,
    /// What the node should receive is lost.
    From,
}

/// A fault.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Fault {
    /// When.
    pub trigger: Trigger,
    /// Where.
    pub on: Node,
    /// What.
    pub act: Act,
}

/// A decision by a person, who knows the truth about the outside but acts late.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PersonDecision {
    /// Index into [`Story::tasks`].
    pub task: usize,
    /// What is decided.
    pub act: PersonAct,
    /// How long after the task has come to WAIT_MANUAL, in ms. Each decision is taken once.
    pub after_ms: u64,
}

/// What a person can decide.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PersonAct {
    /// Run again.
    Rerun,
    /// It has failed.
    Fail,
    /// It has succeeded.
    Succeed,
}

/// What must come out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expect {
    /// The exact set of verdicts over all interleavings. Never empty.
    pub verdicts: BTreeSet<Verdict>,
    /// From the first fault (from the start, if there is none) until every task is resolved, in ms.
    pub recovers_within_ms: Option<u64>,
    /// How often an effect happens at most, for each task.
    pub effects_max: Option<u32>,
    /// How often an effect happens at least, for each task that has one.
    pub effects_min: Option<u32>,
    /// How many late results the execution record keeps at least.
    pub late_results_min: Option<u32>,
    /// How often a task is claimed at most, for each task.
    pub runs_max: Option<u32>,
}

impl Story {
    /// Every duration of the story that a model has to keep apart, in ms.
    fn durations(&self) -> impl Iterator<Item = u64> + '_ {
        let policy = &self.policy;
        let own = [
            policy.lease_ms,
            policy.heartbeat_ms,
            policy.fence_margin_ms,
            policy.expected_run_ms.unwrap_or(0),
            self.timing.poll_ms,
            self.timing.sweep_ms,
            self.timing.deadline_ms,
            self.timing.horizon_ms,
        ];
        let backoff = (1..policy.max_attempts.min(16)).map(|n| policy.backoff.delay_ms(n));
        let tasks = self.tasks.iter().flat_map(|t| [t.work_ms, t.effect.as_ref().map_or(0, |e| e.after_ms)]);
        let faults = self.faults.iter().flat_map(|fault| {
            let at = match fault.trigger {
                Trigger::After { ms } => ms,
                Trigger::At { .. } => 0,
            };
            let long = match fault.act {
                Act::Lose { .. } => 0,
                Act::Crash { restart_ms } => restart_ms.unwrap_or(0),
                Act::Pause { ms } => ms,
                Act::Cut { ms, .. } => ms.unwrap_or(0),
            };
            [at, long]
        });
        own.into_iter()
            .chain(backoff)
            .chain(tasks)
            .chain(self.executors.iter().map(|e| e.start_ms))
            .chain(faults)
            .chain(self.decisions.iter().map(|d| d.after_ms))
    }

    /// The longest tick that measures every duration of the story exactly: their greatest common divisor, in ms.
    pub fn tick_ms(&self) -> u64 {
        self.durations().fold(0, gcd).max(1)
    }

    /// A complaint about each fault that is not among those that struck, by their indices: a story whose fault never
    /// strikes proves nothing of it.
    pub fn unstruck(&self, struck: &BTreeSet<usize>) -> Vec<String> {
        let missed = self.faults.iter().enumerate().filter(|(index, _)| !struck.contains(index));
        missed
            .map(|(index, fault)| format!("faults[{index}], on {}, never strikes", self.node_name(fault.on)))
            .collect()
    }

    /// The name of a node as the file has it.
    pub fn node_name(&self, node: Node) -> &str {
        match node {
            Node::Executor(index) => &self.executors[index].name,
            Node::Sweeper => "sweeper",
            Node::Database => "database",
            Node::ThirdParty => "third_party",
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
