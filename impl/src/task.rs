//! Tasks as rows: what is put in, what a claim hands out, what a person reads.

mod stored;

use leaseproof_rules::{EffectRule, Entry, Epoch, Policy, Reason, Status};

use crate::{Error, bounds};
pub(crate) use stored::{
    epoch, epoch_param, ms_param, policy_params, policy_unless, rule_bits, rule_from_bits, status, supported,
};

/// The longest duration of a policy, in ms: 100 years. Keeps sums of times well inside a BIGINT.
pub const LONGEST_MS: u64 = 3_155_760_000_000;

/// A task to put into the queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewTask {
    /// Which handler runs it.
    pub kind: String,
    /// Its input: JSON, at most [`MOST_JSON_BYTES`](crate::MOST_JSON_BYTES), without a NUL.
    pub payload: Vec<u8>,
    /// Its settings.
    pub policy: Policy,
    /// Not before this long from now, in ms on the database's clock.
    pub delay_ms: u64,
    /// A second task with the same key is not put in; makes an enqueue safe to repeat. `None`: no such key.
    pub unique_key: Option<String>,
}

impl NewTask {
    /// A task of this kind with this JSON input, due at once, under the default policy.
    pub fn new(kind: impl Into<String>, payload: impl Into<Vec<u8>>) -> NewTask {
        NewTask { kind: kind.into(), payload: payload.into(), policy: Policy::default(), delay_ms: 0, unique_key: None }
    }

    /// Sets the policy.
    pub fn policy(mut self, policy: Policy) -> NewTask {
        self.policy = policy;
        self
    }

    /// Sets the delay in ms.
    pub fn delay_ms(mut self, delay_ms: u64) -> NewTask {
        self.delay_ms = delay_ms;
        self
    }

    /// Sets the unique key.
    pub fn unique_key(mut self, key: impl Into<String>) -> NewTask {
        self.unique_key = Some(key.into());
        self
    }

    /// Checks what can be checked without the database.
    pub(crate) fn validate(&self) -> Result<(), Error> {
        let refuse = |what, why: String| Err(Error::BadInput { what, why });
        if self.kind.is_empty() {
            return refuse("kind", "must not be empty".into());
        }
        // As from a variable that is not set: it would make one task of all.
        if self.unique_key.as_deref().is_some_and(|key| key.trim().is_empty()) {
            return refuse("unique_key", "must not be empty; leave it out for a task that may be put in again".into());
        }
        bounds::text("kind", &self.kind)?;
        bounds::text("unique_key", self.unique_key.as_deref().unwrap_or_default())?;
        bounds::json("payload", &self.payload)?;
        self.policy.validate()?;
        let Policy { lease_ms, backoff, expected_run_ms, .. } = self.policy;
        for (what, ms) in [
            ("lease", lease_ms),
            ("backoff.max", backoff.max_ms),
            ("backoff.base", backoff.base_ms),
            ("expected_run", expected_run_ms.unwrap_or(0)),
            ("delay", self.delay_ms),
        ] {
            if ms > LONGEST_MS {
                return refuse(what, format!("{ms} ms is longer than 100 years"));
            }
        }
        Ok(())
    }
}

/// What an enqueue did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Enqueued {
    /// The task's id.
    pub id: i64,
    /// False if a task with the same unique key was there already.
    pub new: bool,
}

/// A task as a claim hands it out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claimed {
    /// The task's id.
    pub id: i64,
    /// The epoch of this claim: the fencing token.
    pub epoch: Epoch,
    /// Which handler runs it.
    pub kind: String,
    /// Its input: JSON.
    pub payload: Vec<u8>,
    /// When it was due, in ms on the database's clock.
    pub due_at_ms: i64,
    /// When it was claimed, in ms on the database's clock.
    pub claimed_at_ms: i64,
    /// Failed attempts so far.
    pub attempts: u32,
    /// Lost owners so far.
    pub interruptions: u32,
    /// Its settings, or what is wrong with its row: it is not to be run then, but handed to a person.
    pub policy: Result<Policy, String>,
}

