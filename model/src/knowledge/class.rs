//! Classes of states: those that look the same to the sweeper, and what might be decided in them.

use leaseproof_rules::{
    Answer, Decision, EffectStep, Entry, Observation, Policy, Reason, Signal, UnknownEffect, effect_step,
};

use crate::state::{Seen, State};
use crate::sweeper;
use crate::world::Setup;

/// All observations that the sweeper may make, or has made and will decide on, in this state.
///
/// An observation that has been overtaken (the row's epoch has changed since) is left out: whatever is written on it is
/// refused.
pub fn classes_of(setup: &Setup, state: &State) -> Vec<Observation> {
    let tasks = 0..setup.shape.tasks;
    let nothing_remembered = state.seen.iter().all(|seen| seen.signal.is_none());
    tasks
        .filter_map(|task| {
            let seen: Seen = match state.seen[task] {
                seen if seen.signal.is_some() && seen.epoch == state.tasks[task].epoch => seen,
                _ if nothing_remembered => sweeper::read(state, task)?,
                _ => return None,
            };
            sweeper::observe(setup, state, task, &seen)
        })
        .collect()
}

/// Whether this state is of this class.
pub fn is_in(setup: &Setup, state: &State, class: &Observation) -> bool {
    classes_of(setup, state).contains(class)
}

/// The class after a question that was not answered. It has no states of its own: the sweeper hears it and decides in
/// the same step.
pub fn unanswered(class: &Observation) -> Observation {
    let unknown = class.unknown.map(|unknown| UnknownEffect { answer: Some(Answer::Unavailable), ..unknown });
    Observation { unknown, ..*class }
}

/// Whatever could be decided in a class, the decision of the rules included, from the most to the least automatic.
///
/// FAIL is not among them: the sweeper has no edge to it, a lost owner proves nothing of the work.
pub fn candidates(class: &Observation, of_rules: Decision) -> Vec<Decision> {
    let requeue = |learnt| Decision::Requeue { delay_ms: 0, learnt };
    let mut all = vec![Decision::Wait, requeue(None)];
    if let Some(UnknownEffect { rule, .. }) = class.unknown {
        all.extend([requeue(Some(Entry::NotDone)), requeue(Some(Entry::Done))]);
        all.extend(rule.instruments.status_query.then_some(Decision::Ask));
    }
    all.push(match (of_rules, class.unknown) {
        (Decision::Escalate(reason), _) => Decision::Escalate(reason),
        (_, Some(_)) => Decision::Escalate(Reason::OutcomeUnknown),
        (_, None) => Decision::Escalate(Reason::InterruptionsExhausted),
    });
    if !all.contains(&of_rules) {
        all.push(of_rules);
    }
    all
}

/// Whether nobody but the system acts on it.
pub const fn is_automatic(decision: Decision) -> bool {
    !matches!(decision, Decision::Escalate(_) | Decision::Fail(_))
}

/// A class in words. `policy` is the task's: budgets are told as "left" or "spent".
pub fn class_text(policy: &Policy, class: &Observation) -> String {
    let mut parts = vec![match class.signal {
        Signal::Beating => "lease live, run over its time",
        Signal::LeaseExpired => "lease ended",
        Signal::OwnerSuperseded => "owner superseded",
        Signal::Failed { retryable: true } => "failed, may be retried",
        Signal::Failed { retryable: false } => "failed for good",
    }];
    parts.push(match class.unknown {
        None => "no call open",
        Some(UnknownEffect { answer, .. }) => match answer {
            None => "intent without outcome",
            Some(Answer::Done) => "intent, asked: done",
            Some(Answer::Partial) => "intent, asked: partly done",
            Some(Answer::NotDone) => "intent, asked: not done",
            Some(Answer::Unavailable) => "intent, asked: no answer",
        },
    });
    let spent = class.interruptions >= policy.max_interruptions;
    parts.push(if spent { "interruptions spent" } else { "interruptions left" });
    parts.join("; ")
}

/// A decision in words, as it works out in this class.
pub fn decision_text(class: &Observation, decision: Decision) -> String {
    match decision {
        Decision::Wait => "wait".to_owned(),
        Decision::Ask => "ask".to_owned(),
        Decision::Requeue { learnt, .. } => match (class.unknown, learnt) {
            (None, None) => "run again",
            (_, Some(Entry::Done)) => "run again, no call",
            (_, Some(Entry::NotDone)) => "run again, call",
            (Some(UnknownEffect { rule, .. }), _) => match effect_step(Some(Entry::Intent), rule) {
                EffectStep::Call => "run again, call anew",
                EffectStep::Skip => "run again, skip the call",
                EffectStep::Stop => "run again up to the call",
                EffectStep::Reuse => "run again, reuse",
            },
            (None, Some(Entry::Intent)) => "run again, intent",
        }
        .to_owned(),
        Decision::Escalate(reason) => format!("escalate({reason})"),
        other => format!("{other:?}"),
    }
}
