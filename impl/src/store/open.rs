//! From a URL to a store.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use leaseproof_rules::Guards;
use sqlx::mysql::MySqlConnectOptions;
use sqlx::pool::PoolOptions;
use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};
use sqlx::{Database, Pool};

use super::file::File;
use super::sql::{Dialect, Texts};
use super::{Connections, DEFAULT_DEADLINE, Store, mysql};
use crate::Error;

/// Connections of a process, besides the one of its heartbeat.
const CONNECTIONS: u32 = 8;

const STATEMENT_TIMEOUT: &str = "statement_timeout";

/// A connection that was idle for longer is tried before it is used.
const TRY_AFTER_IDLE: Duration = Duration::from_secs(10);

impl Store {
    /// A store on the database that `url` names. Makes no connection yet, and changes nothing.
    ///
    /// # Errors
    /// [`Error::UnknownScheme`] or [`Error::BadUrl`].
    pub fn open(url: &str) -> Result<Store, Error> {
        let bad = |why: String| Error::BadUrl { url: without_password(url), why };
        let Some((scheme, _)) = url.split_once(':') else {
            return Err(bad("it has no scheme".into()));
        };
        match scheme {
            "sqlite" => {
                let path = url.trim_start_matches("sqlite:").trim_start_matches("//");
                // SQLite takes an empty name for a database that is gone with its connection.
                if path.split('?').next().unwrap_or_default().is_empty() {
                    return Err(bad("it names no file".into()));
                }
                let options = SqliteConnectOptions::from_str(url).map_err(|error| bad(error.to_string()))?;
                if url.contains(":memory:") || url.contains("mode=memory") {
                    return Err(bad("every connection would get its own database in memory; name a file".into()));
                }
                Ok(Store::on_sqlite(options, CONNECTIONS))
            }
            "postgres" | "postgresql" => {
                has_slashes(url).map_err(bad)?;
                let options = PgConnectOptions::from_str(url).map_err(|error| bad(error.to_string()))?;
                Ok(Store::on_postgres_options(options))
            }
            "mysql" | "mariadb" => {
                let options = MySqlConnectOptions::from_str(url).map_err(|error| bad(error.to_string()))?;
                has_slashes(url).map_err(bad)?;
                if options.get_database().is_none() {
                    return Err(bad("it names no database".into()));
                }
                if let Some(parameter) = unknown_mysql_parameter(url) {
                    let accepted = MYSQL_PARAMETERS.join(", ");
                    return Err(bad(format!("unknown parameter {parameter:?}; accepted are {accepted}")));
                }
                Ok(Store::on_mysql(options))
            }
            scheme => Err(Error::UnknownScheme { url: without_password(url), scheme: scheme.into() }),
        }
    }

    /// A store on a PostgreSQL pool made elsewhere, whose time-outs are its maker's.
    pub fn on_postgres(pool: PgPool) -> Store {
        Store::new(Connections::Postgres(pool), false)
    }

    /// A store on connections of these options. Makes no connection yet.
    pub fn on_postgres_options(mut options: PgConnectOptions) -> Store {
        if options.get_application_name().is_none() {
            options = options.application_name("leaseproof");
        }
        let ours = !options.get_options().is_some_and(|set| set.contains(STATEMENT_TIMEOUT));
        if ours {
            options = with_statement_timeout(options, DEFAULT_DEADLINE);
        }
        Store::new(Connections::Postgres(pool_options(CONNECTIONS).connect_lazy_with(options)), ours)
    }

    fn on_mysql(options: MySqlConnectOptions) -> Store {
        // Any other character set would lose what it has no letter for.
        let options = options.charset("utf8mb4").set_names(true);
        Store::new(Connections::MySql(mysql::pool(&options, CONNECTIONS, DEFAULT_DEADLINE)), true)
    }

