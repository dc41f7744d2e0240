//! The line between what the system does by itself and what goes to a person is where the computation puts it: the rules
//! are sound and maximal, and rules that are bolder or more timid are found out.

use std::sync::LazyLock;

use leaseproof_model::free::Action;
use leaseproof_model::knowledge::class::{class_text, decision_text};
use leaseproof_model::knowledge::combinations::{declaration_text, declarations};
use leaseproof_model::knowledge::judge::Finding;
use leaseproof_model::knowledge::slow::{slow_or_dead, takes_from_the_living};
use leaseproof_model::knowledge::table::markdown;
use leaseproof_model::knowledge::{ClassRow, Combination, Settles, Verdict, examine, examine_all};
use leaseproof_model::world::World;
use leaseproof_rules::{
    Answer, Decision, Entry, Guards, Instruments, Observation, OnUnknown, Policy, Property, Reason, UnknownEffect,
    decide_under,
};

/// Computed once for all tests of this file.
static ALL: LazyLock<Vec<Combination>> = LazyLock::new(|| examine_all("", decide_under).unwrap());

const NOTHING: Instruments = Instruments::NONE;

fn found(instruments: Instruments, on_unknown: OnUnknown) -> &'static Combination {
    ALL.iter().find(|found| found.declaration == Some((instruments, on_unknown))).unwrap()
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
            assert_ne!(candidate.settles, Some(Settles::Yes), "{row:#?}");
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
    let found = examine(Some((query, OnUnknown::Escalate)), bolder).unwrap();
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
    let found = examine(Some((key, OnUnknown::Escalate)), timid).unwrap();
    assert!(found.is_sound() && !found.is_maximal());
    let row = row(&found, "lease ended; intent without outcome; interruptions left");
    assert!(matches!(row.verdict, Verdict::CouldBeAutomatic(Decision::Requeue { .. })), "{:?}", row.verdict);
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
