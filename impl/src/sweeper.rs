//! The sweeper: finds RUNNING tasks that need a decision, decides, and writes it down. Any number of processes may sweep.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use leaseproof_rules::{Decision, Judgement, Observation, Reason, UnknownEffect, decide_under};

use crate::queries::{Question, StatusQueries};
use crate::store::{Fenced, Learnt, LostTask};
use crate::{Error, Queue, Store};

/// Tasks that one statement reads.
const PAGE: u32 = 200;

/// What one sweep did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SweepReport {
    /// Tasks that were looked at.
    pub seen: u64,
    /// Taken back from a lost owner.
    pub requeued: u64,
    /// Handed to a person.
    pub escalated: u64,
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

    /// Sweeps until `shutdown` comes true. A database that is away for a while is waited for.
    ///
    /// # Errors
    /// [`Error::NotMigrated`] or [`Error::NewerSchema`].
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        let mut shutdown = pin!(shutdown);
        loop {
            match self.sweep_once().await {
                Ok(report) if report.seen > 0 => tracing::info!(?report, "sweep"),
                Ok(_) => {}
                Err(error @ (Error::NotMigrated { .. } | Error::NewerSchema { .. })) => return Err(error),
                Err(error) => tracing::warn!(%error, "sweep"),
            }
            tokio::select! {
                biased;
                () = &mut shutdown => return Ok(()),
                () = tokio::time::sleep(self.every) => {}
            }
        }
    }

    /// Looks once at every task that needs a decision now.
    ///
    /// # Errors
    /// The database's, where nothing could be read. What could not be written is in the report, and is tried again by
    /// the next sweep.
    pub async fn sweep_once(&self) -> Result<SweepReport, Error> {
        let store = self.queue.store();
        let mut report = SweepReport::default();
        let mut after = 0;
        loop {
            let page = store.lost_tasks(after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(report) };
            after = last.id;
            let whole = page.len() == PAGE as usize;
            for task in page {
                report.seen += 1;
                match self.settle(store, task).await {
                    Ok(Settled::Requeued) => report.requeued += 1,
                    Ok(Settled::Escalated) => report.escalated += 1,
                    Ok(Settled::Waits) => report.waiting += 1,
                    Ok(Settled::Overtaken) => report.overtaken += 1,
                    Err(error) => {
                        report.failed += 1;
                        tracing::warn!(%error, "sweep");
                    }
                }
            }
            if !whole {
                return Ok(report);
            }
        }
    }

    async fn settle(&self, store: &Store, mut task: LostTask) -> Result<Settled, Error> {
        let policy = match task.policy.clone() {
            Ok(policy) => policy,
            Err(why) => return self.escalate(store, &task, Reason::NotRetryable, &why).await,
        };
        let seen_as = format!("{:?}", task.signal);
        let mut unknown = std::mem::take(&mut task.unknown);
        unknown.reverse();
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
                            if !store.learn(self.fenced(&task, None), task.record_no, learnt).await? {
                                return Ok(Settled::Overtaken);
                            }
                            task.record_no += 1;
                        }
                        unknown.pop();
                        answer = None;
                        continue;
                    }
                    let by = self.fenced(&task, Some(&seen_as));
                    let judgement = store.requeue(by, task.record_no, delay_ms, learnt).await?;
                    return Ok(settled(judgement, Settled::Requeued));
                }
                Decision::Escalate(reason) | Decision::Fail(reason) => {
                    // What the third party said is not lost with the decision that it did not change.
                    if let Some(effect) = &next
                        && let Some(state) = self.queries.learnt(&task.kind, &effect.key, effect.rule, answer)
                    {
                        let learnt = Learnt { key: &effect.key, state, rule: effect.rule };
                        if !store.learn(self.fenced(&task, None), task.record_no, learnt).await? {
                            return Ok(Settled::Overtaken);
                        }
                        task.record_no += 1;
                    }
                    return self.escalate(store, &task, reason, &seen_as).await;
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

enum Settled {
    Requeued,
    Escalated,
    Waits,
    Overtaken,
}

fn settled(judgement: Judgement, applied: Settled) -> Settled {
    match judgement {
        Judgement::Applied { .. } => applied,
        _ => Settled::Overtaken,
    }
}
