//! The sweeper: finds RUNNING tasks that need a decision, decides, and writes it down. Any number of processes may sweep.

mod asking;

use std::future::Future;
use std::pin::{Pin, pin};
use std::time::Duration;

use leaseproof_rules::{Decision, Epoch, Judgement, Observation, Reason, Signal, UnknownEffect, decide_under};

use crate::queries::{Question, StatusQueries};
use crate::store::{Fenced, Learnt, LostTask, UnknownInJournal};
use crate::{Error, Queue, Store};
use asking::Asking;

/// Tasks that one statement reads.
const PAGE: u32 = 200;

/// It checks whether the tables are still those of its build at every look of this number.
const SCHEMA_CHECK: u64 = 10;

/// Between two looks, so that answers are heard also by a sweeper that is told to look without a pause.
const LEAST_INTERVAL: Duration = Duration::from_millis(1);

/// What one sweep did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SweepReport {
    /// Tasks that were looked at.
    pub seen: u64,
    /// Taken back from a lost owner.
    pub requeued: u64,
    /// Handed to a person.
    pub escalated: u64,
    /// Leases that ended impossibly late, after the database's clock was set back: cut to their length from now on.
    pub cut: u64,
    /// Left for a later sweep: the third party did not answer.
    pub waiting: u64,
    /// Somebody else was faster, or an owner came back with a result: nothing was changed.
    pub overtaken: u64,
    /// Not decided, because the database did not answer.
    pub failed: u64,
}

/// Sweeps at an interval. Cheap to clone.
#[derive(Clone)]
pub struct Sweeper {
    queue: Queue,
    every: Duration,
    queries: StatusQueries,
    name: String,
}

impl Sweeper {
    /// A sweeper that looks every so often, on its monotonic clock.
    pub fn new(queue: Queue, every: Duration) -> Sweeper {
        Sweeper { queue, every, queries: StatusQueries::new(), name: "sweeper".into() }
    }

    /// The status queries it can make (E2).
    pub fn queries(mut self, queries: StatusQueries) -> Sweeper {
        self.queries = queries;
        self
    }

    /// What the execution record calls it (default `sweeper`).
    pub fn name(mut self, name: impl Into<String>) -> Sweeper {
        self.name = name.into();
        self
    }

