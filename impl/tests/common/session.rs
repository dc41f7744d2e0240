//! Which databases there are, and connections to them by hand.

use std::io::Write as _;
use std::sync::Once;

use sqlx::mysql::MySqlConnection;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection as _, Row as _};

use super::{Db, Kind};

/// Set to 1, a missing server is a failure: for CI, where a suite that skips half of itself would pass unseen.
const REQUIRE_SERVERS: &str = "LEASEPROOF_REQUIRE_SERVERS";

impl Kind {
    /// The variable that names the server, and the server's name; none for SQLite.
    fn needs(self) -> Option<(&'static str, &'static str)> {
        match self {
            Kind::Sqlite => None,
            Kind::Postgres => Some(("LEASEPROOF_POSTGRES_URL", "PostgreSQL")),
            Kind::MariaDb => Some(("LEASEPROOF_MARIADB_URL", "MariaDB")),
        }
    }

    /// The URL of its server.
    pub fn server(self) -> Option<String> {
        std::env::var(self.needs()?.0).ok()
    }
}

/// Runs one case on a fresh, migrated database of this kind; says once that it skips a kind whose server is not there.
pub fn run(kind: Kind, case: impl AsyncFnOnce(&Db)) {
    if let Some((variable, server)) = kind.needs()
        && kind.server().is_none()
    {
        if std::env::var(REQUIRE_SERVERS).is_ok_and(|value| value == "1") {
            panic!("{REQUIRE_SERVERS}=1, and no {server}: set {variable}");
        }
        static SAID: [Once; 2] = [Once::new(), Once::new()];
        // Written directly: the harness swallows what a passing test prints.
        SAID[usize::from(kind == Kind::MariaDb)].call_once(|| {
            let _ = writeln!(std::io::stderr(), "skipped: no {server} (set {variable})");
        });
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let db = runtime.block_on(Db::migrated(kind));
    runtime.block_on(case(&db));
}

/// One connection, for SQL by hand.
pub enum Session {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
    MariaDb(MySqlConnection),
}

impl Session {
    pub async fn open(kind: Kind, url: &str) -> Session {
        match kind {
            Kind::Sqlite => {
                let url = format!("{url}?mode=rwc");
                Session::Sqlite(SqliteConnection::connect(&url).await.unwrap())
            }
            Kind::Postgres => Session::Postgres(PgConnection::connect(url).await.unwrap()),
            Kind::MariaDb => Session::MariaDb(MySqlConnection::connect(url).await.unwrap()),
        }
    }

    /// Runs one or more statements.
    pub async fn try_execute(&mut self, sql: &str) -> Result<(), sqlx::Error> {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_string()));
        match self {
            Session::Sqlite(connection) => sql.execute(connection).await.map(|_| ()),
            Session::Postgres(connection) => sql.execute(connection).await.map(|_| ()),
            Session::MariaDb(connection) => sql.execute(connection).await.map(|_| ()),
        }
    }

    /// Runs statements that must succeed.
    pub async fn execute(&mut self, sql: &str) {
        self.try_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// The rows of a query whose columns are all text; NULL reads as `NULL`.
    pub async fn rows(&mut self, sql: &str) -> Vec<Vec<String>> {
        macro_rules! read {
            ($connection:expr) => {{
                let rows = sqlx::raw_sql(AssertSqlSafe(sql.to_string())).fetch_all($connection).await;
                let rows = rows.unwrap_or_else(|error| panic!("{sql}: {error}"));
                let cell = |value: Option<String>| value.unwrap_or_else(|| "NULL".into());
                rows.iter().map(|row| (0..row.len()).map(|i| cell(row.try_get(i).unwrap())).collect()).collect()
            }};
        }
        match self {
            Session::Sqlite(connection) => read!(connection),
            Session::Postgres(connection) => read!(connection),
            Session::MariaDb(connection) => read!(connection),
        }
    }
}

/// Removes a schema or a database, whoever is still connected to it.
pub async fn remove(kind: Kind, server: &str, name: &str) -> Result<(), sqlx::Error> {
    if kind == Kind::Postgres {
        let mut session = PgConnection::connect(server).await?;
        let script = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'; \
             SET lock_timeout = '10s'; SET client_min_messages = warning; DROP SCHEMA {name} CASCADE"
        );
        return sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut session).await.map(|_| ());
    }
    let mut session = MySqlConnection::connect(server).await?;
    let connected = format!("SELECT CAST(id AS CHAR) FROM information_schema.processlist WHERE db = '{name}'");
    let connected: Vec<String> = sqlx::query_scalar(AssertSqlSafe(connected)).fetch_all(&mut session).await?;
    for id in connected {
        // It may have gone by itself meanwhile.
        let _ = sqlx::raw_sql(AssertSqlSafe(format!("KILL {id}"))).execute(&mut session).await;
    }
    let script = format!("SET SESSION lock_wait_timeout = 10; DROP DATABASE {name}; DROP USER IF EXISTS '{name}'@'%'");
    sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut session).await.map(|_| ())
}
