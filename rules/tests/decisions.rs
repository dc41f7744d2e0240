//! `decide`, `settle`, `effect_step` and the policy: what must hold whatever is observed.

use leaseproof_rules::{
    Answer, Backoff, CallOutcome, Decision, EffectRule, EffectStep, Entry, Guard, Guards, Instruments, Observation,
    OnExhausted, OnPartial, OnUnknown, Policy, Progress, Reason, Saga, Signal, Status, Unknown, UnknownEffect, decide,
    decide_under, effect_step, entry_after, idempotency_key, query_token, settle,
};
use proptest::prelude::*;

fn any_rule() -> impl Strategy<Value = EffectRule> {
    (any::<[bool; 3]>(), 0..3usize).prop_map(|([idempotency_key, status_query, execution_token], on_unknown)| {
        EffectRule {
            instruments: Instruments { idempotency_key, status_query, execution_token, ..Instruments::NONE },
            on_unknown: [OnUnknown::Escalate, OnUnknown::Repeat, OnUnknown::Skip][on_unknown],
            ..EffectRule::default()
        }
    })
}

fn any_answer() -> impl Strategy<Value = Option<Answer>> {
    use Answer::*;
    (0..5usize).prop_map(|i| [None, Some(Done), Some(NotDone), Some(Partial), Some(Unavailable)][i])
}

fn any_signal() -> impl Strategy<Value = Signal> {
    (0..5usize).prop_map(|i| {
        [
            Signal::Beating,
            Signal::LeaseExpired,
            Signal::OwnerSuperseded,
            Signal::Failed { retryable: true },
            Signal::Failed { retryable: false },
        ][i]
    })
}

fn any_observation() -> impl Strategy<Value = Observation> {
    let unknown = proptest::option::of((any_rule(), any_answer()));
    (any_signal(), 0u64..400_000, 0u32..6, 0u32..6, unknown).prop_map(
        |(signal, running_ms, attempts, interruptions, unknown)| Observation {
            signal,
            running_ms,
            attempts,
            interruptions,
            unknown: unknown.map(|(rule, answer)| UnknownEffect { rule, answer, asked_ms: 0 }),
            progress: None,
        },
    )
}

