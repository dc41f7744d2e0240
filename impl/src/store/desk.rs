//! What a person reads and writes (M5).

use leaseproof_rules::{Judgement, Status, Verb};

use super::sweep::journalled;
use super::{Fenced, Learnt, Param, Store};
use crate::task::{BadTask, EffectEntry, Event, Listed, Task};
use crate::{Error, tags};

impl Store {
    /// One page of tasks by id, from after `after` on. A row that can not be read is told of, beside the others.
    ///
    /// # Errors
    /// The database's.
    pub async fn list(
        &self,
        status: Option<Status>,
        kind: Option<&str>,
        after: i64,
        page: u32,
    ) -> Result<Listed, Error> {
        let mut params = vec![Param::int(after), Param::int(i64::from(page))];
        params.extend(status.map(|status| Param::text(status.name())));
        params.extend(kind.map(Param::text));
        let statement = self.texts.list(status.is_some(), kind.is_some());
        let mut listed = Listed::default();
        for row in &self.run(tags::LIST, &statement, params).await? {
            match Task::read(row) {
                Ok(task) => listed.tasks.push(task),
                Err(Error::BadRow { id: Some(id), why, .. }) => listed.bad.push(BadTask { id, why }),
                Err(error) => return Err(error),
            }
        }
        Ok(listed)
    }

    /// Whether any task is PENDING, RETRY_WAIT or RUNNING.
    ///
    /// # Errors
    /// The database's.
    pub async fn any_open(&self) -> Result<bool, Error> {
        Ok(!self.run(tags::OPEN, &self.texts.open, Vec::new()).await?.is_empty())
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
    /// [`Error::BadRow`] if one of them can not be read, or the database's.
    pub async fn record(&self, id: i64) -> Result<Vec<Event>, Error> {
        let rows = self.run(tags::RECORD, &self.texts.record, vec![Param::int(id)]).await?;
        rows.iter().map(|row| Event::read(row, &mut Vec::new())).collect()
    }

    /// The execution record as far as it can be read, and what of it can not be.
    pub(crate) async fn readable_record(&self, id: i64, bad: &mut Vec<String>) -> Result<Vec<Event>, Error> {
        let rows = self.run(tags::RECORD, &self.texts.record, vec![Param::int(id)]).await?;
        let mut told = Vec::new();
        let events = rows.iter().map(|row| Event::read(row, &mut told)).collect::<Vec<_>>();
        bad.append(&mut told);
        readable("record entry", events, bad)
    }

    /// The effect journal as far as it can be read, and what of it can not be.
    pub(crate) async fn readable_journal(&self, id: i64, bad: &mut Vec<String>) -> Result<Vec<EffectEntry>, Error> {
        let rows = self.run(tags::JOURNAL, &self.texts.journal, vec![Param::int(id)]).await?;
        readable("journal entry", rows.iter().map(EffectEntry::read).collect(), bad)
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

/// Those that could be read; of the others, what is wrong goes to `bad`.
fn readable<T>(what: &str, read: Vec<Result<T, Error>>, bad: &mut Vec<String>) -> Result<Vec<T>, Error> {
    let mut good = Vec::with_capacity(read.len());
    for one in read {
        match one {
            Ok(one) => good.push(one),
            Err(Error::BadRow { id: Some(id), why, .. }) => bad.push(format!("{what} {id}: {why}")),
            Err(Error::BadRow { why, .. }) => bad.push(format!("{what}: {why}")),
            Err(error) => return Err(error),
        }
    }
    Ok(good)
}
