//! A simulated machine with a database, and one whose case it is: what `common` of `impl/tests` is to real databases.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use leaseproof_queue::{Queue, Store, sqlite_schema};
use leaseproof_sim::db::{Database, Open};
use leaseproof_sim::{net, room};
use madsim::runtime::Handle;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use sqlx::postgres::{PgConnectOptions, PgSslMode};

// It knows databases that this is not.
#[allow(dead_code)]
#[path = "../../../impl/tests/common/rows.rs"]
mod rows;

pub use rows::*;

/// The clock that the node gives to SQLite: virtual time.
const CLOCK: &str = "leaseproof_now_ms()";

/// Runs one case on a machine of its own, against a fresh database on another.
pub fn run<Fut>(case: impl FnOnce(Db) -> Fut + Send + 'static)
where
    Fut: Future<Output = ()> + Send + 'static,
{
    let simulated = room::simulate(1, || async move {
        let database = Database::open(&sqlite_schema(CLOCK), Arc::new(Open)).unwrap();
        let server = Handle::current().create_node().name("database").ip(net::DATABASE.into()).build();
        server.spawn(database.clone().serve());
        let client = Handle::current().create_node().name("client").ip(net::executor(0)).build();
        madsim::time::sleep(std::time::Duration::from_secs(1)).await;
        let db = Db { database, next_id: AtomicI64::new(1_000_000) };
        db.put_owners().await;
        client.spawn(case(db)).await.unwrap();
    });
    simulated.unwrap();
}

/// A database that nobody else uses. SQL by hand goes to its executor, past the network: so it is SQLite's.
pub struct Db {
    database: Arc<Database>,
    next_id: AtomicI64,
}

impl Db {
    pub fn kind(&self) -> Kind {
        Kind::Sqlite
    }

    /// A queue with a pool of its own, as another process would have.
    pub async fn queue(&self) -> Queue {
        let options = PgConnectOptions::new_without_pgpass()
            .host(&net::DATABASE.to_string())
            .port(net::DATABASE_PORT)
            .username("queue")
            .ssl_mode(PgSslMode::Disable);
        Queue::with_pg_options(options)
    }

    /// The statements, on a pool of their own.
    pub async fn store(&self) -> Store {
        self.queue().await.store().clone()
    }

    pub async fn execute(&self, sql: &str) {
        self.try_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    pub async fn try_execute(&self, sql: &str) -> Result<(), rusqlite::Error> {
        self.database.read(|connection| connection.execute_batch(sql))
    }

    /// The rows of a query; NULL reads as `NULL`.
    pub async fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        let text = |value: ValueRef<'_>| match value {
            ValueRef::Null => "NULL".to_string(),
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
            other => panic!("{sql}: {other:?}"),
        };
        let read = |connection: &rusqlite::Connection| {
            let mut statement = connection.prepare(sql)?;
            let columns = statement.column_count();
            let rows = statement.query_map([], |row| (0..columns).map(|i| row.get_ref(i).map(text)).collect())?;
            rows.collect()
        };
        self.database.read(read).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// So many new ids, of which this is the first.
    fn next_ids(&self, count: i64) -> i64 {
        self.next_id.fetch_add(count, Ordering::Relaxed)
    }

    /// The database's clock says this from now on.
    pub async fn stop_clock(&self, now_ms: i64) {
        let stop = |connection: &rusqlite::Connection| {
            connection.create_scalar_function("leaseproof_now_ms", 0, FunctionFlags::SQLITE_UTF8, move |_| Ok(now_ms))
        };
        self.database.read(stop).unwrap();
    }

    /// The database's clock as SQL.
    pub fn clock(&self) -> &'static str {
        CLOCK
    }
}

/// Tasks that run at the same time: what the cases use of tokio's, which madsim has not.
pub struct JoinSet<T>(Vec<tokio::task::JoinHandle<T>>);

impl<T: Send + 'static> JoinSet<T> {
    pub fn new() -> JoinSet<T> {
        JoinSet(Vec::new())
    }

    pub fn spawn(&mut self, task: impl Future<Output = T> + Send + 'static) {
        self.0.push(tokio::spawn(task));
    }

    /// What they end with.
    pub async fn join_all(self) -> Vec<T> {
        let mut ended = Vec::new();
        for task in self.0 {
            ended.push(task.await.unwrap());
        }
        ended
    }
}
