//! S1, *commit-running*: transaction 2 commits RUNNING, opened and awaited inside transaction 1.

use std::future::Future;

use leaseproof_rules::{Status, Verb};

use crate::claim::{self, Claim, Design, Outcome, Ran};
use crate::table::status_of;
use crate::{Error, Table, Task, sql};

/// How long transaction 1 lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MainTransaction {
    /// It looks at the task, waits for transaction 2, spans the work and writes the end: one connection for the whole run,
    /// two while it claims. Not on SQLite: there the report is refused (517), for somebody has written since
    /// transaction 1 first read, and that somebody is transaction 2.
    #[default]
    SpansTheRun,
    /// It ends as soon as transaction 2 has committed; the report is a transaction of its own.
    EndsBeforeTheWork,
}

/// How transaction 1 looks at the task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Read {
    /// It takes no lock.
    #[default]
    Plain,
    /// `FOR UPDATE`. **A trap**: transaction 2 then waits for transaction 1, which waits for it in the program, where
    /// no database looks for deadlocks. Only the lock's time-out ends it.
    ForUpdate,
}

/// The design S1. A claim survives whatever becomes of its executor, and nothing ever takes it back.
///
/// Each run needs a second connection while it holds its first. **A trap**: as many runs as the pool has connections, all at
/// that point, wait for each other until the pool's time is over ([`Error::NoConnection`]).
#[derive(Clone, Debug)]
pub struct CommitRunning {
    table: Table,
    main: MainTransaction,
    read: Read,
}

impl CommitRunning {
    /// As it is usually written.
    pub fn new(table: Table) -> CommitRunning {
        CommitRunning { table, main: MainTransaction::default(), read: Read::default() }
    }

    /// How long transaction 1 lives.
    pub fn main(self, main: MainTransaction) -> CommitRunning {
        CommitRunning { main, ..self }
    }

    /// How transaction 1 looks at the task.
    pub fn read(self, read: Read) -> CommitRunning {
        CommitRunning { read, ..self }
    }

    /// Claims the first task that can be had.
    ///
    /// # Errors
    /// The database's, and the traps': [`Error::NoConnection`], [`Error::Locked`].
    pub async fn claim(&self) -> Result<Option<Claim>, Error> {
        claim::claim_any(self).await
    }

    /// Claims this task. `None`: it is not PENDING, or somebody else was faster.
    ///
    /// # Errors
    /// See [`CommitRunning::claim`].
    pub async fn claim_task(&self, id: i64) -> Result<Option<Claim>, Error> {
        Design::claim_task(self, id).await
    }

    /// Claims a task, runs it and reports.
    ///
    /// # Errors
    /// See [`CommitRunning::claim`] and [`Claim::report`].
    pub async fn run_one<F, Fut>(&self, handler: F) -> Result<Ran, Error>
    where
        F: FnOnce(Task) -> Fut,
        Fut: Future<Output = Outcome>,
    {
        claim::run_one(self, handler).await
    }

    /// Transaction 2, from begin to commit. Whether it got the task.
    async fn commit_running(&self, id: i64) -> Result<bool, Error> {
        let mut inner = self.table.pool.begin().await.map_err(Error::of("begin transaction 2"))?;
        let claim = sql::compare_and_set(Verb::Claim, Status::Running);
        let changed = inner.execute(&self.table.pool, claim, id).await.map_err(Error::of("claim"))?;
        inner.commit().await.map_err(Error::of("commit transaction 2"))?;
        Ok(changed == 1)
    }
}

impl Design for CommitRunning {
    fn table(&self) -> &Table {
        &self.table
    }

    async fn claim_task(&self, id: i64) -> Result<Option<Claim>, Error> {
        let pool = &self.table.pool;
        let mut main = pool.begin().await.map_err(Error::of("begin transaction 1"))?;
        let read = match self.read {
            Read::Plain => sql::read(""),
            Read::ForUpdate => sql::read(pool.for_update()),
        };
        if self.read == Read::ForUpdate {
            main.lock_all().await.map_err(Error::of("look at the task"))?;
        }
        let row = main.row(pool, read, id).await.map_err(Error::of("look at the task"))?;
        let pending = match &row {
            Some(row) => status_of(row)?.is_claimable(),
            None => false,
        };
        let Some((id, kind, payload, _)) = row.filter(|_| pending) else {
            main.rollback().await.map_err(Error::of("end transaction 1"))?;
            return Ok(None);
        };
        let got = self.commit_running(id).await?;
        let main = match self.main {
            MainTransaction::SpansTheRun if got => Some(main),
            _ => {
                main.rollback().await.map_err(Error::of("end transaction 1"))?;
                None
            }
        };
        Ok(got.then(|| Claim { table: self.table.clone(), task: Task { id, kind, payload }, main }))
    }
}
