//! Liveness on graphs small enough to judge by eye. State 0 is initial; a step is (target, fairness class).

use crate::table::{Row, Table, When};
use leaseproof_model::graph::{Counterexample, LassoOf, Limits, Outcome, check_lasso, explore};

const UNFAIR: Option<u8> = None;
const A: Option<u8> = Some(0);
const B: Option<u8> = Some(1);

fn check(table: &Table, when: When) -> Outcome<u8, usize> {
    let graph = explore(table, Limits::default()).unwrap();
    let goal = |&state: &u8| table.is_goal(state);
    let report = when.with(table, |trigger| graph.check_leads_to("goal", trigger, goal));
    let outcome = report.unwrap().outcome;
    if let Outcome::Violated(Counterexample::Lasso(lasso)) = &outcome {
        let checked = when.with(table, |trigger| check_lasso(table, lasso, trigger, goal));
        assert_eq!(checked, Ok(()), "{lasso:?}");
    }
    outcome
}

fn violation(rows: &[&[Row]], goal: &[u8]) -> LassoOf<Table> {
    match check(&Table::new(rows).with_goal(goal), When::Anywhere) {
        Outcome::Violated(Counterexample::Lasso(lasso)) => lasso,
        other => panic!("no lasso: {other:?}"),
    }
}

fn holds(rows: &[&[Row]], goal: &[u8]) -> bool {
    check(&Table::new(rows).with_goal(goal), When::Anywhere).holds()
}

fn stem_and_cycle(lasso: &LassoOf<Table>) -> (Vec<u8>, Vec<u8>) {
    let cycle = lasso.cycle.iter().map(|step| step.state).collect();
    (lasso.stem.states().copied().collect(), cycle)
}

#[test]
fn a_straight_fair_path_reaches_the_goal() {
    assert!(holds(&[&[(1, A)], &[(2, B)], &[]], &[2]));
}

#[test]
fn a_fair_cycle_without_the_goal_is_a_violation() {
    let lasso = violation(&[&[(1, A)], &[(2, A)], &[(1, A)], &[]], &[3]);
    assert_eq!(stem_and_cycle(&lasso), (vec![0, 1], vec![2, 1]));
}

#[test]
fn a_class_enabled_all_along_a_cycle_and_never_taken_is_no_violation() {
    assert!(holds(&[&[(1, A), (2, B)], &[(0, A), (2, B)], &[]], &[2]));
}

#[test]
fn a_cycle_of_unfair_steps_must_be_left_by_a_class_that_stays_enabled() {
    assert!(holds(&[&[(1, UNFAIR), (2, A)], &[(0, UNFAIR), (2, A)], &[]], &[2]));
}

#[test]
fn a_class_enabled_only_now_and_then_need_never_be_taken() {
    let lasso = violation(&[&[(1, A), (2, B)], &[(0, A)], &[]], &[2]);
    assert_eq!(stem_and_cycle(&lasso), (vec![0], vec![1, 0]));
}

#[test]
fn the_cycle_shown_passes_where_a_class_is_disabled() {
    // B leads to the goal everywhere but in state 3: the short cycle 0-1 alone would not be fair.
    let rows: &[&[Row]] = &[&[(1, A), (4, B)], &[(0, A), (2, A), (4, B)], &[(3, A), (4, B)], &[(0, A)], &[]];
    let lasso = violation(rows, &[4]);
    assert_eq!(stem_and_cycle(&lasso), (vec![0], vec![1, 2, 3, 0]));
}

#[test]
fn the_cycle_shown_takes_an_edge_of_each_class_that_is_always_enabled() {
    // B is enabled everywhere; inside the component it is taken only from 1 to 0, beside an action of class A.
    let rows: &[&[Row]] = &[&[(1, A), (2, B)], &[(0, A), (0, B)], &[]];
    let lasso = violation(rows, &[2]);
    assert_eq!(stem_and_cycle(&lasso), (vec![0], vec![1, 0]));
    assert_eq!(lasso.cycle[1].action, 1, "the action of class B, not of A");
}