    /// Sweeps until `shutdown` comes true. A database that is away for a while is waited for. While third parties are
    /// asked the sweeps go on: an answer that does not come holds up the task that needs it, and no other.
    ///
    /// A shutdown ends a sweep between two tasks. Questions that are under way are dropped; what would have followed from
    /// their answers is left to whoever sweeps next.
    ///
    /// # Errors
    /// What [needs an operator](Error::needs_an_operator): tables that do not fit any more, a file that is gone.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        let mut stop = Stop { told: false, by: pin!(shutdown) };
        let mut asking = Asking::new(&self);
        for looks in 1u64.. {
            let mut report = SweepReport::default();
            let looked = match looks % SCHEMA_CHECK {
                0 => self.look_as_migrated(&mut asking, &mut report, &mut stop).await,
                _ => self.look(&mut asking, &mut report, &mut stop).await,
            };
            match looked {
                Ok(()) => {}
                Err(error) if error.needs_an_operator() => return Err(error),
                Err(error) => tracing::warn!(%error, "sweep"),
            }
            let mut next_look = pin!(tokio::time::sleep(self.every.max(LEAST_INTERVAL)));
            loop {
                tokio::select! {
                    biased;
                    () = stop.wait() => return Ok(()),
                    () = &mut next_look => break,
                    Some((task, settled)) = asking.next() => report.add(task, settled),
                }
            }
            if report != SweepReport::default() {
                tracing::info!(?report, "sweep");
            }
        }
        Ok(())
    }

    /// Looks once at every task that needs a decision now. Those for which a third party has to be asked come last, and
    /// beside each other.
    ///
    /// # Errors
    /// The database's, where nothing could be read. What could not be written is in the report, and is tried again by
    /// the next sweep.
    pub async fn sweep_once(&self) -> Result<SweepReport, Error> {
        let mut stop = Stop { told: false, by: pin!(std::future::pending()) };
        let (mut asking, mut report) = (Asking::new(self), SweepReport::default());
        self.look(&mut asking, &mut report, &mut stop).await?;
        while let Some((task, settled)) = asking.next().await {
            report.add(task, settled);
        }
        Ok(report)
    }

    /// Looks, once it has seen that the tables are still those of this build.
    async fn look_as_migrated(
        &self,
        asking: &mut Asking<'_>,
        report: &mut SweepReport,
        stop: &mut Stop<'_, impl Future<Output = ()>>,
    ) -> Result<(), Error> {
        tokio::select! {
            biased;
            () = stop.wait() => return Ok(()),
            checked = self.queue.store().check_schema() => checked?,
        }
        self.look(asking, report, stop).await
    }

    /// Decides on every task that needs it and can be decided on without asking; the others are put to those that ask.
    async fn look(
        &self,
        asking: &mut Asking<'_>,
        report: &mut SweepReport,
        stop: &mut Stop<'_, impl Future<Output = ()>>,
    ) -> Result<(), Error> {
        let mut after = 0;
        loop {
            let page = tokio::select! {
                biased;
                () = stop.wait() => return Ok(()),
                page = self.queue.store().lost_tasks(after, PAGE) => page?,
            };
            let Some(last) = page.last() else { return Ok(()) };
            after = last.id;
            let whole = page.len() == PAGE as usize;
            for task in page {
                if stop.is_told().await {
                    return Ok(());
                }
                let mut case = Case::of(task);
                if asking.has(case.claim()) {
                    continue;
                }
                report.seen += 1;
                match self.settle(&mut case, false).await {
                    Ok(Settled::Asks) => asking.push(case),
                    settled => report.add(case.task.id, settled),
                }
            }
            if !whole {
                return Ok(());
            }
        }
    }

    /// Decides, as far as it goes: where a third party has to be asked first, only if `may_ask`. What was decided of other
    /// effects until then is kept in `case`.
    async fn settle(&self, case: &mut Case, may_ask: bool) -> Result<Settled, Error> {
        let store = self.queue.store();
        let Case { task, unknown } = case;
        if task.ends_too_late && task.signal == Signal::Beating {
            let why = Some("it ended impossibly late: the database's clock was set back");
            return Ok(match store.cut_lease(self.fenced(task, why), task.record_no).await? {
                true => Settled::Cut,
                false => Settled::Overtaken,
            });
        }
        let policy = match task.policy.clone() {
            Ok(policy) => policy,
            Err(why) => return self.escalate(store, task, Reason::NotRetryable, &why).await,
        };
        let seen_as = format!("{:?}", task.signal);
        let mut answer = None;
        loop {
            let next = unknown.last().cloned();
            let seen = Observation {
                signal: task.signal,
                running_ms: task.running_ms,
                attempts: task.attempts,
                interruptions: task.interruptions,
                unknown: next.as_ref().map(|effect| UnknownEffect {
                    rule: self.queries.able(&task.kind, &effect.key, effect.rule),
                    answer,
                    asked_ms: task.lost_ms,
                }),
                progress: None,
            };
            match decide_under(&policy, &seen, store.guards()) {
                Decision::Wait => return Ok(Settled::Waits),
                Decision::Ask if !may_ask => return Ok(Settled::Asks),
                Decision::Ask => {
                    let Some(effect) = &next else { return Ok(Settled::Waits) };
                    let question = Question::about(task.id, &effect.key, task.epoch, store.guards());
                    answer = Some(self.queries.ask(&task.kind, question, store.deadline()).await);
                }
                Decision::Requeue { delay_ms, learnt } => {
                    let learnt = next.as_ref().zip(learnt).map(|(effect, state)| Learnt {
                        key: &effect.key,
                        state,
                        rule: effect.rule,
                    });
                    if unknown.len() > 1 {
                        if let Some(learnt) = learnt {
                            if !store.learn(self.fenced(task, None), task.record_no, learnt).await? {
                                return Ok(Settled::Overtaken);
                            }
                            task.record_no += 1;
                        }
                        unknown.pop();
                        answer = None;
                        continue;
                    }
                    let by = self.fenced(task, Some(&seen_as));
                    let judgement = store.requeue(by, task.record_no, delay_ms, learnt).await?;
                    return Ok(settled(judgement, Settled::Requeued));
                }
                // Sagas are not supported here: what can not go on goes to a person.
                Decision::Escalate(reason) | Decision::Fail(reason) | Decision::Compensate { reason, .. } => {
                    // What the third party said is not lost with the decision that it did not change.
                    if let Some(effect) = &next
                        && let Some(state) = self.queries.learnt(&task.kind, &effect.key, effect.rule, answer)
                    {
                        let learnt = Learnt { key: &effect.key, state, rule: effect.rule };
                        if !store.learn(self.fenced(task, None), task.record_no, learnt).await? {
                            return Ok(Settled::Overtaken);
                        }
                        task.record_no += 1;
                    }
                    return self.escalate(store, task, reason, &seen_as).await;
                }
            }
        }
    }

    async fn escalate(&self, store: &Store, task: &LostTask, reason: Reason, why: &str) -> Result<Settled, Error> {
        let judgement = store.escalate(self.fenced(task, Some(why)), task.record_no, reason).await?;
        Ok(settled(judgement, Settled::Escalated))
    }

    fn fenced<'a>(&'a self, task: &LostTask, note: Option<&'a str>) -> Fenced<'a> {
        Fenced { id: task.id, epoch: task.epoch, actor: &self.name, note }
    }
}

