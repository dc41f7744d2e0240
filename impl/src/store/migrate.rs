//! The tables: created and brought up, and checked at every start.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::mysql::MySqlConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, Row as _};

use super::open::pool_of_one;
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

/// The same on MySQL, for so many seconds; the names of its locks are the server's.
const MYSQL_LOCK: &str = "SELECT COALESCE(GET_LOCK(CONCAT('leaseproof:', MD5(DATABASE())), ?), 0)";

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

/// How long [`Store::migrate`] may take, the wait for another process that is migrating included.
pub const MIGRATION_DEADLINE: Duration = Duration::from_secs(600);

/// How long SQLite waits for a lock before it is asked again: a caller that gives up leaves nothing waiting for longer.
const SQLITE_WAIT: Duration = Duration::from_millis(200);

/// Between two tries of what SQLite is too busy for.
const BUSY_PAUSE: Duration = Duration::from_millis(10);

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
    /// again, and from several processes at once: one migrates, the others wait for it. Ends within
    /// [`MIGRATION_DEADLINE`], on this process's monotonic clock; see [`Store::migrate_within`].
    ///
    /// # Errors
    /// See [`Store::migrate_within`].
    pub async fn migrate(&self) -> Result<i64, Error> {
        self.migrate_within(MIGRATION_DEADLINE).await
    }

    /// [`Store::migrate`] with a deadline of the caller's, on this process's monotonic clock. It is the only one: the
    /// server's own time-outs of statements and locks, and those of this store, are set to it for the one connection that
    /// migrates.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the deadline passed before it was this process's turn, [`Error::Unknown`] where it
    /// passed later; [`Error::NewerSchema`], or the database's. Nothing is changed then, except on MySQL, which knows no
    /// transaction over `CREATE TABLE`: there what was made stays, and the next call takes it up.
    pub async fn migrate_within(&self, limit: Duration) -> Result<i64, Error> {
        let turn = AtomicBool::new(false);
        let passed = |what| Cause::Deadline { what, limit };
        match tokio::time::timeout(limit, self.migrate_in_turn(limit, &turn)).await {
            Ok(ended) => ended,
            Err(_) if turn.load(Ordering::Relaxed) => {
                Err(Error::Unknown { verb: tags::MIGRATE, cause: passed("end of the migration") })
            }
            Err(_) => Err(Error::Unavailable { verb: tags::MIGRATE, cause: passed(TURN) }),
        }
    }

    /// Says by `turn` when nobody else is migrating any more.
    async fn migrate_in_turn(&self, limit: Duration, turn: &AtomicBool) -> Result<i64, Error> {
        match &self.connections {
            Connections::Postgres(pool) => {
                let mut connection = match self.own_timeouts {
                    true => pool.connect_options().connect().await.map_err(unreachable)?,
                    // The maker of the pool may set a role or a schema by a hook of it.
                    false => pool_of_one(pool).acquire().await.map_err(unreachable)?.detach(),
                };
                let mut transaction = connection.begin().await.map_err(failed)?;
                transaction.execute(AssertSqlSafe(postgres_timeouts(limit))).await.map_err(failed)?;
                let lock = format!("SELECT pg_advisory_xact_lock({MIGRATION_LOCK})");
                transaction.execute(AssertSqlSafe(lock)).await.map_err(failed)?;
                turn.store(true, Ordering::Relaxed);
                let before =
                    bring_up(&mut *transaction, |version| POSTGRES[version].to_string(), Dialect::Postgres).await?;
                transaction.commit().await.map_err(failed)?;
                Ok(before)
            }
            Connections::Sqlite(pool) => {
                // Only here is a missing file created, and the mode of the file set: WAL lets readers and a writer work
                // at once.
                let options = pool.connect_options().as_ref().clone().busy_timeout(SQLITE_WAIT);
                let options = options.create_if_missing(true).journal_mode(sqlx::sqlite::SqliteJournalMode::Wal);
                let mut connection = connect_in_turn(&options).await.map_err(unreachable)?;
                begin_in_turn(&mut connection).await.map_err(failed)?;
                turn.store(true, Ordering::Relaxed);
                let script = |version: usize| SQLITE[version].replace("{now}", crate::SQLITE_NOW_MS);
                // What is not committed is rolled back when the connection closes.
                let before = bring_up(&mut connection, script, Dialect::Sqlite).await?;
                connection.execute("COMMIT").await.map_err(failed)?;
                connection.close().await.map_err(failed)?;
                Ok(before)
            }
            Connections::MySql(pool) => {
                let mut connection = pool.connect_options().connect().await.map_err(unreachable)?;
                let before = migrate_mysql(&mut connection, limit, turn).await?;
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

/// What is waited for until nobody else migrates.
const TURN: &str = "turn to migrate (another process may be migrating, or the database does not answer)";

/// A session's time-outs for this transaction: the role, the database and the URL may have set others. Which of them there
/// are depends on the server's version; 0 is none.
fn postgres_timeouts(limit: Duration) -> String {
    let ms = limit.as_millis().clamp(1, i32::MAX as u128);
    format!(
        "SELECT set_config(name, CASE name WHEN 'statement_timeout' THEN '{ms}' ELSE '0' END, true) FROM pg_settings \
         WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')"
    )
}

/// The same on MySQL and MariaDB, for the session. A lock is waited for in whole seconds.
fn mysql_timeouts(limit: Duration) -> String {
    let (seconds, ms) = (whole_seconds(limit), limit.as_millis().clamp(1, u32::MAX as u128));
    format!(
        "SET SESSION lock_wait_timeout = {seconds}, innodb_lock_wait_timeout = {seconds} \
         /*M!, max_statement_time = {seconds} */ /*!50708 , max_execution_time = {ms} */"
    )
}

/// Not less than `limit`: the caller's clock is to end the wait. At most what the servers take, a year.
fn whole_seconds(limit: Duration) -> u64 {
    limit.as_secs().saturating_add(1).min(31_536_000)
}

async fn migrate_mysql(connection: &mut MySqlConnection, limit: Duration, turn: &AtomicBool) -> Result<i64, Error> {
    let refused = |why: String| Error::Rejected { verb: tags::MIGRATE, cause: Cause::System(why) };
    let version: String = sqlx::query_scalar("SELECT VERSION()").fetch_one(&mut *connection).await.map_err(failed)?;
    if let Some(needed) = mysql::too_old(&version) {
        return Err(refused(format!("the server says it is {version}; {needed} or newer is needed")));
    }
    connection.execute(AssertSqlSafe(mysql_timeouts(limit))).await.map_err(failed)?;
    let lock = sqlx::query_scalar(MYSQL_LOCK).bind(whole_seconds(limit));
    let locked: i64 = lock.fetch_one(&mut *connection).await.map_err(failed)?;
    if locked != 1 {
        return Err(Error::Unavailable { verb: tags::MIGRATE, cause: Cause::Deadline { what: TURN, limit } });
    }
    turn.store(true, Ordering::Relaxed);
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
    loop {
        match options.connect().await {
            Err(error) if is_busy(&error) => tokio::time::sleep(BUSY_PAUSE).await,
            other => return other,
        }
    }
}

/// Waits for the file's write lock as long as its caller lets it.
async fn begin_in_turn(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    loop {
        match connection.execute("BEGIN IMMEDIATE").await {
            Err(error) if is_busy(&error) => tokio::time::sleep(BUSY_PAUSE).await,
            other => return other.map(|_| ()),
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
