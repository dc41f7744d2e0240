//! From a URL to a store.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use leaseproof_rules::Guards;
use sqlx::Database;
use sqlx::pool::PoolOptions;
use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};

use super::sql::{POSTGRES, SQLITE, Texts};
use super::{Connections, DEFAULT_DEADLINE, Store};
use crate::Error;

/// Connections of a process, besides the one of its heartbeat.
const CONNECTIONS: u32 = 8;

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
                let options = SqliteConnectOptions::from_str(url).map_err(|error| bad(error.to_string()))?;
                if url.contains(":memory:") || url.contains("mode=memory") {
                    return Err(bad("every connection would get its own database in memory; name a file".into()));
                }
                Ok(Store::on_sqlite(options, CONNECTIONS))
            }
            "postgres" | "postgresql" => {
                let options = PgConnectOptions::from_str(url).map_err(|error| bad(error.to_string()))?;
                Ok(Store::on_postgres_options(options))
            }
            scheme => Err(Error::UnknownScheme { url: without_password(url), scheme: scheme.into() }),
        }
    }

    /// A store on a PostgreSQL pool made elsewhere.
    pub fn on_postgres(pool: PgPool) -> Store {
        Store::new(Connections::Postgres(pool))
    }

    /// A store on connections of these options. Makes no connection yet.
    pub fn on_postgres_options(mut options: PgConnectOptions) -> Store {
        if options.get_application_name().is_none() {
            options = options.application_name("leaseproof");
        }
        // A statement that its client has given up must not be applied hours later, when a lock frees.
        if !options.get_options().is_some_and(|set| set.contains("statement_timeout")) {
            options = options.options([("statement_timeout", DEFAULT_DEADLINE.as_millis().to_string())]);
        }
        Store::on_postgres(pool_options(CONNECTIONS).connect_lazy_with(options))
    }

    fn on_sqlite(options: SqliteConnectOptions, connections: u32) -> Store {
        let options = options
            .create_if_missing(false)
            // NORMAL may lose the last commits at a power failure, and with them epochs that were handed out already.
            .synchronous(SqliteSynchronous::Full)
            // Shorter than the deadline, so that a lock not had in time is known not to have been applied.
            .busy_timeout(DEFAULT_DEADLINE.mul_f64(0.8));
        Store::new(Connections::Sqlite(pool_options(connections).connect_lazy_with(options)))
    }

    fn new(connections: Connections) -> Store {
        let guards = Guards::ALL;
        Store { texts: texts(&connections, guards), connections, guards, deadline: DEFAULT_DEADLINE }
    }

    /// The same store with some guards removed, to show what they are for.
    #[cfg(feature = "ablation")]
    pub(crate) fn with_guards(self, guards: Guards) -> Store {
        Store { texts: texts(&self.connections, guards), guards, ..self }
    }

    /// The same database through a pool of one connection of its own, which belongs to the calling runtime.
    pub(crate) fn own_connection(&self) -> Store {
        let connections = match &self.connections {
            Connections::Postgres(pool) => {
                let options = pool.connect_options().as_ref().clone();
                Connections::Postgres(pool_options(1).connect_lazy_with(options))
            }
            Connections::Sqlite(pool) => {
                let options = pool.connect_options().as_ref().clone();
                Connections::Sqlite(pool_options(1).connect_lazy_with(options))
            }
        };
        Store { connections, ..self.clone() }
    }

    /// Closes all connections; statements after it fail.
    pub async fn close(&self) {
        match &self.connections {
            Connections::Postgres(pool) => pool.close().await,
            Connections::Sqlite(pool) => pool.close().await,
        }
    }
}

fn texts(connections: &Connections, guards: Guards) -> Arc<Texts> {
    Arc::new(match connections {
        Connections::Postgres(_) => Texts::new(&POSTGRES, guards),
        Connections::Sqlite(_) => Texts::new(&SQLITE, guards),
    })
}

/// Trying every connection before every statement would double the round trips.
fn pool_options<DB: Database>(connections: u32) -> PoolOptions<DB> {
    PoolOptions::new().max_connections(connections).test_before_acquire(false).before_acquire(|connection, meta| {
        Box::pin(async move {
            if meta.idle_for > TRY_AFTER_IDLE {
                sqlx::Connection::ping(connection).await?;
            }
            Ok(true)
        })
    })
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

    #[test]
    fn a_password_is_not_shown() {
        assert_eq!(without_password("postgres://me:secret@db:5432/x"), "postgres://me@db:5432/x");
        assert_eq!(without_password("postgres://db/x"), "postgres://db/x");
        assert_eq!(without_password("sqlite:some.db?mode=ro"), "sqlite:some.db?mode=ro");
        assert_eq!(without_password("postgres://me:se/cr@et@db/x?password=secret"), "postgres://me@db/x?…");
        assert_eq!(without_password("me:secret@db/x"), "me:…@db/x");
    }
}
