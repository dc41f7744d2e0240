//! Classes of states: those that look the same to the sweeper, and what might be decided in them.

use leaseproof_rules::{
    Answer, Decision, EffectStep, Entry, Observation, Policy, Progress, Reason, Saga, Signal, UnknownEffect,
    effect_step,
};

use crate::state::{Seen, State};
use crate::sweeper;
use crate::world::Setup;

/// What the sweeper may observe of this task, or has observed and will decide on, in this state.
///
/// An observation that has been overtaken (the row's epoch has changed since) is left out: whatever is written on it is
/// refused.
pub fn class_of(setup: &Setup, state: &State, task: usize) -> Option<Observation> {
    let nothing_remembered = || state.seen.iter().all(|seen| seen.signal.is_none());
    let seen: Seen = match state.seen[task] {
        seen if seen.signal.is_some() && seen.epoch == state.tasks[task].epoch => seen,
        _ if nothing_remembered() => sweeper::read(state, task)?,
        _ => return None,
    };
    sweeper::observe(setup, state, task, &seen)
}

/// What somebody decides on of this task in this state, or may: [`class_of`], and what has been overtaken.
pub fn decided_on(setup: &Setup, state: &State, task: usize) -> impl Iterator<Item = Observation> {
    let remembered = sweeper::observe(setup, state, task, &state.seen[task]);
    let read = sweeper::read(state, task).and_then(|seen| sweeper::observe(setup, state, task, &seen));
    remembered.into_iter().chain(read.filter(|read| Some(*read) != remembered))
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
    let reason = match of_rules {
        Decision::Compensate { reason, .. } => reason,
        _ => Reason::InterruptionsExhausted,
    };
    all.extend(ways_back(class, reason));
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

/// Going back is offered where there is something to undo: without, it would be FAIL.
fn ways_back(class: &Observation, reason: Reason) -> Vec<Decision> {
    let Some(progress) = class.progress.filter(|progress| progress.saga == Saga::Forward) else { return Vec::new() };
    let back = |learnt| Decision::Compensate { reason, learnt };
    let mut all = Vec::new();
    if progress.done > 0 || class.unknown.is_some() {
        all.push(back(None));
    }
    if class.unknown.is_some() {
        all.push(back(Some(Entry::Done)));
        all.extend((progress.done > 0).then(|| back(Some(Entry::NotDone))));
    }
    all
}

/// Whether nobody but the system acts on it.
pub const fn is_automatic(decision: Decision) -> bool {
    !matches!(decision, Decision::Escalate(_) | Decision::Fail(_))
}

/// A class in words. `policy` is the task's: budgets are told as "left" or "spent".
pub fn class_text(policy: &Policy, class: &Observation) -> String {
    classes_text(policy, class, &class.progress.map_or_else(Vec::new, |progress| vec![progress.done]))
}

/// Classes that differ in what is done, `done` being as many steps as are, in words.
pub fn classes_text(policy: &Policy, class: &Observation, done: &[u32]) -> String {
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
    let steps = class.progress.map(|Progress { of, saga, .. }| {
        let done: Vec<String> = done.iter().map(u32::to_string).collect();
        match saga {
            Saga::Back => format!("{} of {of} steps left to undo", done.join("/")),
            Saga::None | Saga::Forward => format!("{} of {of} steps done", done.join("/")),
        }
    });
    parts.extend(steps.as_deref());
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
        Decision::Compensate { learnt, .. } => match (class.unknown, learnt) {
            (None, _) => "undo",
            (Some(_), Some(Entry::Done)) => "undo, this step too",
            (Some(_), Some(_)) => "undo, but not this step",
            (Some(_), None) => "undo, whatever became of this step",
        }
        .to_owned(),
        Decision::Escalate(reason) => format!("escalate({reason})"),
        other => format!("{other:?}"),
    }
}
