//! [`Property::StaleWriteChangesNothing`]: an executor's write that changed a row presented the row's epoch, unless it was
//! a late success that nobody had claimed over.

use leaseproof_rules::{Actor, Property};

use super::{Finding, Seen};
use crate::event::What;

pub(super) fn check(seen: &Seen<'_>, findings: &mut Vec<Finding>) {
    for event in seen.events {
        let What::Write(write) = &event.what else { continue };
        if write.verb.actor() == Actor::Owner && write.presented != Some(write.before.epoch) && !write.is_adoption() {
            let presented = write.presented.map_or("no epoch".to_owned(), |epoch| format!("epoch {epoch}"));
            let why = format!("{} with {presented} changed a row of epoch {}", write.verb.name(), write.before.epoch);
            findings.push(Finding::broken(Property::StaleWriteChangesNothing, event, write.task, why));
        }
    }
}

#[cfg(test)]
mod tests {
    use leaseproof_rules::{Status, Verb};

    use super::super::staged::Stage;
    use super::*;

    fn zombie(verb: Verb, to: Status) -> Stage {
        let mut stage = Stage::new();
        stage.claim(0);
        stage.write(Verb::Requeue, 1, Status::Pending, 2);
        stage.claim(1);
        stage.write(verb, 1, to, 3);
        stage
    }

    #[test]
    fn a_zombie_that_completes_or_renews_another_run_is_found() {
        for (verb, to) in [(Verb::Complete, Status::Success), (Verb::Heartbeat, Status::Running)] {
            assert!(zombie(verb, to).broken().contains(&Property::StaleWriteChangesNothing), "{verb:?}");
        }
    }

    #[test]
    fn the_late_result_of_a_run_that_only_the_sweeper_ended_may_be_adopted() {
        let mut stage = Stage::new();
        stage.claim(0);
        stage.write(Verb::Requeue, 1, Status::Pending, 2);
        stage.write(Verb::Complete, 1, Status::Success, 2);
        assert_eq!(stage.findings(), []);
    }
}
