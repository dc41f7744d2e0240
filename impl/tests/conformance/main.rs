//! The store's conformance suite: every case is written once and runs on SQLite, on PostgreSQL and on MariaDB, as
//! `sqlite::case_name`, `postgres::case_name` and `mariadb::case_name`. The servers are those that
//! `LEASEPROOF_POSTGRES_URL` and `LEASEPROOF_MARIADB_URL` name; see `common`.
//!
//! Most modules are compiled into `sim/tests/conformance` too, and run there on the simulated database node; the cases that
//! both run are those of [`every_case`].
//!
//! The heart is [`judged`]: each statement of the store against [`leaseproof_queue::rules::judge`], in every situation
//! of a row.

// A test says what it expects by failing.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
#[macro_use]
mod every_case;

mod bad_rows;
mod claims;
mod completions;
mod heartbeats;
mod instances;
mod journal;
mod judged;
mod locks;
mod locks_mariadb;
mod locks_postgres;
mod locks_sqlite;
mod records;
mod rights_mariadb;
mod schema;
mod sweeps;
mod urls;

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

every_case! { on_every_database:
    bad_rows::a_row_that_refuses_a_claim_keeps_no_other_from_it,
    bad_rows::a_claimed_row_that_can_not_be_read_is_handed_out_with_the_reason,
    bad_rows::a_lost_row_that_can_not_be_read_keeps_no_other_from_a_decision,
    bad_rows::a_count_that_is_full_stays_full,
    bad_rows::a_row_that_refuses_a_heartbeat_keeps_no_other_from_it,
    bad_rows::a_task_that_can_not_be_read_is_listed_by_its_id_beside_the_others,
    bad_rows::what_can_not_be_read_of_record_and_journal_is_told_and_the_rest_shown,
    schema::migrating_again_is_harmless,
    schema::several_processes_may_migrate_at_once,
    schema::a_database_that_is_not_migrated_names_the_command,
    schema::a_newer_schema_is_left_alone,
    schema::an_older_schema_is_named,
    schema::a_table_of_somebody_else_is_left_alone,
    schema::impossible_rows_are_refused,
    schema::a_normal_build_can_not_switch_guards_off,
}

cases! {
    only_sqlite, crate::common::Kind::Sqlite,
    locks_sqlite::a_writer_behind_another_gives_up_in_time_and_was_not_applied,
    locks_sqlite::a_reader_does_not_wait_for_a_writer,
    locks_sqlite::a_shorter_deadline_shortens_the_wait_for_the_lock,
    schema::a_migration_waits_for_another_up_to_its_own_deadline,
}

cases! {
    only_postgres, crate::common::Kind::Postgres,
    locks::a_claim_skips_a_row_that_another_session_has_locked,
    locks::a_locked_row_keeps_no_other_lease_from_being_renewed,
    locks::a_sweeper_does_not_wait_for_a_locked_row,
    locks_postgres::an_unknown_outcome_may_still_be_applied,
    locks_postgres::a_connection_with_an_unread_answer_is_not_used_again,
    locks_postgres::a_cancelled_caller_leaves_no_connection_to_the_next,
    locks_postgres::a_statement_that_the_server_gave_up_was_not_applied,
    locks_postgres::a_statement_does_not_outlive_its_caller_s_deadline,
    locks_postgres::a_connection_that_the_server_ends_leaves_the_outcome_unknown,
    locks_postgres::a_writer_that_waited_past_the_end_of_its_lease_is_refused,
    locks_postgres::behind_a_lock_that_changed_nothing_the_clock_is_that_of_the_start_and_the_reading_protects,
    judged::every_statement_agrees_on_the_very_instant,
    sweeps::a_lease_ends_too_late_exactly_where_the_rules_say,
    schema::a_migration_waits_for_another_up_to_its_own_deadline,
}

cases! {
    only_mariadb, crate::common::Kind::MariaDb,
    locks::a_claim_skips_a_row_that_another_session_has_locked,
    locks::a_locked_row_keeps_no_other_lease_from_being_renewed,
    locks::a_sweeper_does_not_wait_for_a_locked_row,
    locks_mariadb::a_claim_locks_no_more_than_it_takes,
    locks_mariadb::an_enqueue_does_not_wait_for_a_claim,
    locks_mariadb::a_lock_not_had_in_time_was_not_applied,
    locks_mariadb::a_statement_does_not_outlive_its_caller_s_deadline,
    locks_mariadb::an_unknown_outcome_may_still_be_applied,
    locks_mariadb::a_statement_that_the_server_gave_up_was_not_applied,
    locks_mariadb::a_connection_that_the_server_ends_leaves_the_outcome_unknown,
    locks_mariadb::the_victim_of_a_deadlock_was_not_applied,
    locks_mariadb::a_writer_that_waited_past_the_end_of_its_lease_is_refused,
    locks_mariadb::the_clock_does_not_depend_on_the_session_s_time_zone,
    locks_mariadb::an_interrupted_migration_is_taken_up,
    locks_mariadb::what_does_not_fit_is_refused_and_not_cut_off,
    schema::a_migration_waits_for_another_up_to_its_own_deadline,
    rights_mariadb::a_worker_needs_no_more_than_the_rights_that_are_named,
}

#[cfg(feature = "ablation")]
mod ablation {
    cases!(sqlite, crate::common::Kind::Sqlite, judged::a_store_without_a_guard_does_what_the_rules_without_it_say,);
    cases!(postgres, crate::common::Kind::Postgres, judged::a_store_without_a_guard_does_what_the_rules_without_it_say,);
    cases!(mariadb, crate::common::Kind::MariaDb, judged::a_store_without_a_guard_does_what_the_rules_without_it_say,);
}
