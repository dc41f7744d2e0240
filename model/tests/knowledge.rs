//! The line between what the system does by itself and what goes to a person is where the computation puts it: the rules
//! are sound and maximal, and rules that are bolder or more timid are found out.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use leaseproof_model::free::Action;
use leaseproof_model::knowledge::class::{class_text, decision_text};
use leaseproof_model::knowledge::combinations::{Call, Form, PARTS, declaration_text, declarations, plain_instruments};
use leaseproof_model::knowledge::judge::Finding;
use leaseproof_model::knowledge::slow::{slow_or_dead, takes_from_the_living};
use leaseproof_model::knowledge::table::markdown;
use leaseproof_model::knowledge::{ClassRow, Combination, DecideFn, Settles, Verdict, examine, examine_all};
use leaseproof_model::world::World;
use leaseproof_rules::{
    Answer, Decision, Entry, Guards, Instruments, Observation, OnUnknown, Policy, Progress, Property, Reason, Saga,
    UnknownEffect, decide_under,
};

/// Computed once for all tests of this file.
static ALL: LazyLock<Vec<Combination>> = LazyLock::new(|| examine_all("", decide_under).unwrap());

const NOTHING: Instruments = Instruments::NONE;

fn found(instruments: Instruments, on_unknown: OnUnknown) -> &'static Combination {
    formed(Form::Whole, instruments, on_unknown)
}

fn formed(form: Form, instruments: Instruments, on_unknown: OnUnknown) -> &'static Combination {
    ALL.iter().find(|found| found.declaration == Some(form.call(instruments, on_unknown))).unwrap()
}

fn row<'a>(found: &'a Combination, sees: &str) -> &'a ClassRow {
    found.classes.iter().find(|row| class_text(&found.policy, &row.class) == sees).unwrap()
}

/// What is found of a decision in a class, by their names.
fn finding<'a>(row: &'a ClassRow, decision: &str) -> &'a Finding {
    let named = |decision: Decision| decision_text(&row.class, decision);
    &row.candidates.iter().find(|candidate| named(candidate.decision) == decision).unwrap().finding
}

fn broken(finding: &Finding) -> Option<Property> {
    match finding {
        Finding::Refuted(against) => Some(against.property),
        Finding::Safe { .. } | Finding::Skipped => None,
    }
}

#[test]
fn the_rules_are_sound_and_maximal_for_every_declaration() {
    assert_eq!(ALL.len(), declarations().len());
    for found in ALL.iter() {
        let name = declaration_text(found.declaration);
        assert!(found.is_sound(), "{name}: {:?}", found.rules);
        assert!(found.is_maximal(), "{name}: {:#?}", found.classes);
        // Both signals, both states of the budget; with a call also an open one.
        let least = if found.declaration.is_some() { 8 } else { 4 };
        assert!(found.classes.len() >= least, "{name}: {} classes", found.classes.len());
        for row in &found.classes {
            let skipped = row.candidates.iter().any(|candidate| candidate.finding == Finding::Skipped);
            assert!(!skipped, "{name}: no world is too large to be examined");
            let decided = row.candidates.iter().find(|candidate| candidate.decision == row.decided).unwrap();
            assert!(decided.finding.is_safe(), "{name}: what the rules decide is safe");
        }
    }
}

/// What only postpones is told from what settles, and nothing that settles is left undone.
#[test]
fn what_is_safe_and_left_undone_postpones_or_is_policy() {
    let mut declined = 0;
    let mut postponed = 0;
    for row in ALL.iter().flat_map(|found| &found.classes) {
        declined += usize::from(matches!(row.verdict, Verdict::Declined { .. }));
        for candidate in &row.candidates {
            postponed += usize::from(candidate.settles == Some(Settles::No));
            let policy = matches!(row.verdict, Verdict::Declined { why, .. } if why.starts_with("M4"));
            assert!(candidate.settles != Some(Settles::Yes) || policy, "{row:#?}");
        }
    }
    assert!(declined > 0 && postponed > 0, "{declined} declined, {postponed} postponed");
}

