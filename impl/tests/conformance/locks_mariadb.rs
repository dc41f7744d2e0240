//! MariaDB: what a claim locks, statements that the server ends or that outlive their caller, and the clock behind a lock.

use std::time::{Duration, Instant};

use leaseproof_queue::rules::{EffectRule, Judgement, Refusal, Status};
use leaseproof_queue::{Error, Store};

use crate::common::{Db, HOUR_MS, by, claim_one, enqueue, row};
use crate::locks::locked;

/// The connection that runs a statement of this name in this test's database, and has for a while.
async fn running(db: &Db, name: &str) -> String {
    let sql = format!(
        "SELECT CAST(id AS CHAR) FROM information_schema.processlist \
         WHERE db = DATABASE() AND time_ms > 100 AND {}",
        match name {
            // In a trigger the server shows the trigger's own statement.
            SLOW_CLAIM => "state = 'User sleep'".to_string(),
            JOURNALLING => "info LIKE '%INSERT INTO effects%'".to_string(),
            name => format!("info LIKE '/* leaseproof:{name} %'"),
        }
    );
    let began = Instant::now();
    loop {
        if let Some(found) = db.rows(&sql).await.pop() {
            return found[0].clone();
        }
        assert!(began.elapsed() < Duration::from_secs(10), "no {name} runs");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A claim by `slow`, for [`running`].
const SLOW_CLAIM: &str = "slow claim";

/// A write to the effect journal, for [`running`].
const JOURNALLING: &str = "journalling";

/// Makes every claim by `slow` take a second for each task, with its locks held.
async fn slow_claims(db: &Db) {
    db.execute(
        "CREATE TRIGGER slow BEFORE UPDATE ON tasks FOR EACH ROW \
         BEGIN IF NEW.owner = 'slow' THEN DO SLEEP(1); END IF; END",
    )
    .await;
}

async fn ids(store: &Store, owner: &str, limit: u32) -> Vec<i64> {
    store.claim(owner, limit).await.unwrap().into_iter().map(|task| task.id).collect()
}

/// A claim that sorted what is due would lock all of it, and whoever claims at the same time would find nothing.
pub async fn a_claim_locks_no_more_than_it_takes(db: &Db) {
    slow_claims(db).await;
    let store = db.store().await;
    let mut tasks = Vec::new();
    for _ in 0..6 {
        tasks.push(enqueue(&store).await);
    }
    let slow = store.clone();
    let slow = tokio::spawn(async move { ids(&slow, "slow", 2).await });
    running(db, SLOW_CLAIM).await;
    let began = Instant::now();
    assert_eq!(ids(&store, "fast", 3).await, tasks[2..5]);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert!(!slow.is_finished());
    assert_eq!(slow.await.unwrap(), tasks[..2]);
}

/// What READ COMMITTED is for: under the server's default a claim that has come to the end of what is due also locks the
/// gap behind it.
pub async fn an_enqueue_does_not_wait_for_a_claim(db: &Db) {
    slow_claims(db).await;
    let store = db.store().await;
    let tasks = [enqueue(&store).await, enqueue(&store).await];
    let slow = store.clone();
    let slow = tokio::spawn(async move { ids(&slow, "slow", 10).await });
    running(db, SLOW_CLAIM).await;
    let began = Instant::now();
    enqueue(&store).await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert!(!slow.is_finished());
    assert_eq!(slow.await.unwrap(), tasks);
}

/// The wait for a lock is shorter than the deadline, so that its end is known.
pub async fn a_lock_not_had_in_time_was_not_applied(db: &Db) {
    let queue = db.queue().await.deadline(Duration::from_secs(4));
    let store = queue.store();
    let id = enqueue(store).await;
    claim_one(store, "worker").await;
    let mut other = locked(db, id).await;
    let before = db.snapshot().await;
    let error = store.complete(by(id, 1), "1").await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert!(error.to_string().contains("1205"), "{error}");
    other.execute("ROLLBACK").await;
    assert_eq!(db.snapshot().await, before, "not applied afterwards either");
    assert!(matches!(store.complete(by(id, 1), "1").await.unwrap(), Judgement::Applied { .. }));
}

/// The deadline is the server's too, whichever of the two sees it pass first: a second is the shortest wait for a lock
/// that the server knows.
pub async fn a_statement_does_not_outlive_its_caller_s_deadline(db: &Db) {
    let queue = db.queue().await.deadline(Duration::from_millis(300));
    let store = queue.store();
    let id = enqueue(store).await;
    claim_one(store, "worker").await;
    let mut other = locked(db, id).await;
    let error = store.complete(by(id, 1), "1").await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    tokio::time::sleep(Duration::from_millis(500)).await;
    other.execute("ROLLBACK").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(store.look(id).await.unwrap().status, Status::Running);
}

/// Why a deadline that passed is no failure: the statement waits on, and is applied after its caller has given up.
pub async fn an_unknown_outcome_may_still_be_applied(db: &Db) {
    let store = db.store().await;
    let id = enqueue(&store).await;
    claim_one(&store, "worker").await;
    let mut other = locked(db, id).await;
    let given_up = tokio::time::timeout(Duration::from_millis(300), store.complete(by(id, 1), "1")).await;
    assert!(given_up.is_err(), "{given_up:?}");
    assert_eq!(store.look(id).await.unwrap().status, Status::Running);
    other.execute("ROLLBACK").await;
    let began = Instant::now();
    while store.look(id).await.unwrap().status != Status::Success {
        assert!(began.elapsed() < Duration::from_secs(10), "it was not applied");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub async fn a_statement_that_the_server_gave_up_was_not_applied(db: &Db) {
    let store = db.store().await;
    let id = enqueue(&store).await;
    claim_one(&store, "worker").await;
    let mut other = locked(db, id).await;
    let writer = store.clone();
    let complete = tokio::spawn(async move { writer.complete(by(id, 1), "1").await });
    let connection = running(db, "complete").await;
    db.execute(&format!("KILL QUERY {connection}")).await;
    let error = complete.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    other.execute("ROLLBACK").await;
    assert_eq!(store.look(id).await.unwrap().status, Status::Running);
    assert!(matches!(store.complete(by(id, 1), "1").await.unwrap(), Judgement::Applied { .. }));
}

pub async fn a_connection_that_the_server_ends_leaves_the_outcome_unknown(db: &Db) {
    let store = db.store().await;
    let id = enqueue(&store).await;
    claim_one(&store, "worker").await;
    let _other = locked(db, id).await;
    let writer = store.clone();
    let complete = tokio::spawn(async move { writer.complete(by(id, 1), "1").await });
    let connection = running(db, "complete").await;
    db.execute(&format!("KILL CONNECTION {connection}")).await;
    let error = complete.await.unwrap().unwrap_err();
    assert!(error.is_unknown(), "{error:?}");
    assert_eq!(store.task(id).await.unwrap().status, Status::Running, "the next statement has its own connection");
}

/// Of two that wait for each other the server rolls back the one that has changed less.
pub async fn the_victim_of_a_deadlock_was_not_applied(db: &Db) {
    let store = db.store().await;
    let ids = db.put_all(&[row(Status::Running, 1); 20]).await;
    db.execute("INSERT INTO effects SELECT id, 'charge', 0, 'NOT_DONE', 0, NULL, 0 FROM tasks").await;
    let before = db.snapshot().await;
    let mut other = db.session().await;
    other.execute("BEGIN; UPDATE effects SET outcome = 'heavier'").await;
    let (writer, id) = (store.clone(), ids[0]);
    // It has the task, and wants the entry of its journal.
    let intent = tokio::spawn(async move { writer.intent(by(id, 1), "charge", EffectRule::default()).await });
    running(db, JOURNALLING).await;
    other.execute(&format!("UPDATE tasks SET last_error = 'heavier' WHERE id = {id}")).await;
    let error = intent.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert!(error.to_string().contains("1213"), "{error}");
    other.execute("ROLLBACK").await;
    assert_eq!(db.snapshot().await, before, "nothing was written");
    let again = store.intent(by(id, 1), "charge", EffectRule::default()).await.unwrap();
    assert!(matches!(again, Judgement::Applied { .. }), "{again:?}");
}

/// The clock is read anew after the wait, also behind a lock whose holder has changed nothing: more than PostgreSQL does.
pub async fn a_writer_that_waited_past_the_end_of_its_lease_is_refused(db: &Db) {
    let store = db.store().await;
    for before_it_goes in ["COMMIT", "UPDATE tasks SET last_error = 'a change'; COMMIT"] {
        let id = enqueue(&store).await;
        claim_one(&store, "worker").await;
        let clock = db.clock();
        db.execute(&format!("UPDATE tasks SET lease_until_ms = {clock} + 1000 WHERE id = {id}")).await;
        let mut other = locked(db, id).await;
        let writer = store.clone();
        let intent = tokio::spawn(async move { writer.intent(by(id, 1), "charge", EffectRule::default()).await });
        running(db, "intent").await;
        tokio::time::sleep(Duration::from_millis(1_200)).await;
        other.execute(before_it_goes).await;
        let refused = Judgement::Refused(Refusal::ConditionFails);
        assert_eq!(intent.await.unwrap().unwrap(), refused, "{before_it_goes}");
        assert_eq!(store.journal(id).await.unwrap(), []);
    }
}

/// Nobody's time zone moves the clock, neither in the queue's expression nor in the record.
pub async fn the_clock_does_not_depend_on_the_session_s_time_zone(db: &Db) {
    let store = db.store().await;
    let id = enqueue(&store).await;
    let enqueued = store.task(id).await.unwrap().created_at_ms;
    let mut elsewhere = db.session().await;
    elsewhere.execute("SET time_zone = '+05:00'").await;
    elsewhere.execute(&format!("UPDATE tasks SET epoch = 9, due_at_ms = {} WHERE id = {id}", db.clock())).await;
    let by_hand = store.record(id).await.unwrap().pop().unwrap().at_ms;
    let due = store.task(id).await.unwrap().due_at_ms;
    for at_ms in [by_hand, due] {
        assert!((at_ms - enqueued).abs() < HOUR_MS, "{at_ms} {enqueued}");
    }
}

/// There is no transaction over CREATE TABLE: what a migration that was cut off has made, the next one takes up.
pub async fn an_interrupted_migration_is_taken_up(db: &Db) {
    let empty = Db::empty(db.kind()).await;
    empty.queue().await.migrate().await.unwrap();
    empty
        .execute(
            "DROP TRIGGER tasks_record_update; DROP TRIGGER task_events_no_update; DROP TRIGGER task_events_no_delete; \
             DROP TABLE instances; DELETE FROM leaseproof_schema",
        )
        .await;
    let queue = empty.queue().await;
    assert!(matches!(queue.check_schema().await.unwrap_err(), Error::NotMigrated { .. }));
    assert_eq!(queue.migrate().await.unwrap(), 0);
    queue.check_schema().await.unwrap();
    let id = enqueue(queue.store()).await;
    claim_one(queue.store(), "worker").await;
    let verbs: Vec<String> = queue.store().record(id).await.unwrap().into_iter().map(|event| event.verb).collect();
    assert_eq!(verbs, ["enqueue", "claim"]);
    assert!(empty.try_execute("DELETE FROM task_events").await.is_err());
}

/// A name too long for its column is an error, not a name cut off: two keys would become one.
pub async fn what_does_not_fit_is_refused_and_not_cut_off(db: &Db) {
    let store = db.store().await;
    let id = enqueue(&store).await;
    claim_one(&store, "worker").await;
    let longest = "k".repeat(700);
    let running = Judgement::Applied { status: Status::Running, epoch: 1 };
    assert_eq!(store.intent(by(id, 1), &longest, EffectRule::default()).await.unwrap(), running);
    let error = store.intent(by(id, 1), &format!("{longest}!"), EffectRule::default()).await.unwrap_err();
    assert!(matches!(error, Error::Rejected { .. }), "{error:?}");
    assert!(error.to_string().contains("last_effect_key"), "{error}");
    let keys: Vec<String> = store.journal(id).await.unwrap().into_iter().map(|effect| effect.key).collect();
    assert_eq!(keys, [longest]);
}
