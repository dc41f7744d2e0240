//! Parity: the store's conformance suite on the simulated database node. The cases are those of
//! `impl/tests/conformance`, the same source, which also run on SQLite and on real servers; here the queue's source is
//! compiled against simulated tokio, and its PostgreSQL statements go through the stock driver over the simulated network.
//!
//! Left out are the cases on migrations, which this database does not make (it is opened with its tables), and on what
//! only a real server has: row locks of single rows, rights, connections that an operator ends.

// A test says what it expects by failing.
#![allow(clippy::unwrap_used)]
// One case is only compiled where the package that it belongs to has its feature `ablation`.
#![allow(unexpected_cfgs)]

extern crate leaseproof_queue_sim as leaseproof_queue;

mod common;

#[path = "../../../impl/tests/conformance/claims.rs"]
mod claims;
#[path = "../../../impl/tests/conformance/completions.rs"]
mod completions;
#[path = "../../../impl/tests/conformance/heartbeats.rs"]
mod heartbeats;
#[path = "../../../impl/tests/conformance/instances.rs"]
mod instances;
#[path = "../../../impl/tests/conformance/journal.rs"]
mod journal;
#[path = "../../../impl/tests/conformance/judged.rs"]
mod judged;
#[path = "../../../impl/tests/conformance/records.rs"]
mod records;
#[path = "../../../impl/tests/conformance/sweeps.rs"]
mod sweeps;

macro_rules! cases {
    ($($module:ident::$case:ident,)*) => {
        mod simulated {
            $(#[test]
            fn $case() {
                crate::common::run(|db| async move { crate::$module::$case(&db).await });
            })*
        }
    };
}

cases! {
    judged::every_statement_does_what_the_rules_say,
    judged::the_comparison_notices_a_missing_guard,
    judged::the_sweep_reads_exactly_what_a_sweeper_may_write,
    judged::every_statement_agrees_on_the_very_instant,
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
