//! One run of one task: from the claim to the report.

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use leaseproof_rules::{Decision, Judgement, Observation, Policy, Reason, Signal, Status, UnknownEffect, decide_under};
use tokio::sync::watch;
use tokio::task::JoinError;
use tokio::time::Instant;

use super::end::{OnEnd, RunEnd};
use super::lease::Lease;
use super::{Handlers, Shared};
use crate::ctx::{Ctx, Run, TaskError};
use crate::effects::Effects;
use crate::queries::Question;
use crate::store::{Learnt, waiting};
use crate::task::Claimed;
use crate::{Error, bounds};

/// Between two tries of a report whose outcome is unknown.
const PAUSE: Duration = Duration::from_secs(1);

/// How often a report is tried at least, whatever the clock says: a process that stood still for longer than its lease
/// still has to say what it did.
const TRIES: u32 = 20;

/// Runs a claimed task and reports. Never fails: what can not be reported is left to the sweeper.
pub(super) async fn run(shared: Arc<Shared>, task: Claimed, lease: Lease, release: watch::Receiver<bool>) {
    let policy = task.policy.clone();
    let run = Arc::new(Run {
        store: shared.store.clone(),
        owner: shared.boot_id.clone(),
        task,
        lease,
        effects: Effects::default(),
        release,
        ended: OnceLock::new(),
    });
    // A clone of the context may live longer, in a task that the handler has spawned: the lease is not kept for it.
    let _ends = AtEnd(run.clone(), shared.on_end.clone());
    let policy = match policy {
        Ok(policy) => policy,
        // There is nothing to run it by; a person can give it settings that work.
        Err(why) => return give_up(&run, Status::WaitManual, Reason::NotRetryable, &why).await,
    };
    let Some(handler) = handler(&shared.handlers, &run.task.kind) else {
        let why = format!("no handler for the kind {:?} in this worker", run.task.kind);
        return failed(&shared, &run, &policy, TaskError::BadInput(why)).await;
    };
    // A first run has nothing in its journal; only a later one has to look.
    if run.task.epoch > 1 {
        match read_journal(&run).await {
            Ok(()) => {}
            Err(error) => {
                let error = TaskError::Retryable(error.to_string());
                return failed(&shared, &run, &policy, error).await;
            }
        }
    }
    let ctx = Ctx::new(run.clone());
    // Called inside the new task: the function may panic before it returns its future.
    let mut handle = tokio::spawn(async move { handler(ctx).await });
    let cancelled = tokio::select! {
        biased;
        // A handler that has finished reports, whatever has become of the lease.
        ended = &mut handle => return report(&shared, &run, &policy, ended).await,
        () = run.lease.lost() => Cancelled::LeaseLost,
        () = told(&run) => Cancelled::Shutdown,
    };
    handle.abort();
    // A handler that blocks its thread is only gone when it comes to its next `.await`: until then its task must not go
    // to another worker, nor its slot to another task. It may finish instead; what it brings is not thrown away.
    match (handle.await, cancelled) {
        (Err(error), Cancelled::LeaseLost) if error.is_cancelled() => {
            run.effects.close();
            tracing::warn!(task = run.task.id, epoch = run.task.epoch, "lease lost, run cancelled");
        }
        (Err(error), Cancelled::Shutdown) if error.is_cancelled() => put_back(&run).await,
        (ended, _) => report(&shared, &run, &policy, ended).await,
    }
}

/// Why a handler is not let finish.
enum Cancelled {
    LeaseLost,
    Shutdown,
}

