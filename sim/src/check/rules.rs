//! Every write did what [`judge`] says it does: the SQL and the rules are one, also under concurrency and faults.

use leaseproof_rules::{Counts, Guards, Judgement, Row, Status, Write, judge};

use super::{Finding, Seen};
use crate::db::TaskRow;
use crate::event::What;

pub(super) fn check(seen: &Seen<'_>, findings: &mut Vec<Finding>) {
    let guards = seen.story.without.map_or(Guards::ALL, Guards::without);
    for event in seen.events {
        let What::Write(write) = &event.what else { continue };
        let presented = Write {
            verb: write.verb,
            to: write.after.status,
            // a claim is a compare-and-set on what it has read in the same statement
            epoch: write.presented.unwrap_or(write.before.epoch),
        };
        let row = row(&write.before, write.now_ms);
        let expected = match judge(row, presented, guards) {
            Judgement::Applied { status, epoch } => (status, epoch),
            Judgement::Adopted => (Status::Success, write.before.epoch),
            Judgement::Already => (write.before.status, write.before.epoch),
            Judgement::Refused(refusal) => {
                let why = format!("{} applied where the rules refuse it: {refusal:?}", write.verb.name());
                findings.push(Finding::defect(event.at_ns, write.task, why));
                continue;
            }
        };
        if expected != (write.after.status, write.after.epoch) {
            let why = format!(
                "{} made {} epoch {}, the rules say {} epoch {}",
                write.verb.name(),
                write.after.status,
                write.after.epoch,
                expected.0,
                expected.1
            );
            findings.push(Finding::defect(event.at_ns, write.task, why));
        }
        let (counted, ruled) = (counts(&write.after), counts(&write.before).after(&row, write.verb));
        if counted != ruled {
            let why = format!("{} made {counted:?}, the rules say {ruled:?}", write.verb.name());
            findings.push(Finding::defect(event.at_ns, write.task, why));
        }
    }
}

/// The budgets as they stand.
pub(super) fn counts(row: &TaskRow) -> Counts {
    Counts { attempts: row.attempts, interruptions: row.interruptions }
}

/// The row as the rules see it.
pub(super) fn row(before: &TaskRow, now_ms: i64) -> Row {
    let TaskRow { status, epoch, due_at_ms, lease_until_ms, overrun_at_ms, .. } = *before;
    let lease_live = lease_until_ms.is_some_and(|until| until > now_ms);
    Row {
        status,
        epoch,
        due: due_at_ms <= now_ms,
        lease_live,
        // The executors of a story name no slot, so nothing is ever superseded.
        owner_superseded: false,
        overrun: overrun_at_ms.is_some_and(|at| at < now_ms),
    }
}

#[cfg(test)]
mod tests {
    use leaseproof_rules::Verb;

    use super::super::staged::Stage;

    use super::*;

    #[test]
    fn a_heartbeat_after_the_end_of_the_lease_is_a_defect() {
        let mut stage = Stage::new();
        stage.claim(0);
        stage.now_ms += 30_000;
        stage.write(Verb::Heartbeat, 1, Status::Running, 1);
        let findings = stage.findings();
        assert!(findings.iter().any(|f| f.property.is_none() && f.why.contains("ConditionFails")), "{findings:?}");
    }

    #[test]
    fn a_requeue_under_a_live_lease_is_a_defect() {
        let mut stage = Stage::new();
        stage.claim(0);
        // The stage lets the lease end before a requeue.
        stage.now_ms -= 31_000;
        stage.write(Verb::Requeue, 1, Status::Pending, 2);
        let findings = stage.findings();
        assert!(findings.iter().any(|f| f.property.is_none() && f.why.contains("ConditionFails")), "{findings:?}");
    }

    #[test]
    fn a_loss_that_is_not_counted_is_a_defect() {
        let mut stage = Stage::new();
        stage.claim(0);
        stage.reason = Some("interruptions_exhausted".to_owned());
        stage.write(Verb::Escalate, 1, Status::WaitManual, 2);
        let counted = |stage: &Stage| !stage.findings().iter().any(|f| f.why.contains("made Counts"));
        assert!(counted(&stage), "{:?}", stage.findings());
        let Some(What::Write(write)) = stage.events.last_mut().map(|event| &mut event.what) else {
            panic!("the write comes last");
        };
        write.after.interruptions = 0;
        assert!(!counted(&stage));
    }

    #[test]
    fn an_epoch_that_does_not_grow_is_a_defect() {
        let mut stage = Stage::new();
        stage.claim(0);
        stage.write(Verb::Retry, 1, Status::Pending, 1);
        assert!(stage.findings().iter().any(|f| f.property.is_none() && f.why.contains("the rules say")));
    }
}
