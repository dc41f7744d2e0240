//! Row locks, and what an open transaction block has written beside the committed data.
//!
//! SQLite has one writer, so a block keeps its writes as statements. Each of its statements is executed after them and undone,
//! and at COMMIT they are executed once more, together. The lock on each row that they name sees to it that they find then
//! what they found before. Others, meanwhile, read what was committed: that is READ COMMITTED, for statements that depend on no
//! other row.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;

use super::Database;
use super::engine::{Write, virtual_ms};
use super::error::SqlError;
use super::settings::Settings;
use crate::observer::elapsed;

/// How long blocks and locks lasted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Longest {
    /// The longest that a transaction block was open.
    pub transaction: Duration,
    /// The longest that a row was locked by one.
    pub lock: Duration,
    /// When a block that had written was rolled back for the first time, in simulated time.
    pub rolled_back: Option<Duration>,
}

/// A lock on one row.
pub(crate) type RowGuard = OwnedMutexGuard<()>;

/// The rows' locks, by their ids.
#[derive(Default)]
pub(crate) struct RowLocks {
    rows: Mutex<BTreeMap<i64, Arc<tokio::sync::Mutex<()>>>>,
    longest: Mutex<Longest>,
}

impl RowLocks {
    /// Waits in line for a row, as long as the settings let it; not at all with `no_wait`.
    pub async fn lock(&self, row: i64, settings: &Settings, no_wait: bool) -> Result<RowGuard, SqlError> {
        let row = self.rows.lock().unwrap_or_else(PoisonError::into_inner).entry(row).or_default().clone();
        if no_wait {
            let why = "could not obtain lock on row";
            return row.try_lock_owned().map_err(|_| SqlError::new("55P03", why));
        }
        let waiting = row.lock_owned();
        match settings.wait() {
            None => Ok(waiting.await),
            Some((limit, code, message)) => {
                madsim::time::timeout(limit, waiting).await.map_err(|_| SqlError::new(code, message))
            }
        }
    }

    pub fn longest(&self) -> Longest {
        *self.measured()
    }

    fn measured(&self) -> MutexGuard<'_, Longest> {
        self.longest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an open transaction block holds. Dropped without a commit it leaves nothing behind.
pub(crate) struct Block {
    database: Arc<Database>,
    pub locks: BTreeMap<i64, RowGuard>,
    pub writes: Vec<Write>,
    began_ms: i64,
    locked_ms: Option<i64>,
    committed: bool,
}

impl Block {
    pub fn new(database: &Arc<Database>) -> Block {
        let (locks, writes) = (BTreeMap::new(), Vec::new());
        Block { database: database.clone(), locks, writes, began_ms: virtual_ms(), locked_ms: None, committed: false }
    }

    pub fn keep(&mut self, row: i64, guard: RowGuard) {
        self.locked_ms.get_or_insert_with(virtual_ms);
        self.locks.insert(row, guard);
    }

    pub fn commit(mut self) -> Result<(), SqlError> {
        if !self.writes.is_empty() {
            self.database.engine().commit(&self.writes)?;
        }
        self.committed = true;
        Ok(())
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let Some(rows) = &self.database.rows else { return };
        let since = |ms: i64| Duration::from_millis(u64::try_from(virtual_ms() - ms).unwrap_or_default());
        let mut longest = rows.measured();
        longest.transaction = longest.transaction.max(since(self.began_ms));
        if !self.committed && !self.writes.is_empty() {
            longest.rolled_back.get_or_insert(elapsed());
        }
        longest.lock = longest.lock.max(self.locked_ms.map(since).unwrap_or_default());
    }
}