/// Without an instrument nothing tells "done" from "not done"; a query alone does not tell "not done" from "not yet".
#[test]
fn where_two_cases_look_the_same_a_person_is_needed_and_a_pair_shows_it() {
    let query = Instruments { status_query: true, ..NOTHING };
    let token = Instruments { execution_token: true, ..NOTHING };
    let open = "lease ended; intent without outcome; interruptions left";
    let not_done = "lease ended; intent, asked: not done; interruptions left";
    for (instruments, sees) in [(NOTHING, open), (token, open), (query, not_done)] {
        let row = row(found(instruments, OnUnknown::Escalate), sees);
        assert_eq!(row.verdict, Verdict::Person, "{sees}");
        assert_eq!(broken(finding(row, "wait")), Some(Property::EventuallyResolved));
        assert_eq!(broken(finding(row, "run again, call")), Some(Property::EffectAtMostOnce));
        assert_eq!(broken(finding(row, "run again, no call")), Some(Property::SuccessMeansEffect));
        let pair = row.pair.as_ref().unwrap();
        assert!(!pair.first.right.is_empty() && !pair.second.right.is_empty());
        assert!(pair.first.right.iter().all(|right| !pair.second.right.contains(right)), "{pair:#?}");
        assert!(pair.first.run.len() <= pair.second.run.len() && pair.first.run != pair.second.run);
        let call_again = Decision::Requeue { delay_ms: 0, learnt: Some(Entry::NotDone) };
        let call_is_right = |right: &[Decision]| right.contains(&call_again);
        assert!(call_is_right(&pair.first.right) != call_is_right(&pair.second.right), "{pair:#?}");
    }
}

/// Each instrument moves the line, and what the owner wants moves it too.
#[test]
fn instruments_and_choices_move_the_line() {
    let open = "lease ended; intent without outcome; interruptions left";
    let not_done = "lease ended; intent, asked: not done; interruptions left";
    let key = Instruments { idempotency_key: true, ..NOTHING };
    let fenced = Instruments { status_query: true, execution_token: true, ..NOTHING };
    let automatic = [
        (key, OnUnknown::Escalate, open, "run again, call anew"),
        (NOTHING, OnUnknown::Repeat, open, "run again, call anew"),
        (NOTHING, OnUnknown::Skip, open, "run again, skip the call"),
        (fenced, OnUnknown::Escalate, open, "ask"),
        (fenced, OnUnknown::Escalate, not_done, "run again, call"),
    ];
    for (instruments, on_unknown, sees, decided) in automatic {
        let row = row(found(instruments, on_unknown), sees);
        assert_eq!(row.verdict, Verdict::Automatic, "{instruments:?}");
        assert_eq!(decision_text(&row.class, row.decided), decided, "{instruments:?}");
    }
}

/// Bolder than the rules: a "not done" is believed although the call may still be on its way.
fn bolder(policy: &Policy, seen: &Observation, guards: Guards) -> Decision {
    match (seen.unknown, decide_under(policy, seen, guards)) {
        (Some(UnknownEffect { answer: Some(Answer::NotDone), .. }), Decision::Escalate(Reason::OutcomeUnknown)) => {
            Decision::Requeue { delay_ms: 0, learnt: Some(Entry::NotDone) }
        }
        (_, decision) => decision,
    }
}

#[test]
fn a_bolder_rule_is_not_sound() {
    let query = Instruments { status_query: true, ..NOTHING };
    let found = examine(Some(Form::Whole.call(query, OnUnknown::Escalate)), bolder).unwrap();
    assert!(!found.is_sound());
    let (_, finding) = found.rules.iter().find(|(_, finding)| !finding.is_safe()).unwrap();
    assert_eq!(broken(finding), Some(Property::EffectAtMostOnce));
    assert!(found.classes.is_empty(), "nothing is said about classes of a system that is broken anyway");
}

/// More timid than the rules: a call that may be repeated harmlessly goes to a person all the same.
fn timid(policy: &Policy, seen: &Observation, guards: Guards) -> Decision {
    match decide_under(policy, seen, guards) {
        Decision::Requeue { .. } if seen.unknown.is_some() => Decision::Escalate(Reason::OutcomeUnknown),
        decision => decision,
    }
}