    fn on_sqlite(options: SqliteConnectOptions, connections: u32) -> Store {
        let options = options
            .create_if_missing(false)
            // NORMAL may lose the last commits at a power failure, and with them epochs that were handed out already.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(busy_timeout(DEFAULT_DEADLINE));
        Store::new(Connections::Sqlite(pool_options(connections).connect_lazy_with(options)), true)
    }

    fn new(connections: Connections, own_timeouts: bool) -> Store {
        let file = match &connections {
            Connections::Sqlite(pool) => Some(Arc::new(File::new(pool.connect_options().get_filename()))),
            Connections::Postgres(_) | Connections::MySql(_) => None,
        };
        Store {
            texts: texts(&connections, Guards::ALL),
            connections,
            file,
            #[cfg(feature = "ablation")]
            guards: Guards::ALL,
            deadline: DEFAULT_DEADLINE,
            own_timeouts,
        }
    }

    /// Gives statements this long, here and, as far as its time-outs are ours, in the database. To be called before the
    /// first statement: it begins with new connections.
    pub(crate) fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = deadline;
        if !self.own_timeouts {
            return;
        }
        self.connections = match &self.connections {
            Connections::Postgres(pool) => {
                // Of a setting that is given twice the server takes the last.
                let options = with_statement_timeout(pool.connect_options().as_ref().clone(), deadline);
                Connections::Postgres(pool_options(CONNECTIONS).connect_lazy_with(options))
            }
            Connections::Sqlite(pool) => {
                let options = pool.connect_options().as_ref().clone().busy_timeout(busy_timeout(deadline));
                Connections::Sqlite(pool_options(CONNECTIONS).connect_lazy_with(options))
            }
            Connections::MySql(pool) => Connections::MySql(mysql::pool(&pool.connect_options(), CONNECTIONS, deadline)),
        };
    }

    /// The same database through a pool of one connection of its own, which belongs to the calling runtime. The options and
    /// hooks of the pool stay: its maker may set a role or a schema by them.
    pub(crate) fn own_connection(&self) -> Store {
        let connections = match &self.connections {
            Connections::Postgres(pool) => Connections::Postgres(pool_of_one(pool)),
            Connections::Sqlite(pool) => Connections::Sqlite(pool_of_one(pool)),
            Connections::MySql(pool) => Connections::MySql(pool_of_one(pool)),
        };
        Store { connections, ..self.clone() }
    }

    /// Closes all connections; statements after it fail.
    pub async fn close(&self) {
        match &self.connections {
            Connections::Postgres(pool) => pool.close().await,
            Connections::Sqlite(pool) => pool.close().await,
            Connections::MySql(pool) => pool.close().await,
        }
    }
}

/// A pool like this one, of one connection that is made when it is needed.
pub(super) fn pool_of_one<DB: Database>(pool: &Pool<DB>) -> Pool<DB> {
    let options = pool.options().clone().min_connections(0).max_connections(1);
    options.connect_lazy_with(pool.connect_options().as_ref().clone())
}

/// A statement that its client has given up must not be applied hours later, when a lock frees.
fn with_statement_timeout(options: PgConnectOptions, deadline: Duration) -> PgConnectOptions {
    // 0 would be: none.
    options.options([(STATEMENT_TIMEOUT, deadline.as_millis().max(1).to_string())])
}

/// Shorter than the deadline, so that a lock not had in time is known not to have been applied.
fn busy_timeout(deadline: Duration) -> Duration {
    deadline.mul_f64(0.8)
}

pub(super) fn texts(connections: &Connections, guards: Guards) -> Arc<Texts> {
    Arc::new(match connections {
        Connections::Postgres(_) => Texts::new(Dialect::Postgres, guards),
        Connections::Sqlite(_) => Texts::new(Dialect::Sqlite, guards),
        Connections::MySql(_) => Texts::new(Dialect::MySql, guards),
    })
}

