//! What a handler is given: its task, and the one way to the outside.

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use leaseproof_rules::{
    CallOutcome, EffectRule, EffectStep, Entry, Epoch, Guard, Judgement, Status, effect_step, entry_after,
    idempotency_key,
};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::effects::{Effects, NotBegun};
use crate::store::{Fenced, Learnt};
use crate::task::{Claimed, supported};
use crate::worker::Lease;
use crate::{Error, Store, bounds};

/// Why a handler did not succeed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TaskError {
    /// Worth another attempt (A3).
    #[error("{0}")]
    Retryable(String),
    /// Worth another attempt, unless the task's policy never retries this code (A4).
    #[error("{code}{}{why}", if why.is_empty() { "" } else { ": " })]
    Coded {
        /// What kind of error it is, e.g. `card_declined`; see
        /// [`Policy::never_retry`](leaseproof_rules::Policy::never_retry).
        code: String,
        /// What was seen.
        why: String,
    },
    /// The same input will fail again: never retried (M2).
    #[error("bad input: {0}")]
    BadInput(String),
    /// An outside call may or may not have happened. From [`Ctx::effect`]; pass it on.
    #[error("outcome of {key:?} unknown: {why}")]
    OutcomeUnknown {
        /// The effect's key.
        key: String,
        /// What was seen.
        why: String,
    },
    /// The lease is lost, or may be: nothing further must be done for the task. From [`Ctx::effect`]; pass it on.
    #[error("the lease is lost")]
    LeaseLost,
}

/// What an outside call is to carry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// The same for every attempt at this effect (E1).
    pub idempotency_key: String,
    /// The execution token: grows with every claim (E6).
    pub token: Epoch,
}

/// Why an outside call brought no result.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallError {
    /// This call surely has not happened and will not: refused, or never sent. It is no word on an earlier call of which
    /// nothing was heard: after one the effect stays unknown.
    #[error("{0}")]
    NotDone(String),
    /// It may have happened, or may still: no answer. When in doubt, this one.
    #[error("{0}")]
    Unknown(String),
}

/// What became of an effect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// It happened, now or in an earlier run; what the call brought, if that is known. Of an earlier run nothing is known
    /// that was longer than [`MOST_JSON_BYTES`](crate::MOST_JSON_BYTES) or had a NUL.
    Done(Option<String>),
    /// It was left out, because an earlier run may have done it and the policy is at-most-once (E7).
    Skipped,
}

/// A run of a task, as its handler sees it. Cheap to clone.
#[derive(Clone)]
pub struct Ctx {
    run: Arc<Run>,
}

/// How long to wait before a statement with an unknown outcome is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// What handler, effects and report share of one run.
pub(crate) struct Run {
    pub(crate) store: Store,
    pub(crate) task: Claimed,
    pub(crate) owner: String,
    pub(crate) lease: Lease,
    pub(crate) effects: Effects,
    /// True once the grace of a shutdown is over: what still runs is to be put back.
    pub(crate) release: watch::Receiver<bool>,
    /// What the report has made of the task, and why, once that is known.
    pub(crate) ended: OnceLock<(Status, Option<String>)>,
}

impl Run {
    /// The fence of a write for this run.
    pub(crate) fn fenced<'a>(&'a self, note: Option<&'a str>) -> Fenced<'a> {
        Fenced { id: self.task.id, epoch: self.task.epoch, actor: &self.owner, note }
    }

    /// Whether its handler may still act for the task: it has not ended, and its lease is live as far as it can know.
    fn handler_may_act(&self) -> bool {
        !self.effects.is_closed() && self.lease.may_act()
    }

    fn may_act(&self) -> Result<(), TaskError> {
        if self.handler_may_act() { Ok(()) } else { Err(TaskError::LeaseLost) }
    }

    /// Repeats a write to the journal until it is known to be there, or the lease is lost.
    async fn journalled<Fut>(&self, mut write: impl FnMut() -> Fut) -> Result<(), TaskError>
    where
        Fut: Future<Output = Result<Judgement, Error>>,
    {
        loop {
            match write().await {
                Ok(Judgement::Refused(_)) => return Err(TaskError::LeaseLost),
                Ok(_) => return Ok(()),
                Err(error) if error.is_transient() => {
                    self.may_act()?;
                    tracing::warn!(task = self.task.id, epoch = self.task.epoch, %error, "effect journal");
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(TaskError::Retryable(error.to_string())),
            }
        }
    }
}

impl Ctx {
    pub(crate) fn new(run: Arc<Run>) -> Ctx {
        Ctx { run }
    }

