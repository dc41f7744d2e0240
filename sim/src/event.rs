//! What the observer of a simulated world sees, in the order in which it happened.
//!
//! The observer stands outside: it reads rows as the database commits them, effects as the third party has them, and
//! faults as they strike. Checkers judge these events; the trace is their written form.

use leaseproof_rules::{Answer, Entry, Epoch, Verb};
use leaseproof_scenarios::{Node, Op, Point, RunEnd, Way};

use crate::db::TaskRow;

/// Who an event belongs to: a node of the story, or the person at the desk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Actor {
    /// A node.
    Node(Node),
    /// A person.
    Person,
}

impl Actor {
    /// The executor, by its index in the story.
    pub const fn executor(index: usize) -> Actor {
        Actor::Node(Node::Executor(index))
    }
}

/// An event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// When, in ns of story time.
    pub at_ns: u64,
    /// Whose. For a write, the writer.
    pub actor: Actor,
    /// What.
    pub what: What,
}

impl Event {
    /// When, in whole ms of story time.
    pub const fn at_ms(&self) -> u64 {
        self.at_ns / 1_000_000
    }
}

/// A write of the queue to a task row, as the database has committed it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowWrite {
    /// Which write.
    pub verb: Verb,
    /// Index of the task in the story.
    pub task: usize,
    /// The epoch that the writer presented; a claim presents none.
    pub presented: Option<Epoch>,
    /// The row before.
    pub before: TaskRow,
    /// The row after.
    pub after: TaskRow,
    /// The database's clock, in ms.
    pub now_ms: i64,
}

impl RowWrite {
    /// A late success that became the result, since nobody had claimed the task since (see
    /// [`judge`](leaseproof_rules::judge)).
    pub fn is_adoption(&self) -> bool {
        self.verb == Verb::Complete && self.before.status.is_claimable()
    }

    /// The row changed hands or status; a renewed lease or a journal entry does neither.
    pub fn moves(&self) -> bool {
        self.before.status != self.after.status || self.before.epoch != self.after.epoch
    }
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// A process (or the database's, or the third party's) starts.
    Start,
    /// A task is in the queue.
    Enqueue {
        /// Index of the task in the story.
        task: usize,
    },

    /// A fault: the process dies.
    Crash {
        /// After so many ms it starts again; `None`: never.
        restart_ms: Option<u64>,
    },
    /// A fault: the process stands still.
    Pause {
        /// For so many ms.
        ms: u64,
    },
    /// The process goes on.
    Resume,
    /// A fault: messages are lost from now on.
    Cut {
        /// The other end.
        peer: Node,
        /// Which messages.
        way: Way,
        /// For so many ms; `None`: for good.
        ms: Option<u64>,
    },
    /// The cut has ended.
    Heal {
        /// The other end.
        peer: Node,
        /// Which messages.
        way: Way,
    },
    /// A fault: this one message is lost.
    Lose {
        /// Which message.
        point: Point,
    },
    /// A message did not leave, because its sender stands still or is dead.
    Hold {
        /// Which message.
        point: Point,
    },

    /// A write of the queue has been committed and has changed the row.
    Write(RowWrite),
    /// A write of the queue has been executed and has left the row alone.
    Refuse {
        /// Which write.
        verb: Verb,
        /// Index of the task in the story.
        task: usize,
        /// The epoch that the writer presented.
        presented: Option<Epoch>,
        /// The row as it stands.
        row: TaskRow,
        /// It had been applied before: the writer may take it as done.
        already: bool,
        /// The database's clock, in ms.
        now_ms: i64,
    },
    /// The result of a run that does not own its task any more is on the record.
    LateResult {
        /// Index of the task in the story.
        task: usize,
        /// The run's epoch.
        epoch: Option<Epoch>,
    },
    /// What the third party said of an effect is in the journal, for a task whose owner is lost.
    Learn {
        /// Index of the task in the story.
        task: usize,
        /// What it said.
        entry: Option<Entry>,
    },
    /// The sweeper has read tasks that need a decision.
    Sweep {
        /// How many rows it has read.
        found: usize,
    },

    /// A handler begins a run.
    RunBegin {
        /// Index of the task in the story.
        task: usize,
        /// The run's epoch.
        epoch: Epoch,
        /// The number of the run, from 1.
        run: u32,
    },
    /// A handler has come to its end by itself.
    RunEnd {
        /// Index of the task in the story.
        task: usize,
        /// The run's epoch.
        epoch: Epoch,
        /// How.
        end: RunEnd,
    },
    /// A handler sends a call to the third party.
    Call {
        /// Index of the task in the story.
        task: usize,
        /// The execution token that it carries.
        token: Epoch,
    },
    /// A call has come to nothing that its caller could know of.
    CallUnknown {
        /// Index of the task in the story.
        task: usize,
        /// Its execution token.
        token: Epoch,
    },

    /// The third party has done it, for the first time or again.
    Effect {
        /// Index of the task in the story.
        task: usize,
        /// The execution token of the call.
        token: Epoch,
        /// How often it has been done now.
        count: u32,
    },
    /// The third party knows the idempotency key and does nothing (E1).
    Repeat {
        /// Index of the task in the story.
        task: usize,
        /// The execution token of the call.
        token: Epoch,
    },
    /// The third party refuses a call for its old execution token (E6).
    RefuseCall {
        /// Index of the task in the story.
        task: usize,
        /// The execution token of the call.
        token: Epoch,
        /// The newest it has seen.
        newest: Epoch,
    },
    /// The third party is asked and answers (E2).
    Ask {
        /// Index of the task in the story.
        task: usize,
        /// The execution token of the question.
        token: Option<Epoch>,
        /// The answer.
        answer: Answer,
    },

    /// Every task is resolved.
    Resolved,
    /// Something is still unresolved, and the story is over.
    Horizon,
}

/// The exchange that a tagged statement belongs to, if faults can name it.
pub fn op_of(tag: &str) -> Option<Op> {
    Op::ALL.into_iter().find(|op| op.name() == tag && !op.is_outside())
}

/// The verb that a tagged statement writes, if it writes one.
pub fn verb_of(tag: &str) -> Option<Verb> {
    Verb::ALL.into_iter().find(|verb| verb.name() == tag)
}
