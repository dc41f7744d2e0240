//! How a worker ends.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leaseproof_queue::rules::{Entry, OnUnknown, Policy, Reason, Status};
use leaseproof_queue::{CallError, Sweeper, Worker};

use crate::common::Db;
use crate::support::{
    A_WHILE, NO_INSTRUMENT, at_once, ending, gate, put, rule, short_lease, start, sweeping, until_status, verbs,
    within, worker,
};
use crate::third_party::{ThirdParty, no_answer};

pub async fn within_the_grace_a_handler_finishes_and_its_lease_is_renewed(db: &Db) {
    let queue = db.queue().await;
    let policy = short_lease();
    let id = put(&queue, policy.clone()).await;
    sweeping(db).await;
    let (door, mut keeper) = gate();
    let worker = start(
        worker(db, move |_| {
            let door = door.clone();
            async move {
                door.pass().await;
                Ok("1".into())
            }
        })
        .await,
    );
    keeper.arrival().await;
    let ended = worker.say_stop();
    let later = put(&queue, at_once()).await;
    tokio::time::sleep(Duration::from_millis(policy.lease_ms * 3 / 2)).await;
    assert!(!ended.is_finished());
    keeper.open();
    within(ended).await.unwrap().unwrap();
    let shown = queue.show(id).await.unwrap();
    assert_eq!((shown.task.status, verbs(&shown)), (Status::Success, vec!["enqueue", "claim", "complete"]));
    assert_eq!(verbs(&queue.show(later).await.unwrap()), ["enqueue"], "nothing more is claimed");
}

pub async fn after_the_grace_the_task_goes_back_unharmed(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, Policy::default()).await;
    let (door, mut keeper) = gate();
    let (ends, mut ended) = ending();
    let first = start(
        worker(db, move |_| {
            let (door, ends) = (door.clone(), ends());
            async move {
                let _ends = ends;
                door.pass().await;
                Ok("\"first\"".into())
            }
        })
        .await
        .grace(Duration::from_millis(50)),
    );
    keeper.arrival().await;
    first.stop().await;
    assert_eq!(ended.try_recv(), Ok(()), "the handler is gone before its worker says that it has ended");
    let shown = queue.show(id).await.unwrap();
    let task = &shown.task;
    assert_eq!((task.status, task.attempts, task.interruptions, task.epoch), (Status::Pending, 0, 0, 2));
    assert_eq!(verbs(&shown), ["enqueue", "claim", "release"]);
    assert_eq!(shown.record[2].note.as_deref(), Some("shutdown"));
    let second = start(worker(db, async |_| Ok("\"second\"".into())).await);
    assert_eq!(until_status(&queue, id, Status::Success).await.task.result.as_deref(), Some("\"second\""));
    second.stop().await;
}

/// Put back earlier, it would run twice at once.
pub async fn a_blocking_handler_is_put_back_only_when_it_has_stopped(db: &Db) {
    let (ended, id) = stop_while_blocked(db, true).await;
    let queue = db.queue().await;
    within(ended).await;
    let shown = queue.show(id).await.unwrap();
    assert_eq!((shown.task.status, shown.task.attempts), (Status::Pending, 0));
    assert_eq!(verbs(&shown), ["enqueue", "claim", "release"]);
}

pub async fn a_blocking_handler_that_finishes_after_the_grace_still_reports(db: &Db) {
    let (ended, id) = stop_while_blocked(db, false).await;
    let queue = db.queue().await;
    within(ended).await;
    let shown = queue.show(id).await.unwrap();
    assert_eq!((shown.task.status, verbs(&shown)), (Status::Success, vec!["enqueue", "claim", "complete"]));
}