    /// The task as it was claimed.
    pub fn task(&self) -> &Claimed {
        &self.run.task
    }

    /// The payload, decoded.
    ///
    /// # Errors
    /// [`TaskError::BadInput`]: a payload that does not decode goes to a person, never round and round.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, TaskError> {
        serde_json::from_slice(&self.run.task.payload).map_err(|error| TaskError::BadInput(format!("payload: {error}")))
    }

    /// Whether the handler may still act for the task. [`Ctx::effect`] asks by itself. False for good once the lease is
    /// lost or the handler has ended: a clone that outlives its handler, in a task that the handler has spawned, can do
    /// nothing more for the task.
    pub fn may_act(&self) -> bool {
        self.run.handler_may_act()
    }

    /// Makes an outside call, journalled: the intent first, then the call, then what it brought. What an earlier run left
    /// in the journal decides whether the call is made at all ([`effect_step`]).
    ///
    /// `call` should have a deadline of its own and answer [`CallError::Unknown`] when it passes.
    ///
    /// # Errors
    /// [`TaskError::LeaseLost`] and [`TaskError::OutcomeUnknown`] are to be passed on;
    /// [`TaskError::BadInput`] for a declaration that this queue does not support, and while this run is calling the same
    /// effect elsewhere; [`TaskError::Retryable`] where the effect surely has not happened.
    pub async fn effect<F, Fut>(&self, key: &str, rule: EffectRule, call: F) -> Result<Effect, TaskError>
    where
        F: FnOnce(Call) -> Fut,
        Fut: Future<Output = Result<String, CallError>>,
    {
        if let Err(why) = supported(rule) {
            return Err(TaskError::BadInput(format!("effect {key:?}: {why}")));
        }
        let run = &*self.run;
        let (known, _calling) = match run.effects.begin(key) {
            Ok(begun) => begun,
            Err(NotBegun::Closed) => return Err(TaskError::LeaseLost),
            Err(NotBegun::Busy) => {
                let why = "this run is calling it already; one call of an effect at a time";
                return Err(TaskError::BadInput(format!("effect {key:?}: {why}")));
            }
        };
        let before = known.as_ref().map(|(entry, ..)| *entry);
        match effect_step(before, rule) {
            EffectStep::Reuse => return Ok(Effect::Done(known.and_then(|(.., outcome)| outcome))),
            EffectStep::Skip => return Ok(Effect::Skipped),
            EffectStep::Stop => {
                let why = "an earlier run was about to call, and nothing was heard since".to_owned();
                return Err(TaskError::OutcomeUnknown { key: key.to_owned(), why });
            }
            EffectStep::Call => {}
        }
        run.may_act()?;
        if run.store.guards().has(Guard::IntentBeforeCall) {
            run.journalled(|| run.store.intent(run.fenced(None), key, rule)).await?;
            run.effects.intended(key, rule);
            // The intent may have waited for a lock, past the end of the lease.
            run.may_act()?;
        }
        let (token, guards) = (run.task.epoch, run.store.guards());
        let made = call(Call { idempotency_key: idempotency_key(run.task.id, key, token, guards), token }).await;
        let heard = match &made {
            Ok(_) => CallOutcome::Done,
            Err(CallError::NotDone(_)) => CallOutcome::NotDone,
            Err(CallError::Unknown(_)) => CallOutcome::Unknown,
        };
        let (state, outcome) = match (entry_after(before, heard), &made) {
            (state, Ok(outcome)) => (state, Some(outcome.clone())),
            (Entry::Intent, Err(error)) => {
                let why = match heard {
                    CallOutcome::Unknown => error.to_string(),
                    _ => format!("nothing was heard of an earlier call, and of this one: {error}"),
                };
                return Err(TaskError::OutcomeUnknown { key: key.to_owned(), why });
            }
            (state, Err(_)) => (state, None),
        };
        run.effects.known(key);
        // That it is done is worth more than what it brought.
        let outcome = outcome.filter(|outcome| {
            let fits = bounds::fits(outcome);
            if !fits {
                tracing::warn!(
                    task = run.task.id,
                    effect = key,
                    "what the call brought is too long, or has a NUL: left out"
                );
            }
            fits
        });
        let learnt = Learnt { key, state, rule };
        run.journalled(|| run.store.outcome(run.fenced(None), learnt, outcome.as_deref())).await?;
        run.effects.journalled(key, (state, rule, outcome));
        match made {
            Ok(outcome) => Ok(Effect::Done(Some(outcome))),
            Err(error) => Err(TaskError::Retryable(format!("{key}: {error}"))),
        }
    }
}
