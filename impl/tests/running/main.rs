//! Worker, effects, sweeper and desk together, on SQLite and, where `LEASEPROOF_POSTGRES_URL` and `LEASEPROOF_MARIADB_URL`
//! name servers, on PostgreSQL and MariaDB: `sqlite::case_name` and so on, as in the conformance suite.
//!
//! Handlers are steered by signals. Where a lease has to end it is either ended by SQL or shorter than a second.

// A test says what it expects by failing.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod beats;
mod contexts;
mod desk;
mod effects;
mod pools;
mod runs;
mod shutdown;
mod starts;
mod support;
mod sweeps;
mod third_party;
mod unknowns;

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

cases!(
    only_postgres,
    crate::common::Kind::Postgres,
    pools::one_connection_serves_a_worker_of_several_slots_and_its_sweeper,
    pools::a_handler_that_holds_the_only_connection_holds_up_the_queue_and_loses_nothing,
    pools::heartbeat_and_migration_keep_the_hooks_of_the_caller_s_pool,
);

cases!(
    only_sqlite,
    crate::common::Kind::Sqlite,
    starts::a_file_that_is_deleted_under_a_running_worker_ends_it,
    starts::a_file_that_is_replaced_under_a_running_worker_ends_it,
    desk::a_decision_that_comes_too_late_tells_what_was_written_of_the_effects,
);

on_every_database! {
    runs::a_task_runs_and_its_result_is_stored,
    runs::as_many_tasks_run_at_once_as_there_are_slots,
    runs::a_retryable_error_waits_longer_each_time_until_the_attempts_are_used_up,
    runs::where_the_policy_says_so_used_up_attempts_are_a_failure,
    runs::what_can_not_succeed_goes_to_a_person_after_one_run,
    runs::a_result_that_can_not_be_stored_goes_to_a_person,
    runs::an_error_is_stored_whatever_is_in_it,
    effects::what_a_call_brought_and_can_not_be_stored_is_done_all_the_same,
    runs::a_panic_costs_an_attempt,
    runs::a_panic_before_the_first_await_costs_an_attempt,
    runs::each_end_of_a_run_is_told_with_what_became_of_the_task,
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
    shutdown::a_third_party_that_does_not_answer_does_not_hold_up_a_shutdown,
    shutdown::a_report_that_does_not_get_through_does_not_hold_up_a_shutdown,
    shutdown::a_worker_that_is_dropped_cancels_its_handlers,
    effects::the_journal_has_the_intent_while_the_call_runs_and_the_outcome_after,
    effects::a_second_run_takes_the_outcome_from_the_journal_and_does_not_call,
    effects::a_call_that_was_surely_not_done_is_made_again,
    effects::each_effect_of_a_task_has_its_own_entry,
    effects::without_the_lease_no_call_is_made,
    effects::the_outcome_of_a_call_that_outlived_the_lease_is_not_journalled,
    effects::a_handler_may_call_again_after_a_refusal_within_one_run,
    unknowns::without_an_instrument_it_goes_to_a_person,
    unknowns::a_third_party_that_says_done_is_not_called_again,
    unknowns::a_third_party_that_checks_tokens_and_says_not_done_is_called_again,
    unknowns::without_tokens_not_done_settles_nothing,
    unknowns::a_third_party_that_does_not_answer_is_asked_again_under_the_same_lease,
    unknowns::with_an_idempotency_key_it_is_called_again_under_the_same_key,
    unknowns::at_most_once_leaves_the_call_out,
    unknowns::at_least_once_calls_again,
    unknowns::a_query_that_this_process_does_not_have_counts_as_none,
    unknowns::a_panic_during_the_call_leaves_its_outcome_unknown,
    unknowns::an_unknown_outcome_comes_before_whatever_else_went_wrong,
    unknowns::there_is_no_success_over_an_unknown_outcome,
    unknowns::both_unknown_effects_of_one_task_are_asked_about,
    unknowns::what_was_learnt_is_kept_when_the_task_ends_all_the_same,
    unknowns::a_call_that_surely_was_not_made_leaves_an_earlier_unknown_one_unknown,
    contexts::a_clone_of_the_context_can_do_nothing_after_its_handler_has_ended,
    contexts::a_call_that_a_clone_is_making_when_the_handler_ends_is_unknown,
    contexts::one_effect_is_not_called_twice_at_once,
    sweeps::a_task_of_a_lost_owner_runs_again,
    sweeps::an_owner_lost_once_too_often_brings_the_task_to_a_person,
    sweeps::a_run_far_over_its_expected_time_goes_to_a_person,
    sweeps::settings_that_can_not_be_read_bring_a_lost_task_to_a_person,
    sweeps::an_unknown_effect_is_settled_by_its_instruments,
    sweeps::a_third_party_that_never_answers_brings_the_task_to_a_person,
    sweeps::every_unknown_effect_of_a_task_is_asked_about_and_none_is_requeued_half_known,
    sweeps::a_query_that_this_sweeper_does_not_have_counts_as_none,
    sweeps::a_third_party_that_hangs_does_not_hold_up_the_sweep,
    sweeps::while_a_third_party_is_silent_other_tasks_are_decided,
    sweeps::tasks_are_asked_about_side_by_side_but_not_all_at_once,
    sweeps::a_query_that_panics_counts_as_no_answer,
    sweeps::a_shutdown_ends_a_sweep_that_is_under_way,
    sweeps::what_was_learnt_is_kept_when_the_task_goes_to_a_person_all_the_same,
    sweeps::an_owner_that_reports_while_the_sweeper_asks_is_not_overwritten,
    sweeps::two_sweepers_at_once_decide_each_task_once,
    sweeps::a_report_counts_every_kind_of_decision,
    sweeps::tasks_that_wait_do_not_hide_those_behind_them,
    sweeps::what_could_not_be_written_is_left_to_the_next_sweep,
    sweeps::a_sweeper_sweeps_until_it_is_told_to_stop,
    starts::a_boot_id_can_not_be_used_twice,
    starts::without_the_tables_a_worker_says_how_to_make_them,
    starts::when_the_tables_are_gone_a_worker_ends,
    starts::a_newer_schema_under_a_running_process_ends_it,
    starts::settings_that_can_not_work_are_refused_before_anything_starts,
    starts::what_the_earlier_start_of_a_slot_had_comes_back_at_once,
    starts::a_start_in_another_slot_takes_nothing,
    starts::a_worker_whose_slot_is_taken_ends_and_names_the_later_start,
    starts::a_worker_whose_slot_is_taken_cancels_its_handlers_at_once,
    starts::a_start_that_is_refused_has_not_swept,
    desk::what_waits_can_be_listed_page_by_page_and_shown_with_all_that_happened,
    desk::each_decision_is_carried_out_and_signed,
    desk::a_rerun_starts_new_budgets,
    desk::a_decision_says_by_whom_and_why_or_is_refused,
    desk::a_decision_about_a_task_that_has_moved_on_is_refused,
    desk::of_two_people_who_decide_at_once_one_is_told,
    desk::a_rerun_past_an_unknown_effect_demands_to_know_it,
    desk::a_rerun_past_a_harmless_effect_demands_nothing,
    desk::a_rerun_with_corrected_input_runs_on_it,
    desk::a_run_that_ends_after_the_decision_does_not_undo_it,
}
