//! The two older designs on SQLite, PostgreSQL and MariaDB: how they live, their traps, what each database says on meeting
//! a lock, and what a killed process leaves behind. Cases run as `sqlite::name`, `postgres::name`, `mariadb::name`, on the
//! servers that `LEASEPROOF_POSTGRES_URL` and `LEASEPROOF_MARIADB_URL` name.

// A test says what it expects by failing.
#![allow(clippy::unwrap_used)]

mod common;
mod killed;
mod lives;
mod locks;
mod traps;

macro_rules! cases {
    ($database:ident, $kind:expr, $($module:ident::$case:ident,)*) => {
        mod $database {
            $(#[test]
            fn $case() {
                crate::common::run($kind, async |db| crate::$module::$case(db).await);
            })*
        }
    };
}

macro_rules! on_every_database {
    ($($module:ident::$case:ident,)*) => {
        cases!(sqlite, crate::common::Kind::Sqlite, $($module::$case,)*);
        cases!(postgres, crate::common::Kind::Postgres, $($module::$case,)*);
        cases!(mariadb, crate::common::Kind::MariaDb, $($module::$case,)*);
    };
}

on_every_database! {
    lives::both_run_tasks_to_their_ends,
    lives::a_claim_of_commit_running_is_seen_by_everybody,
    lives::a_claim_of_a_single_transaction_is_seen_by_nobody,
    lives::of_many_executors_each_task_goes_to_one,
    lives::a_dropped_claim_is_what_a_crash_leaves,
    lives::a_report_on_a_row_that_was_reset_changes_nothing,
    locks::what_the_database_says_on_meeting_the_lock,
    traps::an_inner_transaction_never_gets_the_connection_that_its_outer_one_holds,
    traps::a_locking_read_in_transaction_1_makes_transaction_2_wait_for_it,
    killed::a_killed_process_leaves_commit_running_as_it_is_for_ever,
    killed::a_killed_process_gives_a_single_transaction_back,
}

cases! {
    only_sqlite, crate::common::Kind::Sqlite,
    traps::transaction_1_can_not_report_after_transaction_2,
    locks::one_executor_locks_every_task,
}

cases! {
    only_postgres, crate::common::Kind::Postgres,
    traps::as_many_runs_as_connections_wait_for_each_other,
    locks::an_executor_locks_its_own_task_only,
}

cases! {
    only_mariadb, crate::common::Kind::MariaDb,
    traps::as_many_runs_as_connections_wait_for_each_other,
    locks::an_executor_locks_its_own_task_only,
}

/// The process that the tests of `killed` kill. By itself it does nothing.
#[test]
fn the_process_that_is_killed() {
    killed::be_the_process();
}
