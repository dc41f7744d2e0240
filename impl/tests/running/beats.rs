//! The heartbeat, and what happens when a lease is lost all the same.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leaseproof_queue::rules::{Epoch, Policy, Status};
use leaseproof_queue::{CallError, HeartbeatMode, Shown, TaskError, Worker};
use tokio::sync::oneshot;

use crate::common::{Db, HOUR_MS};
use crate::support::{
    Count, NO_INSTRUMENT, at_once, ending, gate, put, short_lease, start, sweeping, take_over, until, verbs, within,
    worker,
};

/// Runs a handler that blocks its thread for longer than its lease, on a runtime of one thread, while somebody sweeps.
/// `None`: with the heartbeat as it is unless one says.
async fn run_busy_handler(db: &Db, mode: Option<HeartbeatMode>) -> Shown {
    let queue = db.queue().await;
    let policy = short_lease();
    let id = put(&queue, policy.clone()).await;
    sweeping(db).await;
    let (stop, stopped) = oneshot::channel::<()>();
    let url = db.url().to_string();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let queue = leaseproof_queue::Queue::connect(&url).await.unwrap();
            let mut worker = Worker::builder(queue).poll(Duration::from_millis(10));
            if let Some(mode) = mode {
                worker = worker.heartbeat(mode);
            }
            let worker = worker.handler("kind", move |_| async move {
                std::thread::sleep(Duration::from_millis(policy.lease_ms * 2));
                Ok("1".into())
            });
            let shutdown = async {
                stopped.await.ok();
            };
            worker.build().unwrap().run(shutdown).await.unwrap();
        });
    });
    // A worker that is starved often enough loses its task for good, to a person.
    let shown = until(&queue, id, |shown| shown.task.status.is_resolved()).await;
    stop.send(()).unwrap();
    thread.join().unwrap();
    shown
}

pub async fn a_busy_handler_does_not_starve_the_heartbeat_of_a_thread(db: &Db) {
    for mode in [None, Some(HeartbeatMode::Thread)] {
        let shown = run_busy_handler(db, mode).await;
        assert_eq!(verbs(&shown), ["enqueue", "claim", "complete"], "{mode:?}");
        assert_eq!((shown.task.epoch, shown.task.interruptions), (1, 0), "{mode:?}");
    }
}

/// The case above can fail.
pub async fn a_busy_handler_starves_the_heartbeat_of_a_task(db: &Db) {
    let shown = run_busy_handler(db, Some(HeartbeatMode::Task)).await;
    assert!(verbs(&shown).contains(&"requeue"), "{shown:#?}");
    assert!(shown.task.interruptions > 0);
}

/// Short beats, a lease that does not end: a loss can only be seen from a beat.
fn beating() -> Policy {
    Policy { heartbeat_ms: 30, ..at_once() }
}

pub async fn a_lost_lease_cancels_the_handler_and_nothing_further_is_written(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, beating()).await;
    let (door, mut keeper) = gate();
    let (ends, ended) = ending();
    let lost_call = Count::default();
    let calls = lost_call.clone();
    let worker = start(
        worker(db, move |ctx| {
            let (door, calls, ends) = (door.clone(), calls.clone(), ends());
            async move {
                let _ends = ends;
                door.pass().await;
                // Not reached: the handler is dropped where it waits.
                calls.up();
                let call = async |_| Ok::<_, CallError>("1".into());
                ctx.effect("charge", NO_INSTRUMENT, call).await.map(|_| "1".into())
            }
        })
        .await,
    );
    keeper.arrival().await;
    take_over(db, id).await;
    within(ended).await.unwrap();
    keeper.open();
    worker.stop().await;
    let shown = queue.show(id).await.unwrap();
    assert_eq!(lost_call.get(), 0);
    assert_eq!(verbs(&shown), ["enqueue", "claim", "by_hand"]);
    assert_eq!((shown.task.status, shown.task.owner.as_deref()), (Status::Running, Some("somebody else")));
    assert_eq!(shown.effects, []);
}

