//! The rules of leaseproof, and nothing else: no I/O, no clock, no dependency.
//!
//! The model explores these functions and the queue runs them, so a rule is written once.
//!
//! - [`Status`] and [`TRANSITIONS`]: which states there are, and who may take a task from one to another (T1);
//! - [`judge`]: what a conditional write does to a row: compare-and-set, fencing, lease (P2, A1);
//! - [`Policy`]: what is set per task (A4);
//! - [`decide`]: what to do with a RUNNING task, from what can be seen of it (A1–A3, M1–M3, E);
//! - [`effect_step`], [`entry_after`], [`entry_after_intent`], [`settle`]: what the effect journal allows (E-A, E-B, E-C);
//! - [`Property`]: the sentences that must hold; [`Guard`]: what can be switched off to see one fail.

#![deny(missing_docs)]
#![warn(clippy::unwrap_used)]

mod decide;
mod effect;
mod guard;
mod policy;
mod property;
mod status;
mod transition;

pub use decide::{Decision, Observation, Progress, Reason, Saga, Signal, UnknownEffect, decide, decide_under};
pub use effect::{
    Answer, CallOutcome, EffectRule, EffectStep, Entry, Instruments, Unknown, effect_step, entry_after,
    entry_after_intent, idempotency_key, query_token, settle, settle_back, settle_under,
};
pub use guard::{Guard, Guards};
pub use policy::{Backoff, OnExhausted, OnPartial, OnUnknown, Policy, PolicyError};
pub use property::{Kind, Property};
pub use status::Status;
pub use transition::{
    Actor, CLOCK_SLACK_MS, COUNT_MAX, Condition, Counts, EPOCH_LIMIT, EPOCH_MAX, Epoch, Judgement, Refusal, Row,
    TRANSITIONS, Transition, Verb, Write, ends_too_late, judge, repeats_adopted, transition,
};
