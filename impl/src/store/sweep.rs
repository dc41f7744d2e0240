//! What the sweeper reads and writes.

use leaseproof_rules::{COUNT_MAX, EPOCH_MAX, EffectRule, Epoch, Judgement, Policy, Reason, Signal, Status, Verb};

use super::{Fenced, Learnt, Lenient, Param, Row, Store, learnt_params, waiting};
use crate::task::{ms_param, policy_unless, rule_bits, rule_from_bits};
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
    /// Its settings, or what is wrong with its row: only a person can decide then.
    pub policy: Result<Policy, String>,
    /// Its lease ends impossibly late; see [`leaseproof_rules::ends_too_late`].
    pub ends_too_late: bool,
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
    /// time (M1); or whose lease ends impossibly late. Ordered by id, from after `after` on.
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
            let Some(task) = tasks.last_mut() else { continue };
            match row.opt_text("effect_key") {
                Ok(None) => {}
                Ok(Some(key)) => {
                    // What can not be read promises nothing.
                    let rule = row.int("rule").map_or_else(|_| EffectRule::default(), rule_from_bits);
                    task.unknown.push(UnknownInJournal { key, rule });
                }
                // Nothing can be written under a key that can not be read.
                Err(error) => task.policy = Err(error.to_string()),
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

    /// Cuts a lease that ends impossibly late, because the database's clock was set back, to its length from now on. Its
    /// owner, if it lives, goes on under it. Answers whether it applied; it does not where anything was written of the
    /// task since `record_no` was read.
    ///
    /// # Errors
    /// The database's.
    pub async fn cut_lease(&self, by: Fenced<'_>, record_no: i64) -> Result<bool, Error> {
        let mut params = by.params();
        params.push(Param::int(record_no));
        Ok(!self.run(tags::CUT_LEASE, &self.texts.cut_lease, params).await?.is_empty())
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

/// Fails only where the row has no id: whatever else a row holds, the others are to be decided on.
fn read(row: &Row) -> Result<LostTask, Error> {
    let id = row.int("id")?;
    let mut read = Lenient::new(row);
    let now = read.int("now_ms");
    let until = read.opt_int("lease_until_ms");
    let signal = match (until.is_none_or(|until| until <= now), read.opt_text("superseded_by")) {
        (true, _) => Signal::LeaseExpired,
        (false, Some(_)) => Signal::OwnerSuperseded,
        (false, None) => Signal::Beating,
    };
    let lost = until.map_or(0, |until| now.saturating_sub(until));
    let running = now.saturating_sub(read.opt_int("claimed_at_ms").unwrap_or(now));
    let task = LostTask {
        id,
        epoch: read.count("epoch", EPOCH_MAX),
        record_no: read.int("record_no"),
        kind: read.text("kind"),
        owner: read.opt_text("owner").unwrap_or_default(),
        signal,
        running_ms: u64::try_from(running).unwrap_or(0),
        lost_ms: u64::try_from(lost).unwrap_or(0),
        attempts: read.count("attempts", COUNT_MAX),
        interruptions: read.count("interruptions", COUNT_MAX),
        policy: Err(String::new()),
        ends_too_late: read.int("too_late") != 0,
        unknown: Vec::new(),
    };
    Ok(LostTask { policy: policy_unless(read.bad(), row), ..task })
}