/// Trying every connection before every statement would double the round trips.
pub(super) fn pool_options<DB: Database>(connections: u32) -> PoolOptions<DB> {
    PoolOptions::new().max_connections(connections).test_before_acquire(false).before_acquire(|connection, meta| {
        Box::pin(async move {
            if meta.idle_for > TRY_AFTER_IDLE {
                sqlx::Connection::ping(connection).await?;
            }
            Ok(true)
        })
    })
}

/// What a URL of MySQL may say after a `?`; sqlx passes over what it does not know.
const MYSQL_PARAMETERS: [&str; 6] = ["ssl-mode", "ssl-ca", "ssl-cert", "ssl-key", "socket", "statement-cache-capacity"];

fn unknown_mysql_parameter(url: &str) -> Option<&str> {
    let (_, query) = url.split_once('?')?;
    let names = query.split('&').map(|pair| pair.split('=').next().unwrap_or_default());
    names.into_iter().find(|name| !MYSQL_PARAMETERS.contains(name))
}

/// Without them a parser reads a host as something else, and connects to a default.
fn has_slashes(url: &str) -> Result<(), String> {
    match url.split_once(':').is_some_and(|(_, rest)| rest.starts_with("//")) {
        true => Ok(()),
        false => Err("it has no // before the host".into()),
    }
}

/// The URL as it may be shown. A URL that is shown is often one that does not parse, e.g. for a `/` in its password: so
/// everything that may belong to a password is left out, up to the last `@`, and whatever comes after a `?`.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once(':') else { return url.into() };
    if scheme == "sqlite" {
        return url.into();
    }
    let (slashes, rest) = rest.strip_prefix("//").map_or(("", rest), |rest| ("//", rest));
    let (user, place) = rest.rsplit_once('@').map_or((None, rest), |(user, place)| (Some(user), place));
    let user = match user {
        None => String::new(),
        Some(_) if slashes.is_empty() => "…@".into(),
        Some(user) => format!("{}@", user.split_once(':').map_or(user, |(user, _)| user)),
    };
    let (place, query) = place.split_once('?').map_or((place, ""), |(place, _)| (place, "?…"));
    format!("{scheme}:{slashes}{user}{place}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What it was told to have committed survives a power failure.
    #[test]
    fn every_connection_to_sqlite_is_fully_synchronous() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let path = std::env::temp_dir().join(format!("leaseproof-synchronous-{}.db", std::process::id()));
        let url = format!("sqlite:{}", path.display());
        let of = |store: &Store| match &store.connections {
            Connections::Sqlite(pool) => pool.clone(),
            other => panic!("{other:?}"),
        };
        let levels = runtime.block_on(async {
            let store = Store::open(&url).expect("a URL");
            store.migrate().await.expect("tables");
            let mut shorter = store.clone();
            shorter.set_deadline(Duration::from_secs(1));
            let mut levels = Vec::new();
            for pool in [of(&store), of(&store.own_connection()), of(&shorter)] {
                levels
                    .push(sqlx::query_scalar::<_, i64>("PRAGMA synchronous").fetch_one(&pool).await.expect("a level"));
                pool.close().await;
            }
            levels
        });
        for end in ["", "-wal", "-shm"] {
            std::fs::remove_file(format!("{}{end}", path.display())).ok();
        }
        const FULL: i64 = 2;
        assert_eq!(levels, [FULL; 3]);
    }

    #[test]
    fn a_password_is_not_shown() {
        assert_eq!(without_password("postgres://me:secret@db:5432/x"), "postgres://me@db:5432/x");
        assert_eq!(without_password("postgres://db/x"), "postgres://db/x");
        assert_eq!(without_password("sqlite:some.db?mode=ro"), "sqlite:some.db?mode=ro");
        assert_eq!(without_password("postgres://me:se/cr@et@db/x?password=secret"), "postgres://me@db/x?…");
        assert_eq!(without_password("me:secret@db/x"), "me:…@db/x");
    }
}
