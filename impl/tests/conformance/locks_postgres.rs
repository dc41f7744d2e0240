//! PostgreSQL: row locks that somebody else holds, statements that outlive their caller, connections that end.

use std::time::{Duration, Instant};

use leaseproof_queue::rules::{EffectRule, Judgement, Refusal, Status};
use leaseproof_queue::{Error, Queue, Store};
use sqlx::postgres::{PgPool, PgPoolOptions};

use crate::common::{Db, by, claim_one, enqueue};
use crate::locks::locked;

/// A task that `worker` has claimed, and a store of one connection.
async fn claimed(db: &Db, deadline: Duration) -> (i64, Store, PgPool) {
    let pool = PgPoolOptions::new().max_connections(1).connect(db.url()).await.unwrap();
    let store = Queue::from_pg_pool(pool.clone()).deadline(deadline).store().clone();
    let id = enqueue(&store).await;
    claim_one(&store, "worker").await;
    (id, store, pool)
}

async fn pid(pool: &PgPool) -> i32 {
    sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(pool).await.unwrap()
}

/// Waits until so many sessions of this test wait for a lock.
async fn waiting_for_a_lock(db: &Db, sessions: i64) {
    let name = db.name();
    let sql =
        format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}' AND wait_event_type = 'Lock'");
    let began = Instant::now();
    while db.number(&sql).await != sessions {
        assert!(began.elapsed() < Duration::from_secs(10), "no session waits");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Why a deadline that passed is no failure: the statement waits on, and is applied after its caller has given up.
pub async fn an_unknown_outcome_may_still_be_applied(db: &Db) {
    let (id, store, _) = claimed(db, Duration::from_millis(300)).await;
    let mut other = locked(db, id).await;
    let began = Instant::now();
    let error = store.complete(by(id, 1), "1").await.unwrap_err();
    assert!(error.is_unknown(), "{error:?}");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert_eq!(store.look(id).await.unwrap().status, Status::Running);
    waiting_for_a_lock(db, 1).await;

    other.execute("ROLLBACK").await;
    let began = Instant::now();
    while store.look(id).await.unwrap().status != Status::Success {
        assert!(began.elapsed() < Duration::from_secs(10), "it was not applied");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(store.complete(by(id, 1), "1").await.unwrap(), Judgement::Already);
}

pub async fn a_connection_with_an_unread_answer_is_not_used_again(db: &Db) {
    let (id, store, pool) = claimed(db, Duration::from_millis(300)).await;
    let old = pid(&pool).await;
    let _other = locked(db, id).await;
    assert!(store.complete(by(id, 1), "1").await.unwrap_err().is_unknown());
    // The one connection of the pool still waits for the lock; the next statement gets another, at once.
    let task = store.task(id).await.unwrap();
    assert_eq!(task.status, Status::Running);
    assert_ne!(pid(&pool).await, old);
    assert_eq!(pool.size(), 1);
    waiting_for_a_lock(db, 1).await;
}

pub async fn a_cancelled_caller_leaves_no_connection_to_the_next(db: &Db) {
    let (id, store, pool) = claimed(db, Duration::from_secs(30)).await;
    let old = pid(&pool).await;
    let _other = locked(db, id).await;
    let cancelled = tokio::time::timeout(Duration::from_millis(300), store.complete(by(id, 1), "1")).await;
    assert!(cancelled.is_err(), "{cancelled:?}");
    assert_eq!(store.task(id).await.unwrap().status, Status::Running);
    assert_ne!(pid(&pool).await, old);
    assert_eq!(pool.size(), 1);
}

/// The server's own `statement_timeout` bounds how long an abandoned statement can wait; it rolls it back, so the
/// outcome is known.
pub async fn a_statement_that_the_server_gave_up_was_not_applied(db: &Db) {
    let queue = Queue::connect(&db.url_with("options[statement_timeout]=300")).await.unwrap();
    let store = queue.store();
    let id = enqueue(store).await;
    claim_one(store, "worker").await;
    let mut other = locked(db, id).await;
    let error = store.complete(by(id, 1), "1").await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    other.execute("ROLLBACK").await;
    assert_eq!(store.look(id).await.unwrap().status, Status::Running);
    assert!(matches!(store.complete(by(id, 1), "1").await.unwrap(), Judgement::Applied { .. }));
}

/// The deadline is the server's too, whichever of the two sees it pass first.
pub async fn a_statement_does_not_outlive_its_caller_s_deadline(db: &Db) {
    let queue = db.queue().await.deadline(Duration::from_millis(300));
    let store = queue.store();
    let id = enqueue(store).await;
    claim_one(store, "worker").await;
    let mut other = locked(db, id).await;
    let error = store.complete(by(id, 1), "1").await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    let began = Instant::now();
    waiting_for_a_lock(db, 0).await;
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    other.execute("ROLLBACK").await;
    assert_eq!(store.look(id).await.unwrap().status, Status::Running);
}

pub async fn a_connection_that_the_server_ends_leaves_the_outcome_unknown(db: &Db) {
    let (id, store, pool) = claimed(db, Duration::from_secs(30)).await;
    let backend = pid(&pool).await;
    let _other = locked(db, id).await;
    let writer = store.clone();
    let complete = tokio::spawn(async move { writer.complete(by(id, 1), "1").await });
    waiting_for_a_lock(db, 1).await;
    db.execute(&format!("SELECT pg_terminate_backend({backend})")).await;
    let error = complete.await.unwrap().unwrap_err();
    assert!(error.is_unknown(), "{error:?}");
    assert_eq!(store.task(id).await.unwrap().status, Status::Running, "the next statement has its own connection");
    assert_ne!(pid(&pool).await, backend);
}

/// The clock is read anew after the wait: the row was changed meanwhile, and the lease has ended.
pub async fn a_writer_that_waited_past_the_end_of_its_lease_is_refused(db: &Db) {
    let (id, store, _) = claimed(db, Duration::from_secs(30)).await;
    db.execute(&format!("UPDATE tasks SET lease_until_ms = leaseproof_now_ms() + 1000 WHERE id = {id}")).await;
    let mut other = db.session().await;
    other.execute(&format!("BEGIN; UPDATE tasks SET last_error = 'a change' WHERE id = {id}")).await;
    let writer = store.clone();
    let intent = tokio::spawn(async move { writer.intent(by(id, 1), "charge", EffectRule::default()).await });
    waiting_for_a_lock(db, 1).await;
    db.execute("SELECT pg_sleep(1.2)").await;
    other.execute("COMMIT").await;
    assert_eq!(intent.await.unwrap().unwrap(), Judgement::Refused(Refusal::ConditionFails));
    assert_eq!(store.journal(id).await.unwrap(), []);
}

/// The clock is not read anew where the lock's holder changed nothing: PostgreSQL then has nothing to check again. What
/// protects is not the clock: a decision on the reading from before the intent is refused.
pub async fn behind_a_lock_that_changed_nothing_the_clock_is_that_of_the_start_and_the_reading_protects(db: &Db) {
    let (id, store, _) = claimed(db, Duration::from_secs(30)).await;
    db.execute(&format!("UPDATE tasks SET lease_until_ms = leaseproof_now_ms() + 1000 WHERE id = {id}")).await;
    let mut other = locked(db, id).await;
    let writer = store.clone();
    let intent = tokio::spawn(async move { writer.intent(by(id, 1), "charge", EffectRule::default()).await });
    waiting_for_a_lock(db, 1).await;
    db.execute("SELECT pg_sleep(1.2)").await;
    let sweeper = db.store().await;
    let seen = sweeper.lost_tasks(0, 10).await.unwrap().pop().unwrap();
    assert_eq!(seen.unknown, []);
    other.execute("COMMIT").await;
    let begun = intent.await.unwrap().unwrap();
    assert_eq!(begun, Judgement::Applied { status: Status::Running, epoch: 1 });
    let decided = sweeper.requeue(by(id, 1), seen.record_no, 0, None).await.unwrap();
    assert_eq!(decided, Judgement::Refused(Refusal::ConditionFails));
    assert_eq!(sweeper.lost_tasks(0, 10).await.unwrap()[0].unknown.len(), 1);
}
