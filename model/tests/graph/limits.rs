//! Searches that were cut, boundaries, and models that do not keep to the rules.

use std::cell::Cell;

use crate::table::Table;
use leaseproof_model::graph::{CheckError, Counterexample, Fair, Limits, Outcome, StepProperty, Trigger, explore};
use stateright::{Checker, Model};

const A: Option<u8> = Some(0);

/// 0 → 1 → 2 → 3 → 4, and nothing wrong with any of them.
fn line() -> Table {
    Table::new(&[&[(1, A)], &[(2, A)], &[(3, A)], &[(4, A)], &[]])
}

fn never_bad() -> [StepProperty<Table>; 1] {
    [StepProperty { name: "no step is bad", condition: |_, _, _, _| true }]
}

#[test]
fn a_cut_search_proves_nothing() {
    let table = line().with_goal(&[4]);
    let cut = Outcome::Cut { states: 3 };
    let graph = explore(&table, Limits { max_states: 3 }).unwrap();
    assert!(graph.stats().cut);
    assert_eq!(graph.states(), [0, 1, 2]);
    assert!(graph.is_expanded(1) && !graph.is_expanded(2));
    assert_eq!(graph.check_always("", |_| true).unwrap().outcome, cut);
    assert_eq!(graph.check_sometimes("", |_| false).unwrap().outcome, cut);
    assert_eq!(graph.check_steps(&never_bad()).unwrap()[0].outcome, cut);
    let promise = graph.check_leads_to("", Trigger::Anywhere, |&state| state == 4);
    assert_eq!(promise.unwrap().outcome, cut);
    // What was found is still true.
    let found = graph.check_sometimes("", |&state| state == 2).unwrap();
    assert_eq!(found.outcome, Outcome::Holds);
    assert_eq!(found.example.unwrap().len(), 2);
    let violated = graph.check_always("", |&state| state != 2).unwrap();
    assert_eq!(violated.outcome.counterexample().unwrap().len(), 2);
}

#[test]
fn a_search_that_just_fits_is_not_cut() {
    let table = line();
    let graph = explore(&table, Limits { max_states: 5 }).unwrap();
    assert!(!graph.stats().cut);
    assert!(graph.check_always("", |_| true).unwrap().outcome.holds());
}

#[test]
fn even_a_search_of_nothing_is_only_cut() {
    let table = line();
    let graph = explore(&table, Limits { max_states: 0 }).unwrap();
    let cut = Outcome::Cut { states: 0 };
    assert_eq!(graph.check_always("", |_| true).unwrap().outcome, cut);
    let promise = graph.check_leads_to("", Trigger::Start, |_| false);
    assert_eq!(promise.unwrap().outcome, cut);
}

/// The rim of a cut search looks terminal, but it was not expanded.
#[test]
fn the_rim_of_a_cut_search_is_not_taken_for_a_stutter() {
    let table = line();
    let graph = explore(&table, Limits { max_states: 3 }).unwrap();
    let promise = graph.check_leads_to("", Trigger::Anywhere, |_| false);
    assert_eq!(promise.unwrap().outcome, Outcome::Cut { states: 3 });
}

#[test]
fn stateright_passes_a_truncated_run_that_we_call_cut() {
    let table = line().with_goal(&[4]);
    let checker = line().with_goal(&[4]).checker().target_max_depth(3).spawn_bfs().join();
    assert!(checker.is_done());
    checker.assert_no_discovery("no state is the goal");
    let graph = explore(&table, Limits { max_states: 3 }).unwrap();
    let ours = graph.check_property("no state is the goal").unwrap();
    assert_eq!(ours.outcome, Outcome::Cut { states: 3 });
}

/// 1 can only go on to 2, which is outside the boundary.
#[test]
fn a_step_out_of_the_boundary_keeps_its_class_enabled_but_proves_nothing() {
    let table = Table::new(&[&[(1, A)], &[(2, A)], &[]]).with_outside(&[2]).with_goal(&[2]);
    let graph = explore(&table, Limits::default()).unwrap();
    assert_eq!(graph.states(), [0, 1]);
    assert_eq!(graph.stats().boundary_exits, 1);
    assert_eq!(graph.enabled(1), 1);
    let report = graph.check_property("the goal is reached").unwrap();
    assert_eq!(report.outcome, Outcome::Cut { states: 2 });
    // Safety is about the states within the boundary, as in stateright.
    let report = graph.check_property("no state is the goal").unwrap();
    assert_eq!(report.outcome, Outcome::Holds);
}

#[test]
fn a_step_out_of_the_boundary_is_not_judged() {
    let table = Table::new(&[&[(1, A)], &[(2, A)], &[]]).with_outside(&[2]);
    let graph = explore(&table, Limits::default()).unwrap();
    let no_step_to = [
        StepProperty::<Table> { name: "no step to 1", condition: |_, _, _, &after| after != 1 },
        StepProperty::<Table> { name: "no step to 2", condition: |_, _, _, &after| after != 2 },
    ];
    let reports = graph.check_steps(&no_step_to).unwrap();
    assert!(!reports[0].outcome.holds());
    assert!(reports[1].outcome.holds());
}

#[test]
fn leaving_the_boundary_after_the_goal_does_no_harm() {
    let table = Table::new(&[&[(1, A)], &[(2, A)], &[]]).with_outside(&[2]).with_goal(&[1]);
    let graph = explore(&table, Limits::default()).unwrap();
    let report = graph.check_property("the goal is reached").unwrap();
    assert_eq!(report.outcome, Outcome::Holds);
}

#[test]
fn a_state_that_only_an_unfair_step_out_of_the_boundary_leaves_stutters() {
    let table = Table::new(&[&[(1, A)], &[(2, None)], &[]]).with_outside(&[2]);
    let graph = explore(&table, Limits::default()).unwrap();
    let report = graph.check_property("the goal is reached").unwrap();
    let Outcome::Violated(Counterexample::Lasso(lasso)) = report.outcome else {
        panic!("{:?}", report.outcome);
    };
    assert!(lasso.stutters());
    assert_eq!(*lasso.stem.last(), 1);
}

/// A model that takes each step only once, against stateright's rule that steps depend on the state alone.
struct Fickle(Cell<bool>);

impl Model for Fickle {
    type State = u8;
    type Action = ();
    fn init_states(&self) -> Vec<u8> {
        vec![0]
    }
    fn actions(&self, &state: &u8, actions: &mut Vec<()>) {
        if state == 0 && !self.0.replace(true) {
            actions.push(());
        }
    }
    fn next_state(&self, &state: &u8, (): ()) -> Option<u8> {
        Some(state + 1)
    }
}

impl Fair for Fickle {
    fn fair_class(&self, _: &u8, (): &()) -> Option<u8> {
        None
    }
}

#[test]
fn a_model_that_does_not_repeat_itself_is_an_error_not_a_panic() {
    let model = Fickle(Cell::new(false));
    let graph = explore(&model, Limits::default()).unwrap();
    assert_eq!(graph.states(), [0, 1]);
    let error = graph.check_always("", |&state| state == 0).unwrap_err();
    assert_eq!(error, CheckError::NotRepeatable);
}
