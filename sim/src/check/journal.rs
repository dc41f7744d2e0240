//! What the journal says of an effect is true of the third party: NOT_DONE means that it has not happened, and does not
//! happen later by a call that was on its way.
//!
//! No property of the design, but what the design's rules rest on: a task whose journal says NOT_DONE is run again, and a
//! person who reads it refunds nothing.

use leaseproof_rules::{Entry, Verb};

use super::{Finding, Seen};
use crate::event::{Actor, Event, What};

pub(super) fn check(seen: &Seen<'_>, findings: &mut Vec<Finding>) {
    // A story without a guard shows what goes wrong then: its findings are the properties'.
    if seen.story.without.is_some() {
        return;
    }
    let mut tasks = vec![Task::default(); seen.story.tasks.len()];
    for event in seen.events {
        match &event.what {
            What::Effect { task, token, count } => {
                let Some(known) = tasks.get_mut(*task) else { continue };
                known.count = *count;
                if known.entry == Some(Entry::NotDone) {
                    let why = format!("the journal says NOT_DONE, and the call with token {token} does it");
                    findings.push(Finding::defect(event.at_ns, *task, why));
                }
            }
            // A heartbeat leaves in the row what the write before it has journalled.
            What::Write(write) if write.verb != Verb::Heartbeat => {
                let entry = write.after.entry.as_deref().and_then(Entry::from_name);
                journalled(&mut tasks, write.task, entry, event, findings);
            }
            What::Learn { task, entry } => journalled(&mut tasks, *task, *entry, event, findings),
            _ => {}
        }
    }
}

#[derive(Clone, Default)]
struct Task {
    /// How often its effect has happened.
    count: u32,
    /// What the queue has journalled of it.
    entry: Option<Entry>,
}

fn journalled(tasks: &mut [Task], index: usize, entry: Option<Entry>, event: &Event, findings: &mut Vec<Finding>) {
    let (Some(known), Some(entry)) = (tasks.get_mut(index), entry) else { return };
    // What a person finds out is true when found out; a call that arrives after that is the person's risk.
    known.entry = (event.actor != Actor::Person).then_some(entry);
    if entry == Entry::NotDone && known.count > 0 {
        let why = format!("NOT_DONE is journalled, and the effect has happened {} times", known.count);
        findings.push(Finding::defect(event.at_ns, index, why));
    }
}

#[cfg(test)]
mod tests {
    use leaseproof_rules::Status;

    use super::super::staged::Stage;
    use super::*;

    fn complaint(stage: &Stage) -> Option<String> {
        let findings = stage.findings();
        findings.into_iter().find(|finding| finding.why.contains("NOT_DONE")).map(|finding| finding.why)
    }

    /// A run with an effect that has happened so often; then the journal says `entry`.
    fn journalled(count: u32, entry: Entry) -> Stage {
        let mut stage = Stage::bare("");
        stage.claim(0);
        for count in 1..=count {
            stage.effect(count);
        }
        stage.row.entry = Some(entry.name().to_owned());
        stage.write(Verb::Outcome, 1, Status::Running, 1);
        stage
    }

    #[test]
    fn not_done_over_an_effect_that_has_happened_is_a_defect() {
        assert_eq!(complaint(&journalled(0, Entry::NotDone)), None);
        assert_eq!(complaint(&journalled(1, Entry::Done)), None);
        assert_eq!(complaint(&journalled(1, Entry::Intent)), None);
        let why = complaint(&journalled(1, Entry::NotDone));
        assert!(why.as_ref().is_some_and(|why| why.contains("has happened 1 times")), "{why:?}");
    }

    #[test]
    fn an_effect_that_happens_after_not_done_is_a_defect_unless_it_was_called_again() {
        let mut stage = journalled(0, Entry::NotDone);
        stage.row.entry = Some(Entry::Intent.name().to_owned());
        stage.write(Verb::Intent, 1, Status::Running, 1);
        stage.effect(1);
        assert_eq!(complaint(&stage), None);
        let mut stage = journalled(0, Entry::NotDone);
        stage.write(Verb::Heartbeat, 1, Status::Running, 1);
        stage.effect(1);
        assert!(complaint(&stage).is_some_and(|why| why.contains("the call with token 1 does it")));
    }
}