/// Stops a worker whose handler blocks its thread past the grace, and sees the task still owned meanwhile; then lets the
/// handler go on, to an `.await` or to its end.
async fn stop_while_blocked(db: &Db, awaits: bool) -> (impl Future<Output = ()>, i64) {
    let queue = db.queue().await;
    let policy = short_lease();
    let id = put(&queue, policy.clone()).await;
    sweeping(db).await;
    let (door, mut keeper) = gate();
    let (unblock, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Arc::new(Mutex::new(blocked));
    let worker = start(
        worker(db, move |_| {
            let (door, blocked) = (door.clone(), blocked.clone());
            async move {
                door.tell();
                blocked.lock().unwrap().recv().ok();
                if awaits {
                    std::future::pending::<()>().await;
                }
                Ok("1".into())
            }
        })
        .await
        .grace(Duration::from_millis(50)),
    );
    keeper.arrival().await;
    let ended = worker.say_stop();
    tokio::time::sleep(Duration::from_millis(policy.lease_ms * 3 / 2)).await;
    let shown = queue.show(id).await.unwrap();
    assert_eq!((shown.task.status, verbs(&shown)), (Status::Running, vec!["enqueue", "claim"]));
    unblock.send(()).unwrap();
    (async { ended.await.unwrap().unwrap() }, id)
}

pub async fn a_task_with_an_unknown_effect_is_left_to_the_sweeper(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, Policy::default()).await;
    let (door, mut keeper) = gate();
    let worker = start(
        worker(db, move |ctx| {
            let door = door.clone();
            async move {
                let call = async |_| {
                    door.pass().await;
                    Ok::<_, CallError>("1".into())
                };
                ctx.effect("charge", NO_INSTRUMENT, call).await.map(|_| "1".into())
            }
        })
        .await
        .grace(Duration::from_millis(50)),
    );
    keeper.arrival().await;
    worker.stop().await;
    let shown = queue.show(id).await.unwrap();
    assert_eq!((shown.task.status, verbs(&shown)), (Status::Running, vec!["enqueue", "claim", "intent"]));
    assert_eq!(shown.effects[0].state, Entry::Intent);
    tokio::time::sleep(A_WHILE).await;
    db.end_lease(id).await;
    Sweeper::new(queue.clone(), Duration::from_secs(1)).sweep_once().await.unwrap();
    let shown = queue.show(id).await.unwrap();
    assert_eq!((shown.task.status, shown.task.reason), (Status::WaitManual, Some(Reason::OutcomeUnknown)));
}

/// It is asked again and again, but not by a worker that is to end: the lease ends, and the sweeper asks.
pub async fn a_third_party_that_does_not_answer_does_not_hold_up_a_shutdown(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, at_once()).await;
    let third = ThirdParty::bringing([no_answer()]);
    let charging = third.charging(db, rule(false, true, false, OnUnknown::Escalate), |_| Ok(())).await;
    let worker = start(charging.queries(third.queries()).grace(Duration::from_millis(50)));
    let asked = async {
        while third.questions().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(asked).await;
    worker.stop().await;
    let shown = queue.show(id).await.unwrap();
    assert_eq!((shown.task.status, verbs(&shown)), (Status::Running, vec!["enqueue", "claim", "intent"]));
}

/// It is not tried for as long as a lease, while somebody waits for the process to end.
pub async fn a_report_that_does_not_get_through_does_not_hold_up_a_shutdown(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, at_once()).await;
    let (door, mut keeper) = gate();
    let handler = move |_: leaseproof_queue::Ctx| {
        let door = door.clone();
        async move {
            door.pass().await;
            Ok("1".into())
        }
    };
    let builder = Worker::builder(db.queue().await.deadline(Duration::from_millis(300)));
    let builder = builder.poll(Duration::from_millis(10)).grace(Duration::from_millis(50)).handler("kind", handler);
    let worker = start(builder);
    keeper.arrival().await;
    let mut lock = db.session().await;
    lock.execute("BEGIN").await;
    lock.execute(&format!("UPDATE tasks SET due_at_ms = due_at_ms + 1 WHERE id = {id}")).await;
    keeper.open();
    let begun = std::time::Instant::now();
    worker.stop().await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    lock.execute("ROLLBACK").await;
    drop(lock);
    let shown = queue.show(id).await.unwrap();
    assert_eq!((shown.task.status, verbs(&shown)), (Status::Running, vec!["enqueue", "claim"]));
    db.end_lease(id).await;
    let report = Sweeper::new(queue.clone(), Duration::from_secs(1)).sweep_once().await.unwrap();
    assert_eq!(report.requeued, 1, "the sweeper decides");
}

/// As when its runtime's other tasks are given up: nobody renews the leases any more, so nobody may act on them.
pub async fn a_worker_that_is_dropped_cancels_its_handlers(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, at_once()).await;
    let (door, mut keeper) = gate();
    let (ends, ended) = ending();
    let handler = move |_| {
        let (door, ends) = (door.clone(), ends());
        async move {
            let _ends = ends;
            door.pass().await;
            Ok("1".into())
        }
    };
    let worker = worker(db, handler).await.build().unwrap();
    let running = tokio::spawn(worker.run(std::future::pending()));
    keeper.arrival().await;
    running.abort();
    within(ended).await.unwrap();
    keeper.open();
    tokio::time::sleep(A_WHILE).await;
    let shown = queue.show(id).await.unwrap();
    assert_eq!((shown.task.status, verbs(&shown)), (Status::Running, vec!["enqueue", "claim"]));
}
