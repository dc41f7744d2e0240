//! The validator refuses every kind of corrupted evidence.

use crate::table::Table;
use leaseproof_model::graph::{
    Counterexample, Flaw, Lasso, LassoOf, Limits, Outcome, Step, Trace, Trigger, check_lasso, check_trace, explore,
};

const A: Option<u8> = Some(0);
const B: Option<u8> = Some(1);

/// 0 → 1 → 2 ⇄ 3, with B from 2 to the goal 4, an idle action in 3, and 5 outside the boundary.
fn table() -> Table {
    let mut table =
        Table::new(&[&[(1, A)], &[(2, A), (4, A)], &[(3, A), (4, B), (5, None)], &[(2, A), (3, A)], &[(2, A)], &[]])
            .with_goal(&[4])
            .with_outside(&[5]);
    table.initial = vec![0, 5];
    table
}

fn lasso_of(table: &Table) -> LassoOf<Table> {
    let graph = explore(table, Limits::default()).unwrap();
    let report = graph.check_leads_to("", Trigger::Start, |&state| table.is_goal(state));
    match report.unwrap().outcome {
        Outcome::Violated(Counterexample::Lasso(lasso)) => lasso,
        other => panic!("{other:?}"),
    }
}

fn judge(lasso: &LassoOf<Table>) -> Result<(), Flaw> {
    let table = table();
    check_lasso(&table, lasso, Trigger::Start, |&state| table.is_goal(state))
}

fn step(action: usize, state: u8) -> Step<u8, usize> {
    Step { action, state }
}

#[test]
fn the_lasso_as_found_is_accepted() {
    let lasso = lasso_of(&table());
    assert_eq!(lasso.stem.steps, [step(0, 1), step(0, 2)]);
    assert_eq!(lasso.cycle, [step(0, 3), step(0, 2)]);
    assert_eq!(judge(&lasso), Ok(()));
}

#[test]
fn a_wrong_start_is_refused() {
    let mut lasso = lasso_of(&table());
    lasso.stem.initial = 1;
    assert_eq!(judge(&lasso), Err(Flaw::NotInitial));
    // Initial, but outside the boundary.
    lasso.stem.initial = 5;
    assert_eq!(judge(&lasso), Err(Flaw::NotInitial));
}

#[test]
fn a_step_that_is_not_one_is_refused_in_stem_and_cycle() {
    let found = lasso_of(&table());
    let mut lasso = found.clone();
    lasso.stem.steps[1] = step(1, 2);
    assert_eq!(judge(&lasso), Err(Flaw::NotAStep { step: 1 }));
    let mut lasso = found.clone();
    lasso.stem.steps.remove(0);
    assert_eq!(judge(&lasso), Err(Flaw::NotAStep { step: 0 }));
    let mut lasso = found.clone();
    lasso.cycle[0].state = 1;
    assert_eq!(judge(&lasso), Err(Flaw::NotAStep { step: 2 }));
    // An action that the state does not offer at all.
    let mut lasso = found;
    lasso.cycle[1].action = 7;
    assert_eq!(judge(&lasso), Err(Flaw::NotAStep { step: 3 }));
}

#[test]
fn a_step_out_of_the_boundary_is_refused() {
    let mut trace = lasso_of(&table()).stem;
    trace.steps.push(step(2, 5));
    let refused = check_trace(&table(), &trace);
    assert_eq!(refused, Err(Flaw::OutsideBoundary { step: 2 }));
}

#[test]
fn a_cycle_that_does_not_close_is_refused() {
    let mut lasso = lasso_of(&table());
    lasso.cycle.pop();
    assert_eq!(judge(&lasso), Err(Flaw::Open));
}

#[test]
fn a_cycle_that_goes_nowhere_is_refused() {
    let mut lasso = lasso_of(&table());
    lasso.cycle.insert(1, step(1, 3));
    assert_eq!(judge(&lasso), Err(Flaw::IdleStep { step: 3 }));
}

#[test]
fn a_goal_on_the_cycle_or_on_the_stem_is_refused() {
    let found = lasso_of(&table());
    let mut lasso = found.clone();
    lasso.cycle = vec![step(1, 4), step(0, 2)];
    assert_eq!(judge(&lasso), Err(Flaw::NotOwed));
    let mut lasso = found;
    lasso.stem.steps = vec![step(0, 1), step(1, 4), step(0, 2)];
    assert_eq!(judge(&lasso), Err(Flaw::NotOwed));
    // Owed at any time, a goal on the stem does no harm.
    let table = table();
    let goal = |&state: &u8| table.is_goal(state);
    assert_eq!(check_lasso(&table, &lasso, Trigger::Anywhere, goal), Ok(()));
}

#[test]
fn a_promise_that_was_never_triggered_is_refused() {
    let (table, lasso) = (table(), lasso_of(&table()));
    let goal = |&state: &u8| table.is_goal(state);
    let judge_when = |trigger: &dyn Fn(&u8) -> bool| check_lasso(&table, &lasso, Trigger::When(trigger), goal);
    assert_eq!(judge_when(&|_| false), Err(Flaw::NotOwed));
    assert_eq!(judge_when(&|&state| state == 4), Err(Flaw::NotOwed));
    assert_eq!(judge_when(&|&state| state == 0), Ok(()));
    assert_eq!(judge_when(&|&state| state == 3), Ok(()), "on the cycle");
}

#[test]
fn a_stutter_where_something_must_happen_is_refused() {
    let mut lasso = lasso_of(&table());
    lasso.cycle.clear();
    assert_eq!(judge(&lasso), Err(Flaw::Unfair { class: 0 }));
}

#[test]
fn a_cycle_that_starves_a_class_is_refused() {
    let table = Table::new(&[&[(1, A), (2, B)], &[(0, A), (2, B)], &[]]).with_goal(&[2]);
    let lasso =
        Lasso { stem: Trace { initial: 0, steps: vec![] }, cycle: vec![step(0, 1), step(0, 0)], shortest: true };
    let judged = check_lasso(&table, &lasso, Trigger::Anywhere, |&state| state == 2);
    assert_eq!(judged, Err(Flaw::Unfair { class: 1 }));
}