/// A task as a person reads it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Task {
    /// The task's id.
    pub id: i64,
    /// Which handler runs it.
    pub kind: String,
    /// Its input: JSON.
    pub payload: Vec<u8>,
    /// The key it was enqueued under, if any.
    pub unique_key: Option<String>,
    /// Where it stands.
    pub status: Status,
    /// Its epoch.
    pub epoch: Epoch,
    /// When it can be claimed, in ms on the database's clock.
    pub due_at_ms: i64,
    /// The boot id of its owner, if RUNNING.
    pub owner: Option<String>,
    /// When it was last claimed, in ms on the database's clock.
    pub claimed_at_ms: Option<i64>,
    /// When its owner was last heard of, in ms on the database's clock.
    pub heartbeat_at_ms: Option<i64>,
    /// When its lease ends, in ms on the database's clock.
    pub lease_until_ms: Option<i64>,
    /// Failed attempts since it was enqueued or a person last decided.
    pub attempts: u32,
    /// Lost owners since it was enqueued or a person last decided.
    pub interruptions: u32,
    /// Why a person is, or was, needed.
    pub reason: Option<Reason>,
    /// The last error.
    pub last_error: Option<String>,
    /// The result, JSON, if SUCCESS.
    pub result: Option<String>,
    /// When it was enqueued, in ms on the database's clock.
    pub created_at_ms: i64,
    /// When it became final, in ms on the database's clock.
    pub finished_at_ms: Option<i64>,
    /// How many entries the execution record has, without the first and without late results.
    pub record_no: i64,
    /// Its settings, or what is wrong with the stored ones.
    pub policy: Result<Policy, String>,
    /// What of the rest can not be read as it is stored, column by column. Empty, unless another program has written it.
    pub bad: Vec<String>,
}

/// A page of tasks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listed {
    /// By id.
    pub tasks: Vec<Task>,
    /// The rows of which not even status and epoch can be read, by id. Only another program can have written them.
    pub bad: Vec<BadTask>,
}

impl Listed {
    /// How many rows the page has.
    pub fn rows(&self) -> usize {
        self.tasks.len() + self.bad.len()
    }

    /// The largest id of the page: the next one begins after it.
    pub fn last_id(&self) -> Option<i64> {
        self.tasks.last().map(|task| task.id).max(self.bad.last().map(|bad| bad.id))
    }
}

/// A row that can not be read as a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadTask {
    /// Its id.
    pub id: i64,
    /// Which column, and what is wrong.
    pub why: String,
}

/// An entry of the execution record.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Event {
    /// Grows along the record.
    pub id: i64,
    /// When, in ms on the database's clock.
    pub at_ms: i64,
    /// The row's epoch after the write; for a late result, the epoch of the run that reports.
    pub epoch: Epoch,
    /// What: a [`Verb`](leaseproof_rules::Verb)'s name, or one of [`crate::tags`], or `by_hand`.
    pub verb: String,
    /// By whom: a boot id, a sweeper, a person.
    pub actor: String,
    /// The status before; `None` for the first entry.
    pub from_status: Option<Status>,
    /// The status after.
    pub to_status: Status,
    /// Error, reason, or what a person gave as the reason.
    pub note: Option<String>,
    /// The outside effect it speaks of.
    pub effect_key: Option<String>,
    /// For a RUNNING task, the largest gap between heartbeats of this run so far, in ms.
    pub beat_gap_ms: Option<i64>,
}

/// An entry of the effect journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EffectEntry {
    /// The effect's key within the task.
    pub key: String,
    /// The epoch of the run that wrote it.
    pub epoch: Epoch,
    /// What is known.
    pub state: Entry,
    /// How the effect is declared; an unreadable declaration counts as "no instrument, escalate".
    pub rule: EffectRule,
    /// What the call brought: JSON.
    pub outcome: Option<String>,
    /// When it was written, in ms on the database's clock.
    pub at_ms: i64,
}