#[test]
fn a_more_timid_rule_is_not_maximal() {
    let key = Instruments { idempotency_key: true, ..NOTHING };
    let found = examine(Some(Form::Whole.call(key, OnUnknown::Escalate)), timid).unwrap();
    assert!(found.is_sound() && !found.is_maximal());
    let row = row(&found, "lease ended; intent without outcome; interruptions left");
    assert!(matches!(row.verdict, Verdict::CouldBeAutomatic(Decision::Requeue { .. })), "{:?}", row.verdict);
}

/// E-C: what is done in part is a fact behind a token, and a doubt without; a person is needed either way, unless parts are
/// told apart by a key or the owner of the task wants it otherwise.
#[test]
fn what_a_call_has_left_half_done_goes_to_a_person() {
    let partly = "lease ended; intent, asked: partly done; interruptions left";
    let query = Instruments { status_query: true, ..NOTHING };
    let fenced = Instruments { execution_token: true, ..query };
    for (instruments, decided) in [(fenced, "escalate(partly_done)"), (query, "escalate(outcome_unknown)")] {
        let row = row(formed(Form::Parts, instruments, OnUnknown::Escalate), partly);
        assert_eq!(decision_text(&row.class, row.decided), decided);
        assert_eq!(row.verdict, Verdict::Person);
        assert_eq!(broken(finding(row, "run again, call")), Some(Property::EffectAtMostOnce));
        assert_eq!(broken(finding(row, "run again, no call")), Some(Property::SuccessMeansEffect));
    }
    let key = Instruments { idempotency_key: true, ..NOTHING };
    let open =
        row(formed(Form::Parts, key, OnUnknown::Escalate), "lease ended; intent without outcome; interruptions left");
    assert_eq!(open.verdict, Verdict::Automatic);
}

/// E4, M4: with checkpoints what is done is known, so going on is safe. That it is not done where the declaration says so
/// is policy, and called so.
#[test]
fn with_checkpoints_the_line_is_at_the_step_at_hand_and_m4_is_policy() {
    let partly = "lease ended; no call open; 1 of 2 steps done; interruptions left";
    let unknown = "lease ended; intent without outcome; 1 of 2 steps done; interruptions left";
    let resumes = formed(Form::Steps, NOTHING, OnUnknown::Escalate);
    assert_eq!(row(resumes, partly).verdict, Verdict::Automatic);
    assert_eq!(row(resumes, unknown).verdict, Verdict::Person);
    let pair = row(resumes, unknown).pair.as_ref().unwrap();
    assert!(pair.first.state.contains("of step 2") && pair.second.state.contains("of step 2"), "{pair:#?}");
    let asks = row(formed(Form::StepsToAPerson, NOTHING, OnUnknown::Escalate), partly);
    assert_eq!(asks.decided, Decision::Escalate(Reason::PartlyDone));
    assert!(matches!(asks.verdict, Verdict::Declined { why, .. } if why.starts_with("M4")), "{:?}", asks.verdict);
}

/// E5: where the way forward is at its end, what is known is undone, and what is unknown as far as instruments go.
#[test]
fn a_saga_goes_back_where_another_effect_would_go_to_a_person() {
    let spent = "lease ended; no call open; 1 of 2 steps done; interruptions spent";
    let unknown = "lease ended; intent without outcome; 1 of 2 steps done; interruptions spent";
    assert_eq!(row(formed(Form::Steps, NOTHING, OnUnknown::Escalate), spent).verdict, Verdict::Person);
    let saga = |plain| formed(Form::Saga, plain, OnUnknown::Escalate);
    let undo = row(saga(NOTHING), spent);
    assert_eq!((undo.verdict, decision_text(&undo.class, undo.decided).as_str()), (Verdict::Automatic, "undo"));
    // A key alone: the call may still arrive after it was undone.
    let key = Instruments { idempotency_key: true, ..NOTHING };
    let by_key = row(saga(key), unknown);
    assert_eq!(by_key.verdict, Verdict::Person);
    let anyway = finding(by_key, "undo, whatever became of this step");
    assert_eq!(broken(anyway), Some(Property::CompensationComesAfter));
    let fenced = row(saga(Instruments { execution_token: true, ..key }), unknown);
    assert_eq!(fenced.verdict, Verdict::Automatic);
    // The way back has an end too, and then there is only a person.
    let back = row(saga(NOTHING), "lease ended; no call open; 1 of 2 steps left to undo; interruptions spent");
    assert_eq!(back.decided, Decision::Escalate(Reason::CompensationFailed));
    assert_eq!(back.verdict, Verdict::Person);
}

