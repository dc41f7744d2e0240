//! [`Property::EventuallyResolved`]: at the end every task is in SUCCESS, FAIL or WAIT_MANUAL (P1).

use leaseproof_rules::{Property, Status};

use super::{Finding, Seen};
use crate::event::What;

pub(super) fn check(seen: &Seen<'_>, findings: &mut Vec<Finding>) {
    let mut last = vec![Status::Pending; seen.story.tasks.len()];
    for event in seen.events {
        if let What::Write(write) = &event.what
            && let Some(status) = last.get_mut(write.task)
        {
            *status = write.after.status;
        }
    }
    let at_ns = seen.events.last().map_or(0, |event| event.at_ns);
    for (task, status) in last.into_iter().enumerate().filter(|(_, status)| !status.is_resolved()) {
        findings.push(Finding {
            property: Some(Property::EventuallyResolved),
            at_ns,
            task: Some(task),
            why: format!("the story is over and the task is in {status}"),
        });
    }
}

#[cfg(test)]
mod tests {
    use leaseproof_rules::Verb;

    use super::super::staged::Stage;
    use super::*;

    #[test]
    fn a_task_left_running_is_stuck_and_one_with_a_person_is_not() {
        let mut stage = Stage::new();
        stage.claim(0);
        assert_eq!(stage.broken(), [Property::EventuallyResolved]);
        stage.reason = Some("overrun".to_owned());
        stage.write(Verb::Escalate, 1, Status::WaitManual, 2);
        assert_eq!(stage.broken(), []);
    }
}
