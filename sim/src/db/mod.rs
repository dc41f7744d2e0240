//! The database node: PostgreSQL's wire protocol on a simulated machine, executed by SQLite in memory.
//!
//! SQLite stands for the server's executor, so isolation is coarser than PostgreSQL's: transactions are serial. One
//! that has executed a statement keeps the database to itself until it ends; others wait in order of arrival, as they
//! would for a row lock. `lock_timeout`, `statement_timeout` and `idle_in_transaction_session_timeout` hold as in
//! PostgreSQL. A session that ends, for whatever reason, is rolled back; the node's own crash loses what was not
//! committed and keeps the rest.
//!
//! [`Database::with_row_locks`] is finer, for clients that keep transactions open.

mod engine;
mod error;
mod gate;
mod lock;
mod reply;
mod rows;
mod session;
mod settings;
mod sql;
mod value;
mod watch;

use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use gate::{Answer, Arrival, Commit, Executed, Gate, Open, Presented, Request};
pub use rows::Longest;
pub use watch::{TaskChange, TaskRow};

use crate::net;
use engine::Engine;

/// A database whose committed data outlives the crashes of its node.
pub struct Database {
    engine: Mutex<Engine>,
    /// Held by the transaction that has the database to itself.
    serial: Arc<tokio::sync::Mutex<()>>,
    gate: Arc<dyn Gate>,
    skew_ms: Arc<AtomicI64>,
    rows: Option<rows::RowLocks>,
    statements: AtomicU64,
    blocks: AtomicU64,
    sessions: AtomicU64,
}

impl Database {
    /// A database with this schema (SQLite's dialect). The clock `leaseproof_now_ms()` is virtual time.
    ///
    /// # Errors
    /// A schema that SQLite does not accept.
    pub fn open(schema: &str, gate: Arc<dyn Gate>) -> rusqlite::Result<Arc<Database>> {
        Database::new(schema, gate, None)
    }

    /// The same, but a transaction block locks the rows it writes and nothing else, and others read what was committed: READ
    /// COMMITTED, for blocks whose every write names its row in its tag.
    ///
    /// # Errors
    /// A schema that SQLite does not accept.
    pub fn with_row_locks(schema: &str, gate: Arc<dyn Gate>) -> rusqlite::Result<Arc<Database>> {
        Database::new(schema, gate, Some(rows::RowLocks::default()))
    }

    fn new(schema: &str, gate: Arc<dyn Gate>, rows: Option<rows::RowLocks>) -> rusqlite::Result<Arc<Database>> {
        let skew_ms = Arc::<AtomicI64>::default();
        Ok(Arc::new(Database {
            engine: Mutex::new(Engine::open(schema, skew_ms.clone())?),
            serial: Arc::default(),
            gate,
            rows,
            skew_ms,
            statements: AtomicU64::new(0),
            blocks: AtomicU64::new(0),
            sessions: AtomicU64::new(0),
        }))
    }

    /// Serves on the calling task's node until the node dies. Start it again to bring the database back.
    ///
    /// # Errors
    /// The node's port is taken, or its kernel is gone.
    pub async fn serve(self: Arc<Database>) -> io::Result<Infallible> {
        // PostgreSQL switches keepalive on for its connections, with the system's times
        let options = net::TcpOptions { keepalive: Some(net::Keepalive::LINUX), ..net::TcpOptions::default() };
        let listener = net::Listener::bind_with(net::database(), options).await?;
        self.gate.started();
        loop {
            let (stream, peer) = listener.accept().await?;
            let number = self.sessions.fetch_add(1, Ordering::Relaxed) + 1;
            madsim::task::spawn(session::serve(self.clone(), stream, peer.ip(), number));
        }
    }

    /// Moves the database's clock by so many ms from now on.
    pub fn skew(&self, ms: i64) {
        self.skew_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// The database's clock, in ms.
    pub fn now_ms(&self) -> i64 {
        engine::virtual_ms() + self.skew_ms.load(Ordering::Relaxed)
    }

    /// Statements executed so far, control statements not counted.
    pub fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    /// Transaction blocks begun so far.
    pub fn blocks(&self) -> u64 {
        self.blocks.load(Ordering::Relaxed)
    }

    /// Sessions begun so far.
    pub fn sessions(&self) -> u64 {
        self.sessions.load(Ordering::Relaxed)
    }

    /// Of the transaction blocks that have ended. Only with row locks.
    pub fn longest(&self) -> Longest {
        self.rows.as_ref().map(rows::RowLocks::longest).unwrap_or_default()
    }

    /// Reads the data directly, as an observer outside the simulated world. Sees what an open transaction has done.
    ///
    /// # Errors
    /// Whatever the closure returns.
    pub fn read<T>(&self, read: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        read(&self.engine().conn)
    }

    fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
