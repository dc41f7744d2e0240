//! What puts a task back or hands it over is what [`decide`] says, of what its writer can have seen.

use leaseproof_rules::{Answer, Decision, Entry, Observation, Reason, Signal, Status, UnknownEffect, Verb, decide};
use leaseproof_scenarios::RunEnd;

use super::{At, Step, Validator, Wrong};

impl Validator<'_> {
    pub(super) fn decided(&self, at: &At<'_>, verb: Verb, now_ms: i64) -> Step {
        let (line, task) = (at.line, &self.tasks[at.task]);
        let row = task.row(now_ms);
        let mut signals = Vec::new();
        match verb {
            Verb::Requeue | Verb::Escalate => {
                // Read as lost it stays lost, and over its time it stays over.
                if row.owner_lost() {
                    signals.push(Signal::LeaseExpired);
                }
                if row.overrun {
                    signals.push(Signal::Beating);
                }
            }
            Verb::Retry | Verb::GiveUp => {
                let end = line.epoch.and_then(|epoch| task.runs.get(&epoch)).and_then(|run| run.end);
                signals.push(Signal::Failed { retryable: end != Some(RunEnd::BadInput) });
            }
            _ => return Ok(()),
        }
        let since = |then: i64| u64::try_from(now_ms.saturating_sub(then)).unwrap_or_default();
        let asked_ms = match signals.first() {
            Some(Signal::Failed { .. }) => since(task.claimed_ms),
            _ => task.lease_until_ms.map_or(0, since),
        };
        let mut allowed = Vec::new();
        for signal in signals {
            for unknown in self.unknowns(at.task, asked_ms) {
                let seen = Observation {
                    signal,
                    running_ms: since(task.claimed_ms),
                    attempts: task.counts.attempts,
                    interruptions: task.counts.interruptions,
                    unknown,
                    progress: None,
                };
                allowed.extend(words(decide(&self.story.policy, &seen), verb));
            }
        }
        let learnt = line.entry.as_deref().and_then(Entry::from_name);
        let to = line.to.as_deref().and_then(Status::from_name);
        let reason = line.reason.as_deref().and_then(Reason::from_name);
        let said = to.map(|to| format!("{} to {to}{}", verb.name(), tail(reason, learnt)));
        match said {
            Some(said) if allowed.contains(&said) => Ok(()),
            _ => {
                let why = format!("decide() does not say {}", said.unwrap_or_default());
                allowed.dedup();
                Err(Wrong { why, state: format!("{task}, now {now_ms} ms"), allowed })
            }
        }
    }

    /// What may be known of an effect whose journal has only the intent.
    fn unknowns(&self, task: usize, asked_ms: u64) -> Vec<Option<UnknownEffect>> {
        let Some(Entry::Intent) = self.tasks[task].entry else { return vec![None] };
        let rule = self.rule(task);
        let answers = self.accounts[task].answers(self.tasks[task].epoch).map(Some);
        let all = [None, Some(Answer::Unavailable)].into_iter().chain(answers);
        all.map(|answer| Some(UnknownEffect { rule, answer, asked_ms })).collect()
    }
}

/// A decision as the write that carries it out; `None` where nothing is written.
fn words(decision: Decision, verb: Verb) -> Option<String> {
    let (to, tail) = match decision {
        Decision::Wait | Decision::Ask => return None,
        Decision::Requeue { delay_ms, learnt } => {
            let to = if delay_ms == 0 { Status::Pending } else { Status::RetryWait };
            (to, tail(None, learnt))
        }
        // The queue has no sagas: it hands such a task to a person.
        Decision::Escalate(reason) | Decision::Compensate { reason, .. } => {
            (Status::WaitManual, tail(Some(reason), None))
        }
        Decision::Fail(reason) => (Status::Fail, tail(Some(reason), None)),
    };
    let verb = match (verb, decision) {
        (Verb::Retry | Verb::GiveUp, Decision::Requeue { .. }) => Verb::Retry,
        (Verb::Retry | Verb::GiveUp, _) => Verb::GiveUp,
        (_, Decision::Requeue { .. }) => Verb::Requeue,
        _ => Verb::Escalate,
    };
    Some(format!("{} to {to}{tail}", verb.name()))
}

fn tail(reason: Option<Reason>, learnt: Option<Entry>) -> String {
    let reason = reason.map(|reason| format!(", {reason}")).unwrap_or_default();
    let learnt = learnt.map(|entry| format!(", learnt {}", entry.name())).unwrap_or_default();
    format!("{reason}{learnt}")
}
