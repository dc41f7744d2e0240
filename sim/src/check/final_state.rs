//! [`Property::FinalIsFinal`]: nothing leaves SUCCESS or FAIL (T1).

use leaseproof_rules::Property;

use super::{Finding, Seen};
use crate::event::What;

pub(super) fn check(seen: &Seen<'_>, findings: &mut Vec<Finding>) {
    for event in seen.events {
        let What::Write(write) = &event.what else { continue };
        let (before, after) = (write.before.status, write.after.status);
        if before.is_final() && before != after {
            let why = format!("{} took it from {before} to {after}", write.verb.name());
            findings.push(Finding::broken(Property::FinalIsFinal, event, write.task, why));
        }
    }
}

#[cfg(test)]
mod tests {
    use leaseproof_rules::{Status, Verb};

    use super::super::staged::Stage;
    use super::*;

    #[test]
    fn a_claim_of_a_finished_task_is_found() {
        let mut stage = Stage::new();
        stage.claim(0);
        stage.write(Verb::Complete, 1, Status::Success, 1);
        stage.claim(1);
        assert!(stage.broken().contains(&Property::FinalIsFinal));
    }
}
