//! The decision: one function for the model, the sweeper and the executor's own failures.

use std::fmt;

use crate::effect::{Answer, EffectRule, Entry, Unknown, settle_back, settle_under};
use crate::guard::{Guard, Guards};
use crate::policy::{OnExhausted, OnPartial, Policy};

/// What made somebody look at a RUNNING task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Signal {
    /// The lease is live.
    Beating,
    /// The lease has ended. Dead and slow look the same (U1).
    LeaseExpired,
    /// The owner's boot id is known to be superseded (A2).
    OwnerSuperseded,
    /// The owner itself reports a failure (A3).
    Failed {
        /// False for an error the policy never retries: bad input and the like (M2, A4).
        retryable: bool,
    },
}

/// An effect whose journal entry is [`Entry::Intent`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UnknownEffect {
    /// How it is declared.
    pub rule: EffectRule,
    /// What the third party said, if it was asked since the owner was lost.
    pub answer: Option<Answer>,
    /// For how long it could be asked, in ms: since the lease ended, on the database's clock; for an owner that has failed,
    /// since its first question, on its monotonic clock.
    pub asked_ms: u64,
}

/// All that a decision may rest on: what the sweeper can see.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Observation {
    /// Why we look.
    pub signal: Signal,
    /// Time since the claim, in ms on the database's clock.
    pub running_ms: u64,
    /// Failed attempts recorded so far, without the one being reported.
    pub attempts: u32,
    /// Lost owners recorded so far, without the one being seen.
    pub interruptions: u32,
    /// An effect of which only the intent is known; `None` if there is none.
    pub unknown: Option<UnknownEffect>,
    /// How far a checkpointed effect is; `None` if there is none.
    pub progress: Option<Progress>,
}

/// How far an effect with checkpoints is, by its journal (E4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Progress {
    /// Steps recorded as done.
    pub done: u32,
    /// Steps in all.
    pub of: u32,
    /// What its declaration says of some but not all.
    pub on_partial: OnPartial,
    /// Whether its steps can be undone, or are being undone; `done` are then those that are left to undo.
    pub saga: Saga,
}

/// Whether an effect with checkpoints can be undone step by step (E5).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Saga {
    /// It can not.
    #[default]
    None,
    /// It can, and is on its way forward.
    Forward,
    /// It is being undone, in reverse order. There is no way forward any more.
    Back,
}

impl Progress {
    /// Whether a person has to say what becomes of it, once `learnt` is recorded too (M4).
    pub fn waits_for_a_person(self, learnt: Option<Entry>) -> bool {
        let done = self.done.saturating_add(u32::from(learnt == Some(Entry::Done)));
        self.on_partial == OnPartial::Escalate && self.saga != Saga::Back && (1..self.of).contains(&done)
    }
}

