//! The statements, and the three databases behind one face.

use leaseproof_rules::{Status, TRANSITIONS, Verb};
use sqlx::mysql::{MySql, MySqlPool};
use sqlx::postgres::{PgPool, Postgres};
use sqlx::sqlite::{Sqlite, SqlitePool};
use sqlx::{AssertSqlSafe, Executor as _};

/// The statuses of these designs. RETRY_WAIT and WAIT_MANUAL came with the lease.
pub(crate) const STATUSES: [Status; 4] = [Status::Pending, Status::Running, Status::Success, Status::Fail];

/// How every statement begins that reads or writes one task: the mark by which the queue's own statements are known too.
fn tag(name: &str) -> String {
    format!("/* leaseproof:{name} id=$1 */ ")
}

/// The compare-and-set that takes a verb's edge to `to`, from wherever the rules let it come in these designs.
pub(crate) fn compare_and_set(verb: Verb, to: Status) -> String {
    let edges = TRANSITIONS.iter().filter(|edge| edge.verb == verb && edge.to == to && STATUSES.contains(&edge.from));
    let from = list(edges.map(|edge| edge.from));
    format!("{}UPDATE older_tasks SET status = '{to}' WHERE id = $1 AND status IN ({from})", tag(verb.name()))
}

/// Reads one task, plainly or with its lock.
pub(crate) fn read(locking: &str) -> String {
    format!("{}SELECT id, kind, payload, status FROM older_tasks WHERE id = $1{locking}", tag("look"))
}

/// The next tasks after an id that can be claimed.
pub(crate) fn candidates(page: usize) -> String {
    let pending = Status::Pending;
    format!("SELECT id FROM older_tasks WHERE status = '{pending}' AND id > $1 ORDER BY id LIMIT {page}")
}

/// Puts a task in.
pub(crate) fn enqueue(returning: &str) -> String {
    format!("INSERT INTO older_tasks (kind, payload, status) VALUES ($1, $2, '{}'){returning}", Status::Pending)
}

fn list(statuses: impl Iterator<Item = Status>) -> String {
    statuses.map(|status| format!("'{status}'")).collect::<Vec<_>>().join(", ")
}

/// The table on SQLite as SQL text, for whoever executes the statements elsewhere.
pub fn sqlite_schema() -> String {
    schema("id INTEGER PRIMARY KEY AUTOINCREMENT", "TEXT", "BLOB")
}

fn schema(id: &str, text: &str, bytes: &str) -> String {
    let statuses = list(STATUSES.into_iter());
    format!(
        "CREATE TABLE IF NOT EXISTS older_tasks ({id}, kind {text} NOT NULL, payload {bytes} NOT NULL, \
         status {text} NOT NULL CHECK (status IN ({statuses})))"
    )
}

/// Does the same with whichever database it is.
macro_rules! each {
    ($on:expr, $kind:ident, $inner:ident => $act:expr) => {
        match $on {
            $kind::Postgres($inner) => $act,
            $kind::MySql($inner) => $act,
            $kind::Sqlite($inner) => $act,
        }
    };
}

/// The connections to one database.
#[derive(Clone, Debug)]
pub(crate) enum Pool {
    Postgres(PgPool),
    MySql(MySqlPool),
    Sqlite(SqlitePool),
}

