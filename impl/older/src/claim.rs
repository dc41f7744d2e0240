//! A task in hand, and its end. Both designs share it: they differ in what holds it.

use std::future::Future;

use leaseproof_rules::{Status, Verb};

use crate::sql::{self, Transaction};
use crate::{Error, Table, Task};

/// How many tasks are looked at in one read.
const PAGE: usize = 16;

/// How a handler ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The work is done.
    Success,
    /// It is not. Neither design runs it again.
    Fail,
}

impl Outcome {
    /// The status it leads to.
    pub const fn status(self) -> Status {
        match self {
            Outcome::Success => Status::Success,
            Outcome::Fail => Status::Fail,
        }
    }

    const fn verb(self) -> Verb {
        match self {
            Outcome::Success => Verb::Complete,
            Outcome::Fail => Verb::GiveUp,
        }
    }
}

/// What [`CommitRunning::run_one`](crate::CommitRunning::run_one) and
/// [`SingleTransaction::run_one`](crate::SingleTransaction::run_one) came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ran {
    /// Nothing could be claimed.
    Nothing,
    /// The task was run and its end is committed.
    Ended(i64, Outcome),
    /// The task was run, and its row was no longer RUNNING when the end was to be written: nothing was changed.
    Refused(i64),
}

/// A claimed task. Dropped without a report it is what a crash leaves behind.
#[derive(Debug)]
pub struct Claim {
    pub(crate) table: Table,
    pub(crate) task: Task,
    /// Open all the while, if there is one.
    pub(crate) main: Option<Transaction>,
}

impl Claim {
    /// The task.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Writes SUCCESS or FAIL and commits. False: the row was not RUNNING any more.
    ///
    /// # Errors
    /// The database's. After [`Error::Database`] nobody knows whether it was committed.
    pub async fn report(self, outcome: Outcome) -> Result<bool, Error> {
        const STEP: &str = "report";
        let Claim { table, task, main } = self;
        let write = sql::compare_and_set(outcome.verb(), outcome.status());
        let changed = match main {
            None => table.pool.execute(write, task.id).await.map_err(Error::of(STEP))?,
            Some(mut main) => {
                let changed = main.execute(&table.pool, write, task.id).await.map_err(Error::of(STEP))?;
                main.commit().await.map_err(Error::of("commit the report"))?;
                changed
            }
        };
        Ok(changed == 1)
    }
}

/// How a design gets a task.
pub(crate) trait Design {
    fn table(&self) -> &Table;
    /// Tries this one. `None`: it is somebody else's.
    async fn claim_task(&self, id: i64) -> Result<Option<Claim>, Error>;
}

/// Claims the first task that can be had, in order of ids.
pub(crate) async fn claim_any(design: &impl Design) -> Result<Option<Claim>, Error> {
    let mut after = 0;
    loop {
        let page = design.table().candidates(after, PAGE).await?;
        for &id in &page {
            if let Some(claim) = design.claim_task(id).await? {
                return Ok(Some(claim));
            }
        }
        match page.last() {
            Some(last) => after = *last,
            None => return Ok(None),
        }
    }
}

pub(crate) async fn run_one<F, Fut>(design: &impl Design, handler: F) -> Result<Ran, Error>
where
    F: FnOnce(Task) -> Fut,
    Fut: Future<Output = Outcome>,
{
    let Some(claim) = claim_any(design).await? else { return Ok(Ran::Nothing) };
    let id = claim.task.id;
    let outcome = handler(claim.task.clone()).await;
    Ok(if claim.report(outcome).await? { Ran::Ended(id, outcome) } else { Ran::Refused(id) })
}
