//! Goal: the database node behaves to sqlx as PostgreSQL would, in everything the queue relies on.
//! Method: the unforked sqlx driver, its pool included, on one simulated node against the database on another.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use leaseproof_sim::db::{Database, Open};
use leaseproof_sim::{net, room};
use madsim::runtime::{Handle, NodeHandle};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgSslMode};
use sqlx::{Executor, Row};

const SCHEMA: &str = "CREATE TABLE jobs (id BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, done BOOLEAN NOT NULL \
    DEFAULT FALSE, data BLOB, weight DOUBLE PRECISION, n BIGINT CHECK (n > 0));
    INSERT INTO jobs (id, name, n) VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', NULL);";

struct World {
    database: Arc<Database>,
    server: NodeHandle,
    client: NodeHandle,
}

fn options() -> PgConnectOptions {
    PgConnectOptions::new_without_pgpass()
        .host(&net::DATABASE.to_string())
        .port(net::DATABASE_PORT)
        .username("u")
        .database("d")
        .ssl_mode(PgSslMode::Disable)
}

fn pool(options: PgConnectOptions) -> PgPool {
    pool_of(3, options)
}

fn pool_of(connections: u32, options: PgConnectOptions) -> PgPool {
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(Duration::from_secs(30))
        .connect_lazy_with(options)
}

async fn sleep(secs: u64) {
    madsim::time::sleep(Duration::from_secs(secs)).await;
}

impl World {
    fn new() -> World {
        let database = Database::open(SCHEMA, Arc::new(Open)).unwrap();
        let served = database.clone();
        let server = Handle::current()
            .create_node()
            .name("database")
            .ip(net::DATABASE.into())
            .init(move || {
                let served = served.clone();
                async move {
                    served.serve().await.unwrap();
                }
            })
            .build();
        let client = Handle::current().create_node().name("client").ip(net::executor(0)).build();
        World { database, server, client }
    }

    /// Runs a future on the client's node.
    async fn client<T: Send + 'static>(&self, run: impl Future<Output = T> + Send + 'static) -> T {
        self.client.spawn(run).await.unwrap()
    }

    fn count(&self) -> i64 {
        self.database.read(|conn| conn.query_row("SELECT count(*) FROM jobs", [], |row| row.get(0))).unwrap()
    }
}

fn simulate<Fut: Future<Output = ()>>(main: impl FnOnce(World) -> Fut + Send + 'static) {
    room::simulate(1, || async {
        let world = World::new();
        sleep(1).await;
        main(world).await;
    })
    .unwrap();
}

fn code(error: sqlx::Error) -> String {
    error.as_database_error().and_then(|error| error.code()).unwrap_or_default().into_owned()
}

#[test]
fn every_type_and_null_survives_a_round_trip() {
    simulate(|world| async move {
        world
            .client(async {
                let pool = pool(options());
                let sql = "INSERT INTO jobs (id, name, done, data, weight, n) VALUES ($1, $2, $3, $4, $5, $6) \
                           RETURNING id, name, done, data, weight, n";
                let row = sqlx::query(sql)
                    .bind(9_i64)
                    .bind("käse")
                    .bind(true)
                    .bind(vec![0_u8, 255])
                    .bind(0.5_f64)
                    .bind(None::<i64>)
                    .fetch_one(&pool)
                    .await
                    .unwrap();
                assert_eq!(row.get::<i64, _>(0), 9);
                assert_eq!(row.get::<String, _>(1), "käse");
                assert!(row.get::<bool, _>(2));
                assert_eq!(row.get::<Vec<u8>, _>(3), [0, 255]);
                assert_eq!(row.get::<f64, _>(4), 0.5);
                assert_eq!(row.get::<Option<i64>, _>("n"), None);
            })
            .await;
    });
}

#[test]
fn a_prepared_statement_is_parsed_once_a_connection_and_reused() {
    simulate(|world| async move {
        let found = world
            .client(async {
                let pool = pool_of(1, options());
                let mut found = Vec::new();
                for id in [2_i64, 3, 2, 7] {
                    let row = sqlx::query("SELECT name FROM jobs WHERE id = $1").bind(id).fetch_optional(&pool).await;
                    found.push(row.unwrap().map(|row| row.get::<String, _>(0)));
                }
                found
            })
            .await;
        assert_eq!(found, [Some("b".into()), Some("c".into()), Some("b".into()), None]);
        assert_eq!((world.database.statements(), world.database.sessions()), (4, 1));
    });
}

