//! What a task's owner sets for it (A4). All durations are whole milliseconds.

use std::fmt;

/// What to do when the attempts are used up, or with an error that is never retried (M2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum OnExhausted {
    /// Hand it to a person.
    #[default]
    Escalate,
    /// Mark it FAIL: nobody looks.
    Fail,
}

impl OnExhausted {
    /// Every choice.
    pub const ALL: [OnExhausted; 2] = [OnExhausted::Escalate, OnExhausted::Fail];

    /// The name stored and shown, e.g. `escalate`.
    pub const fn name(self) -> &'static str {
        match self {
            OnExhausted::Escalate => "escalate",
            OnExhausted::Fail => "fail",
        }
    }

    /// The choice with this name.
    pub fn from_name(name: &str) -> Option<OnExhausted> {
        OnExhausted::ALL.into_iter().find(|choice| choice.name() == name)
    }
}

/// What to do about an outside effect whose outcome is unknown and can neither be asked nor repeated harmlessly (E7).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum OnUnknown {
    /// Hand it to a person.
    #[default]
    Escalate,
    /// At least once: call again, it may happen twice.
    Repeat,
    /// At most once: never call again, it may not have happened; reconcile later.
    Skip,
}

impl OnUnknown {
    /// Every choice.
    pub const ALL: [OnUnknown; 3] = [OnUnknown::Escalate, OnUnknown::Repeat, OnUnknown::Skip];

    /// The name in stories and reports, e.g. `escalate`.
    pub const fn name(self) -> &'static str {
        match self {
            OnUnknown::Escalate => "escalate",
            OnUnknown::Repeat => "repeat",
            OnUnknown::Skip => "skip",
        }
    }
}

/// What to do with a task whose effect is known to be done in part, without any doubt about a step (M4): a notification
/// to 10,000 users that stopped after 6,000.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum OnPartial {
    /// Go on with the steps that are left.
    #[default]
    Resume,
    /// Hand it to a person: the facts are known, what to do is a business decision.
    Escalate,
}

/// The delay before attempt n + 1: `base × factor^(n−1)`, at most `max`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Backoff {
    /// After the first failure, in ms. 0 retries at once.
    pub base_ms: u64,
    /// Growth a failure; 1 is constant.
    pub factor: u32,
    /// Upper bound, in ms.
    pub max_ms: u64,
}

impl Backoff {
    /// The delay after the `failures`-th failure (from 1), in ms. Saturates, never overflows.
    pub fn delay_ms(self, failures: u32) -> u64 {
        let growth = u64::from(self.factor).saturating_pow(failures.saturating_sub(1));
        self.base_ms.saturating_mul(growth).min(self.max_ms)
    }
}

/// Per-task settings (A4).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Policy {
    /// How long a claim lives without a heartbeat, in ms on the database's clock.
    pub lease_ms: u64,
    /// How often the owner renews, in ms on the owner's monotonic clock.
    pub heartbeat_ms: u64,
    /// How long before the end of the lease its owner stops acting on the task, in ms on the owner's monotonic clock,
    /// counted from before the last accepted heartbeat was sent (self-fencing).
    pub fence_margin_ms: u64,
    /// How many failed attempts end the automatic retries (M2). At least 1.
    pub max_attempts: u32,
    /// How many lost owners end the automatic reclaims. 0 never re-runs after a loss. A budget of its own: a deploy
    /// must not use up a task's attempts.
    pub max_interruptions: u32,
    /// The delay after a failed attempt.
    pub backoff: Backoff,
    /// Longer than this, counted from the claim on the database's clock in ms, a person looks at it (M1). `None`: no
    /// such bound.
    pub expected_run_ms: Option<u64>,
    /// What follows when the attempts are used up.
    pub on_exhausted: OnExhausted,
    /// Codes of errors that are never retried (A4): the task goes the way of bad input at the first of them. None empty.
    pub never_retry: Vec<String>,
}

impl Default for Policy {
    /// 30 s lease, 10 s heartbeat, 3 attempts, 3 interruptions, 1 s backoff doubling to 5 min, no expected run time.
    fn default() -> Policy {
        Policy {
            lease_ms: 30_000,
            heartbeat_ms: 10_000,
            fence_margin_ms: 3_000,
            max_attempts: 3,
            max_interruptions: 3,
            backoff: Backoff { base_ms: 1_000, factor: 2, max_ms: 300_000 },
            expected_run_ms: None,
            on_exhausted: OnExhausted::Escalate,
            never_retry: Vec::new(),
        }
    }
}

/// A setting that can not work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyError {
    /// The field, as it is called in [`Policy`] and in policy files without the unit.
    pub field: &'static str,
    /// What is wrong and which values are accepted.
    pub why: String,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "policy: {}: {}", self.field, self.why)
    }
}

impl std::error::Error for PolicyError {}

impl Policy {
    /// The owner stops acting on a task this long after it sent the last accepted heartbeat, in ms on its monotonic
    /// clock.
    pub fn act_for_ms(&self) -> u64 {
        self.lease_ms.saturating_sub(self.fence_margin_ms)
    }

    /// How long a third party that does not answer is asked before the effect counts as one that can not be asked about
    /// (M3), in ms: ten leases.
    pub fn ask_for_ms(&self) -> u64 {
        self.lease_ms.saturating_mul(10)
    }

    /// Whether an error with this code is worth another attempt (A4).
    pub fn retries(&self, code: &str) -> bool {
        !self.never_retry.iter().any(|never| never == code)
    }

    /// Checks that the settings can work together.
    ///
    /// # Errors
    /// The first field that can not work, with the reason.
    pub fn validate(&self) -> Result<(), PolicyError> {
        let refuse = |field, why: String| Err(PolicyError { field, why });
        if self.lease_ms == 0 {
            return refuse("lease", "must be longer than 0".into());
        }
        if self.heartbeat_ms == 0 {
            return refuse("heartbeat", "must be longer than 0".into());
        }
        if self.heartbeat_ms.saturating_mul(2) > self.act_for_ms() {
            return refuse(
                "heartbeat",
                format!(
                    "{} ms is too slow for a lease of {} ms with a margin of {} ms: one lost heartbeat would end the \
                     lease; at most half of what the margin leaves, {} ms",
                    self.heartbeat_ms,
                    self.lease_ms,
                    self.fence_margin_ms,
                    self.act_for_ms() / 2
                ),
            );
        }
        if self.max_attempts == 0 {
            return refuse("max_attempts", "must be at least 1: a task that may not be tried can not be done".into());
        }
        if self.backoff.factor == 0 {
            return refuse("backoff.factor", "must be at least 1".into());
        }
        if self.never_retry.iter().any(|code| code.trim().is_empty()) {
            return refuse("never_retry", "a code must not be empty".into());
        }
        if self.expected_run_ms == Some(0) {
            return refuse("expected_run", "must be longer than 0; leave it out for no bound".into());
        }
        Ok(())
    }
}
