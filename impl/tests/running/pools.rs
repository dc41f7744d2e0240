//! A pool of one connection, shared by claims, handlers, reports and a sweeper.

use std::time::Duration;

use leaseproof_queue::rules::Status;
use leaseproof_queue::{CallError, Queue, Sweeper, TaskError, Worker};
use sqlx::postgres::PgPoolOptions;

use crate::common::{Db, Kind};
use crate::support::{NO_INSTRUMENT, at_once, gate, in_an_hour, put, start, until, until_status};

/// Nothing of the queue holds a connection while it waits for another one.
pub async fn one_connection_serves_a_worker_of_several_slots_and_its_sweeper(db: &Db) {
    let pool = PgPoolOptions::new().max_connections(1).connect(db.url()).await.unwrap();
    let queue = Queue::from_pg_pool(pool);
    let mut ids = Vec::new();
    for _ in 0..12 {
        ids.push(put(&queue, at_once()).await);
    }
    let handler = async |ctx: leaseproof_queue::Ctx| {
        let call = async |_| Ok::<_, CallError>("1".into());
        ctx.effect("charge", NO_INSTRUMENT, call).await.map(|_| "1".into())
    };
    let sweeper = Sweeper::new(queue.clone(), Duration::from_millis(10));
    let worker = Worker::builder(queue).poll(Duration::from_millis(10)).slots(4).sweeper(sweeper);
    let worker = start(worker.handler("kind", handler));
    let looking = db.queue().await;
    for id in ids {
        let shown = until_status(&looking, id, Status::Success).await;
        assert_eq!((shown.task.attempts, shown.task.interruptions), (0, 0));
    }
    worker.stop().await;
}

/// A handler that keeps the only connection to itself waits for nobody but itself: each statement of the queue is then not
/// applied, and says so within its deadline. The lease is renewed meanwhile, on a connection of the heartbeat's own, and
/// once the handler lets go everything goes on.
pub async fn a_handler_that_holds_the_only_connection_holds_up_the_queue_and_loses_nothing(db: &Db) {
    let pool = PgPoolOptions::new().max_connections(1).connect(db.url()).await.unwrap();
    let queue = Queue::from_pg_pool(pool.clone()).deadline(Duration::from_millis(100));
    let looking = db.queue().await;
    let policy = leaseproof_queue::rules::Policy { lease_ms: 1_500, ..crate::support::short_lease() };
    let (id, later) = (put(&looking, policy).await, put(&looking, in_an_hour()).await);
    let handler = move |ctx: leaseproof_queue::Ctx| {
        let pool = pool.clone();
        async move {
            if ctx.task().id == id {
                let own = pool.acquire().await.map_err(|error| TaskError::Retryable(error.to_string()))?;
                tokio::time::sleep(Duration::from_millis(2_000)).await;
                drop(own);
            }
            let call = async |_| Ok::<_, CallError>("1".into());
            ctx.effect("charge", NO_INSTRUMENT, call).await.map(|_| "1".into())
        }
    };
    let worker = start(Worker::builder(queue).poll(Duration::from_millis(10)).slots(1).handler("kind", handler));
    for id in [id, later] {
        let shown = until_status(&looking, id, Status::Success).await;
        assert_eq!((shown.task.epoch, shown.task.attempts), (1, 0), "{shown:#?}");
    }
    worker.stop().await;
}

/// A pool whose maker says by a hook which schema is meant, and not in its URL.
async fn hooked(db: &Db) -> Queue {
    let path = format!("SET search_path = {}", db.name());
    let options = PgPoolOptions::new().max_connections(4).min_connections(2).after_connect(move |connection, _| {
        let path = path.clone();
        Box::pin(async move { sqlx::Executor::execute(connection, sqlx::AssertSqlSafe(path)).await.map(|_| ()) })
    });
    Queue::from_pg_pool(options.connect(&Kind::Postgres.server().unwrap()).await.unwrap())
}

/// The connections that the queue makes for itself are made as the caller's pool makes them.
pub async fn heartbeat_and_migration_keep_the_hooks_of_the_caller_s_pool(db: &Db) {
    let empty = Db::empty(db.kind()).await;
    assert_eq!(hooked(&empty).await.migrate().await.unwrap(), 0);
    empty.queue().await.check_schema().await.unwrap();

    let queue = hooked(db).await;
    let id = put(&queue, crate::support::short_lease()).await;
    let (door, mut keeper) = gate();
    let handler = move |_| {
        let door = door.clone();
        async move {
            door.pass().await;
            Ok("1".into())
        }
    };
    let worker = start(Worker::builder(queue.clone()).poll(Duration::from_millis(10)).handler("kind", handler));
    keeper.arrival().await;
    until(&queue, id, |shown| shown.task.heartbeat_at_ms > shown.task.claimed_at_ms).await;
    keeper.open();
    until_status(&queue, id, Status::Success).await;
    worker.stop().await;
}
