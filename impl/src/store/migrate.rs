//! The tables: created and brought up, and checked at every start.

use std::time::Duration;

use sqlx::mysql::MySqlConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, Row as _};

use tokio::time::Instant;

use super::sql::Dialect;
use super::{Connections, Store, mysql};
use crate::error::Cause;
use crate::{Error, tags};

/// The version of the tables that this build needs.
pub const SCHEMA_VERSION: i64 = 1;

/// The scripts of PostgreSQL; the n-th brings the tables to version n.
const POSTGRES: [&str; SCHEMA_VERSION as usize] = [include_str!("schema/postgres_1.sql")];

/// The scripts of SQLite, with `{now}` for the clock.
const SQLITE: [&str; SCHEMA_VERSION as usize] = [include_str!("schema/sqlite_1.sql")];

/// The scripts of MySQL and MariaDB, with `{now}` for the clock.
const MYSQL: [&str; SCHEMA_VERSION as usize] = [include_str!("schema/mysql_1.sql")];

/// Where the version is kept.
const VERSIONS: &str =
    "CREATE TABLE IF NOT EXISTS leaseproof_schema (version BIGINT NOT NULL PRIMARY KEY, applied_at_ms BIGINT NOT NULL)";

/// Serialises migrations on one PostgreSQL database.
const MIGRATION_LOCK: i64 = 0x6c65_6173_6570;

/// The same on MySQL; the names of its locks are the server's.
const MYSQL_LOCK: &str = "SELECT COALESCE(GET_LOCK(CONCAT('leaseproof:', MD5(DATABASE())), 86400), 0)";

/// A table of this database that has a name of ours and is not ours.
const MYSQL_FOREIGN: &str = "SELECT CAST(table_name AS CHAR) FROM information_schema.tables \
     WHERE table_schema = DATABASE() AND table_name IN ('tasks', 'task_events', 'effects', 'instances') \
     AND table_comment <> 'leaseproof' ORDER BY table_name LIMIT 1";

/// The tables, triggers and indexes on SQLite as one script, the version row included, with `now` for the clock: an
/// expression of ms since the Unix epoch. A database that executes on SQLite can supply its own clock here.
pub fn sqlite_schema(now: &str) -> String {
    let mut script = format!("{VERSIONS};\n");
    for (version, text) in (1..).zip(SQLITE) {
        script += &text.replace("{now}", now);
        script += &format!("INSERT INTO leaseproof_schema (version, applied_at_ms) VALUES ({version}, {now});\n");
    }
    script
}

/// How long a migration waits, by its own clock, until no other process is changing the file's journal mode.
const MODE_CHANGE_WAIT: Duration = Duration::from_secs(10);

const SQLITE_BUSY: u32 = 5;

fn failed(error: sqlx::Error) -> Error {
    match error {
        sqlx::Error::Database(_) => Error::Rejected { verb: tags::MIGRATE, cause: error.into() },
        _ => Error::Unknown { verb: tags::MIGRATE, cause: error.into() },
    }
}

fn unreachable(error: sqlx::Error) -> Error {
    Error::Unavailable { verb: tags::MIGRATE, cause: Cause::from(error) }
}

impl Store {
    /// Creates the tables or brings them up to [`SCHEMA_VERSION`]; returns the version before (0: none). Safe to call
    /// again, and from several processes at once. Has no deadline.
    ///
    /// # Errors
    /// [`Error::NewerSchema`], or the database's. Nothing is changed then, except on MySQL, which knows no transaction
    /// over `CREATE TABLE`: there what was made stays, and the next call takes it up.
    pub async fn migrate(&self) -> Result<i64, Error> {
        match &self.connections {
            Connections::Postgres(pool) => {
                let mut connection = pool.connect_options().connect().await.map_err(unreachable)?;
                let mut transaction = connection.begin().await.map_err(failed)?;
                let lock = format!("SELECT pg_advisory_xact_lock({MIGRATION_LOCK})");
                transaction.execute(AssertSqlSafe(lock)).await.map_err(failed)?;
                let before =
                    bring_up(&mut *transaction, |version| POSTGRES[version].to_string(), Dialect::Postgres).await?;
                transaction.commit().await.map_err(failed)?;
                Ok(before)
            }
            Connections::Sqlite(pool) => {
                // Only here is a missing file created, and the mode of the file set: WAL lets readers and a writer work
                // at once.
                let options = pool.connect_options().as_ref().clone();
                let options = options.create_if_missing(true).journal_mode(sqlx::sqlite::SqliteJournalMode::Wal);
                let mut connection = connect_in_turn(&options).await.map_err(unreachable)?;
                let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
                let script = |version: usize| SQLITE[version].replace("{now}", crate::SQLITE_NOW_MS);
                let before = bring_up(&mut *transaction, script, Dialect::Sqlite).await?;
                transaction.commit().await.map_err(failed)?;
                connection.close().await.map_err(failed)?;
                Ok(before)
            }
            Connections::MySql(pool) => {
                let mut connection = pool.connect_options().connect().await.map_err(unreachable)?;
                let before = migrate_mysql(&mut connection).await?;
                // The lock ends with its session.
                connection.close().await.map_err(failed)?;
                Ok(before)
            }
        }
    }

