//! A database of its own for every test: an SQLite file, a schema on the PostgreSQL server that
//! `LEASEPROOF_POSTGRES_URL` names, or a database on the MariaDB (or MySQL) server that `LEASEPROOF_MARIADB_URL` names. All
//! are gone when the [`Db`] is dropped, also after a panic.

// Every test target takes the part it needs.
#![allow(dead_code)]

mod rows;
mod session;

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use leaseproof_queue::{MYSQL_NOW_MS, Queue, SQLITE_NOW_MS, Store};
use sqlx::Connection as _;
use sqlx::sqlite::SqliteConnection;
use tokio::sync::Mutex;

pub use rows::*;
pub use session::{Session, run};
#[allow(unused_imports)]
pub use tokio::task::JoinSet;

/// A database that nobody else uses.
pub struct Db {
    kind: Kind,
    url: String,
    by_hand: Mutex<Session>,
    next_id: AtomicI64,
    place: Place,
}

enum Place {
    Directory(PathBuf),
    /// A schema on PostgreSQL, a database on MariaDB; in PostgreSQL its name is also the `application_name` of everything
    /// that uses it.
    Server {
        server: String,
        name: String,
    },
}

impl Db {
    /// An empty database, without the queue's tables.
    pub async fn empty(kind: Kind) -> Db {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("leaseproof_{}_{}_{count}", std::process::id(), since.as_nanos());
        let (url, place) = match kind {
            Kind::Sqlite => {
                let directory = std::env::temp_dir().join(&name);
                std::fs::create_dir(&directory).unwrap();
                let url = format!("sqlite:{}", directory.join("queue.db").display());
                (url, Place::Directory(directory))
            }
            Kind::Postgres => {
                let server = kind.server().unwrap();
                Session::open(kind, &server).await.execute(&format!("CREATE SCHEMA {name}")).await;
                let more = if server.contains('?') { '&' } else { '?' };
                let url = format!("{server}{more}options[search_path]={name}&application_name={name}");
                (url, Place::Server { server, name })
            }
            Kind::MariaDb => {
                let server = kind.server().unwrap();
                Session::open(kind, &server).await.execute(&format!("CREATE DATABASE {name}")).await;
                let (place, query) =
                    server.split_once('?').map_or((server.as_str(), ""), |(place, query)| (place, query));
                let (scheme, rest) = place.split_once("://").unwrap();
                let host = rest.split('/').next().unwrap();
                let query = if query.is_empty() { String::new() } else { format!("?{query}") };
                (format!("{scheme}://{host}/{name}{query}"), Place::Server { server, name })
            }
        };
        // SQLite makes the file at the first write, not now: whoever wants a missing file still finds none.
        let by_hand = match kind {
            Kind::Sqlite => Session::Sqlite(SqliteConnection::connect("sqlite::memory:").await.unwrap()),
            Kind::Postgres | Kind::MariaDb => Session::open(kind, &url).await,
        };
        Db { kind, url, by_hand: Mutex::new(by_hand), next_id: AtomicI64::new(1_000_000), place }
    }

    /// A database with the queue's tables and the two owners of the tests.
    pub async fn migrated(kind: Kind) -> Db {
        let mut db = Db::empty(kind).await;
        let queue = db.queue().await;
        queue.migrate().await.unwrap();
        queue.close().await;
        db.by_hand = Mutex::new(db.session().await);
        db.put_owners().await;
        db
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// The URL with one more parameter.
    pub fn url_with(&self, parameter: &str) -> String {
        let more = if self.url.contains('?') { '&' } else { '?' };
        format!("{}{more}{parameter}", self.url)
    }

    /// A queue with a pool of its own, as another process would have.
    pub async fn queue(&self) -> Queue {
        Queue::connect(&self.url).await.unwrap()
    }

    /// The statements, on a pool of their own.
    pub async fn store(&self) -> Store {
        self.queue().await.store().clone()
    }

    /// One more connection by hand, e.g. to hold a lock.
    pub async fn session(&self) -> Session {
        Session::open(self.kind, &self.url).await
    }

    pub async fn execute(&self, sql: &str) {
        self.by_hand.lock().await.execute(sql).await;
    }

    pub async fn try_execute(&self, sql: &str) -> Result<(), sqlx::Error> {
        self.by_hand.lock().await.try_execute(sql).await
    }

    /// Runs a statement past the checks of a table, as another program could before they were there.
    pub async fn unchecked(&self, table: &str, sql: &str) {
        match self.kind {
            Kind::Sqlite => {
                let (off, on) = ("PRAGMA ignore_check_constraints = ON", "PRAGMA ignore_check_constraints = OFF");
                self.execute(&format!("{off}; {sql}; {on}")).await;
            }
            Kind::MariaDb => {
                let switch = "SET SESSION check_constraint_checks";
                self.execute(&format!("{switch} = 0; {sql}; {switch} = 1")).await;
            }
            Kind::Postgres => {
                let checks = format!(
                    "SELECT conname::text, pg_get_constraintdef(oid)::text FROM pg_constraint \
                     WHERE conrelid = '{table}'::regclass AND contype = 'c'"
                );
                let alter = format!("ALTER TABLE {table}");
                let mut script = (String::new(), String::new());
                for check in self.rows(&checks).await {
                    script.0 += &format!("{alter} DROP CONSTRAINT {};", check[0]);
                    // Not of the rows that are there, but of whatever is written from now on.
                    let rule = check[1].trim_end_matches(" NOT VALID");
                    script.1 += &format!("{alter} ADD CONSTRAINT {} {rule} NOT VALID;", check[0]);
                }
                self.execute(&format!("{} {sql}; {}", script.0, script.1)).await;
            }
        }
    }

    pub async fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        self.by_hand.lock().await.rows(sql).await
    }

    /// So many new ids, of which this is the first.
    fn next_ids(&self, count: i64) -> i64 {
        self.next_id.fetch_add(count, Ordering::Relaxed)
    }

    /// The database's clock as SQL.
    pub fn clock(&self) -> &'static str {
        match self.kind {
            Kind::Sqlite => SQLITE_NOW_MS,
            Kind::Postgres => "leaseproof_now_ms()",
            Kind::MariaDb => MYSQL_NOW_MS,
        }
    }

    /// The database's clock says this from now on. Only PostgreSQL's, which is a function of the schema.
    pub async fn stop_clock(&self, now_ms: i64) {
        assert_eq!(self.kind, Kind::Postgres);
        let body = format!("SELECT CAST({now_ms} AS BIGINT)");
        let function = "CREATE OR REPLACE FUNCTION leaseproof_now_ms() RETURNS BIGINT LANGUAGE sql STABLE";
        self.execute(&format!("{function} AS '{body}'")).await;
    }

    /// The name of this test's schema or database; in PostgreSQL its sessions show under it in `pg_stat_activity`.
    pub fn name(&self) -> &str {
        match &self.place {
            Place::Server { name, .. } => name,
            Place::Directory(_) => "",
        }
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        match &self.place {
            Place::Directory(directory) => {
                let _ = std::fs::remove_dir_all(directory);
            }
            Place::Server { server, name } => {
                let (kind, server, name) = (self.kind, server.clone(), name.clone());
                // A runtime of its own: this one may be unwinding.
                let cleaner = std::thread::spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                    runtime.block_on(session::remove(kind, &server, &name)).map_err(std::io::Error::other)
                });
                match cleaner.join() {
                    Ok(Ok(())) => {}
                    other if std::thread::panicking() => eprintln!("a schema is left behind: {other:?}"),
                    other => panic!("a schema is left behind: {other:?}"),
                }
            }
        }
    }
}
