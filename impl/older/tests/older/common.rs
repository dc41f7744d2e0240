//! A database of its own for every test, on the same servers as the queue's conformance suite.

#[path = "../../../tests/common/session.rs"]
mod session;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use leaseproof_older_designs::Table;
use leaseproof_rules::Status;
use sqlx::Executor as _;
use sqlx::mysql::MySqlPoolOptions;

pub use session::{Session, run};

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Sqlite,
    Postgres,
    MariaDb,
}

/// A database that nobody else uses, with the table of the older designs. Gone when dropped.
pub struct Db {
    pub kind: Kind,
    pub url: String,
    place: Place,
}

enum Place {
    Directory(PathBuf),
    Server { server: String, name: String },
}

impl Db {
    pub async fn migrated(kind: Kind) -> Db {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("leaseproof_older_{}_{}_{count}", std::process::id(), since.as_nanos());
        let (url, place) = match kind.server() {
            None => {
                let directory = std::env::temp_dir().join(&name);
                std::fs::create_dir(&directory).unwrap();
                (format!("sqlite:{}", directory.join("older.db").display()), Place::Directory(directory))
            }
            Some(server) if kind == Kind::Postgres => {
                Session::open(kind, &server).await.execute(&format!("CREATE SCHEMA {name}")).await;
                let more = if server.contains('?') { '&' } else { '?' };
                let url = format!("{server}{more}options[search_path]={name}&application_name={name}");
                (url, Place::Server { server, name })
            }
            Some(server) => {
                Session::open(kind, &server).await.execute(&format!("CREATE DATABASE {name}")).await;
                let (scheme, rest) = server.split_once("://").unwrap();
                let host = rest.split(['/', '?']).next().unwrap();
                (format!("{scheme}://{host}/{name}"), Place::Server { server, name })
            }
        };
        let db = Db { kind, url, place };
        db.table(1).migrate().await.unwrap();
        db
    }

    /// Over so many connections of its own, as another process would have.
    pub fn table(&self, connections: u32) -> Table {
        Table::open(&self.url, connections, PATIENCE).unwrap()
    }

    /// The same, with little patience for a free connection.
    pub fn hasty_table(&self, connections: u32) -> Table {
        Table::open(&self.url, connections, Duration::from_millis(300)).unwrap()
    }

    /// The same, with the session settings given as a parameter of the URL. PostgreSQL only.
    pub fn table_with(&self, parameter: &str) -> Table {
        Table::open(&format!("{}&{parameter}", self.url), 4, PATIENCE).unwrap()
    }

    /// The same, with the shortest wait for a lock that is one. MariaDB only.
    pub fn mariadb_table_that_waits_a_second(&self) -> Table {
        let pool =
            MySqlPoolOptions::new().max_connections(2).acquire_timeout(PATIENCE).after_connect(|connection, _| {
                Box::pin(
                    async move { connection.execute("SET SESSION innodb_lock_wait_timeout = 1").await.map(|_| ()) },
                )
            });
        Table::on_mysql(pool.connect_lazy(&self.url).unwrap())
    }

    pub async fn session(&self) -> Session {
        Session::open(self.kind, &self.url).await
    }

    /// So many PENDING tasks.
    pub async fn tasks(&self, count: usize) -> Vec<i64> {
        let table = self.table(1);
        let mut ids = Vec::new();
        for _ in 0..count {
            ids.push(table.enqueue("test", b"{}").await.unwrap());
        }
        ids
    }

    /// What everybody sees.
    pub async fn status(&self, id: i64) -> Status {
        self.table(1).status(id).await.unwrap().unwrap()
    }

    /// How many sessions of this test wait for a lock, on a server.
    async fn waiting(&self) -> usize {
        let Place::Server { name, .. } = &self.place else { return 0 };
        let sql = match self.kind {
            Kind::Postgres => format!(
                "SELECT CAST(pid AS TEXT) FROM pg_stat_activity WHERE application_name = '{name}' AND wait_event_type = 'Lock'"
            ),
            _ => format!(
                "SELECT CAST(id AS CHAR) FROM information_schema.processlist WHERE db = '{name}' \
                 AND state = 'Waiting for table metadata lock'"
            ),
        };
        self.session().await.rows(&sql).await.len()
    }

    /// Waits until so many sessions of this test wait for a lock.
    pub async fn until_waiting(&self, sessions: usize) {
        let began = Instant::now();
        while self.waiting().await != sessions {
            assert!(began.elapsed() < PATIENCE, "{} wait", self.waiting().await);
            tokio::time::sleep(Duration::from_millis(5)).await;
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
