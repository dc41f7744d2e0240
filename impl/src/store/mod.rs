//! The store: one method a statement, the same face over every database.
//!
//! A method that changes a task takes a [`Fenced`] (which task, under which epoch, by whom) and answers with the
//! [`Judgement`] of [`leaseproof_rules::judge`]. Each is one conditional statement; only when it changed nothing is the
//! row looked at, to say why. Most users want [`Queue`](crate::Queue) and [`Worker`](crate::Worker) instead.

#[cfg(feature = "ablation")]
mod ablation;
mod beat;
mod claim;
mod connection;
mod desk;
mod file;
mod instances;
mod migrate;
mod mysql;
mod open;
mod row;
pub(crate) mod sql;
mod sweep;

use std::sync::Arc;
use std::time::Duration;

use leaseproof_rules::{
    EffectRule, Entry, Epoch, Guards, Judgement, Reason, Refusal, Row as TaskRow, Status, TRANSITIONS, Verb, Write,
    judge, repeats_adopted,
};

pub use beat::Beaten;
pub(crate) use connection::Connections;
pub use instances::{Instance, Registration};
pub use migrate::{MIGRATION_DEADLINE, SCHEMA_VERSION, sqlite_schema};
pub(crate) use row::{Lenient, Param, Row};
pub use sweep::{LostTask, UnknownInJournal};

use crate::error::Cause;
use crate::task::{self, EffectEntry, Enqueued, NewTask, epoch_param, ms_param, rule_bits};
use crate::{Error, bounds, tags};
use sql::{Statement, Texts};

/// How long a statement may take before its outcome counts as unknown.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(5);

/// Leases that one statement renews.
pub(crate) const HEARTBEAT_BATCH: usize = 500;

/// A database, and the statements the queue makes on it.
#[derive(Clone)]
pub struct Store {
    connections: Connections,
    texts: Arc<Texts>,
    #[cfg(feature = "ablation")]
    guards: Guards,
    deadline: Duration,
    /// Of SQLite.
    file: Option<Arc<file::File>>,
    /// The database's own time-outs follow the deadline.
    own_timeouts: bool,
}

/// Which task a write is for, the epoch its writer presents, and what the execution record is to say.
#[derive(Clone, Copy, Debug)]
pub struct Fenced<'a> {
    /// The task.
    pub id: i64,
    /// The epoch of the writer's claim, or as the writer read it.
    pub epoch: Epoch,
    /// Boot id, sweeper or person.
    pub actor: &'a str,
    /// For the record: an error, a reason; of a late result, the result.
    pub note: Option<&'a str>,
}

/// What was learnt of an effect, to be journalled together with a write.
#[derive(Clone, Copy, Debug)]
pub struct Learnt<'a> {
    /// The effect's key.
    pub key: &'a str,
    /// What is known now.
    pub state: Entry,
    /// How it is declared.
    pub rule: EffectRule,
}

impl Fenced<'_> {
    fn params(&self) -> Vec<Param> {
        self.params_noting(self.note.map(|note| bounds::shortened(note).into_owned()))
    }

    fn params_noting(&self, note: Option<String>) -> Vec<Param> {
        vec![Param::int(self.id), epoch_param(self.epoch), Param::text(self.actor), Param::Text(note)]
    }
}

/// The three parameters of what was learnt: key, state, rule.
fn learnt_params(learnt: Option<Learnt<'_>>) -> [Param; 3] {
    [
        Param::Text(learnt.map(|l| l.key.to_string())),
        Param::Text(learnt.map(|l| l.state.name().to_string())),
        Param::Int(learnt.map(|l| rule_bits(l.rule))),
    ]
}

/// PENDING for a delay of 0, else RETRY_WAIT.
pub(crate) fn waiting(delay_ms: u64) -> Status {
    match delay_ms {
        0 => Status::Pending,
        _ => Status::RetryWait,
    }
}

impl Store {
    /// The guards in force: all of them, but in a build for ablations.
    pub fn guards(&self) -> Guards {
        #[cfg(feature = "ablation")]
        return self.guards;
        #[cfg(not(feature = "ablation"))]
        return Guards::ALL;
    }

