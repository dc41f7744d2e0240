//! S2, *single-transaction*: one transaction spans the run, and RUNNING is never committed.

use std::future::Future;

use leaseproof_rules::{Status, Verb};

use crate::claim::{self, Claim, Design, Outcome, Ran};
use crate::sql::Transaction;
use crate::table::status_of;
use crate::{Error, Table, Task, sql};

/// How a claim keeps from waiting for the lock of somebody who is at work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LockWait {
    /// The wait for a lock is set to its minimum first: 1 ms on PostgreSQL (0 means: for ever), 0 s on MariaDB, 1 s on MySQL
    /// (which makes 1 of 0), 0 on SQLite.
    #[default]
    Minimum,
    /// The row is read with `FOR UPDATE NOWAIT` first. SQLite has no such clause; there it is [`LockWait::Minimum`].
    NoWait,
}

/// The design S2. Whoever looks sees PENDING all the while, and finds out by meeting the lock.
///
/// The claim ends with its *session*. Who ends that session is the server's affair: at once where the peer's kernel closes
/// the connection, after TCP keepalive or the idle timeout where it does not. On SQLite the lock is the whole database's, so
/// that one executor works at a time.
#[derive(Clone, Debug)]
pub struct SingleTransaction {
    table: Table,
    wait: LockWait,
}

impl SingleTransaction {
    /// As it is usually written.
    pub fn new(table: Table) -> SingleTransaction {
        SingleTransaction { table, wait: LockWait::default() }
    }

    /// How a claim keeps from waiting.
    pub fn lock_wait(self, wait: LockWait) -> SingleTransaction {
        SingleTransaction { wait, ..self }
    }

    /// Claims the first task that can be had; goes on to the next where it meets a lock.
    ///
    /// # Errors
    /// The database's.
    pub async fn claim(&self) -> Result<Option<Claim>, Error> {
        claim::claim_any(self).await
    }

    /// Claims this task. `None`: it is not PENDING.
    ///
    /// # Errors
    /// [`Error::Locked`]: somebody is at work on it, and the code is the only sign of it. Else the database's.
    pub async fn claim_task(&self, id: i64) -> Result<Option<Claim>, Error> {
        let pool = &self.table.pool;
        let mut main = pool.begin().await.map_err(Error::of("begin"))?;
        let row = main.row(pool, sql::read(""), id).await.map_err(Error::of("look at the task"))?;
        let pending = match &row {
            Some(row) => status_of(row)?.is_claimable(),
            None => false,
        };
        let Some((id, kind, payload, _)) = row.filter(|_| pending) else {
            main.rollback().await.map_err(Error::of("end"))?;
            return Ok(None);
        };
        match self.set_running(&mut main, id).await {
            Ok(1) => {
                let task = Task { id, kind, payload };
                Ok(Some(Claim { table: self.table.clone(), task, main: Some(main) }))
            }
            Ok(_) => {
                main.rollback().await.map_err(Error::of("end"))?;
                Ok(None)
            }
            Err(error) => {
                // Whatever it answers, the transaction is over.
                let _ = main.rollback().await;
                Err(Error::of("claim")(error))
            }
        }
    }

    /// Claims a task, runs it and reports, in one transaction.
    ///
    /// # Errors
    /// See [`SingleTransaction::claim`] and [`Claim::report`].
    pub async fn run_one<F, Fut>(&self, handler: F) -> Result<Ran, Error>
    where
        F: FnOnce(Task) -> Fut,
        Fut: Future<Output = Outcome>,
    {
        claim::run_one(self, handler).await
    }

    /// The compare-and-set, uncommitted. Sets the wait for locks to its minimum, and back where it would stay behind on the
    /// connection.
    async fn set_running(&self, main: &mut Transaction, id: i64) -> Result<u64, sqlx::Error> {
        let pool = &self.table.pool;
        let claim = sql::compare_and_set(Verb::Claim, Status::Running);
        match (self.wait, pool.no_wait()) {
            (LockWait::NoWait, Some(clause)) => {
                main.row(pool, sql::read(clause), id).await?;
                main.execute(pool, claim, id).await
            }
            _ => {
                main.set(main.shortest_lock_wait()).await?;
                let changed = main.execute(pool, claim, id).await;
                if let Some(usual) = main.usual_lock_wait() {
                    main.set(usual).await?;
                }
                changed
            }
        }
    }
}

impl Design for SingleTransaction {
    fn table(&self) -> &Table {
        &self.table
    }

    async fn claim_task(&self, id: i64) -> Result<Option<Claim>, Error> {
        match SingleTransaction::claim_task(self, id).await {
            Err(Error::Locked { .. }) => Ok(None),
            other => other,
        }
    }
}
