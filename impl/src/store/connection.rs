//! How a statement gets to the database: its own deadline, and what its failure means.

use std::sync::Arc;
use std::time::Duration;

use sqlx::mysql::MySqlPool;
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgPool;
use sqlx::sqlite::SqlitePool;
use sqlx::{AssertSqlSafe, Connection, Database, Encode, Executor, IntoArguments, Pool, Type};

use super::mysql;
use super::row::{Cells, Param, Row};
use super::sql::Statement;
use crate::Error;
use crate::error::Cause;

/// The connections to one database.
#[derive(Clone, Debug)]
pub(crate) enum Connections {
    Postgres(PgPool),
    Sqlite(SqlitePool),
    /// MySQL and MariaDB.
    MySql(MySqlPool),
}

impl Connections {
    /// Runs one statement and returns its rows.
    pub(crate) async fn run(
        &self,
        verb: &'static str,
        statement: &Statement,
        params: Vec<Param>,
        deadline: Duration,
    ) -> Result<Vec<Row>, Error> {
        let sql = statement.text.clone();
        let rows: Vec<Cells> = match self {
            Connections::Postgres(pool) => {
                send(pool, verb, sql, params, deadline).await?.into_iter().map(Cells::Postgres).collect()
            }
            Connections::Sqlite(pool) => {
                send(pool, verb, sql, params, deadline).await?.into_iter().map(Cells::Sqlite).collect()
            }
            Connections::MySql(pool) => mysql::send(pool, verb, statement, params, deadline).await?,
        };
        Ok(rows.into_iter().map(|cells| Row { verb, cells }).collect())
    }
}

/// A connection that goes back to the pool only after a statement that is known to have ended.
///
/// In every other case, the caller's cancellation included, the socket is closed at once: the pool's own test of a
/// returned connection has no deadline, and a connection with an unread answer must not serve the next statement.
pub(super) struct Lent<DB: Database> {
    connection: Option<PoolConnection<DB>>,
    verb: &'static str,
    limit: Duration,
    sound: bool,
}

impl<DB: Database> Lent<DB> {
    /// A connection of the pool. Nothing was sent yet, whatever goes wrong here.
    pub(super) async fn from(pool: &Pool<DB>, verb: &'static str, limit: Duration) -> Result<Lent<DB>, Error> {
        match tokio::time::timeout(limit, pool.acquire()).await {
            Ok(Ok(connection)) => Ok(Lent { connection: Some(connection), verb, limit, sound: false }),
            Ok(Err(error)) => Err(Error::Unavailable { verb, cause: error.into() }),
            Err(_) => Err(Error::Unavailable { verb, cause: Cause::Deadline { what: "connection", limit } }),
        }
    }

    pub(super) fn connection(&mut self) -> Result<&mut DB::Connection, Error> {
        match self.connection.as_mut() {
            Some(connection) => Ok(&mut *connection),
            None => Err(Error::Unavailable { verb: self.verb, cause: Cause::System("no connection".into()) }),
        }
    }

    /// Takes the connection back; says what the end of its statement means.
    pub(super) fn ended<T>(
        mut self,
        answer: Result<Result<T, sqlx::Error>, tokio::time::error::Elapsed>,
    ) -> Result<T, Error> {
        let (verb, limit) = (self.verb, self.limit);
        match answer {
            Ok(Ok(answer)) => {
                self.sound = true;
                Ok(answer)
            }
            Ok(Err(error)) => {
                let error = judge(verb, error);
                self.sound = !matches!(error, Error::Unknown { .. });
                Err(error)
            }
            Err(_) => Err(Error::Unknown { verb, cause: Cause::Deadline { what: "answer", limit } }),
        }
    }
}

impl<DB: Database> Drop for Lent<DB> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && !self.sound
        {
            drop(connection.detach());
        }
    }
}

