//! [`Property::OnlyAPersonLeavesWaitManual`] (T1).

use leaseproof_rules::{Actor, Property, Status};

use super::{Finding, Seen};
use crate::event::What;

pub(super) fn check(seen: &Seen<'_>, findings: &mut Vec<Finding>) {
    for event in seen.events {
        let What::Write(write) = &event.what else { continue };
        let leaves = write.before.status == Status::WaitManual && write.after.status != Status::WaitManual;
        if leaves && (write.verb.actor() != Actor::Person || event.actor != crate::event::Actor::Person) {
            let why = format!("{} took it from WAIT_MANUAL to {}", write.verb.name(), write.after.status);
            findings.push(Finding::broken(Property::OnlyAPersonLeavesWaitManual, event, write.task, why));
        }
    }
}

#[cfg(test)]
mod tests {
    use leaseproof_rules::Verb;

    use super::super::staged::Stage;
    use super::*;

    #[test]
    fn a_sweeper_that_takes_a_task_from_a_persons_desk_is_found() {
        let mut stage = Stage::new();
        stage.claim(0);
        stage.write(Verb::Escalate, 1, Status::WaitManual, 2);
        stage.write(Verb::Requeue, 2, Status::Pending, 3);
        assert!(stage.broken().contains(&Property::OnlyAPersonLeavesWaitManual));
    }
}
