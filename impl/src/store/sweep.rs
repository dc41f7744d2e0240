//! What the sweeper reads and writes.

use leaseproof_rules::{EffectRule, Epoch, Judgement, Policy, Reason, Signal, Status, Verb};

use super::{Fenced, Learnt, Param, Row, Store, learnt_params, waiting};
use crate::task::{self, ms_param, rule_bits, rule_from_bits};
use crate::{Error, tags};

/// A RUNNING task that the sweeper has to decide on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostTask {
    /// The task.
    pub id: i64,
    /// Its epoch as read.
    pub epoch: Epoch,
    /// How many record entries it had when read; a write on the ground of this reading demands that it has no more.
    pub record_no: i64,
    /// Its kind.
    pub kind: String,
    /// The boot id of its owner.
    pub owner: String,
    /// Why it was read.
    pub signal: Signal,
    /// Time since the claim, in ms on the database's clock.
    pub running_ms: u64,
    /// Time since the end of its lease, in ms on the database's clock; 0 if it is live.
    pub lost_ms: u64,
    /// Failed attempts so far.
    pub attempts: u32,
    /// Lost owners so far, without this one.
    pub interruptions: u32,
    /// Its settings, or what is wrong with the stored ones.
    pub policy: Result<Policy, String>,
    /// The effects of which only the intent is known, by key.
    pub unknown: Vec<UnknownInJournal>,
}

/// An effect of which the journal has only the intent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownInJournal {
    /// Its key.
    pub key: String,
    /// How it is declared.
    pub rule: EffectRule,
}

impl Store {
    /// One page of RUNNING tasks that need a decision: lease ended (A1), owner superseded (A2), or far over the expected
    /// time (M1). Ordered by id, from after `after` on.
    ///
    /// # Errors
    /// The database's.
    pub async fn lost_tasks(&self, after: i64, page: u32) -> Result<Vec<LostTask>, Error> {
        let params = vec![Param::int(after), Param::int(i64::from(page))];
        let rows = self.run(tags::SWEEP, &self.texts.sweep, params).await?;
        let mut tasks: Vec<LostTask> = Vec::new();
        for row in &rows {
            let id = row.int("id")?;
            if tasks.last().is_none_or(|task| task.id != id) {
                tasks.push(read(row)?);
            }
            if let (Some(task), Some(key)) = (tasks.last_mut(), row.opt_text("effect_key")?) {
                task.unknown.push(UnknownInJournal { key, rule: rule_from_bits(row.int("rule")?) });
            }
        }
        Ok(tasks)
    }

    /// Takes a task back from a lost owner (A1, A2); costs an interruption. `record_no` as read.
    ///
    /// # Errors
    /// The database's.
    pub async fn requeue(
        &self,
        by: Fenced<'_>,
        record_no: i64,
        delay_ms: u64,
        learnt: Option<Learnt<'_>>,
    ) -> Result<Judgement, Error> {
        let to = waiting(delay_ms);
        let mut rest = vec![Param::text(to.name()), ms_param(delay_ms), Param::int(record_no)];
        rest.extend(learnt_params(learnt));
        self.write(Verb::Requeue, to, &self.texts.requeue, by, rest).await
    }

    /// Hands a task to a person (M1, M2, M3). `record_no` as read.
    ///
    /// # Errors
    /// The database's.
    pub async fn escalate(&self, by: Fenced<'_>, record_no: i64, reason: Reason) -> Result<Judgement, Error> {
        let rest = vec![Param::text(reason.name()), Param::int(record_no)];
        self.write(Verb::Escalate, Status::WaitManual, &self.texts.escalate, by, rest).await
    }

    /// Journals what was learnt of an effect of a lost owner's task, without deciding on the task. Answers whether it
    /// applied; it does not where anything was written of the task since `record_no` was read.
    ///
    /// # Errors
    /// The database's.
    pub async fn learn(&self, by: Fenced<'_>, record_no: i64, learnt: Learnt<'_>) -> Result<bool, Error> {
        let mut params = by.params();
        params.extend(journalled(learnt, record_no));
        Ok(!self.run(tags::LEARN, &self.texts.learn, params).await?.is_empty())
    }
}

/// Parameters $5..$8 of `learn` and `settle`.
pub(super) fn journalled(learnt: Learnt<'_>, record_no: i64) -> [Param; 4] {
    [
        Param::text(learnt.key),
        Param::int(rule_bits(learnt.rule)),
        Param::text(learnt.state.name()),
        Param::int(record_no),
    ]
}

fn read(row: &Row) -> Result<LostTask, Error> {
    let now = row.int("now_ms")?;
    let ended = row.opt_int("lease_until_ms")?.is_none_or(|until| until <= now);
    let signal = match (ended, row.opt_text("superseded_by")?) {
        (true, _) => Signal::LeaseExpired,
        (false, Some(_)) => Signal::OwnerSuperseded,
        (false, None) => Signal::Beating,
    };
    let lost = row.opt_int("lease_until_ms")?.map_or(0, |until| now.saturating_sub(until));
    let running = now.saturating_sub(row.opt_int("claimed_at_ms")?.unwrap_or(now));
    Ok(LostTask {
        id: row.int("id")?,
        epoch: task::epoch(row, "epoch")?,
        record_no: row.int("record_no")?,
        kind: row.text("kind")?,
        owner: row.opt_text("owner")?.unwrap_or_default(),
        signal,
        running_ms: u64::try_from(running).unwrap_or(0),
        lost_ms: u64::try_from(lost).unwrap_or(0),
        attempts: task::count(row, "attempts")?,
        interruptions: task::count(row, "interruptions")?,
        policy: task::policy(row)?,
        unknown: Vec::new(),
    })
}