#[test]
fn a_terminal_state_without_the_goal_stutters() {
    let lasso = violation(&[&[(1, A), (2, A)], &[], &[]], &[1]);
    assert_eq!(stem_and_cycle(&lasso), (vec![0, 2], vec![]));
    assert!(lasso.stutters());
}

#[test]
fn a_state_that_only_a_crash_leaves_stutters() {
    let lasso = violation(&[&[(1, A)], &[(2, UNFAIR)], &[]], &[2]);
    assert_eq!(stem_and_cycle(&lasso), (vec![0, 1], vec![]));
}

#[test]
fn an_action_that_changes_nothing_does_not_count_as_progress() {
    // State 1 offers a fair action for ever, but it leads back to 1.
    let lasso = violation(&[&[(1, A)], &[(1, A), (2, UNFAIR)], &[]], &[2]);
    assert_eq!(stem_and_cycle(&lasso), (vec![0, 1], vec![]));
}

#[test]
fn an_action_that_changes_nothing_does_not_keep_its_class_enabled() {
    // B would reach the goal from 0; in 1 it is idle, so a run may dodge it for ever.
    let lasso = violation(&[&[(1, A), (2, B)], &[(0, A), (1, B)], &[]], &[2]);
    assert_eq!(stem_and_cycle(&lasso), (vec![0], vec![1, 0]));
}

#[test]
fn what_comes_after_the_goal_is_no_concern_of_a_promise_made_at_the_start() {
    // 0 → 1 (goal) → 2 ⇄ 3.
    let rows: &[&[Row]] = &[&[(1, A)], &[(2, A)], &[(3, A)], &[(2, A)]];
    let table = Table::new(rows).with_goal(&[1]);
    assert!(check(&table, When::Start).holds());
    let Outcome::Violated(Counterexample::Lasso(lasso)) = check(&table, When::Anywhere) else {
        panic!("a promise owed at any time is broken by 2-3");
    };
    assert_eq!(stem_and_cycle(&lasso), (vec![0, 1, 2], vec![3, 2]));
}

#[test]
fn a_promise_is_owed_only_once_triggered() {
    // 0 may go round 1 for ever, or through 2 to the goal 3.
    let rows: &[&[Row]] = &[&[(1, A), (2, UNFAIR)], &[(0, A)], &[(3, A)], &[]];
    let owed = |trigger: &[u8]| {
        let table = Table::new(rows).with_goal(&[3]).with_trigger(trigger);
        check(&table, When::Marked)
    };
    assert!(owed(&[2]).holds(), "from 2 the goal comes");
    assert!(owed(&[3]).holds(), "a trigger that is a goal itself is kept at once");
    assert!(owed(&[]).holds());
    assert!(!owed(&[1]).holds(), "1 goes round with 0 for ever");
}

#[test]
fn a_stem_passes_its_trigger_even_if_a_shorter_way_to_the_cycle_does_not() {
    // The cycle 3-4 is one step from the start; the trigger 2 leads to it by a detour.
    let rows: &[&[Row]] = &[&[(3, A), (1, UNFAIR)], &[(2, A)], &[(3, A)], &[(4, A)], &[(3, A)]];
    let table = Table::new(rows).with_trigger(&[2]);
    let Outcome::Violated(Counterexample::Lasso(lasso)) = check(&table, When::Marked) else {
        panic!("the goal never comes");
    };
    assert_eq!(stem_and_cycle(&lasso), (vec![0, 1, 2, 3], vec![4, 3]));
}

#[test]
fn the_shortest_of_several_violations_is_shown() {
    // A stutter at depth 3 (state 3), a cycle 1-2 reached after one step.
    let rows: &[&[Row]] = &[&[(1, A)], &[(2, A)], &[(1, A), (3, UNFAIR)], &[]];
    let lasso = violation(rows, &[]);
    assert_eq!(lasso.len(), 3);
    // Now the stutter is at depth 1.
    let rows: &[&[Row]] = &[&[(1, A), (3, A)], &[(2, A)], &[(1, A)], &[]];
    assert_eq!(stem_and_cycle(&violation(rows, &[])), (vec![0, 3], vec![]));
}
