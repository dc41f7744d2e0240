//! SQLite: one writer at a time.

use std::time::{Duration, Instant};

use leaseproof_queue::Error;
use leaseproof_queue::rules::{Judgement, Status};

use crate::common::{Db, by, claim_one, enqueue};

/// The lock was not had in time, so the statement was surely not applied, and says so before its deadline.
pub async fn a_writer_behind_another_gives_up_in_time_and_was_not_applied(db: &Db) {
    let store = db.store().await;
    let id = enqueue(&store).await;
    claim_one(&store, "worker").await;
    let mut other = db.session().await;
    other.execute("BEGIN IMMEDIATE").await;
    let before = db.snapshot().await;
    let began = Instant::now();
    let (complete, claim) = tokio::join!(store.complete(by(id, 1), "1"), store.claim("worker", 1));
    let took = began.elapsed();
    let errors = [complete.unwrap_err(), claim.unwrap_err()];
    assert!(errors.iter().all(|error| matches!(error, Error::Unavailable { .. })), "{errors:?}");
    assert!(took < store.deadline() + Duration::from_secs(1), "{took:?}");
    assert_eq!(db.snapshot().await, before);

    other.execute("COMMIT").await;
    assert_eq!(db.snapshot().await, before, "not applied afterwards either");
    let done = store.complete(by(id, 1), "1").await.unwrap();
    assert_eq!(done, Judgement::Applied { status: Status::Success, epoch: 1 });
}

pub async fn a_reader_does_not_wait_for_a_writer(db: &Db) {
    let store = db.store().await;
    let id = enqueue(&store).await;
    let mut other = db.session().await;
    other.execute("BEGIN IMMEDIATE").await;
    other.execute(&format!("UPDATE tasks SET kind = 'changed' WHERE id = {id}")).await;
    let began = Instant::now();
    assert_eq!(store.task(id).await.unwrap().kind, "kind");
    assert_eq!(store.lost_tasks(0, 10).await.unwrap(), []);
    assert_eq!(store.look(id).await.unwrap().status, Status::Pending);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

/// The wait for the lock follows the deadline, so that here too it is known not to have been applied.
pub async fn a_shorter_deadline_shortens_the_wait_for_the_lock(db: &Db) {
    let queue = db.queue().await.deadline(Duration::from_secs(1));
    let store = queue.store();
    let id = enqueue(store).await;
    claim_one(store, "worker").await;
    let mut other = db.session().await;
    other.execute("BEGIN IMMEDIATE").await;
    let began = Instant::now();
    let error = store.complete(by(id, 1), "1").await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    other.execute("ROLLBACK").await;
    let done = store.complete(by(id, 1), "1").await.unwrap();
    assert_eq!(done, Judgement::Applied { status: Status::Success, epoch: 1 });
}
