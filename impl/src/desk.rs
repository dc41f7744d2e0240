//! The desk: what people see of tasks that wait for them, and how they decide (M5).

use std::collections::BTreeMap;

use leaseproof_rules::{EffectStep, Entry, Epoch, Judgement, Status, effect_step};

use crate::store::{Fenced, Learnt};
use crate::task::{EffectEntry, Event, Listed, Task};
use crate::{Error, Queue, bounds};

/// A task with everything that is known of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shown {
    /// The task.
    pub task: Task,
    /// Its execution record, oldest entry first.
    pub record: Vec<Event>,
    /// Its effect journal, by key.
    pub effects: Vec<EffectEntry>,
    /// What of record and journal can not be read, and is missing above or not as it is stored. Empty, unless another
    /// program has written there.
    pub bad: Vec<String>,
}

/// What a person decides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Resolution {
    /// Run again; the budgets start anew.
    Rerun {
        /// The corrected payload (JSON); `None` keeps the old one.
        input: Option<Vec<u8>>,
        /// For every effect of which only the intent is known: what was found out, [`Entry::Done`] or [`Entry::NotDone`].
        effects: BTreeMap<String, Entry>,
    },
    /// It has failed.
    Fail,
    /// It has succeeded.
    Succeed,
}

/// Who decides, and why. Both go into the record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signed<'a> {
    /// Who.
    pub by: &'a str,
    /// Why.
    pub why: &'a str,
}

impl Queue {
    /// A page of tasks by id, from after `after` on. A row that can not be read is told of, beside the others.
    ///
    /// # Errors
    /// The database's.
    pub async fn list(
        &self,
        status: Option<Status>,
        kind: Option<&str>,
        after: i64,
        page: u32,
    ) -> Result<Listed, Error> {
        self.store().list(status, kind, after, page).await
    }

    /// Whether any task is still to be run, or is running: PENDING, RETRY_WAIT or RUNNING. One statement: a task that moves
    /// from one of these to another meanwhile is not missed.
    ///
    /// # Errors
    /// The database's.
    pub async fn any_open(&self) -> Result<bool, Error> {
        self.store().any_open().await
    }

    /// A task with its whole record. What can not be read of record and journal is told of, and the rest shown.
    ///
    /// # Errors
    /// [`Error::NoSuchTask`], [`Error::BadRow`] if the task's own status or epoch can not be read, or the database's.
    pub async fn show(&self, id: i64) -> Result<Shown, Error> {
        let task = self.store().task(id).await?;
        let mut bad = Vec::new();
        let record = self.store().readable_record(id, &mut bad).await?;
        let effects = self.store().readable_journal(id, &mut bad).await?;
        Ok(Shown { task, record, effects, bad })
    }

    /// Decides about a task in WAIT_MANUAL. Refuses if it has moved on: `expected` is the epoch that the person has seen,
    /// `None` takes the present one.
    ///
    /// # Errors
    /// [`Error::NotResolved`] if the task has moved on: it names what was written of its effects before that was seen;
    /// [`Error::BadInput`] if something is missing, and nothing was changed then. After [`Error::Unknown`] it may have been.
    pub async fn resolve(
        &self,
        id: i64,
        expected: Option<Epoch>,
        resolution: &Resolution,
        signed: Signed<'_>,
    ) -> Result<Task, Error> {
        for (what, value) in [("by", signed.by), ("why", signed.why)] {
            if value.trim().is_empty() {
                return Err(Error::BadInput {
                    what,
                    why: "must not be empty: a decision says who made it and why".into(),
                });
            }
        }
        bounds::text("by", signed.by)?;
        bounds::text("why", signed.why)?;
        if let Resolution::Rerun { input: Some(input), .. } = resolution {
            bounds::json("input", input)?;
        }
        let store = self.store();
        let task = store.task(id).await?;
        let mut settled = Vec::new();
        let moved = |why: String, settled: &[String]| Err(Error::NotResolved { id, why, settled: settled.to_vec() });
        if task.status != Status::WaitManual {
            return moved(format!("it is {}, not {}", task.status, Status::WaitManual), &[]);
        }
        if let Some(epoch) = expected.filter(|epoch| *epoch != task.epoch) {
            return moved(format!("its epoch is {} now, not {epoch}", task.epoch), &[]);
        }
        let by = Fenced { id, epoch: task.epoch, actor: signed.by, note: Some(signed.why) };
        let judgement = match resolution {
            Resolution::Fail => store.mark_failed(by).await?,
            Resolution::Succeed => store.mark_succeeded(by).await?,
            Resolution::Rerun { input, effects } => {
                let journal = store.journal(id).await?;
                let said = found_out(&journal, effects)?;
                let mut record_no = task.record_no;
                for learnt in said {
                    if !store.settle(by, record_no, learnt).await? {
                        return moved("somebody else has decided meanwhile".into(), &settled);
                    }
                    record_no += 1;
                    settled.push(learnt.key.to_owned());
                }
                store.rerun(by, record_no, input.clone()).await?
            }
        };
        match judgement {
            Judgement::Applied { .. } => store.task(id).await,
            other => moved(format!("somebody else has decided meanwhile ({other:?})"), &settled),
        }
    }
}

/// What a person says of the effects, checked against the journal: a re-run must know of each whether to call.
fn found_out<'a>(journal: &'a [EffectEntry], said: &BTreeMap<String, Entry>) -> Result<Vec<Learnt<'a>>, Error> {
    let refuse = |why: String| Err(Error::BadInput { what: "effects", why });
    for (key, entry) in said {
        if !journal.iter().any(|known| known.key == *key) {
            let keys: Vec<_> = journal.iter().map(|known| known.key.as_str()).collect();
            return refuse(format!("{key:?} is not in the task's journal; it has: {}", keys.join(", ")));
        }
        if *entry == Entry::Intent {
            return refuse(format!("{key:?}: accepted: done, not-done"));
        }
    }
    let mut learnt = Vec::new();
    for known in journal {
        match said.get(&known.key) {
            Some(state) => learnt.push(Learnt { key: &known.key, state: *state, rule: known.rule }),
            None if known.state == Entry::Intent && effect_step(Some(known.state), known.rule) == EffectStep::Stop => {
                return refuse(format!(
                    "it is unknown whether {:?} happened: find out, and say {}=done or {}=not-done",
                    known.key, known.key, known.key
                ));
            }
            None => {}
        }
    }
    Ok(learnt)
}