/// Why a person is needed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Reason {
    /// It failed as often as the policy allows (M2).
    AttemptsExhausted = 0,
    /// Its owners were lost as often as the policy allows.
    InterruptionsExhausted = 1,
    /// Its heartbeat is fine, its run far over the expected time (M1).
    Overrun = 2,
    /// An outside call may or may not have happened, and nothing can tell (M3).
    OutcomeUnknown = 3,
    /// An error that is never retried: bad input (M2).
    NotRetryable = 4,
    /// Which parts of an outside effect are done is known, and what to do about the rest is not (E-C, M4).
    PartlyDone = 5,
    /// Undoing what was done has failed as often as the policy allows, or for good (E5).
    CompensationFailed = 6,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 7] = [
        Reason::AttemptsExhausted,
        Reason::InterruptionsExhausted,
        Reason::Overrun,
        Reason::OutcomeUnknown,
        Reason::NotRetryable,
        Reason::PartlyDone,
        Reason::CompensationFailed,
    ];

    /// The name stored and shown, e.g. `outcome_unknown`.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::AttemptsExhausted => "attempts_exhausted",
            Reason::InterruptionsExhausted => "interruptions_exhausted",
            Reason::Overrun => "overrun",
            Reason::OutcomeUnknown => "outcome_unknown",
            Reason::NotRetryable => "not_retryable",
            Reason::PartlyDone => "partly_done",
            Reason::CompensationFailed => "compensation_failed",
        }
    }

    /// The reason with this name.
    pub fn from_name(name: &str) -> Option<Reason> {
        Reason::ALL.into_iter().find(|reason| reason.name() == name)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What to do with the task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Decision {
    /// Leave it, and look again later.
    Wait,
    /// Let it run again after this delay: PENDING if 0, else RETRY_WAIT.
    Requeue {
        /// In ms.
        delay_ms: u64,
        /// What was learnt of the unknown effect, to be journalled in the same write.
        learnt: Option<Entry>,
    },
    /// Ask the third party about the unknown effect, then decide again.
    Ask,
    /// Let it run again, at once, to undo its recorded steps in reverse order and then to end in FAIL (E5). Both budgets
    /// begin anew.
    Compensate {
        /// Why it can not go on forward.
        reason: Reason,
        /// What was learnt of the unknown step, to be journalled in the same write. If it is unknown and nothing was
        /// learnt, it is undone too.
        learnt: Option<Entry>,
    },
    /// WAIT_MANUAL.
    Escalate(Reason),
    /// FAIL, because the policy says so.
    Fail(Reason),
}

/// Decides. Pure: no clock, no I/O, total.
pub fn decide(policy: &Policy, seen: &Observation) -> Decision {
    decide_under(policy, seen, Guards::ALL)
}

/// [`decide`] with a guard removed; for ablations.
pub fn decide_under(policy: &Policy, seen: &Observation, guards: Guards) -> Decision {
    let two_budgets = guards.has(Guard::TwoBudgets);
    // Whoever is undoing has nowhere else to go: FAIL would leave what is not undone yet.
    let goes_back = seen.progress.is_some_and(|progress| progress.saga == Saga::Back);
    let ended = |reason| match goes_back {
        true => Decision::Escalate(Reason::CompensationFailed),
        false => ended(policy, reason),
    };
    let (spent, budget, delay_ms, exhausted, bound) = match seen.signal {
        Signal::Beating => {
            let overrun = policy.expected_run_ms.is_some_and(|expected| seen.running_ms > expected);
            return match overrun && guards.has(Guard::OverrunRule) {
                true => Decision::Escalate(Reason::Overrun),
                false => Decision::Wait,
            };
        }
        Signal::LeaseExpired | Signal::OwnerSuperseded => {
            // `max_interruptions` losses are forgiven; the next one is not. It goes to a person whatever the policy
            // says of exhausted attempts: FAIL would claim that the work failed, and a loss proves nothing of it.
            let (spent, budget, reason) = match two_budgets {
                true => (seen.interruptions, policy.max_interruptions, Reason::InterruptionsExhausted),
                false => (one_budget(seen), policy.max_attempts, Reason::AttemptsExhausted),
            };
            let reason = if goes_back { Reason::CompensationFailed } else { reason };
            (spent, budget, 0, Decision::Escalate(reason), Guard::BoundedInterruptions)
        }
        Signal::Failed { .. } => {
            let failures = seen.attempts.saturating_add(1);
            let spent = if two_budgets { failures } else { one_budget(seen) };
            let exhausted = ended(Reason::AttemptsExhausted);
            (spent, policy.max_attempts, policy.backoff.delay_ms(failures), exhausted, Guard::BoundedAttempts)
        }
    };
    // The unknown effect comes first: a person who gets the task for any other reason still has to know of it, and an
    // answer that can be had is had before the budgets end the task.
    let mut learnt = None;
    if let Some(unknown) = seen.unknown {
        let UnknownEffect { mut rule, answer, .. } = unknown;
        rule.instruments.status_query &= can_be_asked(unknown, policy);
        let settled = match guards.has(Guard::UnknownIsUnknown) {
            true => settle_under(rule, answer, guards),
            false => Unknown::Settled { learnt: Some(Entry::NotDone) },
        };
        match settled {
            Unknown::Settled { learnt: entry } => learnt = entry,
            Unknown::Ask => return Decision::Ask,
            Unknown::Later => return Decision::Wait,
            // Behind a token nothing can change what the third party said: that is a fact, not a doubt.
            Unknown::Escalate if answer == Some(Answer::Partial) && rule.instruments.execution_token => {
                return Decision::Escalate(Reason::PartlyDone);
            }
            Unknown::Escalate => return Decision::Escalate(Reason::OutcomeUnknown),
        }
    }
    // Before the budgets: they may end in FAIL, where nobody would look at the rest.
    if seen.progress.is_some_and(|progress| progress.waits_for_a_person(learnt)) {
        return Decision::Escalate(Reason::PartlyDone);
    }
    if seen.signal == (Signal::Failed { retryable: false }) {
        return undo_or(ended(Reason::NotRetryable), seen, learnt, policy, guards);
    }
    if spent >= budget && guards.has(bound) {
        return undo_or(exhausted, seen, learnt, policy, guards);
    }
    Decision::Requeue { delay_ms, learnt }
}

/// Where a saga can not go on forward and some of its steps are done, or may be, it goes back; else it ends like this.
fn undo_or(end: Decision, seen: &Observation, learnt: Option<Entry>, policy: &Policy, guards: Guards) -> Decision {
    let (Decision::Escalate(reason) | Decision::Fail(reason)) = end else { return end };
    let Some(progress) = seen.progress.filter(|progress| progress.saga == Saga::Forward) else { return end };
    if let (Some(unknown), None) = (seen.unknown, learnt) {
        let mut rule = unknown.rule;
        rule.instruments.status_query &= can_be_asked(unknown, policy);
        return match settle_back(rule, unknown.answer, guards) {
            Unknown::Settled { learnt } => Decision::Compensate { reason, learnt },
            Unknown::Ask => Decision::Ask,
            Unknown::Later => Decision::Wait,
            Unknown::Escalate => Decision::Escalate(Reason::OutcomeUnknown),
        };
    }
    match progress.done.saturating_add(u32::from(learnt == Some(Entry::Done))) {
        0 => end,
        _ => Decision::Compensate { reason, learnt },
    }
}

/// A third party that does not answer for so long is one that can not be asked (M3).
fn can_be_asked(unknown: UnknownEffect, policy: &Policy) -> bool {
    unknown.answer != Some(Answer::Unavailable) || unknown.asked_ms < policy.ask_for_ms()
}

/// What is spent, this failure or loss included, where losses count as failures.
fn one_budget(seen: &Observation) -> u32 {
    seen.attempts.saturating_add(seen.interruptions).saturating_add(1)
}

fn ended(policy: &Policy, reason: Reason) -> Decision {
    match policy.on_exhausted {
        OnExhausted::Escalate => Decision::Escalate(reason),
        OnExhausted::Fail => Decision::Fail(reason),
    }
}
