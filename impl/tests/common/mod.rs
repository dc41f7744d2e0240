//! A database of its own for every test: an SQLite file, a schema on the PostgreSQL server that
//! `LEASEPROOF_POSTGRES_URL` names, or a database on the MariaDB (or MySQL) server that `LEASEPROOF_MARIADB_URL` names. All
//! are gone when the [`Db`] is dropped, also after a panic.

// Every test target takes the part it needs.
#![allow(dead_code)]

mod session;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use leaseproof_queue::rules::{Counts, Epoch, Row as TaskRow, Status};
use leaseproof_queue::store::Fenced;
use leaseproof_queue::{Claimed, MYSQL_NOW_MS, NewTask, Queue, SQLITE_NOW_MS, Store};
use sqlx::Connection as _;
use sqlx::sqlite::SqliteConnection;
use tokio::sync::Mutex;

pub use session::{Kind, Session, run};

/// Far enough from now that no test runs into it, in ms.
pub const HOUR_MS: i64 = 3_600_000;

/// An owner that no later start has superseded.
pub const LIVE_OWNER: &str = "live-owner";
/// An owner that a later start has superseded (A2).
pub const LOST_OWNER: &str = "lost-owner";

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
        let instance =
            "INSERT INTO instances (boot_id, slot_name, host, pid, started_at_ms, nonce, superseded_by) VALUES";
        db.execute(&format!("{instance} ('{LIVE_OWNER}', NULL, 'host', 1, 0, 'n1', NULL)")).await;
        db.execute(&format!("{instance} ('{LOST_OWNER}', NULL, 'host', 1, 0, 'n2', 'somebody')")).await;
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

    pub async fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        self.by_hand.lock().await.rows(sql).await
    }

    /// The one number a query answers.
    pub async fn number(&self, query: &str) -> i64 {
        self.rows(&format!("SELECT {}", self.as_text(&format!("({query})")))).await[0][0].parse().unwrap()
    }

    /// This value as text, in SQL.
    pub fn as_text(&self, value: &str) -> String {
        match self.kind {
            Kind::Sqlite | Kind::Postgres => format!("CAST({value} AS TEXT)"),
            Kind::MariaDb => format!("CAST({value} AS CHAR)"),
        }
    }

    /// The database's clock as SQL.
    pub fn clock(&self) -> &'static str {
        match self.kind {
            Kind::Sqlite => SQLITE_NOW_MS,
            Kind::Postgres => "leaseproof_now_ms()",
            Kind::MariaDb => MYSQL_NOW_MS,
        }
    }

    /// The name of this test's schema or database; in PostgreSQL its sessions show under it in `pg_stat_activity`.
    pub fn name(&self) -> &str {
        match &self.place {
            Place::Server { name, .. } => name,
            Place::Directory(_) => "",
        }
    }

    /// Ends a lease: its owner was last heard of an hour ago.
    pub async fn end_lease(&self, id: i64) {
        self.execute(&format!("UPDATE tasks SET lease_until_ms = {} - 1000 WHERE id = {id}", self.clock())).await;
    }

    /// Makes a task due.
    pub async fn make_due(&self, id: i64) {
        self.execute(&format!("UPDATE tasks SET due_at_ms = {} - 1 WHERE id = {id}", self.clock())).await;
    }

    /// Writes a row in this situation and returns its id.
    pub async fn put(&self, row: TaskRow) -> i64 {
        self.put_all(&[row]).await[0]
    }

    /// Writes rows in these situations and returns their ids. Every time is an hour away, so that none changes sides
    /// while a test runs. Each has failed once and lost two owners, and has three entries
    /// in its record already.
    pub async fn put_all(&self, rows: &[TaskRow]) -> Vec<i64> {
        let now = self.number(&format!("SELECT {}", self.clock())).await;
        let payload = match self.kind {
            Kind::Sqlite | Kind::MariaDb => "x'7b7d'",
            Kind::Postgres => "decode('7b7d', 'hex')",
        };
        let first = self.next_id.fetch_add(rows.len() as i64, Ordering::Relaxed);
        let ids: Vec<i64> = (first..).take(rows.len()).collect();
        let mut script = String::from("BEGIN;");
        let numbered: Vec<(i64, TaskRow)> = ids.iter().copied().zip(rows.iter().copied()).collect();
        for rows in numbered.chunks(500) {
            let values: Vec<String> = rows
                .iter()
                .map(|(id, row)| {
                    let side = |yes: bool| if yes { now + HOUR_MS } else { now - HOUR_MS };
                    format!(
                        "({id}, 'kind', {payload}, '{}', {}, {}, '{}', {}, {}, 0, {}, {}, {now}, \
                         30000, 10000, 3000, 3, 3, 1000, 2, 300000, 'escalate', 1, 2, 3, 'put', 'test')",
                        row.status,
                        row.epoch,
                        side(!row.due),
                        if row.owner_superseded { LOST_OWNER } else { LIVE_OWNER },
                        now - HOUR_MS,
                        now - HOUR_MS,
                        side(row.lease_live),
                        side(!row.overrun),
                    )
                })
                .collect();
            script += "INSERT INTO tasks (id, kind, payload, status, epoch, due_at_ms, owner, claimed_at_ms, \
                heartbeat_at_ms, beat_gap_ms, lease_until_ms, overrun_at_ms, created_at_ms, lease_ms, heartbeat_ms, \
                fence_margin_ms, max_attempts, max_interruptions, backoff_base_ms, backoff_factor, backoff_max_ms, \
                on_exhausted, attempts, interruptions, record_no, last_verb, last_actor) VALUES ";
            script += &values.join(", ");
            script += ";";
        }
        self.execute(&(script + "COMMIT;")).await;
        ids
    }

    /// All tasks as they stand.
    pub async fn snapshot(&self) -> BTreeMap<i64, Snapshot> {
        let whole = match self.kind {
            Kind::Postgres => "CAST(tasks AS TEXT)".to_string(),
            Kind::Sqlite => {
                let columns = self.rows("SELECT name FROM pragma_table_info('tasks')").await;
                columns.iter().map(|column| format!("quote({})", column[0])).collect::<Vec<_>>().join("||','||")
            }
            Kind::MariaDb => {
                let sql = "SELECT CAST(column_name AS CHAR) FROM information_schema.columns \
                           WHERE table_schema = DATABASE() AND table_name = 'tasks'";
                let columns: Vec<String> = self
                    .rows(sql)
                    .await
                    .iter()
                    .map(|column| format!("QUOTE(CONVERT({} USING utf8mb4))", column[0]))
                    .collect();
                format!("CONCAT_WS(',', {})", columns.join(", "))
            }
        };
        let count = |table| self.as_text(&format!("(SELECT count(*) FROM {table} WHERE task_id = tasks.id)"));
        let [id, epoch, record_no, attempts, interruptions] =
            ["id", "epoch", "record_no", "attempts", "interruptions"].map(|column| self.as_text(column));
        let sql = format!(
            "SELECT {id}, status, {epoch}, {record_no}, {}, {}, {attempts}, {interruptions}, {whole} FROM tasks",
            count("task_events"),
            count("effects")
        );
        let read = |row: Vec<String>| {
            let [id, status, epoch, record_no, events, effects, attempts, interruptions, whole] =
                row.try_into().unwrap();
            let number = |text: &str| text.parse::<i64>().unwrap();
            let snapshot = Snapshot {
                status: Status::from_name(&status).unwrap(),
                epoch: epoch.parse().unwrap(),
                record_no: number(&record_no),
                events: number(&events),
                effects: number(&effects),
                counts: Counts { attempts: attempts.parse().unwrap(), interruptions: interruptions.parse().unwrap() },
                whole,
            };
            (number(&id), snapshot)
        };
        self.rows(&sql).await.into_iter().map(read).collect()
    }
}

/// A task as it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    pub status: Status,
    pub epoch: Epoch,
    pub record_no: i64,
    /// How many entries its record has.
    pub events: i64,
    /// How many entries its effect journal has.
    pub effects: i64,
    /// How often it has failed, and how often its owners were lost.
    pub counts: Counts,
    /// Every column, to see that nothing at all has changed.
    pub whole: String,
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

/// A task of this status whose lease, if any, is live; due at once.
pub fn row(status: Status, epoch: Epoch) -> TaskRow {
    TaskRow { status, epoch, due: true, lease_live: true, owner_superseded: false, overrun: false }
}

/// A write by `worker`.
pub fn by(id: i64, epoch: Epoch) -> Fenced<'static> {
    Fenced { id, epoch, actor: "worker", note: None }
}

/// Puts in a task that is due at once.
pub async fn enqueue(store: &Store) -> i64 {
    store.enqueue(&NewTask::new("kind", "{}"), "client").await.unwrap().id
}

/// Claims the one task there is to claim.
pub async fn claim_one(store: &Store, owner: &str) -> Claimed {
    let mut claimed = store.claim(owner, 10).await.unwrap();
    assert_eq!(claimed.len(), 1, "one task to claim");
    claimed.remove(0)
}