#[test]
fn refusals_carry_sqlstates_and_leave_the_connection_usable() {
    simulate(|world| async move {
        world
            .client(async {
                let pool = pool_of(1, options());
                let cases = [
                    ("INSERT INTO jobs (id, name) VALUES (1, 'z')", "23505"),
                    ("INSERT INTO jobs (id, name) VALUES (5, 'a')", "23505"),
                    ("INSERT INTO jobs (id, name) VALUES (5, NULL)", "23502"),
                    ("INSERT INTO jobs (id, name, n) VALUES (5, 'z', 0)", "23514"),
                    ("SELECT * FROM nowhere", "42P01"),
                    ("SELECT missing FROM jobs", "42703"),
                    ("SELEC 1", "42601"),
                ];
                for (sql, expected) in cases {
                    assert_eq!(code(sqlx::query(sql).execute(&pool).await.unwrap_err()), expected, "{sql}");
                    assert_eq!(code(pool.execute(sql).await.unwrap_err()), expected, "simple: {sql}");
                }
                let twice = sqlx::query("INSERT INTO jobs (id, name) VALUES (5, 'a')").execute(&pool).await;
                assert_eq!(twice.unwrap_err().as_database_error().unwrap().constraint(), Some("jobs_name_key"));
            })
            .await;
        assert_eq!(world.database.sessions(), 1, "an error does not cost the connection");
        assert_eq!(world.count(), 3);
    });
}

#[test]
fn a_dropped_transaction_is_rolled_back_and_a_committed_one_stays() {
    simulate(|world| async move {
        world
            .client(async {
                let pool = pool(options());
                let mut tx = pool.begin().await.unwrap();
                let gone = sqlx::query("DELETE FROM jobs WHERE id > $1").bind(1_i64).execute(&mut *tx).await.unwrap();
                assert_eq!(gone.rows_affected(), 2);
                drop(tx);
                let left: i64 = sqlx::query("SELECT count(*) FROM jobs").fetch_one(&pool).await.unwrap().get(0);
                assert_eq!(left, 3);
                let mut tx = pool.begin().await.unwrap();
                sqlx::query("DELETE FROM jobs WHERE id = 3").execute(&mut *tx).await.unwrap();
                tx.commit().await.unwrap();
            })
            .await;
        assert_eq!(world.count(), 2);
    });
}

#[test]
fn a_failed_transaction_accepts_nothing_but_its_end_and_commits_nothing() {
    simulate(|world| async move {
        world
            .client(async {
                let pool = pool(options());
                let mut tx = pool.begin().await.unwrap();
                sqlx::query("DELETE FROM jobs WHERE id = 3").execute(&mut *tx).await.unwrap();
                sqlx::query("INSERT INTO jobs (id, name) VALUES (1, 'z')").execute(&mut *tx).await.unwrap_err();
                let refused = sqlx::query("SELECT 1").execute(&mut *tx).await.unwrap_err();
                assert_eq!(code(refused), "25P02");
                tx.commit().await.unwrap();
            })
            .await;
        assert_eq!(world.count(), 3, "COMMIT of a failed transaction is a rollback");
    });
}

#[test]
fn a_savepoint_saves_the_rest_of_the_transaction() {
    simulate(|world| async move {
        world
            .client(async {
                let pool = pool(options());
                let mut tx = pool.begin().await.unwrap();
                sqlx::query("DELETE FROM jobs WHERE id = 3").execute(&mut *tx).await.unwrap();
                tx.execute("SAVEPOINT s").await.unwrap();
                sqlx::query("INSERT INTO jobs (id, name) VALUES (1, 'z')").execute(&mut *tx).await.unwrap_err();
                tx.execute("ROLLBACK TO SAVEPOINT s").await.unwrap();
                tx.commit().await.unwrap();
            })
            .await;
        assert_eq!(world.count(), 2);
    });
}