/// An open transaction. Rolled back when dropped.
#[derive(Debug)]
pub(crate) enum Transaction {
    Postgres(sqlx::Transaction<'static, Postgres>),
    MySql(sqlx::Transaction<'static, MySql>),
    Sqlite(sqlx::Transaction<'static, Sqlite>),
}

/// A row of the table.
pub(crate) type Row = (i64, String, Vec<u8>, String);

impl Pool {
    /// The table as this database has it.
    pub fn schema(&self) -> String {
        match self {
            Pool::Postgres(_) => schema("id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "TEXT", "BYTEA"),
            Pool::MySql(_) => schema("id BIGINT AUTO_INCREMENT PRIMARY KEY", "VARCHAR(255)", "LONGBLOB"),
            Pool::Sqlite(_) => sqlite_schema(),
        }
    }

    /// A statement with its parameters as this database writes them. Each `$n` stands once, in order.
    fn text(&self, sql: String) -> String {
        match self {
            Pool::MySql(_) => question_marks(sql),
            Pool::Postgres(_) | Pool::Sqlite(_) => sql,
        }
    }

    /// Reads a row and locks it. SQLite has no such clause: see [`Transaction::lock_all`].
    pub fn for_update(&self) -> &'static str {
        match self {
            Pool::Postgres(_) | Pool::MySql(_) => " FOR UPDATE",
            Pool::Sqlite(_) => "",
        }
    }

    /// The same without waiting, where there is such a clause.
    pub fn no_wait(&self) -> Option<&'static str> {
        match self {
            Pool::Postgres(_) | Pool::MySql(_) => Some(" FOR UPDATE NOWAIT"),
            Pool::Sqlite(_) => None,
        }
    }

    pub async fn begin(&self) -> Result<Transaction, sqlx::Error> {
        Ok(match self {
            Pool::Postgres(pool) => Transaction::Postgres(pool.begin().await?),
            Pool::MySql(pool) => Transaction::MySql(pool.begin().await?),
            Pool::Sqlite(pool) => Transaction::Sqlite(pool.begin().await?),
        })
    }

    /// A write to one task, as a transaction of its own. Returns the rows changed.
    pub async fn execute(&self, sql: String, id: i64) -> Result<u64, sqlx::Error> {
        let sql = AssertSqlSafe(self.text(sql));
        each!(self, Pool, pool => Ok(sqlx::query(sql).bind(id).execute(pool).await?.rows_affected()))
    }

    pub async fn row(&self, sql: String, id: i64) -> Result<Option<Row>, sqlx::Error> {
        let sql = AssertSqlSafe(self.text(sql));
        each!(self, Pool, pool => sqlx::query_as(sql).bind(id).fetch_optional(pool).await)
    }

    pub async fn ids(&self, sql: String, after: i64) -> Result<Vec<i64>, sqlx::Error> {
        let sql = AssertSqlSafe(self.text(sql));
        each!(self, Pool, pool => sqlx::query_scalar(sql).bind(after).fetch_all(pool).await)
    }

    pub async fn insert(&self, kind: &str, payload: &[u8]) -> Result<i64, sqlx::Error> {
        match self {
            Pool::Postgres(pool) => {
                let sql = AssertSqlSafe(enqueue(" RETURNING id"));
                sqlx::query_scalar(sql).bind(kind).bind(payload).fetch_one(pool).await
            }
            Pool::Sqlite(pool) => {
                let sql = AssertSqlSafe(enqueue(""));
                Ok(sqlx::query(sql).bind(kind).bind(payload).execute(pool).await?.last_insert_rowid())
            }
            Pool::MySql(pool) => {
                let sql = AssertSqlSafe(question_marks(enqueue("")));
                let id = sqlx::query(sql).bind(kind).bind(payload).execute(pool).await?.last_insert_id();
                i64::try_from(id).map_err(|error| sqlx::Error::Decode(error.into()))
            }
        }
    }

    /// Statements without parameters.
    pub async fn script(&self, sql: String) -> Result<(), sqlx::Error> {
        each!(self, Pool, pool => pool.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.map(|_| ()))
    }

    pub async fn close(&self) {
        each!(self, Pool, pool => pool.close().await);
    }
}

impl Transaction {
    /// A write to one task inside the transaction. Returns the rows changed.
    pub async fn execute(&mut self, pool: &Pool, sql: String, id: i64) -> Result<u64, sqlx::Error> {
        let sql = AssertSqlSafe(pool.text(sql));
        each!(self, Transaction, open => Ok(sqlx::query(sql).bind(id).execute(&mut **open).await?.rows_affected()))
    }

    pub async fn row(&mut self, pool: &Pool, sql: String, id: i64) -> Result<Option<Row>, sqlx::Error> {
        let sql = AssertSqlSafe(pool.text(sql));
        each!(self, Transaction, open => sqlx::query_as(sql).bind(id).fetch_optional(&mut **open).await)
    }

    /// SQLite's stand-in for a locking read: a write that changes nothing takes the one lock there is.
    pub async fn lock_all(&mut self) -> Result<(), sqlx::Error> {
        match self {
            Transaction::Sqlite(_) => self.set("DELETE FROM older_tasks WHERE 1 = 0").await,
            Transaction::Postgres(_) | Transaction::MySql(_) => Ok(()),
        }
    }

    /// Sets the wait for locks to its minimum.
    pub fn shortest_lock_wait(&self) -> &'static str {
        match self {
            // 0 would be: for ever.
            Transaction::Postgres(_) => "SET LOCAL lock_timeout = '1ms'",
            Transaction::MySql(_) => "SET SESSION innodb_lock_wait_timeout = 0",
            Transaction::Sqlite(_) => "PRAGMA busy_timeout = 0",
        }
    }

    /// Sets it back, where it does not end with the transaction. SQLite's is the one that `Table::open` sets.
    pub fn usual_lock_wait(&self) -> Option<&'static str> {
        match self {
            Transaction::Postgres(_) => None,
            Transaction::MySql(_) => Some("SET SESSION innodb_lock_wait_timeout = DEFAULT"),
            Transaction::Sqlite(_) => Some("PRAGMA busy_timeout = 5000"),
        }
    }

    /// A statement without parameters.
    pub async fn set(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        each!(self, Transaction, open => open.execute(sql).await.map(|_| ()))
    }

    pub async fn commit(self) -> Result<(), sqlx::Error> {
        each!(self, Transaction, open => open.commit().await)
    }

    pub async fn rollback(self) -> Result<(), sqlx::Error> {
        each!(self, Transaction, open => open.rollback().await)
    }
}

/// MySQL's way: every `$n` outside the tag is a `?`.
fn question_marks(sql: String) -> String {
    let (tag, rest) = sql.split_once("*/").map_or(("", &*sql), |(tag, rest)| (tag, rest));
    let rest = (1..=2).fold(rest.to_owned(), |text, n| text.replace(&format!("${n}"), "?"));
    if tag.is_empty() { rest } else { format!("{tag}*/{rest}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_takes_the_one_edge_that_the_rules_leave_these_designs() {
        let claim = compare_and_set(Verb::Claim, Status::Running);
        let expected = "/* leaseproof:claim id=$1 */ UPDATE older_tasks SET status = 'RUNNING' \
                        WHERE id = $1 AND status IN ('PENDING')";
        assert_eq!(claim, expected);
        assert!(compare_and_set(Verb::Complete, Status::Success).ends_with("status IN ('RUNNING')"));
        assert!(compare_and_set(Verb::GiveUp, Status::Fail).ends_with("status IN ('RUNNING')"));
    }

    #[test]
    fn mysql_gets_question_marks_and_keeps_the_tag() {
        let sql = question_marks(read(" FOR UPDATE"));
        assert!(sql.starts_with("/* leaseproof:look id=$1 */ ") && sql.ends_with("WHERE id = ? FOR UPDATE"), "{sql}");
        assert!(question_marks(enqueue("")).contains("(?, ?, 'PENDING')"));
    }
}
