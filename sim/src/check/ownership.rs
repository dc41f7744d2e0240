//! [`Property::OneCurrentOwner`]: the owner is whoever made the claim of the row's epoch, as long as the row is RUNNING.
//! A claim makes an owner; whatever leaves RUNNING ends it. So no claim may find a RUNNING row (P2).

use leaseproof_rules::{Property, Status, Verb};

use super::{Finding, Seen};
use crate::event::What;

pub(super) fn check(seen: &Seen<'_>, findings: &mut Vec<Finding>) {
    for event in seen.events {
        let What::Write(write) = &event.what else { continue };
        if write.verb == Verb::Claim && write.before.status == Status::Running {
            let why =
                format!("claimed as epoch {} while epoch {} still owned it", write.after.epoch, write.before.epoch);
            findings.push(Finding::broken(Property::OneCurrentOwner, event, write.task, why));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::staged::Stage;
    use super::*;

    #[test]
    fn a_claim_of_a_running_task_makes_two_owners() {
        let mut stage = Stage::new();
        stage.claim(0);
        stage.claim(1);
        assert!(stage.broken().contains(&Property::OneCurrentOwner));
    }

    #[test]
    fn a_claim_after_the_sweeper_took_it_back_does_not() {
        let mut stage = Stage::new();
        stage.claim(0);
        stage.write(Verb::Requeue, 1, Status::Pending, 2);
        stage.claim(1);
        stage.write(Verb::Complete, 3, Status::Success, 3);
        assert_eq!(stage.findings(), []);
    }
}
