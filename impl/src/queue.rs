//! The handle that everything else starts from.

use std::time::Duration;

use leaseproof_rules::Guards;
use sqlx::postgres::{PgConnectOptions, PgPool};

use crate::Error;
use crate::store::Store;
use crate::task::{Enqueued, NewTask};

/// The URLs that [`Queue::connect`] takes.
pub const ACCEPTED_URLS: &str =
    "sqlite:PATH, postgres://USER@HOST/DATABASE and mysql://USER@HOST/DATABASE (or mariadb://…)";

/// SQLite's clock, in ms since the Unix epoch.
pub const SQLITE_NOW_MS: &str = "CAST(round(unixepoch('subsec') * 1000) AS INTEGER)";

/// The clock of MySQL and MariaDB, in ms since the Unix epoch. `SYSDATE` is read anew for each row, after the wait for its
/// lock, where `NOW` and `UTC_TIMESTAMP` stand still from the start of the statement. The difference of the two local
/// times and the one in UTC do not depend on the session's time zone.
pub const MYSQL_NOW_MS: &str = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) \
     + TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6))) DIV 1000";

/// Whether this build can switch guards off. False in every normal build.
pub const ABLATION: bool = cfg!(feature = "ablation");

/// A task queue in a database. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Queue {
    store: Store,
}

impl Queue {
    /// A queue in the database that `url` names: `sqlite:PATH`, `postgres://USER@HOST/DATABASE` or
    /// `mysql://USER@HOST/DATABASE`; `mariadb://` means the same as `mysql://`. Connects when first used; a missing SQLite
    /// file is created by [`Queue::migrate`] only.
    ///
    /// # Errors
    /// [`Error::UnknownScheme`] or [`Error::BadUrl`].
    pub async fn connect(url: &str) -> Result<Queue, Error> {
        Store::open(url).map(|store| Queue { store })
    }

    /// A queue on PostgreSQL connections of these options. Connects when first used.
    pub fn with_pg_options(options: PgConnectOptions) -> Queue {
        Queue { store: Store::on_postgres_options(options) }
    }

    /// A queue on a PostgreSQL pool made elsewhere. For safety against statements that outlive their client, set
    /// `statement_timeout` on its connections.
    pub fn from_pg_pool(pool: PgPool) -> Queue {
        Queue { store: Store::on_postgres(pool) }
    }

    /// Sets how long a statement may take, on this process's clock, before its outcome counts as unknown (default 5 s).
    /// The server gives up a statement after as long (PostgreSQL's `statement_timeout`, unless the URL or the pool sets its
    /// own; MariaDB's `max_statement_time`), SQLite and MySQL wait four fifths of it for a lock, MySQL in whole seconds. To be set before the queue is used: it begins with new connections.
    pub fn deadline(mut self, deadline: Duration) -> Queue {
        self.store.set_deadline(deadline);
        self
    }

    /// Switches guards off. Only in a build with the feature `ablation`.
    #[cfg(feature = "ablation")]
    pub fn with_guards(self, guards: Guards) -> Queue {
        Queue { store: self.store.with_guards(guards) }
    }

    /// The guards in force: all of them, in a normal build.
    pub fn guards(&self) -> Guards {
        self.store.guards()
    }

    /// The statements, one by one.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Creates the tables or brings them up; returns the version before (0: none). Waits for another process that is
    /// migrating, ten minutes in all. See [`Store::migrate`].
    ///
    /// # Errors
    /// [`Error::NewerSchema`], [`Error::Unavailable`] where it did not come to its turn, or the database's.
    pub async fn migrate(&self) -> Result<i64, Error> {
        self.store.migrate().await
    }

    /// Checks that the tables are there and fit this build. See [`Store::check_schema`].
    ///
    /// # Errors
    /// [`Error::NotMigrated`] and its like, or the database's.
    pub async fn check_schema(&self) -> Result<(), Error> {
        self.store.check_schema().await
    }

    /// Puts a task in.
    ///
    /// # Errors
    /// A setting that can not work, or the database's. After [`Error::Unknown`] the task may be in; with a
    /// [`NewTask::unique_key`] it is safe to try again.
    pub async fn enqueue(&self, task: NewTask) -> Result<Enqueued, Error> {
        self.store.enqueue(&task, "enqueue").await
    }

    /// Closes all connections.
    pub async fn close(&self) {
        self.store.close().await;
    }
}