async fn report(shared: &Shared, run: &Run, policy: &Policy, ended: Result<Result<String, TaskError>, JoinError>) {
    // From here on nothing more is called, by whoever still has the handler's context.
    let open = run.effects.close();
    match ended {
        Ok(Ok(result)) => match open {
            None => match bounds::json("result", result.as_bytes()) {
                Ok(()) => complete(run, policy, &result).await,
                // Its work is done, and nobody could read what it brought: a person has to see it.
                Err(error) => failed(shared, run, policy, TaskError::BadInput(error.to_string())).await,
            },
            // The handler has dropped the call, or what it was told of it: SUCCESS would claim what nobody knows.
            Some(key) => {
                let why = "the handler ended without knowing".to_owned();
                failed(shared, run, policy, TaskError::OutcomeUnknown { key, why }).await;
            }
        },
        Ok(Err(error)) => failed(shared, run, policy, error).await,
        Err(error) => {
            failed(shared, run, policy, TaskError::Retryable(format!("handler died: {error}"))).await;
        }
    }
}

/// Waits until it is said that everything has to be put back.
async fn told(run: &Run) {
    if run.release.clone().wait_for(|now| *now).await.is_err() {
        // The worker is gone without a word: its leases are lost, and that is what ends the handler.
        std::future::pending::<()>().await;
    }
}

/// When the run has ended, whatever its end, the lease is out of the books, and who wants to hear of it hears.
struct AtEnd(Arc<Run>, Option<OnEnd>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        let AtEnd(run, on_end) = self;
        run.lease.leave();
        if let Some(on_end) = on_end {
            let (status, why) = run.ended.get().cloned().map_or((None, None), |(status, why)| (Some(status), why));
            on_end(RunEnd { task: run.task.id, epoch: run.task.epoch, status, why });
        }
    }
}

fn handler(handlers: &Handlers, kind: &str) -> Option<super::Handler> {
    handlers.get(kind).cloned()
}

async fn read_journal(run: &Run) -> Result<(), Error> {
    let entries = persist(run, Duration::ZERO, || run.store.journal(run.task.id)).await?;
    run.effects.load(entries);
    Ok(())
}

/// Tries until the outcome is known, for at least `at_least` and [`TRIES`] tries. Once the grace of a shutdown is over a
/// try that is under way is the last.
async fn persist<T, Fut>(run: &Run, at_least: Duration, mut write: impl FnMut() -> Fut) -> Result<T, Error>
where
    Fut: Future<Output = Result<T, Error>>,
{
    let begun = Instant::now();
    let mut tries = 0;
    loop {
        match write().await {
            Err(error) if error.is_transient() && (tries < TRIES || begun.elapsed() < at_least) => {
                tries += 1;
                tracing::warn!(task = run.task.id, epoch = run.task.epoch, tries, %error, "not reported yet");
                tokio::select! {
                    biased;
                    () = told(run) => return Err(error),
                    () = tokio::time::sleep(PAUSE) => {}
                }
            }
            other => return other,
        }
    }
}

async fn complete(run: &Run, policy: &Policy, result: &str) {
    let patience = Duration::from_millis(policy.lease_ms);
    match persist(run, patience, || run.store.complete(run.fenced(None), result)).await {
        Ok(Judgement::Refused(refusal)) => {
            tracing::warn!(task = run.task.id, epoch = run.task.epoch, ?refusal, "late result");
            let late = || run.store.late_result(run.fenced(Some(result)));
            written(run, "late_result", persist(run, patience, late).await.map(|()| Judgement::Already));
        }
        other => reported(run, "complete", Status::Success, None, other),
    }
}

