//! [`Property::AttemptsAreBounded`], counted from the writes themselves, not from the row's counters (M2, A4).
//! A person's decision starts new budgets. And [`Property::OnlyFailuresUseUpAttempts`], counted likewise.

use leaseproof_rules::{Actor, Property, Reason, Verb};

use super::{Finding, Seen};
use crate::event::What;

pub(super) fn check(seen: &Seen<'_>, findings: &mut Vec<Finding>) {
    let policy = &seen.story.policy;
    let mut spent = vec![(0_u32, 0_u32); seen.story.tasks.len()];
    for event in seen.events {
        let What::Write(write) = &event.what else { continue };
        let Some((failures, losses)) = spent.get_mut(write.task) else { continue };
        match write.verb {
            Verb::Retry | Verb::GiveUp => *failures += 1,
            Verb::Requeue => *losses += 1,
            verb if verb.actor() == Actor::Person => (*failures, *losses) = (0, 0),
            _ => {}
        }
        let over = [
            (*failures > policy.max_attempts, *failures, "failed attempts", policy.max_attempts),
            (*losses > policy.max_interruptions, *losses, "automatic reclaims", policy.max_interruptions),
        ];
        // A person's decision about a task leaves the reason for which it came there.
        let is_automatic = write.verb.actor() != Actor::Person;
        let gives_out =
            is_automatic && write.moves() && write.after.reason.as_deref() == Some(Reason::AttemptsExhausted.name());
        if gives_out && *failures < policy.max_attempts {
            let why =
                format!("attempts exhausted after {failures} failures, the policy allows {}", policy.max_attempts);
            findings.push(Finding::broken(Property::OnlyFailuresUseUpAttempts, event, write.task, why));
        }
        for (is_over, count, what, budget) in over {
            if is_over {
                let why = format!("{count} {what}, the policy allows {budget}");
                findings.push(Finding::broken(Property::AttemptsAreBounded, event, write.task, why));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use leaseproof_rules::Status;

    use super::super::staged::Stage;
    use super::*;

    fn again_and_again(verb: Verb, times: u64) -> Stage {
        let mut stage = Stage::new();
        for round in 0..times {
            stage.claim(0);
            stage.write(verb, 2 * round + 1, Status::Pending, 2 * round + 2);
        }
        stage
    }

    #[test]
    fn attempts_that_losses_have_used_up_are_found() {
        for (verb, broken) in [(Verb::Requeue, true), (Verb::Retry, false)] {
            let mut stage = again_and_again(verb, 1);
            stage.claim(2);
            stage.reason = Some(Reason::AttemptsExhausted.name().to_owned());
            stage.write(if broken { Verb::Escalate } else { Verb::GiveUp }, 3, Status::WaitManual, 4);
            assert_eq!(stage.broken().contains(&Property::OnlyFailuresUseUpAttempts), broken, "{verb:?}");
        }
    }

    #[test]
    fn what_a_person_makes_of_exhausted_attempts_is_no_violation() {
        let mut stage = again_and_again(Verb::Retry, 1);
        stage.claim(2);
        stage.reason = Some(Reason::AttemptsExhausted.name().to_owned());
        stage.write(Verb::GiveUp, 3, Status::WaitManual, 4);
        stage.write(Verb::MarkFailed, 4, Status::Fail, 5);
        assert_eq!(stage.broken(), []);
    }

    #[test]
    fn one_retry_or_reclaim_too_many_is_found() {
        for (verb, budget) in [(Verb::Retry, 2), (Verb::Requeue, 1)] {
            assert!(!again_and_again(verb, budget).broken().contains(&Property::AttemptsAreBounded));
            assert!(again_and_again(verb, budget + 1).broken().contains(&Property::AttemptsAreBounded), "{verb:?}");
        }
    }
}
