//! The queue's own execution record tells the same story as the rows did (M5).

use leaseproof_rules::{Epoch, Status};

use super::{Finding, Seen};
use crate::event::What;

/// An entry of the execution record that moved the task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordEntry {
    /// What was recorded.
    pub verb: String,
    /// The status before.
    pub from: Option<Status>,
    /// The status after.
    pub to: Status,
    /// The row's epoch after.
    pub epoch: Epoch,
}

pub(super) fn check(seen: &Seen<'_>, findings: &mut Vec<Finding>) {
    for (task, record) in seen.record.iter().enumerate() {
        let recorded: Vec<&RecordEntry> = record.iter().filter(|entry| moved(entry.from, entry.to)).collect();
        let observed = seen.events.iter().filter_map(|event| match &event.what {
            What::Write(write) if write.task == task && write.before.status != write.after.status => {
                let entry = RecordEntry {
                    verb: write.verb.name().to_owned(),
                    from: Some(write.before.status),
                    to: write.after.status,
                    epoch: write.after.epoch,
                };
                Some((event.at_ns, entry))
            }
            _ => None,
        });
        let observed: Vec<_> = observed.collect();
        for (index, (at_ns, entry)) in observed.iter().enumerate() {
            if recorded.get(index) != Some(&entry) {
                let why = format!("the record says {:?}, the row did {entry:?}", recorded.get(index));
                findings.push(Finding::defect(*at_ns, task, why));
                break;
            }
        }
        if recorded.len() > observed.len() {
            let why = format!("the record says {:?}, the row did no such thing", recorded[observed.len()]);
            findings.push(Finding::defect(u64::MAX, task, why));
        }
    }
}

fn moved(from: Option<Status>, to: Status) -> bool {
    from.is_some_and(|from| from != to)
}

#[cfg(test)]
mod tests {
    use leaseproof_rules::Verb;

    use super::super::staged::Stage;
    use super::*;

    fn done() -> Stage {
        let mut stage = Stage::new();
        stage.claim(0);
        stage.write(Verb::Complete, 1, Status::Success, 1);
        stage
    }

    #[test]
    fn a_record_that_lacks_an_entry_or_makes_one_up_is_a_defect() {
        let mut stage = done();
        stage.record.pop();
        assert_eq!(stage.findings().len(), 1);
        let mut stage = done();
        let again = stage.record[0].clone();
        stage.record.push(again);
        assert_eq!(stage.findings().len(), 1);
        let mut stage = done();
        stage.record[0].epoch = 7;
        assert_eq!(stage.findings()[0].property, None);
    }
}
