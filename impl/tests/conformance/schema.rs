//! The tables: made, checked, and what they refuse.

use std::sync::Arc;
use std::time::{Duration, Instant};

use leaseproof_queue::rules::{Guards, Status};
use leaseproof_queue::{ABLATION, Error, NewTask, Queue, SCHEMA_VERSION};
use tokio::sync::Barrier;

use crate::common::{Db, JoinSet, Kind, enqueue, row};

pub async fn migrating_again_is_harmless(db: &Db) {
    let queue = db.queue().await;
    let id = enqueue(queue.store()).await;
    let before = db.snapshot().await;
    assert_eq!(queue.migrate().await.unwrap(), SCHEMA_VERSION);
    assert_eq!(queue.migrate().await.unwrap(), SCHEMA_VERSION);
    queue.check_schema().await.unwrap();
    assert_eq!(db.snapshot().await, before);
    assert_eq!(queue.store().task(id).await.unwrap().status, Status::Pending);
}

pub async fn several_processes_may_migrate_at_once(db: &Db) {
    const PROCESSES: usize = 5;
    let empty = Db::empty(db.kind()).await;
    let start = Arc::new(Barrier::new(PROCESSES));
    let mut processes = JoinSet::new();
    for _ in 0..PROCESSES {
        let (queue, start) = (empty.queue().await, start.clone());
        processes.spawn(async move {
            start.wait().await;
            let before = queue.migrate().await.unwrap();
            queue.check_schema().await.unwrap();
            before
        });
    }
    let mut before = processes.join_all().await;
    before.sort_unstable();
    assert_eq!(before, [0, SCHEMA_VERSION, SCHEMA_VERSION, SCHEMA_VERSION, SCHEMA_VERSION]);
}

/// As long as its own deadline and no longer, whatever time-outs the server gives this account.
pub async fn a_migration_waits_for_another_up_to_its_own_deadline(db: &Db) {
    let name = db.name();
    let url = match db.kind() {
        Kind::Sqlite => db.url().to_string(),
        Kind::Postgres => db.url_with("options[statement_timeout]=100&options[lock_timeout]=100"),
        Kind::MariaDb => {
            // What the server gives an account of its own, the others of this server do not notice.
            let limited = format!("CREATE USER '{name}'@'%' IDENTIFIED BY 'limited' WITH MAX_STATEMENT_TIME 0.1");
            db.execute(&limited).await;
            db.execute(&format!("GRANT ALL ON {name}.* TO '{name}'@'%'")).await;
            let (_, place) = db.url().rsplit_once('@').unwrap();
            format!("mariadb://{name}:limited@{place}")
        }
    };
    let (lock, unlock) = match db.kind() {
        Kind::Sqlite => ("BEGIN IMMEDIATE", "ROLLBACK"),
        Kind::Postgres => ("SELECT pg_advisory_lock(119182682449264)", "SELECT pg_advisory_unlock_all()"),
        Kind::MariaDb => ("DO GET_LOCK(CONCAT('leaseproof:', MD5(DATABASE())), 10)", "DO RELEASE_ALL_LOCKS()"),
    };
    let mut other = db.session().await;
    other.execute(lock).await;
    let begun = Instant::now();
    let queue = Queue::connect(&url).await.unwrap();
    let error = queue.store().migrate_within(Duration::from_millis(500)).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert!(error.to_string().contains("turn to migrate"), "{error}");
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_millis(450) && waited < Duration::from_secs(5), "{waited:?}");

    let waiting = tokio::spawn(async move { queue.migrate().await });
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(!waiting.is_finished());
    other.execute(unlock).await;
    assert_eq!(waiting.await.unwrap().unwrap(), SCHEMA_VERSION);
}

fn assert_not_migrated(error: &Error) {
    assert!(matches!(error, Error::NotMigrated { .. }), "{error:?}");
    assert!(error.to_string().contains("`leaseproof queue migrate`"), "{error}");
}

pub async fn a_database_that_is_not_migrated_names_the_command(db: &Db) {
    let empty = Db::empty(db.kind()).await;
    let queue = empty.queue().await;
    if db.kind() == Kind::Sqlite {
        // A missing file is not made by looking at it.
        let file = empty.url().strip_prefix("sqlite:").unwrap();
        assert_not_migrated(&queue.check_schema().await.unwrap_err());
        assert!(!std::path::Path::new(file).exists());
        std::fs::write(file, "").unwrap();
    }
    assert_not_migrated(&queue.check_schema().await.unwrap_err());
    assert_not_migrated(&queue.enqueue(NewTask::new("kind", "{}")).await.unwrap_err());
    assert_not_migrated(&queue.store().claim("worker", 1).await.unwrap_err());
    assert_not_migrated(&queue.store().heartbeat(&[(1, 1)], queue.store().deadline()).await.unwrap_err());

    // Begun, and not finished.
    db.execute("DELETE FROM leaseproof_schema").await;
    assert_not_migrated(&db.queue().await.check_schema().await.unwrap_err());
}

