//! [`Property::DecisionStands`]: after a person has decided, no run that was claimed before the decision moves the task
//! (M5).

use leaseproof_rules::{Actor, Epoch, Property, Verb};

use super::{Finding, Seen};
use crate::event::What;

pub(super) fn check(seen: &Seen<'_>, findings: &mut Vec<Finding>) {
    let tasks = seen.story.tasks.len();
    let mut newest_claim: Vec<Epoch> = vec![0; tasks];
    // the newest claim at the moment of the last decision; epochs of claims begin at 1
    let mut decided: Vec<Epoch> = vec![0; tasks];
    for event in seen.events {
        let What::Write(write) = &event.what else { continue };
        let Some(newest) = newest_claim.get_mut(write.task) else { continue };
        match write.verb.actor() {
            Actor::Person => decided[write.task] = *newest,
            Actor::Owner if write.moves() && write.presented.is_some_and(|epoch| epoch <= decided[write.task]) => {
                let why = format!(
                    "{} of the run with epoch {} changed the task after a person had decided over that run",
                    write.verb.name(),
                    write.presented.unwrap_or_default()
                );
                findings.push(Finding::broken(Property::DecisionStands, event, write.task, why));
            }
            _ if write.verb == Verb::Claim => *newest = write.after.epoch,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use leaseproof_rules::Status;

    use super::super::staged::Stage;
    use super::*;

    fn decided(rerun_epoch: Epoch) -> Stage {
        let mut stage = Stage::new();
        stage.claim(0);
        stage.reason = Some("interruptions_exhausted".to_owned());
        stage.write(Verb::Escalate, 1, Status::WaitManual, 2);
        stage.write(Verb::Rerun, 2, Status::Pending, rerun_epoch);
        stage
    }

    #[test]
    fn a_zombie_that_completes_over_a_decision_is_found_even_if_its_write_is_an_adoption() {
        let mut stage = decided(2);
        stage.write(Verb::Complete, 1, Status::Success, 2);
        assert!(stage.broken().contains(&Property::DecisionStands));
    }

    #[test]
    fn the_run_that_the_decision_called_for_may_complete() {
        let mut stage = decided(3);
        stage.claim(1);
        stage.write(Verb::Complete, 4, Status::Success, 4);
        assert_eq!(stage.findings(), []);
    }
}