/// E3: the relay has the same cases as whoever calls by itself, and the same decisions in them.
#[test]
fn an_outbox_moves_the_question_and_does_not_change_it() {
    let forms = [(Form::Whole, Form::OutboxWhole), (Form::Parts, Form::OutboxParts), (Form::Steps, Form::OutboxSteps)];
    for (direct, outbox) in forms {
        for plain in plain_instruments() {
            for &choice in outbox.choices() {
                let sides = [direct, outbox].map(|form| {
                    let found = formed(form, plain, choice);
                    let side = |row: &ClassRow| {
                        let sees = class_text(&found.policy, &row.class);
                        (sees, decision_text(&row.class, row.decided), row.verdict == Verdict::Automatic)
                    };
                    found.classes.iter().map(side).collect::<BTreeSet<_>>()
                });
                assert_eq!(sides[0], sides[1], "{plain:?}, {choice:?}");
            }
        }
    }
}

/// Two parts stand for many: with three, nothing else is decided, and nothing else is found of it.
#[test]
fn three_parts_bring_no_other_row() {
    let lines = |call: Call| {
        let found = examine(Some(call), decide_under).unwrap();
        assert!(found.is_sound() && found.is_maximal());
        // How many are done is the difference; whether none, some or all are is not.
        let amount = |row: &ClassRow| {
            let progress = row.class.progress.map(|progress| (progress.done, progress.of));
            progress.map(|(done, of)| (done > 0, done == of))
        };
        let line = |row: &ClassRow| {
            let safe: Vec<_> = row.candidates.iter().map(|tried| (tried.decision, tried.finding.is_safe())).collect();
            let unknown = row.class.unknown.map(|unknown| unknown.answer);
            (row.class.signal, row.class.interruptions, unknown, amount(row), row.decided, format!("{safe:?}"))
        };
        found.classes.iter().map(line).collect::<BTreeSet<_>>()
    };
    // The tokens of a saga, which may turn, leave no room for three.
    for form in [Form::Parts, Form::Steps, Form::StepsToAPerson] {
        let two = form.call(NOTHING, OnUnknown::Escalate);
        assert_eq!(lines(two), lines(Call { parts: PARTS + 1, ..two }), "{form:?}");
    }
}

/// Bolder: what is done in part is taken for not done.
fn blind_to_parts(policy: &Policy, seen: &Observation, guards: Guards) -> Decision {
    let unknown = seen.unknown.map(|unknown| match unknown.answer {
        Some(Answer::Partial) => UnknownEffect { answer: Some(Answer::NotDone), ..unknown },
        _ => unknown,
    });
    decide_under(policy, &Observation { unknown, ..*seen }, guards)
}

/// Bolder: the step at hand is taken for not done.
fn blind_to_steps(policy: &Policy, seen: &Observation, guards: Guards) -> Decision {
    let decision = decide_under(policy, seen, guards);
    if seen.progress.is_none() || decision != Decision::Escalate(Reason::OutcomeUnknown) {
        return decision;
    }
    match decide_under(policy, &Observation { unknown: None, ..*seen }, guards) {
        Decision::Requeue { delay_ms, .. } => Decision::Requeue { delay_ms, learnt: Some(Entry::NotDone) },
        decision => decision,
    }
}

/// More timid: what is done in part goes to a person whatever the declaration says.
fn shy_of_parts(policy: &Policy, seen: &Observation, guards: Guards) -> Decision {
    match (seen.progress, decide_under(policy, seen, guards)) {
        (Some(Progress { done: 1.., .. }), Decision::Requeue { .. }) => Decision::Escalate(Reason::PartlyDone),
        (_, decision) => decision,
    }
}

