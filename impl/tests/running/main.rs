//! Worker, effects, sweeper and desk together, on SQLite and, where `LEASEPROOF_POSTGRES_URL` names a server, on
//! PostgreSQL: `sqlite::case_name` and `postgres::case_name`, as in the conformance suite.
//!
//! Handlers are steered by signals. Where a lease has to end it is either ended by SQL or shorter than a second.

// A test says what it expects by failing.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod beats;
mod runs;
mod shutdown;
mod support;

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
    };
}

on_every_database! {
    runs::a_task_runs_and_its_result_is_stored,
    runs::as_many_tasks_run_at_once_as_there_are_slots,
    runs::a_retryable_error_waits_longer_each_time_until_the_attempts_are_used_up,
    runs::where_the_policy_says_so_used_up_attempts_are_a_failure,
    runs::what_can_not_succeed_goes_to_a_person_after_one_run,
    runs::a_panic_costs_an_attempt,
    runs::a_panic_before_the_first_await_costs_an_attempt,
    beats::a_busy_handler_does_not_starve_the_heartbeat_of_a_thread,
    beats::a_busy_handler_starves_the_heartbeat_of_a_task,
    beats::a_lost_lease_cancels_the_handler_and_nothing_further_is_written,
    beats::a_handler_that_finishes_after_its_lease_was_lost_leaves_a_late_result,
    beats::a_blocking_handler_that_finishes_after_its_lease_was_lost_leaves_a_late_result,
    beats::without_an_accepted_heartbeat_the_owner_stops_by_its_own_clock,
    shutdown::within_the_grace_a_handler_finishes_and_its_lease_is_renewed,
    shutdown::after_the_grace_the_task_goes_back_unharmed,
    shutdown::a_blocking_handler_is_put_back_only_when_it_has_stopped,
    shutdown::a_blocking_handler_that_finishes_after_the_grace_still_reports,
    shutdown::a_task_with_an_unknown_effect_is_left_to_the_sweeper,
}
