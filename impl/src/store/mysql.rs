//! MySQL and MariaDB: the settings of a session, the answers that stand for rows, and what the errors mean.
//!
//! What differs from PostgreSQL, and why it is as it is:
//!
//! - **Isolation** is READ COMMITTED, as on PostgreSQL. Under the default, REPEATABLE READ, a claim would lock the gaps
//!   between rows too, so that enqueues wait for claims, and a statement would lock the rows of `instances` that it only
//!   reads.
//! - **Every statement is its own transaction** (`autocommit`), so one that the server rolled back is known not to have
//!   happened: a deadlock (1213), a lock not had in time (1205), a statement out of time (1969).
//! - **The clock** is [`MYSQL_NOW_MS`](crate::MYSQL_NOW_MS). No value is a date, so no time zone matters.
//! - **Counts are of rows found, not of rows changed** (sqlx sets `CLIENT_FOUND_ROWS`). Nothing here rests on the
//!   difference: each counted write changes `record_no`, `token` or `superseded_by`.

use std::time::Duration;

use sqlx::mysql::{MySql, MySqlConnectOptions, MySqlConnection, MySqlPool, MySqlPoolOptions, MySqlQueryResult};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Executor};

use super::connection::Lent;
use super::open::pool_options;
use super::row::{Cells, Param};
use super::sql::{Answer, Statement};
use crate::Error;

/// A unique key is in the way.
const DUPLICATE_ENTRY: u16 = 1062;

/// The oldest MariaDB that knows SKIP LOCKED.
const OLDEST_MARIADB: [u16; 3] = [10, 6, 0];

/// The oldest MySQL that has a collation which compares byte by byte and pads nothing.
const OLDEST_MYSQL: [u16; 3] = [8, 0, 17];

/// What is needed, if a server that calls itself so is too old.
pub(super) fn too_old(version: &str) -> Option<String> {
    let (name, oldest) = match version.contains("MariaDB") {
        true => ("MariaDB", OLDEST_MARIADB),
        false => ("MySQL", OLDEST_MYSQL),
    };
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    let found: [u16; 3] = std::array::from_fn(|_| numbers.next().unwrap_or(0));
    let [major, minor, patch] = oldest;
    (found < oldest).then(|| format!("{name} {major}.{minor}.{patch}"))
}

/// A pool whose statements get `deadline`. Makes no connection yet.
pub(super) fn pool(options: &MySqlConnectOptions, connections: u32, deadline: Duration) -> MySqlPool {
    let settings = settings(deadline);
    let pool: MySqlPoolOptions = pool_options::<MySql>(connections).after_connect(move |connection, _| {
        let settings = settings.clone();
        Box::pin(async move { connection.execute(AssertSqlSafe(settings)).await.map(|_| ()) })
    });
    pool.connect_lazy_with(options.clone())
}

/// What a session of ours sets, whatever the server's defaults are.
///
/// A value that does not fit is an error and not cut off (STRICT_ALL_TABLES). A statement that its client has given up
/// must not be applied hours later, when a lock frees: MariaDB ends it at the deadline; MySQL can end only a SELECT so
/// (`max_execution_time`), there the wait for a lock is what is bounded. That wait is shorter than the deadline, so that a
/// lock not had in time is known not to have been applied.
fn settings(deadline: Duration) -> String {
    let lock_wait_s = deadline.mul_f64(0.8).as_secs().max(1);
    let (seconds, ms) = (deadline.as_secs_f64().max(0.001), deadline.as_millis().max(1));
    format!(
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; \
         SET SESSION autocommit = 1, sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', \
         innodb_lock_wait_timeout = {lock_wait_s} /*M!, max_statement_time = {seconds:.3} */ \
         /*!50708 , max_execution_time = {ms} */"
    )
}

/// Runs one statement, or two where the first has to be read back, within `limit`.
pub(super) async fn send(
    pool: &MySqlPool,
    verb: &'static str,
    statement: &Statement,
    params: Vec<Param>,
    limit: Duration,
) -> Result<Vec<Cells>, Error> {
    let mut lent = Lent::from(pool, verb, limit).await?;
    let connection = lent.connection()?;
    let mut changed = false;
    let answer = tokio::time::timeout(limit, async {
        let query = bound(statement, &params);
        let read = match &statement.answer {
            Answer::Rows => return Ok(rows(query.fetch_all(connection).await?)),
            Answer::Inserted => return inserted(query.execute(connection).await),
            Answer::Task { .. } => return task(connection, statement, &params).await,
            Answer::ReadBack(read) => read,
        };
        if query.execute(&mut *connection).await?.rows_affected() == 0 {
            return Ok(Vec::new());
        }
        changed = true;
        Ok(rows(bound(read, &params).fetch_all(connection).await?))
    });
    let answer = answer.await;
    match lent.ended(answer) {
        // Whatever the reading back was told, the change before it was made.
        Err(Error::Unavailable { verb, cause } | Error::Rejected { verb, cause }) if changed => {
            Err(Error::Unknown { verb, cause })
        }
        other => other,
    }
}

fn bound<'q>(statement: &Statement, params: &[Param]) -> Query<'q, MySql, sqlx::mysql::MySqlArguments> {
    let mut query = sqlx::query(AssertSqlSafe(statement.text.clone()));
    for place in statement.places.iter() {
        query = match params.get(*place).cloned() {
            Some(Param::Int(value)) => query.bind(value),
            Some(Param::Text(value)) => query.bind(value),
            Some(Param::Bytes(value)) => query.bind(value),
            // The server refuses a statement with a place left empty.
            None => query,
        };
    }
    query
}

