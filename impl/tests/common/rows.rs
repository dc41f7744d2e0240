//! Rows put into a database by hand and read out of it, in every database's SQL. This part of the harness is also the
//! simulated database's (`sim/tests/conformance`).

use std::collections::BTreeMap;

use leaseproof_queue::rules::{Counts, Epoch, Row as TaskRow, Status};
use leaseproof_queue::store::Fenced;
use leaseproof_queue::{Claimed, NewTask, Store};

use super::Db;

/// Far enough from now that no test runs into it, in ms.
pub const HOUR_MS: i64 = 3_600_000;

/// An owner that no later start has superseded.
pub const LIVE_OWNER: &str = "live-owner";
/// An owner that a later start has superseded (A2).
pub const LOST_OWNER: &str = "lost-owner";

/// Which database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Sqlite,
    Postgres,
    /// MariaDB, or MySQL.
    MariaDb,
}

impl Db {
    /// The two owners of the tests.
    pub async fn put_owners(&self) {
        let instance =
            "INSERT INTO instances (boot_id, slot_name, host, pid, started_at_ms, nonce, superseded_by) VALUES";
        self.execute(&format!("{instance} ('{LIVE_OWNER}', NULL, 'host', 1, 0, 'n1', NULL)")).await;
        self.execute(&format!("{instance} ('{LOST_OWNER}', NULL, 'host', 1, 0, 'n2', 'somebody')")).await;
    }

    /// The one number a query answers.
    pub async fn number(&self, query: &str) -> i64 {
        self.rows(&format!("SELECT {}", self.as_text(&format!("({query})")))).await[0][0].parse().unwrap()
    }

    /// This value as text, in SQL.
    pub fn as_text(&self, value: &str) -> String {
        match self.kind() {
            Kind::Sqlite | Kind::Postgres => format!("CAST({value} AS TEXT)"),
            Kind::MariaDb => format!("CAST({value} AS CHAR)"),
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
        let payload = match self.kind() {
            Kind::Sqlite | Kind::MariaDb => "x'7b7d'",
            Kind::Postgres => "decode('7b7d', 'hex')",
        };
        let first = self.next_ids(rows.len() as i64);
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
                         {HOUR_MS}, 10000, 3000, 3, 3, 1000, 2, 300000, 'escalate', 1, 2, 3, 'put', 'test')",
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
        let whole = match self.kind() {
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