#[test]
fn transactions_wait_for_each_other_in_order_of_arrival_and_time_out_as_told() {
    simulate(|world| async move {
        let order = world
            .client(async {
                let pool = pool(options());
                let mut first = pool.begin().await.unwrap();
                sqlx::query("UPDATE jobs SET n = 7 WHERE id = 1").execute(&mut *first).await.unwrap();
                let hasty = PgPoolOptions::new().connect_lazy_with(options().options([("lock_timeout", "1000")]));
                let refused = sqlx::query("UPDATE jobs SET n = 8 WHERE id = 1").execute(&hasty).await.unwrap_err();
                assert_eq!(code(refused), "55P03");
                let order = Arc::new(std::sync::Mutex::new(Vec::new()));
                let waiting: Vec<_> = (0..2)
                    .map(|n| {
                        let (pool, order) = (pool.clone(), order.clone());
                        madsim::task::spawn(async move {
                            madsim::time::sleep(Duration::from_millis(200 * n)).await;
                            sqlx::query("UPDATE jobs SET n = n + 1 WHERE id = 1").execute(&pool).await.unwrap();
                            order.lock().unwrap().push(n);
                        })
                    })
                    .collect();
                sleep(5).await;
                assert!(order.lock().unwrap().is_empty());
                first.commit().await.unwrap();
                for task in waiting {
                    task.await.unwrap();
                }
                Arc::into_inner(order).unwrap().into_inner().unwrap()
            })
            .await;
        assert_eq!(order, [0, 1]);
        let n: i64 = world.database.read(|c| c.query_row("SELECT n FROM jobs WHERE id = 1", [], |r| r.get(0))).unwrap();
        assert_eq!(n, 9);
    });
}

#[test]
fn a_session_that_idles_in_a_transaction_is_ended_when_its_settings_say_so() {
    simulate(|world| async move {
        world
            .client(async {
                let strict = pool(options().options([("idle_in_transaction_session_timeout", "2s")]));
                let mut idle = strict.begin().await.unwrap();
                sqlx::query("DELETE FROM jobs").execute(&mut *idle).await.unwrap();
                let begun = madsim::time::Instant::now();
                sqlx::query("UPDATE jobs SET n = 5 WHERE id = 1").execute(&pool(options())).await.unwrap();
                assert!((1900..2100).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
                idle.commit().await.unwrap_err();
            })
            .await;
        assert_eq!(world.count(), 3);
    });
}

#[test]
fn the_death_of_a_client_ends_its_session_and_its_transaction() {
    simulate(|world| async move {
        let task = world.client.spawn(async {
            let pool = pool(options());
            let mut tx = pool.begin().await.unwrap();
            sqlx::query("DELETE FROM jobs").execute(&mut *tx).await.unwrap();
            std::future::pending::<()>().await;
        });
        sleep(1).await;
        assert_eq!(world.count(), 0, "the observer sees the open transaction");
        Handle::current().kill(world.client.id());
        sleep(1).await;
        assert_eq!(world.count(), 3);
        assert!(task.await.is_err());
    });
}

#[test]
fn the_pool_survives_a_restart_of_the_database_which_keeps_what_was_committed() {
    simulate(|world| async move {
        let task = world.client.spawn(async {
            let pool = pool(options());
            pool.execute("INSERT INTO jobs (id, name) VALUES (4, 'd')").await.unwrap();
            let mut tx = pool.begin().await.unwrap();
            sqlx::query("DELETE FROM jobs").execute(&mut *tx).await.unwrap();
            sleep(10).await;
            let broken = tx.commit().await.unwrap_err();
            assert!(matches!(broken, sqlx::Error::Io(_)), "{broken:?}");
            let left: i64 = sqlx::query("SELECT count(*) FROM jobs").fetch_one(&pool).await.unwrap().get(0);
            left
        });
        sleep(2).await;
        Handle::current().kill(world.server.id());
        sleep(2).await;
        Handle::current().restart(world.server.id());
        assert_eq!(task.await.unwrap(), 4);
        assert_eq!(world.count(), 4);
    });
}

#[test]
fn a_simple_query_may_hold_several_statements() {
    simulate(|world| async move {
        world
            .client(async {
                let pool = pool(options());
                let done = pool.execute("DELETE FROM jobs WHERE id = 1; UPDATE jobs SET n = 4; SELECT ';'").await;
                assert_eq!(done.unwrap().rows_affected(), 4);
            })
            .await;
        assert_eq!(world.count(), 2);
    });
}
