//! The state and the steps of the design single-transaction: the row, and the server's sessions.

use leaseproof_rules::Status;

use super::handler::{MAX_EXECUTORS, Outside, Phase, Turn};
use crate::free::Fate;

/// How the server finds out that a session is of no use any more. With both off it never does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sessions {
    /// The server's kernel probes the peer's kernel (Linux `tcp_keepalive_time`, 7200 s). Ends sessions whose host is dead
    /// or cut off. A handler that hangs is not found: its kernel answers.
    pub keepalive: bool,
    /// The server ends a session that sends no statement (MySQL `wait_timeout`, 28800 s; PostgreSQL
    /// `idle_in_transaction_session_timeout`, off by default). Ends them all, those of long runs included.
    pub idle_timeout: bool,
}

impl Sessions {
    /// Both.
    pub const BOTH: Sessions = Sessions { keepalive: true, idle_timeout: true };
    /// Neither.
    pub const NEITHER: Sessions = Sessions { keepalive: false, idle_timeout: false };
}

/// An executor's connection while it has a transaction open.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Session {
    /// No transaction.
    None,
    /// The server holds the transaction and its lock.
    Open,
    /// The same, but the network is cut: nothing passes any more, and nobody has noticed.
    Cut,
    /// The server has ended the session and rolled back; the executor has not noticed.
    Ended,
}

impl Session {
    /// The server holds a transaction for it.
    pub const fn holds_lock(self) -> bool {
        matches!(self, Session::Open | Session::Cut)
    }
}

/// A session of the server whose client is gone; it still holds the lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Orphan {
    /// The peer does not answer probes: dead, cut off, or closed behind a cut.
    Gone,
    /// The handler hangs; its kernel answers probes.
    Hung,
}

/// The row, the executors with their sessions, and the third party.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    /// What is committed, and so what everybody sees.
    pub status: Status,
    /// By executor; those beyond the world's stay idle.
    pub runs: [(Phase, Session); MAX_EXECUTORS],
    /// The server's session without a client, if there is one.
    pub orphan: Option<Orphan>,
    /// The third party.
    pub outside: Outside,
    /// Ghost: how often a run was rolled back.
    pub lost: u8,
    /// Ghost: no fault happens from now on.
    pub calm: bool,
    /// Ghost: the properties violated so far, as in the lease's state.
    pub bad: u16,
}

/// Whose session a clock of the server ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Whose {
    /// An executor's.
    Run(u8),
    /// The one whose client is gone.
    Orphan,
}

/// A step. `run` is the executor's index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Action {
    /// An idle executor reads the row as PENDING.
    Look { run: u8 },
    /// It begins its transaction: lock the row without waiting, set RUNNING.
    Claim { run: u8, fate: Fate },
    /// Its handler or its call goes on.
    Work { run: u8, turn: Turn },
    /// It writes SUCCESS or FAIL and commits.
    Commit { run: u8, fate: Fate },
    /// It gives up asking what has become of its commit.
    Shrug { run: u8 },
    /// Its process dies; the kernel resets the connection.
    Crash { run: u8 },
    /// Its host dies, silently; it starts again elsewhere.
    HostFault { run: u8 },
    /// Its handler hangs for ever; another slot of the process takes its place.
    Hang { run: u8 },
    /// The network under its connection is cut.
    Cut { run: u8 },
    /// Keepalive probes stay unanswered and the server ends a session.
    Keepalive { whose: Whose },
    /// A session has sent nothing for too long and the server ends it.
    IdleTimeout { whose: Whose },
    /// A call without sender is done.
    StrayArrives,
    /// A call without sender is lost.
    StrayLost,
    /// Faults come to an end.
    Calm,
}

impl State {
    /// Somebody's transaction holds the row.
    pub fn is_locked(&self) -> bool {
        self.orphan.is_some() || self.runs.iter().any(|(_, session)| session.holds_lock())
    }
}
