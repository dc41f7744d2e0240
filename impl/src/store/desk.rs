//! What a person reads and writes (M5).

use leaseproof_rules::{Judgement, Status, Verb};

use super::sweep::journalled;
use super::{Fenced, Learnt, Param, Store};
use crate::task::{Event, Task};
use crate::{Error, tags};

impl Store {
    /// One page of tasks by id, from after `after` on.
    ///
    /// # Errors
    /// The database's.
    pub async fn list(
        &self,
        status: Option<Status>,
        kind: Option<&str>,
        after: i64,
        page: u32,
    ) -> Result<Vec<Task>, Error> {
        let mut params = vec![Param::int(after), Param::int(i64::from(page))];
        params.extend(status.map(|status| Param::text(status.name())));
        params.extend(kind.map(Param::text));
        let statement = self.texts.list(status.is_some(), kind.is_some());
        self.run(tags::LIST, &statement, params).await?.iter().map(Task::read).collect()
    }

    /// One task.
    ///
    /// # Errors
    /// [`Error::NoSuchTask`], or the database's.
    pub async fn task(&self, id: i64) -> Result<Task, Error> {
        let rows = self.run(tags::SHOW, &self.texts.show, vec![Param::int(id)]).await?;
        Task::read(rows.first().ok_or(Error::NoSuchTask { id })?)
    }

    /// The execution record of one task, oldest entry first.
    ///
    /// # Errors
    /// The database's.
    pub async fn record(&self, id: i64) -> Result<Vec<Event>, Error> {
        self.run(tags::RECORD, &self.texts.record, vec![Param::int(id)]).await?.iter().map(Event::read).collect()
    }

    /// A person: run again, with new input if given; the budgets start anew. `record_no` as read.
    ///
    /// # Errors
    /// The database's.
    pub async fn rerun(&self, by: Fenced<'_>, record_no: i64, input: Option<Vec<u8>>) -> Result<Judgement, Error> {
        let rest = vec![Param::Bytes(input), Param::int(record_no)];
        self.write(Verb::Rerun, Status::Pending, &self.texts.rerun, by, rest).await
    }

    /// A person: it has failed.
    ///
    /// # Errors
    /// The database's.
    pub async fn mark_failed(&self, by: Fenced<'_>) -> Result<Judgement, Error> {
        self.write(Verb::MarkFailed, Status::Fail, &self.texts.mark_failed, by, Vec::new()).await
    }

    /// A person: it has succeeded.
    ///
    /// # Errors
    /// The database's.
    pub async fn mark_succeeded(&self, by: Fenced<'_>) -> Result<Judgement, Error> {
        self.write(Verb::MarkSucceeded, Status::Success, &self.texts.mark_succeeded, by, Vec::new()).await
    }

    /// A person says of an effect whether it was done. The task stays in WAIT_MANUAL. Answers whether it applied; it
    /// does not where anything was written of the task since `record_no` was read.
    ///
    /// # Errors
    /// The database's.
    pub async fn settle(&self, by: Fenced<'_>, record_no: i64, said: Learnt<'_>) -> Result<bool, Error> {
        let mut params = by.params();
        params.extend(journalled(said, record_no));
        Ok(!self.run(tags::SETTLE, &self.texts.settle, params).await?.is_empty())
    }
}