impl SweepReport {
    fn add(&mut self, task: i64, settled: Result<Settled, Error>) {
        match settled {
            Ok(Settled::Requeued) => self.requeued += 1,
            Ok(Settled::Escalated) => self.escalated += 1,
            Ok(Settled::Cut) => self.cut += 1,
            Ok(Settled::Waits | Settled::Asks) => self.waiting += 1,
            Ok(Settled::Overtaken) => self.overtaken += 1,
            Err(error) => {
                self.failed += 1;
                tracing::warn!(task, %error, "sweep");
            }
        }
    }
}

enum Settled {
    Requeued,
    Escalated,
    /// Its lease was cut; what else there is to decide, the next sweep does.
    Cut,
    Waits,
    Overtaken,
    /// The third party has to be asked first.
    Asks,
}

/// A task on the way to its decision.
struct Case {
    task: LostTask,
    /// The effects that nothing was decided about yet; the last is next.
    unknown: Vec<UnknownInJournal>,
}

impl Case {
    fn of(mut task: LostTask) -> Case {
        let mut unknown = std::mem::take(&mut task.unknown);
        unknown.reverse();
        Case { task, unknown }
    }

    fn claim(&self) -> (i64, Epoch) {
        (self.task.id, self.task.epoch)
    }

    fn next(&self) -> Option<&UnknownInJournal> {
        self.unknown.last()
    }
}

/// What tells a sweeper to end. May be asked again after it has come true.
struct Stop<'a, F> {
    told: bool,
    by: Pin<&'a mut F>,
}

impl<F: Future<Output = ()>> Stop<'_, F> {
    async fn wait(&mut self) {
        if !self.told {
            self.by.as_mut().await;
            self.told = true;
        }
    }

    async fn is_told(&mut self) -> bool {
        tokio::select! {
            biased;
            () = self.wait() => true,
            () = std::future::ready(()) => false,
        }
    }
}

fn settled(judgement: Judgement, applied: Settled) -> Settled {
    match judgement {
        Judgement::Applied { .. } => applied,
        _ => Settled::Overtaken,
    }
}