async fn send<DB>(
    pool: &Pool<DB>,
    verb: &'static str,
    sql: Arc<str>,
    params: Vec<Param>,
    limit: Duration,
) -> Result<Vec<DB::Row>, Error>
where
    DB: Database,
    DB::Connection: Connection,
    DB::Arguments: IntoArguments<DB>,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    for<'q> Option<i64>: Encode<'q, DB> + Type<DB>,
    for<'q> Option<String>: Encode<'q, DB> + Type<DB>,
    for<'q> Option<Vec<u8>>: Encode<'q, DB> + Type<DB>,
{
    let mut lent = Lent::from(pool, verb, limit).await?;
    let mut query = sqlx::query::<DB>(AssertSqlSafe(sql));
    for param in params {
        query = match param {
            Param::Int(value) => query.bind(value),
            Param::Text(value) => query.bind(value),
            Param::Bytes(value) => query.bind(value),
        };
    }
    let answer = tokio::time::timeout(limit, query.fetch_all(lent.connection()?)).await;
    lent.ended(answer)
}

/// What an error after sending says about the statement.
fn judge(verb: &'static str, error: sqlx::Error) -> Error {
    if let Some(number) = mysql::number(&error) {
        return mysql::judge(verb, number, error);
    }
    let code = match &error {
        sqlx::Error::Database(said) => said.code().map(|code| code.into_owned()).unwrap_or_default(),
        // The statement did not leave this process, or only its preparation did.
        sqlx::Error::Encode(_) | sqlx::Error::InvalidArgument(_) | sqlx::Error::Configuration(_) => {
            return Error::Rejected { verb, cause: error.into() };
        }
        // The statement went through; what came back can not be read.
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::TypeNotFound { .. } => {
            return Error::BadRow { verb, id: None, why: error.to_string() };
        }
        _ => return Error::Unknown { verb, cause: error.into() },
    };
    match code.as_str() {
        // PostgreSQL: undefined_table, undefined_column, undefined_function, invalid_schema_name.
        "42P01" | "42703" | "42883" | "3F000" => Error::NotMigrated { why: error.to_string() },
        // SQLite's general error says it in words only.
        "1" if error.to_string().contains("no such table") || error.to_string().contains("no such column") => {
            Error::NotMigrated { why: error.to_string() }
        }
        // PostgreSQL: serialisation failure, deadlock, lock not available, cancelled by statement_timeout, read-only for now
        // (a standby, a failover). SQLite: BUSY, LOCKED. Each rolls the statement back.
        "40001" | "40P01" | "55P03" | "57014" | "25006" | "5" | "6" | "261" | "517" => {
            Error::Unavailable { verb, cause: error.into() }
        }
        // PostgreSQL: connection exceptions, want of disk or memory, operator intervention, system and internal errors may
        // come after the commit.
        code if ["08", "53", "57P", "58", "XX"].iter().any(|class| code.starts_with(class)) => {
            Error::Unknown { verb, cause: error.into() }
        }
        // SQLite: I/O errors and a full disk are reported from within a commit too.
        code if code.parse::<i64>().is_ok_and(|code| matches!(code & 0xff, 10 | 13)) && code.len() < 5 => {
            Error::Unknown { verb, cause: error.into() }
        }
        _ => Error::Rejected { verb, cause: error.into() },
    }
}

/// Whether the database refused a statement for what one of its rows holds, or would: out of range, against a CHECK.
pub(super) fn is_of_a_row(error: &Error) -> bool {
    let Error::Rejected { cause: Cause::Driver(error), .. } = error else { return false };
    if let Some(number) = mysql::number(error) {
        // Out of range in a sum, in a column; a CHECK on MariaDB, on MySQL.
        return matches!(number, 1690 | 1264 | 4025 | 3819);
    }
    let code = error.as_database_error().and_then(|said| said.code()).unwrap_or_default();
    // PostgreSQL: numeric_value_out_of_range, check_violation. SQLite: a CHECK, a value that its strict column does not take.
    matches!(&*code, "22003" | "23514" | "275" | "3091")
}
