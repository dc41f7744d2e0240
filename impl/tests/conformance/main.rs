//! The store's conformance suite: every case is written once and runs on SQLite, on PostgreSQL and on MariaDB, as
//! `sqlite::case_name`, `postgres::case_name` and `mariadb::case_name`. The servers are those that
//! `LEASEPROOF_POSTGRES_URL` and `LEASEPROOF_MARIADB_URL` name; see `common`.
//!
//! Most modules are compiled into `sim/tests/conformance` too, and run there on the simulated database node: a new case is
//! listed there as well, and the compiler complains of one that is not.
//!
//! The heart is [`judged`]: each statement of the store against [`leaseproof_queue::rules::judge`], in every situation
//! of a row.

// A test says what it expects by failing.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

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

on_every_database! {
    judged::every_statement_does_what_the_rules_say,
    judged::the_comparison_notices_a_missing_guard,
    judged::the_sweep_reads_exactly_what_a_sweeper_may_write,
    claims::many_claimers_share_the_tasks_without_overlap,
    claims::of_many_claimers_of_one_task_one_wins_and_none_fails,
    claims::a_claim_hands_out_what_was_put_in,
    claims::the_longest_due_is_claimed_first,
    claims::a_claim_takes_no_more_than_its_limit,
    claims::a_delayed_task_is_not_claimed_before_it_is_due,
    claims::a_task_in_retry_wait_is_claimed_when_it_is_due,
    claims::a_second_task_with_the_same_key_is_not_put_in,
    claims::keys_that_only_look_alike_are_different_keys,
    claims::many_enqueues_under_one_key_put_in_one_task,
    claims::a_task_with_settings_that_can_not_work_is_handed_out_with_the_reason,
    claims::bad_input_is_refused_before_the_database_sees_it,
    heartbeats::a_mixed_batch_renews_exactly_the_live_leases_of_the_caller,
    heartbeats::twelve_hundred_leases_are_renewed_across_batches,
    heartbeats::a_lease_that_has_ended_is_not_renewed,
    heartbeats::a_lease_named_twice_is_renewed_once,
    heartbeats::the_largest_gap_between_beats_is_kept_and_recorded,
    completions::a_repeated_completion_is_already_done,
    completions::a_late_completion_after_a_requeue_is_adopted,
    completions::a_late_completion_is_adopted_out_of_retry_wait,
    completions::a_late_completion_after_a_new_claim_is_refused_and_recorded_once,
    completions::a_person_s_decision_is_not_undone_by_an_older_run,
    completions::a_late_completion_and_a_new_claim_exclude_each_other,
    completions::a_completion_and_a_requeue_at_once_end_in_success,
    completions::attempts_and_interruptions_are_counted_apart,
    completions::a_task_that_is_not_there_is_named,
    journal::intent_and_outcome_read_back_with_their_rule,
    journal::every_declaration_survives_the_journal,
    journal::a_zombie_writes_no_intent_and_no_outcome,
    journal::after_the_lease_an_outcome_is_heard_but_no_intent,
    journal::what_was_learnt_is_journalled_by_the_requeue_itself,
    journal::what_was_learnt_is_journalled_by_the_retry_itself,
    journal::a_sweeper_learns_only_of_a_lost_task_as_it_was_read,
    journal::a_person_settles_only_in_wait_manual_and_as_it_was_read,
    records::every_transition_writes_exactly_one_entry,
    records::a_heartbeat_writes_no_entry,
    records::the_record_can_be_neither_changed_nor_deleted,
    records::a_row_changed_by_hand_is_recorded_as_such,
    records::the_record_tells_the_whole_story_in_order,
    schema::migrating_again_is_harmless,
    schema::several_processes_may_migrate_at_once,
    schema::a_database_that_is_not_migrated_names_the_command,
    schema::a_newer_schema_is_left_alone,
    schema::an_older_schema_is_named,
    schema::a_table_of_somebody_else_is_left_alone,
    schema::impossible_rows_are_refused,
    schema::a_normal_build_can_not_switch_guards_off,
    instances::the_same_boot_id_twice_is_refused,
    instances::a_repeated_registration_is_harmless,
    instances::a_new_start_of_a_slot_supersedes_the_earlier_one,
    instances::a_superseded_process_is_told_and_claims_nothing,
    instances::a_start_that_is_overtaken_while_it_registers_is_told,
    instances::of_starts_at_once_in_one_slot_exactly_one_remains,
    sweeps::a_page_ends_where_the_next_begins,
    sweeps::a_lost_task_is_read_with_all_that_a_decision_needs,
    sweeps::two_sweepers_at_once_requeue_a_task_once,
    sweeps::a_decision_on_an_old_reading_is_refused,
}

cases! {
    only_sqlite, crate::common::Kind::Sqlite,
    locks_sqlite::a_writer_behind_another_gives_up_in_time_and_was_not_applied,
    locks_sqlite::a_reader_does_not_wait_for_a_writer,
    locks_sqlite::a_shorter_deadline_shortens_the_wait_for_the_lock,
}

cases! {
    only_postgres, crate::common::Kind::Postgres,
    locks::a_claim_skips_a_row_that_another_session_has_locked,
    locks_postgres::a_locked_row_holds_up_the_heartbeat_of_its_whole_batch,
    locks_postgres::an_unknown_outcome_may_still_be_applied,
    locks_postgres::a_connection_with_an_unread_answer_is_not_used_again,
    locks_postgres::a_cancelled_caller_leaves_no_connection_to_the_next,
    locks_postgres::a_statement_that_the_server_gave_up_was_not_applied,
    locks_postgres::a_statement_does_not_outlive_its_caller_s_deadline,
    locks_postgres::a_connection_that_the_server_ends_leaves_the_outcome_unknown,
    locks_postgres::a_writer_that_waited_past_the_end_of_its_lease_is_refused,
    locks_postgres::behind_a_lock_that_changed_nothing_the_clock_is_that_of_the_start_and_the_reading_protects,
    judged::every_statement_agrees_on_the_very_instant,
}

cases! {
    only_mariadb, crate::common::Kind::MariaDb,
    locks::a_claim_skips_a_row_that_another_session_has_locked,
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
    rights_mariadb::a_worker_needs_no_more_than_the_rights_that_are_named,
}

#[cfg(feature = "ablation")]
mod ablation {
    cases!(sqlite, crate::common::Kind::Sqlite, judged::a_store_without_a_guard_does_what_the_rules_without_it_say,);
    cases!(postgres, crate::common::Kind::Postgres, judged::a_store_without_a_guard_does_what_the_rules_without_it_say,);
    cases!(mariadb, crate::common::Kind::MariaDb, judged::a_store_without_a_guard_does_what_the_rules_without_it_say,);
}
