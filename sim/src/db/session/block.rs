//! A session's statements on a database with row locks.

use std::sync::atomic::Ordering;

use rusqlite::types::Value;

use super::{Ended, Session};
use crate::db::engine::{Prepared, Write};
use crate::db::error::SqlError;
use crate::db::gate::{Arrival, Executed};
use crate::db::lock::Transaction;
use crate::db::rows::RowGuard;
use crate::db::sql::Command;

const fn writes(command: Command) -> bool {
    matches!(command, Command::Insert | Command::Update | Command::Delete)
}

impl Session {
    /// Ends the transaction block, and what was set for it.
    pub(super) fn end_block(&mut self) -> Option<Transaction> {
        let transaction = self.transaction.take()?;
        if let Some(settings) = transaction.settings {
            self.settings = settings;
        }
        Some(transaction)
    }

    /// Remembers the settings for the end of the block. False: there is none, and a `SET LOCAL` does nothing.
    pub(super) fn keep_settings(&mut self) -> bool {
        match &mut self.transaction {
            Some(transaction) => {
                transaction.settings.get_or_insert(self.settings);
                true
            }
            None => false,
        }
    }

    /// The row that a statement names in its tag.
    fn row_of(prepared: &Prepared, values: &[Value]) -> Option<i64> {
        match values.get(prepared.tag.as_ref()?.id?.checked_sub(1)?) {
            Some(Value::Integer(row)) => Some(*row),
            _ => None,
        }
    }

    /// The lock that a write outside a block takes while it is executed.
    pub(super) async fn row_of_a_single_write(
        &self,
        prepared: &Prepared,
        values: &[Value],
    ) -> Result<Option<RowGuard>, SqlError> {
        let row = Session::row_of(prepared, values).filter(|_| writes(prepared.command));
        match (&self.database.rows, row) {
            (Some(rows), Some(row)) => rows.lock(row, &self.settings, false).await.map(Some),
            _ => Ok(None),
        }
    }

    /// Runs a statement of a transaction block.
    pub(super) async fn run_in_block(
        &mut self,
        prepared: &Prepared,
        values: &[Value],
        binary: &[bool],
    ) -> Result<Ended, SqlError> {
        if matches!(prepared.command, Command::Savepoint | Command::RollbackTo) {
            return Err(SqlError::new("0A000", "savepoints are not supported with row locks"));
        }
        let request = self.request(prepared, values)?;
        if let Some(request) = &request {
            match self.database.gate.arrived(request) {
                Arrival::Execute => {}
                Arrival::Lose => return Ok(Ended::Lost),
                Arrival::Hold(release) => {
                    if release.await.is_err() {
                        return Ok(Ended::Lost);
                    }
                }
            }
        }
        let locks = prepared.locking.is_some() || writes(prepared.command);
        if locks {
            let Some(row) = Session::row_of(prepared, values) else {
                return Err(SqlError::new("0A000", "a write in a transaction block names its row in its tag"));
            };
            self.lock_in_block(row, prepared.locking.is_some_and(|read| read.no_wait)).await?;
        }
        let database = self.database.clone();
        let Some(transaction) = &mut self.transaction else { return Ok(Ended::Lost) };
        let Some(block) = &mut transaction.block else { return Ok(Ended::Lost) };
        database.statements.fetch_add(1, Ordering::Relaxed);
        let write = Write { what: prepared.clone(), values: values.to_vec() };
        let mut outcome = database.engine().rehearse(&block.writes, &write, binary)?;
        if writes(prepared.command) {
            block.writes.push(write);
        }
        let changes = std::mem::take(&mut outcome.changes);
        match request {
            Some(request) => {
                let (count, now_ms) = (outcome.count, database.now_ms());
                transaction.executed.push(Executed { request, count, changes, now_ms, unchanged: Vec::new() });
            }
            None => transaction.untagged.extend(changes),
        }
        Ok(Ended::Answered(outcome))
    }

    async fn lock_in_block(&mut self, row: i64, no_wait: bool) -> Result<(), SqlError> {
        let held = |open: &Transaction| open.block.as_ref().is_some_and(|block| block.locks.contains_key(&row));
        if self.transaction.as_ref().is_some_and(held) {
            return Ok(());
        }
        let Some(rows) = &self.database.rows else { return Ok(()) };
        let guard = rows.lock(row, &self.settings, no_wait).await?;
        if let Some(block) = self.transaction.as_mut().and_then(|open| open.block.as_mut()) {
            block.keep(row, guard);
        }
        Ok(())
    }
}
