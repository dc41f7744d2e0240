//! A transaction's hold on the database.

use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use super::Database;
use super::error::SqlError;
use super::gate::Executed;
use super::rows::Block;
use super::settings::Settings;
use super::watch::TaskChange;

/// The database, to oneself. Rolled back when dropped unless committed: a session that dies leaves nothing behind.
pub(crate) struct Hold {
    database: Arc<Database>,
    _serial: OwnedMutexGuard<()>,
    open: bool,
}

impl Hold {
    /// Waits in line for the database.
    pub async fn wait(database: &Arc<Database>, settings: &Settings) -> Result<Hold, SqlError> {
        let waiting = database.serial.clone().lock_owned();
        let serial = match settings.wait() {
            None => waiting.await,
            Some((limit, code, message)) => match madsim::time::timeout(limit, waiting).await {
                Ok(serial) => serial,
                Err(_) => return Err(SqlError::new(code, message)),
            },
        };
        Ok(Hold { database: database.clone(), _serial: serial, open: false })
    }

    /// Opens the transaction in SQLite.
    pub fn begin(&mut self) -> Result<(), SqlError> {
        if !self.open {
            self.database.engine().conn.execute_batch("BEGIN")?;
            self.open = true;
        }
        Ok(())
    }

    /// Commits what was begun.
    pub fn commit(mut self) -> Result<(), SqlError> {
        if self.open {
            self.database.engine().conn.execute_batch("COMMIT")?;
            self.open = false;
        }
        Ok(())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.open {
            // it can fail only if SQLite has rolled back by itself
            let _ = self.database.engine().conn.execute_batch("ROLLBACK");
        }
    }
}

/// A transaction block of a session.
#[derive(Default)]
pub(crate) struct Transaction {
    /// On a database with row locks: what it has locked and written.
    pub block: Option<Block>,
    /// The session's settings before the first `SET LOCAL`.
    pub settings: Option<Settings>,
    /// The hold on the database, from the first statement after BEGIN.
    pub hold: Option<Hold>,
    /// A statement has failed: nothing but the end is accepted.
    pub failed: bool,
    /// Tagged statements so far.
    pub executed: Vec<Executed>,
    /// Changes by statements without a tag.
    pub untagged: Vec<TaskChange>,
}