fn any_policy() -> impl Strategy<Value = Policy> {
    (1u32..5, 0u32..5, proptest::option::of(1u64..300_000), any::<bool>()).prop_map(
        |(max_attempts, max_interruptions, expected_run_ms, fail)| Policy {
            max_attempts,
            max_interruptions,
            expected_run_ms,
            on_exhausted: if fail { OnExhausted::Fail } else { OnExhausted::Escalate },
            ..Policy::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, max_global_rejects: 1_000_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_live_owner_within_its_time_is_left_alone(policy in any_policy(), seen in any_observation()) {
        prop_assume!(seen.signal == Signal::Beating && policy.expected_run_ms.is_none_or(|ms| seen.running_ms <= ms));
        prop_assert_eq!(decide(&policy, &seen), Decision::Wait);
    }

    #[test]
    fn an_unknown_effect_without_instruments_never_runs_again_unless_the_policy_says_so(
        policy in any_policy(),
        seen in any_observation(),
    ) {
        let rule = EffectRule::default();
        let seen = Observation { unknown: Some(UnknownEffect { rule, answer: None, asked_ms: 0 }), ..seen };
        let again = matches!(decide(&policy, &seen), Decision::Requeue { .. } | Decision::Ask);
        prop_assert!(!again);
    }

    #[test]
    fn the_automatic_runs_are_bounded_by_the_two_budgets(policy in any_policy(), seen in any_observation()) {
        if let Decision::Requeue { .. } = decide(&policy, &seen) {
            let within = match seen.signal {
                Signal::Failed { retryable } => retryable && seen.attempts + 1 < policy.max_attempts,
                _ => seen.interruptions < policy.max_interruptions,
            };
            prop_assert!(within);
        }
    }

    #[test]
    fn a_lost_owner_costs_no_attempt_and_a_failure_no_interruption(policy in any_policy(), seen in any_observation()) {
        let other = match seen.signal {
            Signal::Failed { .. } => Observation { interruptions: seen.interruptions + 1, ..seen },
            _ => Observation { attempts: seen.attempts + 1, ..seen },
        };
        prop_assert_eq!(decide(&policy, &seen), decide(&policy, &other));
    }

    #[test]
    fn only_failures_end_in_fail(policy in any_policy(), seen in any_observation()) {
        if let Decision::Fail(_) = decide(&policy, &seen) {
            let failed = matches!(seen.signal, Signal::Failed { .. });
            prop_assert!(failed && policy.on_exhausted == OnExhausted::Fail);
        }
    }

    #[test]
    fn what_lets_a_task_run_again_also_tells_its_run_what_to_do(rule in any_rule(), answer in any_answer()) {
        if let Unknown::Settled { learnt } = settle(rule, answer) {
            let entry = learnt.unwrap_or(Entry::Intent);
            prop_assert_ne!(effect_step(Some(entry), rule), EffectStep::Stop);
        }
    }

    #[test]
    fn not_done_is_believed_only_behind_a_token(rule in any_rule()) {
        let learnt_not_done =
            settle(rule, Some(Answer::NotDone)) == Unknown::Settled { learnt: Some(Entry::NotDone) };
        prop_assert!(!learnt_not_done || rule.instruments.execution_token);
    }

    #[test]
    fn the_backoff_never_falls_and_stays_below_its_bound(base_ms in 0u64..1 << 40, factor in 1u32..9, n in 1u32..200) {
        let backoff = Backoff { base_ms, factor, max_ms: 300_000 };
        prop_assert!(backoff.delay_ms(n) <= backoff.delay_ms(n + 1) && backoff.delay_ms(n + 1) <= 300_000);
    }
}

/// A call that surely was not made says nothing of an earlier one.
#[test]
fn not_done_settles_an_effect_only_if_no_earlier_call_of_it_is_open() {
    let after = |before, outcome| entry_after(before, outcome);
    assert_eq!(after(None, CallOutcome::NotDone), Entry::NotDone);
    assert_eq!(after(Some(Entry::NotDone), CallOutcome::NotDone), Entry::NotDone);
    assert_eq!(after(Some(Entry::Intent), CallOutcome::NotDone), Entry::Intent);
    assert_eq!(after(Some(Entry::Done), CallOutcome::NotDone), Entry::Done);
    for before in [None, Some(Entry::Intent), Some(Entry::Done), Some(Entry::NotDone)] {
        assert_eq!(after(before, CallOutcome::Done), Entry::Done);
        assert_eq!(after(before, CallOutcome::Unknown), Entry::Intent);
    }
}

#[test]
fn an_overrun_goes_to_a_person_and_without_its_rule_to_nobody() {
    let policy = Policy { expected_run_ms: Some(1_000), ..Policy::default() };
    let seen = Observation { signal: Signal::Beating, running_ms: 1_001, ..LOST };
    assert_eq!(decide(&policy, &seen), Decision::Escalate(Reason::Overrun));
    assert_eq!(decide_under(&policy, &seen, Guards::without(Guard::OverrunRule)), Decision::Wait);
}

/// For each guard that only `decide` and `settle` know: what it decides with it and without.
#[test]
fn without_a_guard_the_decision_is_another_one() {
    let policy = Policy { max_attempts: 2, max_interruptions: 1, ..Policy::default() };
    let failed = Signal::Failed { retryable: true };
    let seen = |signal, attempts, interruptions| Observation {
        signal,
        running_ms: 0,
        attempts,
        interruptions,
        unknown: None,
        progress: None,
    };
    let call = |status_query, answer| {
        let instruments = Instruments { status_query, ..Instruments::default() };
        let rule = EffectRule { instruments, ..EffectRule::default() };
        Observation { unknown: Some(UnknownEffect { rule, answer, asked_ms: 0 }), ..seen(Signal::LeaseExpired, 0, 0) }
    };
    let again = |learnt| Decision::Requeue { delay_ms: 0, learnt };
    let not_done = again(Some(Entry::NotDone));
    let cases = [
        (Guard::BoundedInterruptions, seen(Signal::LeaseExpired, 0, 1), again(None)),
        (Guard::TwoBudgets, seen(Signal::LeaseExpired, 1, 0), Decision::Escalate(Reason::AttemptsExhausted)),
        (Guard::TwoBudgets, seen(failed, 0, 1), Decision::Escalate(Reason::AttemptsExhausted)),
        (Guard::UnknownIsUnknown, call(false, None), not_done),
        (Guard::TokenForNotDone, call(true, Some(Answer::NotDone)), not_done),
    ];
    for (guard, seen, without) in cases {
        assert_ne!(decide(&policy, &seen), without, "{guard}");
        assert_eq!(decide_under(&policy, &seen, Guards::without(guard)), without, "{guard}");
    }
    let exhausted = seen(failed, 1, 0);
    assert_eq!(decide(&policy, &exhausted), Decision::Escalate(Reason::AttemptsExhausted));
    let unbounded = decide_under(&policy, &exhausted, Guards::without(Guard::BoundedAttempts));
    assert!(matches!(unbounded, Decision::Requeue { .. }));
}

#[test]
fn tokens_and_keys_are_as_their_guards_say() {
    let without = Guards::without;
    assert_eq!((query_token(3, Guards::ALL), query_token(3, without(Guard::TokenInQuery))), (4, 3));
    let keys = |guards| [3, 5].map(|epoch| idempotency_key(7, "charge", epoch, guards));
    assert_eq!(keys(Guards::ALL), ["7/charge", "7/charge"]);
    assert_eq!(keys(without(Guard::StableKey)), ["7/charge/3", "7/charge/5"]);
}

#[test]
fn a_status_query_moves_the_line_from_manual_to_automatic() {
    let policy = Policy::default();
    let asked = |status_query, answer| {
        let rule =
            EffectRule { instruments: Instruments { status_query, ..Instruments::default() }, ..EffectRule::default() };
        let unknown = Some(UnknownEffect { rule, answer, asked_ms: 0 });
        decide(&policy, &Observation { unknown, ..LOST })
    };
    assert_eq!(asked(false, None), Decision::Escalate(Reason::OutcomeUnknown));
    assert_eq!(asked(true, None), Decision::Ask);
    assert_eq!(asked(true, Some(Answer::Done)), Decision::Requeue { delay_ms: 0, learnt: Some(Entry::Done) });
    assert_eq!(asked(true, Some(Answer::NotDone)), Decision::Escalate(Reason::OutcomeUnknown));
    assert_eq!(asked(true, Some(Answer::Unavailable)), Decision::Wait);
}

/// Nothing but a lost owner.
const LOST: Observation = Observation {
    signal: Signal::LeaseExpired,
    running_ms: 0,
    attempts: 0,
    interruptions: 0,
    unknown: None,
    progress: None,
};

#[test]
fn what_is_known_to_be_partly_done_waits_for_a_person_where_its_declaration_says_so() {
    let policy = Policy { on_exhausted: OnExhausted::Fail, ..Policy::default() };
    let partly = Decision::Escalate(Reason::PartlyDone);
    let decided = |signal, on_partial, done, unknown| {
        decide(
            &policy,
            &Observation {
                signal,
                unknown,
                progress: Some(Progress { done, of: 3, on_partial, saga: Saga::None }),
                ..LOST
            },
        )
    };
    let on = Decision::Requeue { delay_ms: 0, learnt: None };
    for (done, expected) in [(0, on), (1, partly), (2, partly), (3, on)] {
        assert_eq!(decided(Signal::LeaseExpired, OnPartial::Escalate, done, None), expected, "{done} of 3");
        assert_eq!(decided(Signal::LeaseExpired, OnPartial::Resume, done, None), on, "{done} of 3");
    }
    // Also where the policy would otherwise say FAIL.
    let bad = Signal::Failed { retryable: false };
    assert_eq!(decided(bad, OnPartial::Escalate, 1, None), partly);
    assert_eq!(decided(bad, OnPartial::Resume, 1, None), Decision::Fail(Reason::NotRetryable));
    // What has just been learnt counts.
    let instruments = Instruments { status_query: true, execution_token: true, ..Instruments::NONE };
    let rule = EffectRule { instruments, ..EffectRule::default() };
    let unknown = |answer| Some(UnknownEffect { rule, answer: Some(answer), asked_ms: 0 });
    let lost = |done, answer| decided(Signal::LeaseExpired, OnPartial::Escalate, done, unknown(answer));
    assert_eq!(lost(0, Answer::Done), partly);
    assert_eq!(lost(0, Answer::NotDone), Decision::Requeue { delay_ms: 0, learnt: Some(Entry::NotDone) });
    assert_eq!(lost(2, Answer::Done), Decision::Requeue { delay_ms: 0, learnt: Some(Entry::Done) });
}

#[test]
fn a_part_is_a_fact_behind_a_token_and_a_doubt_without() {
    for (execution_token, reason) in [(true, Reason::PartlyDone), (false, Reason::OutcomeUnknown)] {
        let instruments = Instruments { status_query: true, execution_token, ..Instruments::NONE };
        let rule = EffectRule { instruments, ..EffectRule::default() };
        let unknown = Some(UnknownEffect { rule, answer: Some(Answer::Partial), asked_ms: 0 });
        assert_eq!(decide(&Policy::default(), &Observation { unknown, ..LOST }), Decision::Escalate(reason));
    }
}

#[test]
fn names_are_read_as_they_are_written() {
    assert!(Status::ALL.iter().all(|s| Status::from_name(s.name()) == Some(*s)));
    assert!(Reason::ALL.iter().all(|r| Reason::from_name(r.name()) == Some(*r)));
    assert!(Guard::ALL.iter().all(|g| Guard::from_name(g.name()) == Some(*g)));
    assert!(Entry::ALL.iter().all(|e| Entry::from_name(e.name()) == Some(*e)));
    assert_eq!(Status::from_name("running"), None);
}

#[test]
fn a_policy_that_can_not_work_is_refused_by_field() {
    let good = Policy::default();
    assert_eq!(good.validate(), Ok(()));
    for (policy, field) in [
        (Policy { lease_ms: 0, ..good.clone() }, "lease"),
        (Policy { heartbeat_ms: 0, ..good.clone() }, "heartbeat"),
        (Policy { heartbeat_ms: 14_000, ..good.clone() }, "heartbeat"),
        (Policy { fence_margin_ms: 30_000, ..good.clone() }, "heartbeat"),
        (Policy { never_retry: vec!["declined".into(), " ".into()], ..good.clone() }, "never_retry"),
        (Policy { max_attempts: 0, ..good.clone() }, "max_attempts"),
        (Policy { expected_run_ms: Some(0), ..good.clone() }, "expected_run"),
        (Policy { backoff: Backoff { factor: 0, ..good.backoff }, ..good.clone() }, "backoff.factor"),
    ] {
        assert_eq!(policy.validate().map_err(|error| error.field), Err(field));
    }
}

#[test]
fn only_the_codes_that_a_policy_names_are_never_retried() {
    let policy = Policy { never_retry: vec!["declined".into()], ..Policy::default() };
    assert!(!policy.retries("declined") && policy.retries("timeout") && Policy::default().retries("declined"));
}

/// Neither for ever, nor for less than was said.
#[test]
fn a_third_party_that_does_not_answer_is_asked_for_ten_leases() {
    let policy = Policy::default();
    let instruments = Instruments { status_query: true, execution_token: true, ..Instruments::NONE };
    let after = |asked_ms, answer, on_unknown| {
        let rule = EffectRule { instruments, on_unknown, ..EffectRule::default() };
        decide(&policy, &Observation { unknown: Some(UnknownEffect { rule, answer, asked_ms }), ..LOST })
    };
    let silent = Some(Answer::Unavailable);
    assert_eq!(after(299_999, silent, OnUnknown::Escalate), Decision::Wait);
    assert_eq!(after(300_000, silent, OnUnknown::Escalate), Decision::Escalate(Reason::OutcomeUnknown));
    assert_eq!(after(300_000, silent, OnUnknown::Skip), Decision::Requeue { delay_ms: 0, learnt: None });
    // Whoever comes late still asks, and an answer is an answer.
    assert_eq!(after(u64::MAX, None, OnUnknown::Escalate), Decision::Ask);
    let done = Decision::Requeue { delay_ms: 0, learnt: Some(Entry::Done) };
    assert_eq!(after(u64::MAX, Some(Answer::Done), OnUnknown::Escalate), done);
}

/// E5: a saga that can not go on forward goes back, as soon as what is unknown is known or harmless.
#[test]
fn a_saga_that_can_not_go_on_goes_back() {
    let policy = Policy { max_attempts: 1, max_interruptions: 0, on_exhausted: OnExhausted::Fail, ..Policy::default() };
    let progress = |done, saga| Some(Progress { done, of: 3, on_partial: OnPartial::Resume, saga });
    let at = |signal, done, saga, unknown| {
        decide(&policy, &Observation { signal, unknown, progress: progress(done, saga), ..LOST })
    };
    let failed = Signal::Failed { retryable: true };
    let back = |reason, learnt| Decision::Compensate { reason, learnt };
    for (signal, reason) in [
        (failed, Reason::AttemptsExhausted),
        (Signal::Failed { retryable: false }, Reason::NotRetryable),
        (Signal::LeaseExpired, Reason::InterruptionsExhausted),
        (Signal::OwnerSuperseded, Reason::InterruptionsExhausted),
    ] {
        assert_eq!(at(signal, 2, Saga::Forward, None), back(reason, None));
        assert_eq!(at(signal, 2, Saga::Back, None), Decision::Escalate(Reason::CompensationFailed));
        assert!(!matches!(at(signal, 2, Saga::None, None), Decision::Compensate { .. }));
        assert!(!matches!(at(signal, 0, Saga::Forward, None), Decision::Compensate { .. }), "there is nothing to undo");
    }
    let unknown = |idempotency_key, status_query, execution_token, answer| {
        let instruments = Instruments {
            idempotency_key,
            status_query,
            execution_token,
            checkpoints: true,
            compensation: true,
            ..Instruments::NONE
        };
        Some(UnknownEffect { rule: EffectRule { instruments, ..EffectRule::default() }, answer, asked_ms: 0 })
    };
    let spent = |unknown| at(failed, 1, Saga::Forward, unknown);
    let exhausted = Reason::AttemptsExhausted;
    let person = Decision::Escalate(Reason::OutcomeUnknown);
    assert_eq!(spent(unknown(true, false, true, None)), back(exhausted, None), "key and token");
    assert_eq!(spent(unknown(true, false, false, None)), person, "a key does not keep it from happening later");
    assert_eq!(spent(unknown(true, true, false, None)), Decision::Ask);
    assert_eq!(spent(unknown(true, true, false, Some(Answer::Done))), back(exhausted, Some(Entry::Done)));
    assert_eq!(spent(unknown(true, true, false, Some(Answer::NotDone))), person);
    assert_eq!(spent(unknown(true, true, false, Some(Answer::Unavailable))), Decision::Wait);
    assert_eq!(spent(unknown(false, true, true, Some(Answer::Done))), back(exhausted, Some(Entry::Done)));
    assert_eq!(spent(unknown(false, true, true, Some(Answer::NotDone))), back(exhausted, Some(Entry::NotDone)));
    assert_eq!(spent(unknown(false, false, true, None)), person);
    let first = |unknown| at(failed, 0, Saga::Forward, unknown);
    assert_eq!(first(unknown(false, true, true, Some(Answer::NotDone))), Decision::Fail(exhausted), "nothing to undo");
}
