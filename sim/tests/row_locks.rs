//! Goal: with row locks the database node is to open transactions what PostgreSQL is: writers of different rows do not meet,
//! readers see what was committed. Method: the unforked driver, as in `database.rs`.

// A test says what it expects by failing.
#![allow(clippy::unwrap_used)]

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use leaseproof_sim::db::{Database, Open};
use leaseproof_sim::{net, room};
use madsim::runtime::{Handle, NodeHandle};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgSslMode};
use sqlx::{Executor, Postgres, Row, Transaction};

const SCHEMA: &str =
    "CREATE TABLE jobs (id BIGINT PRIMARY KEY, n BIGINT NOT NULL); INSERT INTO jobs VALUES (1, 1), (2, 2);";
const ADD: &str = "/* leaseproof:complete id=$1 */ UPDATE jobs SET n = n + 10 WHERE id = $1";

fn pool_of(connections: u32) -> PgPool {
    let options = PgConnectOptions::new_without_pgpass().host(&net::DATABASE.to_string()).port(net::DATABASE_PORT);
    let options = options.username("u").database("d").ssl_mode(PgSslMode::Disable);
    PgPoolOptions::new().max_connections(connections).connect_lazy_with(options)
}

fn simulate<Fut: Future<Output = ()> + Send + 'static>(
    main: impl FnOnce(PgPool) -> Fut + Send + 'static,
) -> Arc<Database> {
    room::simulate(1, || async {
        let (database, client) = world().await;
        client.spawn(async move { main(pool_of(4)).await }).await.unwrap();
        database
    })
    .unwrap()
}

async fn world() -> (Arc<Database>, NodeHandle) {
    let database = Database::with_row_locks(SCHEMA, Arc::new(Open)).unwrap();
    let served = database.clone();
    let serve = move || {
        let served = served.clone();
        async move {
            served.serve().await.unwrap();
        }
    };
    Handle::current().create_node().name("database").ip(net::DATABASE.into()).init(serve).build();
    let client = Handle::current().create_node().name("client").ip(net::executor(0)).build();
    madsim::time::sleep(Duration::from_secs(1)).await;
    (database, client)
}

async fn add(open: &mut Transaction<'static, Postgres>, id: i64) -> Result<u64, String> {
    let done = sqlx::query(ADD).bind(id).execute(&mut **open).await;
    done.map(|done| done.rows_affected()).map_err(code)
}

fn code(error: sqlx::Error) -> String {
    error.as_database_error().and_then(|error| error.code()).unwrap_or_default().into_owned()
}

async fn values(on: impl Executor<'_, Database = Postgres>) -> Vec<i64> {
    let rows = sqlx::query("SELECT n FROM jobs ORDER BY id").fetch_all(on).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[test]
fn writers_of_different_rows_do_not_meet_and_readers_see_what_was_committed() {
    simulate(|pool| async move {
        let (mut one, mut two) = (pool.begin().await.unwrap(), pool.begin().await.unwrap());
        assert_eq!((add(&mut one, 1).await, add(&mut two, 2).await), (Ok(1), Ok(1)));
        assert_eq!(values(&pool).await, [1, 2]);
        assert_eq!(values(&mut *one).await, [11, 2], "its own write");
        one.commit().await.unwrap();
        assert_eq!(values(&mut *two).await, [11, 12], "READ COMMITTED");
        two.rollback().await.unwrap();
        assert_eq!(values(&pool).await, [11, 2]);
    });
}

#[test]
fn who_meets_a_lock_waits_as_long_as_it_says() {
    simulate(|pool| async move {
        let mut first = pool.begin().await.unwrap();
        add(&mut first, 1).await.unwrap();
        let narrow = pool_of(1);
        let mut hasty = narrow.begin().await.unwrap();
        hasty.execute("SET LOCAL lock_timeout = '1ms'").await.unwrap();
        assert_eq!(add(&mut hasty, 1).await, Err("55P03".into()));
        hasty.rollback().await.unwrap();
        let mut none = narrow.begin().await.unwrap();
        let read = "/* leaseproof:look id=$1 */ SELECT n FROM jobs WHERE id = $1 FOR UPDATE NOWAIT";
        let refused = sqlx::query(read).bind(1_i64).fetch_one(&mut *none).await.unwrap_err();
        assert_eq!(code(refused), "55P03");
        none.rollback().await.unwrap();
        // The same connection, no longer hasty, waits; and adds to what was committed meanwhile.
        let waiting =
            madsim::task::spawn(
                async move { sqlx::query(ADD).bind(1_i64).execute(&narrow).await.unwrap().rows_affected() },
            );
        madsim::time::sleep(Duration::from_secs(60)).await;
        first.commit().await.unwrap();
        assert_eq!(waiting.await.unwrap(), 1);
        assert_eq!(values(&pool).await, [21, 2]);
    });
}

#[test]
fn the_death_of_a_client_frees_its_rows_and_is_noted() {
    room::simulate(1, || async {
        let (database, client) = world().await;
        client.spawn(async {
            let pool = pool_of(1);
            let mut open = pool.begin().await.unwrap();
            add(&mut open, 1).await.unwrap();
            std::future::pending::<()>().await;
        });
        madsim::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(database.longest().rolled_back, None);
        Handle::current().kill(client.id());
        madsim::time::sleep(Duration::from_secs(1)).await;
        let longest = database.longest();
        assert!(longest.rolled_back.is_some());
        assert!(longest.transaction >= longest.lock && longest.lock > Duration::from_secs(9), "{longest:?}");
        let n: i64 = database.read(|c| c.query_row("SELECT n FROM jobs WHERE id = 1", [], |r| r.get(0))).unwrap();
        assert_eq!(n, 1);
    })
    .unwrap();
}

#[test]
fn what_it_can_not_lock_it_refuses() {
    simulate(|pool| async move {
        for sql in ["UPDATE jobs SET n = 0", "SAVEPOINT s"] {
            let mut open = pool.begin().await.unwrap();
            assert_eq!(code(open.execute(sql).await.unwrap_err()), "0A000", "{sql}");
        }
    });
}
