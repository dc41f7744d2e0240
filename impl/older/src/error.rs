//! What goes wrong in the older designs, named after what it shows.

use sqlx::mysql::MySqlDatabaseError;

/// An error of an older design.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The URL is of no database known here, or does not parse.
    #[error("database URL: {0}; accepted are sqlite:PATH, postgres://… and mysql://… (or mariadb://…)")]
    BadUrl(String),
    /// The pool had no connection within its time. Of an inner transaction: the outer ones hold them all.
    #[error("{step}: no free connection: {source}")]
    NoConnection {
        /// What the connection was for.
        step: &'static str,
        /// What the pool says.
        source: sqlx::Error,
    },
    /// Another transaction holds the row, or with SQLite the whole database. Not applied.
    #[error("{step}: locked by another transaction ({code}): {source}")]
    Locked {
        /// What met the lock.
        step: &'static str,
        /// The database's own code, see [`lock_code`].
        code: String,
        /// What it says.
        source: sqlx::Error,
    },
    /// Anything else. Whether a statement was applied is not known.
    #[error("{step}: {source}")]
    Database {
        /// What was tried.
        step: &'static str,
        /// What the driver says.
        source: sqlx::Error,
    },
    /// A stored status that these designs do not have.
    #[error("task {id} has the status {status:?}, which this design does not know")]
    BadStatus {
        /// The task.
        id: i64,
        /// As stored.
        status: String,
    },
}

impl Error {
    pub(crate) fn of(step: &'static str) -> impl FnOnce(sqlx::Error) -> Error {
        move |source| match lock_code(&source) {
            _ if matches!(source, sqlx::Error::PoolTimedOut) => Error::NoConnection { step, source },
            Some(code) => Error::Locked { step, code, source },
            None => Error::Database { step, source },
        }
    }
}

/// The code by which a database says that a lock was not had: PostgreSQL's SQLSTATE, MySQL's and MariaDB's number, SQLite's
/// result code. `None` for every other error.
///
/// | Code | Who | What it is |
/// |---|---|---|
/// | `55P03` | PostgreSQL | `lock_timeout` has passed, or NOWAIT |
/// | `1205` | MySQL, MariaDB | `innodb_lock_wait_timeout` has passed; on MariaDB NOWAIT too |
/// | `3572` | MySQL | NOWAIT |
/// | `5` | SQLite | another connection writes |
/// | `517` | SQLite | somebody has written since this transaction first read; no waiting helps |
fn lock_code(error: &sqlx::Error) -> Option<String> {
    let said = error.as_database_error()?;
    if let Some(mysql) = said.try_downcast_ref::<MySqlDatabaseError>() {
        let number = mysql.number();
        return matches!(number, 1205 | 3572).then(|| number.to_string());
    }
    said.code().filter(|code| matches!(&**code, "55P03" | "5" | "517")).map(|code| code.into_owned())
}
