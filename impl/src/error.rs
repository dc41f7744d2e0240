//! What can go wrong, told apart by what the caller may conclude from it.

use std::time::Duration;

use leaseproof_rules::PolicyError;

/// An error of the queue.
///
/// The one distinction that matters for safety is between [`Error::Unavailable`] and [`Error::Rejected`], after which
/// the statement surely was *not* applied, and [`Error::Unknown`], after which it may have been.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The URL has a scheme that no store of this build answers to.
    #[error("database URL {url:?}: unknown scheme {scheme:?}; accepted are {}", crate::ACCEPTED_URLS)]
    UnknownScheme {
        /// The URL with the password left out.
        url: String,
        /// Its scheme.
        scheme: String,
    },
    /// The URL has a known scheme and does not parse.
    #[error("database URL {url:?}: {why}; accepted are {}", crate::ACCEPTED_URLS)]
    BadUrl {
        /// The URL with the password left out.
        url: String,
        /// What is wrong.
        why: String,
    },
    /// There are no tables of the queue.
    #[error("the database has no leaseproof tables ({why}); run `leaseproof queue migrate` on it first")]
    NotMigrated {
        /// What was seen.
        why: String,
    },
    /// The tables are older than this build.
    #[error(
        "the database's leaseproof tables have version {found}, this build needs {needed}; run `leaseproof queue migrate`"
    )]
    OlderSchema {
        /// In the database.
        found: i64,
        /// What this build needs.
        needed: i64,
    },
    /// The tables are newer than this build.
    #[error("the database's leaseproof tables have version {found}, this build knows {known}; use a newer build")]
    NewerSchema {
        /// In the database.
        found: i64,
        /// The newest this build knows.
        known: i64,
    },
    /// The statement was surely not applied, and trying again later makes sense: no connection, lock not had in time,
    /// serialisation failure.
    #[error("{verb}: the database is not available (not applied): {cause}")]
    Unavailable {
        /// Name of the statement, as in its tag.
        verb: &'static str,
        /// What was seen.
        cause: Cause,
    },
    /// The statement was sent and nothing was heard of it: **it may have been applied**, and may still be.
    #[error("{verb}: no answer from the database, outcome unknown (may have been applied): {cause}")]
    Unknown {
        /// Name of the statement, as in its tag.
        verb: &'static str,
        /// What was seen.
        cause: Cause,
    },
    /// The database refused the statement itself; not applied, and trying again unchanged will not help.
    #[error("{verb}: the database rejects the statement (not applied): {cause}")]
    Rejected {
        /// Name of the statement, as in its tag.
        verb: &'static str,
        /// What it said.
        cause: Cause,
    },
    /// A stored row can not be read.
    #[error("{verb}: stored row{} can not be read: {why}", id.map_or(String::new(), |id| format!(" {id}")))]
    BadRow {
        /// Name of the statement, as in its tag.
        verb: &'static str,
        /// The row's id, where it is known: a task's, or that of an entry of the record.
        id: Option<i64>,
        /// Which column, and what is wrong.
        why: String,
    },
    /// A process with this boot id is, or was, there already.
    #[error(
        "boot id {boot_id:?} is already registered by pid {pid} on host {host:?}; a boot id names one start of one process: \
         leave it out to get a random one"
    )]
    DuplicateBootId {
        /// The boot id.
        boot_id: String,
        /// Who registered it.
        host: String,
        /// Who registered it.
        pid: i64,
    },
    /// A later start of the same instance slot has taken over.
    #[error("boot id {boot_id:?} is superseded by {by:?}, a later start of the same slot; this process must not go on")]
    Superseded {
        /// This process.
        boot_id: String,
        /// The later one.
        by: String,
    },
    /// A task setting that can not work.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The operating system gives no thread for the heartbeat. Beside handlers that may block, a heartbeat without one would
    /// be no better than none.
    #[error(
        "no thread can be had for the heartbeat: {why}; raise the limit of threads, or use HeartbeatMode::Task where no handler \
         ever blocks"
    )]
    NoThread {
        /// What the operating system says.
        why: String,
    },
    /// The file of an SQLite database is not the one any more that was opened.
    #[error(
        "{path}: the database file was {what} while it was in use, and what is written to it now reaches nobody; stop every \
         process that uses it, put the right file there, and start again"
    )]
    FileChanged {
        /// Where it was.
        path: String,
        /// `deleted` or `replaced`.
        what: &'static str,
    },
    /// A value given by the caller that can not be used.
    #[error("{what}: {why}")]
    BadInput {
        /// Which argument.
        what: &'static str,
        /// What is wrong and what is accepted.
        why: String,
    },
    /// There is no such task.
    #[error("there is no task {id}")]
    NoSuchTask {
        /// The id.
        id: i64,
    },
    /// A person's decision does not apply any more.
    #[error("task {id} is not resolved: {why}; {}, look at it again with `show`", changed(settled))]
    NotResolved {
        /// The task.
        id: i64,
        /// Which condition failed.
        why: String,
        /// The effects of which it was written already what the person said of them.
        settled: Vec<String>,
    },
}

fn changed(settled: &[String]) -> String {
    match settled {
        [] => "nothing was changed".to_owned(),
        some => format!("only what was said of its effects is written: {}", some.join(", ")),
    }
}

/// What stands behind an [`Error`].
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// The deadline passed.
    #[error("no {what} within {limit:?}")]
    Deadline {
        /// What was waited for.
        what: &'static str,
        /// How long.
        limit: Duration,
    },
    /// The driver reports.
    #[error(transparent)]
    Driver(#[from] sqlx::Error),
    /// An operating system error.
    #[error("{0}")]
    System(String),
}

impl Error {
    /// Whether the statement may have been applied although this error came back.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Error::Unknown { .. })
    }

    /// Whether no further statement can succeed until somebody has put the database right: a process that works on it ends.
    pub fn needs_an_operator(&self) -> bool {
        matches!(
            self,
            Error::NotMigrated { .. }
                | Error::OlderSchema { .. }
                | Error::NewerSchema { .. }
                | Error::FileChanged { .. }
        )
    }

    /// Whether the same call may well succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Error::Unknown { .. } | Error::Unavailable { .. })
    }
}