    /// How long a statement may take before its outcome counts as unknown.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    async fn run(&self, verb: &'static str, statement: &Statement, params: Vec<Param>) -> Result<Vec<Row>, Error> {
        if let Some(file) = &self.file {
            file.check()?;
        }
        match self.connections.run(verb, statement, params, self.deadline).await {
            // Waiting does not make the file; migrating does.
            Err(Error::Unavailable { cause: Cause::Driver(error), .. }) if self.file_is_missing() => {
                Err(Error::NotMigrated { why: error.to_string() })
            }
            other => other,
        }
    }

    /// The last parameter of a claim or a heartbeat where it has one; see [`Texts::token`].
    fn token(&self, verb: Verb) -> Result<Option<Param>, Error> {
        let no_randomness = |error: getrandom::Error| Error::Unavailable {
            verb: verb.name(),
            cause: Cause::System(format!("the operating system gives no random numbers: {error}")),
        };
        Ok(self.texts.token().map_err(no_randomness)?.map(Param::int))
    }

    fn file_is_missing(&self) -> bool {
        match &self.connections {
            Connections::Sqlite(pool) => !pool.connect_options().get_filename().exists(),
            Connections::Postgres(_) | Connections::MySql(_) => false,
        }
    }

    /// Puts a task in.
    ///
    /// # Errors
    /// A setting that can not work, or the database's.
    pub async fn enqueue(&self, new: &NewTask, actor: &str) -> Result<Enqueued, Error> {
        new.validate()?;
        let mut params = vec![
            Param::text(&new.kind),
            Param::Bytes(Some(new.payload.clone())),
            Param::Text(new.unique_key.clone()),
            ms_param(new.delay_ms),
        ];
        params.extend(task::policy_params(&new.policy));
        params.push(Param::text(actor));
        let rows = self.run(tags::ENQUEUE, &self.texts.enqueue, params).await?;
        if let Some(row) = rows.first() {
            return Ok(Enqueued { id: row.int("id")?, new: true });
        }
        let key = vec![Param::Text(new.unique_key.clone())];
        match self.run(tags::LOOK, &self.texts.find_unique, key).await?.first() {
            Some(row) => Ok(Enqueued { id: row.int("id")?, new: false }),
            None => {
                Err(Error::BadInput { what: "unique_key", why: "the task with this key was deleted meanwhile".into() })
            }
        }
    }

    /// Renews leases, each fenced by its own epoch; returns those renewed, in order of id and epoch. The id alone would not
    /// do: a worker may hold a claim of a task and still be running an earlier one. A lease that has ended is not renewed.
    /// See [`Store::beat`], which also says what could not be tried.
    ///
    /// # Errors
    /// The database's. After [`Error::Unknown`] some may have been renewed.
    pub async fn heartbeat(&self, leases: &[(i64, Epoch)], deadline: Duration) -> Result<Vec<(i64, Epoch)>, Error> {
        self.beat(leases, deadline).await.map(|beaten| beaten.renewed)
    }

    /// Journals that an outside call is about to be made (M3). Only while the lease is live.
    ///
    /// # Errors
    /// The database's.
    pub async fn intent(&self, by: Fenced<'_>, key: &str, rule: EffectRule) -> Result<Judgement, Error> {
        let rest = vec![Param::text(key), Param::int(rule_bits(rule))];
        self.write(Verb::Intent, Status::Running, &self.texts.intent, by, rest).await
    }

    /// Journals what an outside call brought.
    ///
    /// # Errors
    /// The database's.
    pub async fn outcome(&self, by: Fenced<'_>, now: Learnt<'_>, outcome: Option<&str>) -> Result<Judgement, Error> {
        let rest = vec![
            Param::text(now.key),
            Param::int(rule_bits(now.rule)),
            Param::text(now.state.name()),
            Param::Text(outcome.map(str::to_string)),
        ];
        self.write(Verb::Outcome, Status::Running, &self.texts.outcome, by, rest).await
    }

    /// Reports success with a result that is JSON. Idempotent per epoch ([`Judgement::Already`]); a late success may be [`Judgement::Adopted`], and
    /// the very same one again is [`Judgement::Already`] too.
    ///
    /// # Errors
    /// [`Error::BadInput`] for a result that can not be stored, or the database's.
    pub async fn complete(&self, by: Fenced<'_>, result: &str) -> Result<Judgement, Error> {
        bounds::json("result", result.as_bytes())?;
        let params = vec![Param::text(result)];
        let judged = self.write(Verb::Complete, Status::Success, &self.texts.complete, by, params).await?;
        if judged != Judgement::Refused(Refusal::WrongStatus) {
            return Ok(judged);
        }
        match self.task(by.id).await {
            Ok(task) => {
                let same = task.result.as_deref() == Some(result);
                let repeats = repeats_adopted(task.status, task.epoch, by.epoch, same);
                Ok(if repeats { Judgement::Already } else { judged })
            }
            Err(error) if error.is_transient() => Err(error),
            Err(_) => Ok(judged),
        }
    }

    /// Puts the task back after a failure (A3); costs an attempt.
    ///
    /// # Errors
    /// The database's.
    pub async fn retry(&self, by: Fenced<'_>, delay_ms: u64, learnt: Option<Learnt<'_>>) -> Result<Judgement, Error> {
        let to = waiting(delay_ms);
        let mut rest = vec![Param::text(to.name()), ms_param(delay_ms)];
        rest.extend(learnt_params(learnt));
        self.write(Verb::Retry, to, &self.texts.retry, by, rest).await
    }

    /// Puts the task back unharmed; costs nothing.
    ///
    /// # Errors
    /// The database's.
    pub async fn release(&self, by: Fenced<'_>) -> Result<Judgement, Error> {
        self.write(Verb::Release, Status::Pending, &self.texts.release, by, Vec::new()).await
    }

    /// Ends the task from inside: to [`Status::WaitManual`] or [`Status::Fail`] (M2, M3).
    ///
    /// # Errors
    /// The database's.
    pub async fn give_up(&self, by: Fenced<'_>, to: Status, reason: Reason) -> Result<Judgement, Error> {
        let rest = vec![Param::text(to.name()), Param::text(reason.name())];
        self.write(Verb::GiveUp, to, &self.texts.give_up, by, rest).await
    }

    /// Records the result of a run that does not own its task any more, its note, once per task and epoch. Changes no task.
    ///
    /// # Errors
    /// [`Error::BadInput`] for a result that can not be stored, which is never cut: it would be no JSON any more. Or the
    /// database's.
    pub async fn late_result(&self, by: Fenced<'_>) -> Result<(), Error> {
        if let Some(result) = by.note {
            bounds::json("result", result.as_bytes())?;
        }
        let params = by.params_noting(by.note.map(str::to_string));
        self.run(tags::LATE_RESULT, &self.texts.late_result, params).await.map(|_| ())
    }

    /// The effect journal of one task, by key.
    ///
    /// # Errors
    /// The database's.
    pub async fn journal(&self, id: i64) -> Result<Vec<EffectEntry>, Error> {
        self.run(tags::JOURNAL, &self.texts.journal, vec![Param::int(id)])
            .await?
            .iter()
            .map(EffectEntry::read)
            .collect()
    }

    /// Makes a fenced write and says what it did.
    async fn write(
        &self,
        verb: Verb,
        to: Status,
        statement: &Statement,
        by: Fenced<'_>,
        rest: Vec<Param>,
    ) -> Result<Judgement, Error> {
        // The texts of some verbs take the status from the caller: what no edge leads to is not sent.
        if !TRANSITIONS.iter().any(|edge| edge.verb == verb && edge.to == to) {
            return Ok(Judgement::Refused(Refusal::WrongStatus));
        }
        let mut params = by.params();
        params.extend(rest);
        if let Some(row) = self.run(verb.name(), statement, params).await?.first() {
            if verb == Verb::Complete && row.opt_text("last_note")?.as_deref() == Some(sql::ADOPTED) {
                return Ok(Judgement::Adopted);
            }
            return Ok(Judgement::Applied { status: to, epoch: task::epoch(row, "epoch")? });
        }
        let row = self.look(by.id).await?;
        Ok(match judge(row, Write { verb, to, epoch: by.epoch }, self.guards()) {
            // The row has changed since, or `record_no` did not fit: it did not apply when it was tried.
            Judgement::Applied { .. } | Judgement::Adopted => Judgement::Refused(Refusal::ConditionFails),
            other => other,
        })
    }

    /// The row as the rules see it.
    ///
    /// # Errors
    /// [`Error::NoSuchTask`], or the database's.
    pub async fn look(&self, id: i64) -> Result<TaskRow, Error> {
        let rows = self.run(tags::LOOK, &self.texts.look, vec![Param::int(id)]).await?;
        let row = rows.first().ok_or(Error::NoSuchTask { id })?;
        let now = row.int("now_ms")?;
        Ok(TaskRow {
            status: task::status(row, "status")?,
            epoch: task::epoch(row, "epoch")?,
            due: row.int("due_at_ms")? <= now,
            lease_live: row.opt_int("lease_until_ms")?.is_some_and(|until| until > now),
            owner_superseded: row.opt_text("superseded_by")?.is_some(),
            overrun: row.opt_int("overrun_at_ms")?.is_some_and(|at| at < now),
        })
    }
}