    /// Checks that the tables are there and have the version of this build.
    ///
    /// # Errors
    /// [`Error::NotMigrated`], [`Error::OlderSchema`], [`Error::NewerSchema`], or the database's.
    pub async fn check_schema(&self) -> Result<(), Error> {
        let rows = self.run(tags::SCHEMA, &self.texts.schema, Vec::new()).await?;
        let found = match rows.first() {
            Some(row) => row.int("version")?,
            None => return Err(Error::NotMigrated { why: "leaseproof_schema is empty".into() }),
        };
        match found {
            SCHEMA_VERSION => Ok(()),
            newer if newer > SCHEMA_VERSION => Err(Error::NewerSchema { found, known: SCHEMA_VERSION }),
            _ => Err(Error::OlderSchema { found, needed: SCHEMA_VERSION }),
        }
    }
}

async fn migrate_mysql(connection: &mut MySqlConnection) -> Result<i64, Error> {
    let refused = |why: String| Error::Rejected { verb: tags::MIGRATE, cause: Cause::System(why) };
    let version: String = sqlx::query_scalar("SELECT VERSION()").fetch_one(&mut *connection).await.map_err(failed)?;
    if let Some(needed) = mysql::too_old(&version) {
        return Err(refused(format!("the server says it is {version}; {needed} or newer is needed")));
    }
    let locked: i64 = sqlx::query_scalar(MYSQL_LOCK).fetch_one(&mut *connection).await.map_err(failed)?;
    if locked != 1 {
        return Err(refused("another process has been migrating this database for a day".into()));
    }
    // A statement that may be repeated would take any table of the name for ours, and hang triggers on it.
    let foreign: Option<String> =
        sqlx::query_scalar(MYSQL_FOREIGN).fetch_optional(&mut *connection).await.map_err(failed)?;
    if let Some(table) = foreign {
        return Err(refused(format!(
            "there is a table {table:?} already that leaseproof has not made; give leaseproof a database of its own"
        )));
    }
    let script = |version: usize| MYSQL[version].replace("{now}", crate::MYSQL_NOW_MS);
    bring_up(connection, script, Dialect::MySql).await
}

/// Connects to a file whose journal mode another process may be changing at this moment. SQLite's own busy timeout does
/// not cover that change: it says SQLITE_BUSY at once (<https://www.sqlite.org/wal.html>, "Sometimes Queries Return
/// SQLITE_BUSY In WAL Mode").
async fn connect_in_turn(options: &SqliteConnectOptions) -> Result<SqliteConnection, sqlx::Error> {
    let begun = Instant::now();
    loop {
        match options.connect().await {
            Err(error) if is_busy(&error) && begun.elapsed() < MODE_CHANGE_WAIT => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            other => return other,
        }
    }
}

fn is_busy(error: &sqlx::Error) -> bool {
    // The primary code is the low byte of SQLite's extended one.
    let code = error.as_database_error().and_then(|error| error.code()?.parse::<u32>().ok());
    code.is_some_and(|code| code & 0xff == SQLITE_BUSY)
}

async fn bring_up<C>(connection: &mut C, script: impl Fn(usize) -> String, dialect: Dialect) -> Result<i64, Error>
where
    C: Connection,
    for<'c> &'c mut C: Executor<'c, Database = C::Database>,
    for<'r> i64: sqlx::Decode<'r, C::Database> + sqlx::Type<C::Database>,
    usize: sqlx::ColumnIndex<<C::Database as sqlx::Database>::Row>,
    for<'c> Option<i64>: sqlx::Decode<'c, C::Database>,
{
    (&mut *connection).execute(VERSIONS).await.map_err(failed)?;
    let (now, bigint) = (dialect.now(), dialect.bigint());
    let sql = format!("SELECT CAST(COALESCE(MAX(version), 0) AS {bigint}) FROM leaseproof_schema");
    let row = (&mut *connection).fetch_one(AssertSqlSafe(sql)).await.map_err(failed)?;
    let before: i64 = row.try_get(0).map_err(failed)?;
    if before > SCHEMA_VERSION {
        return Err(Error::NewerSchema { found: before, known: SCHEMA_VERSION });
    }
    for version in before..SCHEMA_VERSION {
        let script = script(usize::try_from(version).unwrap_or(0));
        (&mut *connection).execute(sqlx::raw_sql(AssertSqlSafe(script))).await.map_err(failed)?;
        let entry = format!("INSERT INTO leaseproof_schema (version, applied_at_ms) VALUES ({}, {now})", version + 1);
        (&mut *connection).execute(AssertSqlSafe(entry)).await.map_err(failed)?;
    }
    Ok(before)
}
