//! [`Property::EffectAtMostOnce`] and [`Property::SuccessMeansEffect`], against the third party's own ledger (E-B, E7).

use leaseproof_rules::{OnUnknown, Property, Status, Verb};

use super::{Finding, Seen};
use crate::event::What;

pub(super) fn check(seen: &Seen<'_>, findings: &mut Vec<Finding>) {
    let mut counts = vec![0; seen.story.tasks.len()];
    for event in seen.events {
        match &event.what {
            What::Effect { task, count, token } => {
                if let Some(slot) = counts.get_mut(*task) {
                    *slot = *count;
                }
                if *count > 1 && on_unknown(seen, *task) != Some(OnUnknown::Repeat) {
                    let why = format!("the call with token {token} made it happen {count} times");
                    findings.push(Finding::broken(Property::EffectAtMostOnce, event, *task, why));
                }
            }
            What::Write(write) if write.verb == Verb::Complete && write.after.status == Status::Success => {
                let missed = on_unknown(seen, write.task).is_some_and(|on_unknown| on_unknown != OnUnknown::Skip);
                if missed && counts.get(write.task) == Some(&0) {
                    let why = "the task is in SUCCESS and its effect has not happened";
                    findings.push(Finding::broken(Property::SuccessMeansEffect, event, write.task, why));
                }
            }
            _ => {}
        }
    }
}

/// What the task's effect is declared to do where nothing settles it; `None` if the task has no effect.
fn on_unknown(seen: &Seen<'_>, task: usize) -> Option<OnUnknown> {
    Some(seen.story.tasks.get(task)?.effect.as_ref()?.rule.on_unknown)
}

#[cfg(test)]
mod tests {
    use super::super::staged::Stage;
    use super::*;

    #[test]
    fn an_effect_that_happens_twice_is_found_unless_the_policy_allows_repeats() {
        for (line, broken) in [("", true), ("on_unknown = \"repeat\"", false), ("on_unknown = \"skip\"", true)] {
            let mut stage = Stage::bare(line);
            stage.effect(1);
            stage.effect(2);
            assert_eq!(stage.broken().contains(&Property::EffectAtMostOnce), broken, "{line}");
        }
    }

    #[test]
    fn a_success_without_the_effect_is_found_unless_the_policy_allows_misses() {
        for (line, broken) in [("", true), ("on_unknown = \"repeat\"", true), ("on_unknown = \"skip\"", false)] {
            let mut stage = Stage::bare(line);
            stage.claim(0);
            stage.write(Verb::Complete, 1, Status::Success, 1);
            assert_eq!(stage.broken().contains(&Property::SuccessMeansEffect), broken, "{line}");
        }
    }
}
