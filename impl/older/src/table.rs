//! The bare table: id, kind, payload, status.

use std::str::FromStr;
use std::time::Duration;

use leaseproof_rules::Status;
use sqlx::mysql::{MySqlConnectOptions, MySqlPool, MySqlPoolOptions};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};
use sqlx::{ConnectOptions as _, Connection as _};

use crate::Error;
use crate::sql::{self, Pool, Row};

/// How long SQLite waits for its one writer, outside of S2's claim.
const SQLITE_WAIT: Duration = Duration::from_secs(5);

/// A task as its executor gets it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    /// Its id.
    pub id: i64,
    /// Which handler is meant.
    pub kind: String,
    /// For the handler.
    pub payload: Vec<u8>,
}

/// The table `older_tasks` in one database. Cheap to clone; clones share connections.
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) pool: Pool,
}

impl Table {
    /// The table in the database that `url` names, over so many connections; a caller waits for a free one for as long as
    /// `acquire`. Connects when first used.
    ///
    /// # Errors
    /// [`Error::BadUrl`].
    pub fn open(url: &str, connections: u32, acquire: Duration) -> Result<Table, Error> {
        let bad = |error: sqlx::Error| Error::BadUrl(error.to_string());
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        let pool = match scheme {
            "postgres" | "postgresql" => {
                let options = PgConnectOptions::from_str(url).map_err(bad)?;
                let pool = PgPoolOptions::new().max_connections(connections).acquire_timeout(acquire);
                Pool::Postgres(pool.connect_lazy_with(options))
            }
            "mysql" | "mariadb" => {
                let options = MySqlConnectOptions::from_str(url).map_err(bad)?;
                let pool = MySqlPoolOptions::new().max_connections(connections).acquire_timeout(acquire);
                Pool::MySql(pool.connect_lazy_with(options))
            }
            "sqlite" => {
                let options = SqliteConnectOptions::from_str(url).map_err(bad)?.busy_timeout(SQLITE_WAIT);
                let pool = SqlitePoolOptions::new().max_connections(connections).acquire_timeout(acquire);
                Pool::Sqlite(pool.connect_lazy_with(options))
            }
            other => return Err(Error::BadUrl(format!("unknown scheme {other:?}"))),
        };
        Ok(Table { pool })
    }

    /// Over a PostgreSQL pool made elsewhere.
    pub fn on_postgres(pool: PgPool) -> Table {
        Table { pool: Pool::Postgres(pool) }
    }

    /// Over a MySQL or MariaDB pool made elsewhere.
    pub fn on_mysql(pool: MySqlPool) -> Table {
        Table { pool: Pool::MySql(pool) }
    }

    /// Creates the table, unless it is there.
    ///
    /// # Errors
    /// The database's.
    pub async fn migrate(&self) -> Result<(), Error> {
        let failed = Error::of("migrate");
        if let Pool::Sqlite(pool) = &self.pool {
            // Only here is a missing file created. WAL lets readers and the one writer work at once.
            let options = pool.connect_options().as_ref().clone();
            let options = options.create_if_missing(true).journal_mode(SqliteJournalMode::Wal);
            let made = async { options.connect().await?.close().await };
            if let Err(error) = made.await {
                return Err(failed(error));
            }
        }
        self.pool.script(self.pool.schema()).await.map_err(failed)
    }

    /// Puts a task in, PENDING.
    ///
    /// # Errors
    /// The database's.
    pub async fn enqueue(&self, kind: &str, payload: &[u8]) -> Result<i64, Error> {
        self.pool.insert(kind, payload).await.map_err(Error::of("enqueue"))
    }

    /// What everybody sees of a task: its committed status. `None`: there is no such task.
    ///
    /// # Errors
    /// The database's, or [`Error::BadStatus`].
    pub async fn status(&self, id: i64) -> Result<Option<Status>, Error> {
        let row = self.pool.row(sql::read(""), id).await.map_err(Error::of("status"))?;
        row.map(|row| status_of(&row)).transpose()
    }

    /// The next ids after this one whose tasks are PENDING for everybody to see.
    pub(crate) async fn candidates(&self, after: i64, page: usize) -> Result<Vec<i64>, Error> {
        self.pool.ids(sql::candidates(page), after).await.map_err(Error::of("look for a task"))
    }

    /// Closes all connections.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

pub(crate) fn status_of((id, _, _, status): &Row) -> Result<Status, Error> {
    let known = Status::from_name(status).filter(|known| sql::STATUSES.contains(known));
    known.ok_or_else(|| Error::BadStatus { id: *id, status: status.clone() })
}
