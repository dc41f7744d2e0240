//! The checkers: each judges the observed events by one property, none believes what the queue says of itself.

mod budgets;
mod decision;
mod effects;
mod fencing;
mod final_state;
mod journal;
mod manual;
mod ownership;
mod record;
mod resolution;
mod rules;
#[cfg(test)]
mod staged;

use leaseproof_rules::{Property, Reason};
use leaseproof_scenarios::{Story, Verdict};

use crate::event::{Event, What};

pub use record::RecordEntry;

/// Something that must not be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The property that is broken. `None`: no property of the design, but the observer and the queue, or the queue and
    /// the rules, do not agree; a defect of the software.
    pub property: Option<Property>,
    /// When, in ns of story time.
    pub at_ns: u64,
    /// Index of the task in the story, if it is about one.
    pub task: Option<usize>,
    /// What was seen.
    pub why: String,
}

impl Finding {
    fn broken(property: Property, event: &Event, task: usize, why: impl Into<String>) -> Finding {
        Finding { property: Some(property), at_ns: event.at_ns, task: Some(task), why: why.into() }
    }

    fn defect(at_ns: u64, task: usize, why: impl Into<String>) -> Finding {
        Finding { property: None, at_ns, task: Some(task), why: why.into() }
    }
}

/// A run as it is judged.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    /// What was told.
    pub story: &'a Story,
    /// What was seen, in order.
    pub events: &'a [Event],
    /// The queue's own execution record, a list for each task of the story.
    pub record: &'a [Vec<RecordEntry>],
}

type Check = fn(&Seen<'_>, &mut Vec<Finding>);

/// Every checker, by name.
pub const CHECKS: [(&str, Check); 11] = [
    ("ownership", ownership::check),
    ("fencing", fencing::check),
    ("effects", effects::check),
    ("journal", journal::check),
    ("final", final_state::check),
    ("manual", manual::check),
    ("decision", decision::check),
    ("budgets", budgets::check),
    ("resolution", resolution::check),
    ("rules", rules::check),
    ("record", record::check),
];

/// Everything that is wrong with a run, in order of time and then of the properties.
pub fn findings(seen: &Seen<'_>) -> Vec<Finding> {
    let mut all = Vec::new();
    for (_, check) in CHECKS {
        check(seen, &mut all);
    }
    all.sort_by_key(|finding| (finding.at_ns, finding.property.is_none(), finding.property));
    all
}

/// The verdict of a run: what was violated first, else stuck, else the first reason for which a person was needed.
pub fn verdict(events: &[Event], findings: &[Finding]) -> Verdict {
    let mut broken = findings.iter().filter_map(|finding| finding.property);
    if let Some(property) = broken.clone().find(|property| *property != Property::EventuallyResolved) {
        return Verdict::Violated(property);
    }
    if broken.next().is_some() {
        return Verdict::Stuck;
    }
    let escalated = events.iter().find_map(|event| match &event.what {
        What::Write(write) if write.moves() && write.after.status == leaseproof_rules::Status::WaitManual => {
            write.after.reason.as_deref().and_then(Reason::from_name)
        }
        _ => None,
    });
    escalated.map_or(Verdict::AutoRecovered, Verdict::Escalated)
}

#[cfg(test)]
mod tests {
    use leaseproof_rules::{Status, Verb};

    use super::staged::Stage;
    use super::*;

    #[test]
    fn a_run_as_it_should_be_has_no_findings() {
        let mut stage = Stage::new();
        stage.claim(0);
        stage.write(Verb::Complete, 1, Status::Success, 1);
        assert_eq!(stage.findings(), []);
        assert_eq!(verdict(&stage.events, &[]), Verdict::AutoRecovered);
    }

    #[test]
    fn the_first_violation_is_the_verdict_whatever_else_is_wrong() {
        let mut stage = Stage::new();
        stage.claim(0);
        stage.claim(1);
        stage.write(Verb::Complete, 1, Status::Success, 2);
        let findings = stage.findings();
        assert_eq!(verdict(&stage.events, &findings), Verdict::Violated(Property::OneCurrentOwner));
        assert!(findings.iter().any(|finding| finding.property == Some(Property::StaleWriteChangesNothing)));
    }

    #[test]
    fn a_person_needed_once_is_the_verdict_even_if_the_task_then_succeeds() {
        let mut stage = Stage::new();
        stage.claim(0);
        stage.reason = Some("overrun".to_owned());
        stage.write(Verb::Escalate, 1, Status::WaitManual, 2);
        stage.write(Verb::MarkSucceeded, 2, Status::Success, 3);
        assert_eq!(stage.findings(), []);
        assert_eq!(verdict(&stage.events, &[]), Verdict::Escalated(Reason::Overrun));
    }
}