fn rows(rows: Vec<sqlx::mysql::MySqlRow>) -> Vec<Cells> {
    rows.into_iter().map(Cells::MySql).collect()
}

/// The answer of [`Answer::Task`] as a row.
async fn task(
    connection: &mut MySqlConnection,
    mut statement: &Statement,
    params: &[Param],
) -> Result<Vec<Cells>, sqlx::Error> {
    loop {
        let done = bound(statement, params).execute(&mut *connection).await?;
        let Answer::Task { adds, note, or } = &statement.answer else { return Ok(Vec::new()) };
        match (done.rows_affected(), or, params.get(1)) {
            (0, Some(other), _) => statement = other,
            (0, None, _) => return Ok(Vec::new()),
            (_, _, Some(Param::Int(Some(epoch)))) => {
                return Ok(vec![Cells::Said { number: epoch.saturating_add(*adds), note: *note }]);
            }
            _ => return Err(sqlx::Error::InvalidArgument("a write of a task without its epoch".into())),
        }
    }
}

/// The answer of [`Answer::Inserted`] as a row.
fn inserted(done: Result<MySqlQueryResult, sqlx::Error>) -> Result<Vec<Cells>, sqlx::Error> {
    match done {
        Ok(done) if done.rows_affected() == 0 => Ok(Vec::new()),
        Ok(done) => {
            let id = i64::try_from(done.last_insert_id()).unwrap_or(i64::MAX);
            Ok(vec![Cells::Said { number: id, note: None }])
        }
        Err(error) if number(&error) == Some(DUPLICATE_ENTRY) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The server's number for an error, if it is the server that speaks, and a MySQL or MariaDB.
pub(super) fn number(error: &sqlx::Error) -> Option<u16> {
    let said = error.as_database_error()?.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>()?;
    Some(said.number())
}

/// What an error of this number, after sending, says about the statement.
pub(super) fn judge(verb: &'static str, number: u16, error: sqlx::Error) -> Error {
    match number {
        // No such table, no such column.
        1146 | 1054 => Error::NotMigrated { why: error.to_string() },
        // Lock not had in time, deadlock, NOWAIT, row changed since it was read; statement killed, statement out of time on
        // MariaDB, on MySQL; tables changed under a prepared statement, too many of them; read-only for now (a replica, a
        // failover), in three forms, or a cluster's node that is not ready. Each rolls the statement back.
        1205 | 1213 | 3572 | 1020 | 1317 | 1969 | 3024 | 1615 | 1461 | 1290 | 1792 | 1836 | 1047 => {
            Error::Unavailable { verb, cause: error.into() }
        }
        // Error during commit, unknown error, error of the storage engine or of a file, want of disk or memory; server shuts
        // down, connection killed, aborted, or not read from in time; a statement that is prepared no more. What came before
        // is not said, or the connection must not be used again.
        1180
        | 1105
        | 1030
        | 1026
        | 1021
        | 1114
        | 1037
        | 1038
        | 1041
        | 1053
        | 1927
        | 1152
        | 1184
        | 1158..=1161
        | 1243
        | 4031 => Error::Unknown { verb, cause: error.into() },
        _ => Error::Rejected { verb, cause: error.into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_too_old_is_told_what_is_needed() {
        for good in
            ["10.11.19-MariaDB-0+deb12u1", "10.6.0-MariaDB", "11.4.2-MariaDB-log", "8.0.17", "8.4.3-0ubuntu1", "9.1.0"]
        {
            assert_eq!(too_old(good), None, "{good}");
        }
        assert_eq!(too_old("10.5.23-MariaDB-0+deb11u1").as_deref(), Some("MariaDB 10.6.0"));
        for old in ["8.0.16", "5.7.44-log", "", "what"] {
            assert_eq!(too_old(old).as_deref(), Some("MySQL 8.0.17"), "{old}");
        }
    }

    #[test]
    fn what_the_server_rolled_back_is_known_not_to_have_happened() {
        let judged = |number| judge("complete", number, sqlx::Error::PoolClosed);
        // Deadlock, lock wait, time-out, KILL QUERY, read_only.
        for known in [1213, 1205, 1969, 1317, 1290] {
            assert!(matches!(judged(known), Error::Unavailable { .. }), "{known}");
        }
        // Commit, shutdown, KILL CONNECTION, disk full.
        for unknown in [1180, 1053, 1927, 1021] {
            assert!(judged(unknown).is_unknown(), "{unknown}");
        }
        // Syntax, no such right, too long.
        for refused in [1064, 1142, 1406] {
            assert!(matches!(judged(refused), Error::Rejected { .. }), "{refused}");
        }
    }

    #[test]
    fn a_session_s_settings_follow_the_deadline() {
        let said = settings(Duration::from_secs(5));
        assert!(said.contains("innodb_lock_wait_timeout = 4 "), "{said}");
        assert!(said.contains("max_statement_time = 5.000 ") && said.contains("max_execution_time = 5000 "), "{said}");
        // A second is the shortest wait for a lock; 0 would be: no limit.
        let said = settings(Duration::ZERO);
        assert!(said.contains("innodb_lock_wait_timeout = 1 "), "{said}");
        assert!(said.contains("max_statement_time = 0.001 ") && said.contains("max_execution_time = 1 "), "{said}");
    }
}