/// The run has failed: decides what follows, as the sweeper would.
async fn failed(shared: &Shared, run: &Run, policy: &Policy, error: TaskError) {
    let retryable = match &error {
        TaskError::LeaseLost => {
            tracing::warn!(task = run.task.id, epoch = run.task.epoch, "lease lost, run stopped");
            return;
        }
        TaskError::BadInput(_) => false,
        TaskError::Coded { code, .. } => policy.retries(code),
        TaskError::Retryable(_) | TaskError::OutcomeUnknown { .. } => true,
    };
    let why = error.to_string();
    let mut unknown = run.effects.unknown();
    let mut answer = None;
    let began = Instant::now();
    loop {
        let next = unknown.first_key_value().map(|(key, rule)| (key.clone(), *rule));
        let seen = Observation {
            signal: Signal::Failed { retryable },
            running_ms: 0,
            attempts: run.task.attempts,
            interruptions: run.task.interruptions,
            unknown: next.as_ref().map(|(key, rule)| UnknownEffect {
                rule: shared.queries.able(&run.task.kind, key, *rule),
                answer,
                asked_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            }),
            progress: None,
        };
        match decide_under(policy, &seen, run.store.guards()) {
            Decision::Ask => {
                let Some((key, _)) = next else { return };
                let question = Question::about(run.task.id, &key, run.task.epoch, run.store.guards());
                answer = Some(shared.queries.ask(&run.task.kind, question, run.store.deadline()).await);
            }
            Decision::Wait => {
                // The third party does not answer. The lease is kept while we ask again; if it is lost, the sweeper asks.
                if !run.lease.may_act() {
                    return;
                }
                tokio::select! {
                    biased;
                    // A shutdown does not wait for a third party: the lease ends, and the sweeper asks.
                    () = told(run) => return,
                    () = tokio::time::sleep(PAUSE) => {}
                }
                answer = None;
            }
            Decision::Requeue { delay_ms, learnt } => {
                let learnt = next.as_ref().zip(learnt).map(|((key, rule), state)| Learnt { key, state, rule: *rule });
                if unknown.len() > 1 {
                    if let Some(learnt) = learnt {
                        journal(run, learnt).await;
                    }
                    unknown.pop_first();
                    answer = None;
                    continue;
                }
                let retry = || run.store.retry(run.fenced(Some(&why)), delay_ms, learnt);
                let to = waiting(delay_ms);
                return reported(run, "retry", to, Some(&why), persist(run, Duration::ZERO, retry).await);
            }
            // Sagas are not supported here: what can not go on goes to a person.
            end @ (Decision::Escalate(reason) | Decision::Fail(reason) | Decision::Compensate { reason, .. }) => {
                // What the third party said is not lost with the decision that it did not change.
                if let Some((key, rule)) = &next
                    && let Some(state) = shared.queries.learnt(&run.task.kind, key, *rule, answer)
                {
                    journal(run, Learnt { key, state, rule: *rule }).await;
                }
                let to = if end == Decision::Fail(reason) { Status::Fail } else { Status::WaitManual };
                return give_up(run, to, reason, &why).await;
            }
        }
    }
}

async fn journal(run: &Run, learnt: Learnt<'_>) {
    let write = || run.store.outcome(run.fenced(None), learnt, None);
    written(run, "outcome", persist(run, Duration::ZERO, write).await);
}

async fn give_up(run: &Run, to: Status, reason: Reason, why: &str) {
    let write = || run.store.give_up(run.fenced(Some(why)), to, reason);
    reported(run, "give_up", to, Some(why), persist(run, Duration::ZERO, write).await);
}

/// Shutdown: the task goes back unharmed, unless a call may be on its way; then its lease ends and the sweeper decides.
async fn put_back(run: &Run) {
    if run.effects.close().is_none() && run.effects.unknown().is_empty() {
        let why = "shutdown";
        reported(run, "release", Status::Pending, Some(why), run.store.release(run.fenced(Some(why))).await);
    }
}

/// A write that ends the run, by which the task has come to the status `to` unless it was refused or is unknown.
fn reported(run: &Run, what: &str, to: Status, why: Option<&str>, result: Result<Judgement, Error>) {
    if let Ok(Judgement::Applied { .. } | Judgement::Already | Judgement::Adopted) = result {
        // One report a run: the first is the only one.
        let _ = run.ended.set((to, why.map(str::to_owned)));
    }
    written(run, what, result);
}

fn written(run: &Run, what: &str, result: Result<Judgement, Error>) {
    match result {
        Ok(judgement) => tracing::debug!(task = run.task.id, epoch = run.task.epoch, ?judgement, "{what}"),
        Err(error) => {
            tracing::error!(task = run.task.id, epoch = run.task.epoch, %error, "{what} not reported: left to the sweeper");
        }
    }
}