/// Bolder: a step that is unknown is undone as if it were known.
fn undoes_the_unknown(policy: &Policy, seen: &Observation, guards: Guards) -> Decision {
    match (seen.progress, decide_under(policy, seen, guards)) {
        (Some(Progress { saga: Saga::Forward, .. }), Decision::Escalate(reason @ Reason::OutcomeUnknown)) => {
            Decision::Compensate { reason, learnt: None }
        }
        (_, decision) => decision,
    }
}

/// More timid: nothing is undone without a person.
fn never_back(policy: &Policy, seen: &Observation, guards: Guards) -> Decision {
    match decide_under(policy, seen, guards) {
        Decision::Compensate { reason, .. } => Decision::Escalate(reason),
        decision => decision,
    }
}

#[test]
fn bolder_and_more_timid_rules_are_found_out_in_every_form() {
    let query = Instruments { status_query: true, ..NOTHING };
    let fenced = Instruments { execution_token: true, ..query };
    let key = Instruments { idempotency_key: true, ..NOTHING };
    let bold: [(Form, Instruments, DecideFn); 4] = [
        (Form::Saga, key, undoes_the_unknown),
        (Form::Parts, fenced, blind_to_parts),
        (Form::Steps, NOTHING, blind_to_steps),
        (Form::OutboxWhole, query, bolder),
    ];
    for (form, instruments, decide) in bold {
        let found = examine(Some(form.call(instruments, OnUnknown::Escalate)), decide).unwrap();
        let breaks = [Property::EffectAtMostOnce, Property::CompensationComesAfter];
        let refuted: Vec<Property> = found.rules.iter().filter_map(|(_, finding)| broken(finding)).collect();
        assert!(refuted.iter().any(|property| breaks.contains(property)), "{form:?}: {refuted:?}");
        assert!(!found.is_sound());
    }
    let shy: [(Form, Instruments, DecideFn); 3] =
        [(Form::Steps, NOTHING, shy_of_parts), (Form::OutboxWhole, key, timid), (Form::Saga, NOTHING, never_back)];
    for (form, instruments, decide) in shy {
        let found = examine(Some(form.call(instruments, OnUnknown::Escalate)), decide).unwrap();
        assert!(found.is_sound() && !found.is_maximal(), "{form:?}");
    }
}

/// U1: two runs, the same row, opposite decisions, whatever the length of the lease.
#[test]
fn no_lease_length_tells_a_dead_owner_from_a_slow_one() {
    let lengths = [1, 30_000, 86_400_000];
    let twins = lengths.map(|lease_ms| slow_or_dead(lease_ms).unwrap().unwrap());
    assert!(twins.iter().all(|other| *other == twins[0]), "no step and no finding depends on the length");
    let [twin, ..] = twins;
    assert_eq!(twin.dead.state.tasks, twin.slow.state.tasks, "the same row, and the same outside");
    assert!(twin.dead.never_finishes() && twin.dead.running_again.is_safe(), "{:#?}", twin.dead);
    assert!(twin.slow.will_finish(), "{:#?}", twin.slow);
    let world = World::lease(1, 1).unwrap();
    assert!(takes_from_the_living(&world, &twin.slow.state), "running again is a false reclaim");
    assert!(!takes_from_the_living(&world, &twin.dead.state));
    for owner in [&twin.dead, &twin.slow] {
        let time = owner.actions.iter().filter(|action| matches!(action, Action::Expire { .. })).count();
        assert_eq!(time, 1, "the end of the lease is the only step that takes time");
        let spoken = owner
            .actions
            .iter()
            .rposition(|action| matches!(action, Action::Exchange { .. } | Action::Heartbeat { .. }));
        let ended = owner.actions.iter().position(|action| matches!(action, Action::Expire { .. }));
        assert!(spoken < ended, "after it the owner has said nothing");
    }
}

#[test]
fn the_page_is_what_is_computed() {
    let twins = slow_or_dead(Policy::default().lease_ms).unwrap();
    let page = include_str!("../../docs/decision-table.md");
    let computed = markdown(&ALL, twins.as_ref());
    for (number, (shown, computed)) in (1..).zip(page.lines().zip(computed.lines())) {
        assert_eq!(shown, computed, "docs/decision-table.md, line {number}; its head says how to write it anew");
    }
    assert_eq!(page, computed);
}