pub async fn a_handler_that_finishes_after_its_lease_was_lost_leaves_a_late_result(db: &Db) {
    let queue = db.queue().await;
    // No beat before the handler has finished.
    let id = put(&queue, at_once()).await;
    let (door, mut keeper) = gate();
    let worker = start(
        worker(db, move |_| {
            let door = door.clone();
            async move {
                door.pass().await;
                Ok("\"late\"".into())
            }
        })
        .await,
    );
    keeper.arrival().await;
    take_over(db, id).await;
    keeper.open();
    late_result(until(&queue, id, |shown| shown.record.len() == 4).await, &worker.boot_id);
    worker.stop().await;
}

/// What blocks can not be cancelled; when it ends with a result all the same, that is evidence.
pub async fn a_blocking_handler_that_finishes_after_its_lease_was_lost_leaves_a_late_result(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, beating()).await;
    let (door, mut keeper) = gate();
    let worker = start(
        worker(db, move |ctx| {
            let door = door.clone();
            async move {
                door.tell();
                while ctx.may_act() {
                    std::thread::sleep(Duration::from_millis(5));
                }
                // By now the worker wants to cancel it.
                std::thread::sleep(Duration::from_millis(100));
                Ok("\"late\"".into())
            }
        })
        .await,
    );
    keeper.arrival().await;
    take_over(db, id).await;
    late_result(until(&queue, id, |shown| shown.record.len() == 4).await, &worker.boot_id);
    worker.stop().await;
}

fn late_result(shown: Shown, boot_id: &str) {
    assert_eq!(verbs(&shown), ["enqueue", "claim", "by_hand", "late_result"]);
    let late = &shown.record[3];
    let told: (Epoch, &str, Option<&str>) = (late.epoch, &late.actor, late.note.as_deref());
    assert_eq!(told, (1, boot_id, Some("\"late\"")));
    let task = &shown.task;
    assert_eq!((task.status, task.owner.as_deref(), &task.result), (Status::Running, Some("somebody else"), &None));
}

/// The database is silent: nobody says that the lease is lost, and the owner stops before it can have ended. The lease
/// in the database lives on for an hour here, so that only the own clock can have told.
pub async fn without_an_accepted_heartbeat_the_owner_stops_by_its_own_clock(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, short_lease()).await;
    let (door, mut keeper) = gate();
    let (says, said) = oneshot::channel();
    let says = Arc::new(Mutex::new(Some(says)));
    let calls = Count::default();
    let called = calls.clone();
    let worker = start(
        worker(db, move |ctx| {
            let (door, says, called) = (door.clone(), says.lock().unwrap().take(), called.clone());
            async move {
                door.tell();
                while ctx.may_act() {
                    std::thread::sleep(Duration::from_millis(5));
                }
                let call = async |_| {
                    called.up();
                    Ok::<_, CallError>("1".into())
                };
                let ended = ctx.effect("charge", NO_INSTRUMENT, call).await;
                says.unwrap().send(ended.clone()).ok();
                ended.map(|_| "1".into())
            }
        })
        .await,
    );
    keeper.arrival().await;
    let mut lock = db.session().await;
    lock.execute("BEGIN").await;
    let hour = format!("lease_until_ms = {} + {HOUR_MS}", db.clock());
    lock.execute(&format!("UPDATE tasks SET {hour} WHERE id = {id}")).await;
    let ended = within(said).await.unwrap();
    lock.execute("COMMIT").await;
    assert_eq!((ended, calls.get()), (Err(TaskError::LeaseLost), 0));
    worker.stop().await;
    let shown = queue.show(id).await.unwrap();
    assert_eq!((verbs(&shown), shown.effects.len()), (vec!["enqueue", "claim"], 0), "nothing was written");
}