pub async fn a_newer_schema_is_left_alone(db: &Db) {
    db.execute("INSERT INTO leaseproof_schema (version, applied_at_ms) VALUES (99, 0)").await;
    let queue = db.queue().await;
    for error in [queue.check_schema().await.unwrap_err(), queue.migrate().await.unwrap_err()] {
        assert!(matches!(error, Error::NewerSchema { found: 99, known: SCHEMA_VERSION }), "{error:?}");
        assert!(error.to_string().contains("newer build"), "{error}");
    }
    assert_eq!(db.number("SELECT count(*) FROM leaseproof_schema").await, SCHEMA_VERSION + 1);
}

pub async fn an_older_schema_is_named(db: &Db) {
    db.execute("UPDATE leaseproof_schema SET version = version - 1").await;
    let error = db.queue().await.check_schema().await.unwrap_err();
    assert!(matches!(error, Error::OlderSchema { needed: SCHEMA_VERSION, .. }), "{error:?}");
    assert!(error.to_string().contains("`leaseproof queue migrate`"), "{error}");
}

/// A migration that may be repeated must not take it for its own.
pub async fn a_table_of_somebody_else_is_left_alone(db: &Db) {
    for table in ["tasks", "effects"] {
        let empty = Db::empty(db.kind()).await;
        if db.kind() == Kind::Sqlite {
            std::fs::write(empty.url().strip_prefix("sqlite:").unwrap(), "").unwrap();
        }
        let mut theirs = empty.session().await;
        theirs
            .execute(&format!("CREATE TABLE {table} (id INTEGER, theirs INTEGER); INSERT INTO {table} VALUES (1, 7)"))
            .await;
        let queue = empty.queue().await;
        let error = queue.migrate().await.unwrap_err();
        assert!(matches!(error, Error::Rejected { .. }) && error.to_string().contains(table), "{error:?}");
        assert!(matches!(queue.check_schema().await.unwrap_err(), Error::NotMigrated { .. }));
        // Neither changed nor hung with triggers.
        theirs.execute(&format!("UPDATE {table} SET theirs = 8")).await;
        assert_eq!(theirs.rows(&format!("SELECT {} FROM {table}", db.as_text("theirs"))).await, [["8"]]);
    }
}

pub async fn impossible_rows_are_refused(db: &Db) {
    let id = db.put(row(Status::Running, 1)).await;
    let refused = [
        "status = 'DONE'",
        "status = 'running'",
        "status = NULL",
        "epoch = -1",
        "epoch = NULL",
        "attempts = -1",
        "attempts = 3000000000",
        "interruptions = -1",
        "interruptions = 3000000000",
        "lease_ms = -1",
        "lease_ms = 9223372036854775807",
        "expected_run_ms = -1",
        "expected_run_ms = 9223372036854775807",
        // RUNNING without an owner, a lease, or a claim.
        "owner = NULL",
        "lease_until_ms = NULL",
        "claimed_at_ms = NULL",
        "due_at_ms = NULL",
        "payload = NULL",
        "kind = NULL",
        // What a clock by hand makes of a time, and what no number is: one such row would stop every claim and sweep.
        "due_at_ms = 'soon'",
        "lease_until_ms = 'soon'",
        "epoch = 'one'",
    ];
    let before = db.snapshot().await;
    for set in refused {
        let refused = db.try_execute(&format!("UPDATE tasks SET {set} WHERE id = {id}")).await;
        assert!(refused.is_err(), "{set}: was accepted");
    }
    let effect = "INSERT INTO effects (task_id, effect_key, epoch, state, rule, at_ms) VALUES";
    assert!(db.try_execute(&format!("{effect} ({id}, 'key', 1, 'MAYBE', 0, 0)")).await.is_err());
    db.execute(&format!("{effect} ({id}, 'key', 1, 'INTENT', 0, 0)")).await;
    assert!(db.try_execute(&format!("{effect} ({id}, 'key', 1, 'DONE', 0, 0)")).await.is_err());
    assert_eq!(db.snapshot().await[&id].whole, before[&id].whole);
}

#[cfg(not(feature = "ablation"))]
pub async fn a_normal_build_can_not_switch_guards_off(db: &Db) {
    // A constant, so that a build that could would not even compile this suite.
    const { assert!(!ABLATION) };
    assert_eq!(db.queue().await.guards(), Guards::ALL);
    assert_eq!(db.store().await.guards(), Guards::ALL);
}

#[cfg(feature = "ablation")]
pub async fn a_normal_build_can_not_switch_guards_off(db: &Db) {
    // This is not a normal build; even so, all guards are in force until one is taken out.
    const { assert!(ABLATION) };
    assert_eq!(db.queue().await.guards(), Guards::ALL);
}
