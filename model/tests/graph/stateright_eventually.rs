//! Why liveness is not left to stateright: its `eventually` misses violations on the smallest graphs. If one of these
//! tests fails after an upgrade, stateright has learnt something, and the design may be simpler.

use crate::table::{Row, Table};
use leaseproof_model::graph::{Counterexample, Limits, Outcome, explore};
use stateright::{Checker, Model};

const A: Option<u8> = Some(0);
const PROMISE: &str = "the goal is reached";

/// Who finds the promise violated.
#[derive(Debug, PartialEq)]
struct Finds {
    stateright_bfs: bool,
    stateright_dfs: bool,
    ours: bool,
}

fn who_finds(table: &Table) -> Finds {
    let bfs = table.clone().checker().spawn_bfs().join();
    let dfs = table.clone().checker().spawn_dfs().join();
    let graph = explore(table, Limits::default()).unwrap();
    let report = graph.check_property(PROMISE).unwrap();
    Finds {
        stateright_bfs: bfs.discovery(PROMISE).is_some(),
        stateright_dfs: dfs.discovery(PROMISE).is_some(),
        ours: matches!(report.outcome, Outcome::Violated(Counterexample::Lasso(_))),
    }
}

const ONLY_OURS: Finds = Finds { stateright_bfs: false, stateright_dfs: false, ours: true };

#[test]
fn all_find_a_run_that_ends_without_the_goal() {
    let table = Table::new(&[&[(1, A), (2, A)], &[], &[]]).with_goal(&[1]);
    let all = Finds { stateright_bfs: true, stateright_dfs: true, ours: true };
    assert_eq!(who_finds(&table), all);
}

#[test]
fn stateright_misses_a_cycle() {
    let table = Table::new(&[&[(1, A)], &[(0, A)], &[]]).with_goal(&[2]);
    assert_eq!(who_finds(&table), ONLY_OURS);
}

/// From 0 one may go by the goal 1 or by 2; both ways join in 3, where the run ends. stateright keeps the way that came
/// first, so the answer depends on the order of the actions.
#[test]
fn stateright_misses_a_join() {
    let goal_first = [(1, A), (2, A)];
    let goal_last = [(2, A), (1, A)];
    let join = |first: &[Row]| Table::new(&[first, &[(3, A)], &[(3, A)], &[]]).with_goal(&[1]);
    let by_goal_first = who_finds(&join(&goal_first));
    let by_goal_last = who_finds(&join(&goal_last));
    assert!(by_goal_first.ours && by_goal_last.ours);
    assert!(!by_goal_first.stateright_bfs);
    assert!(!by_goal_last.stateright_dfs);
}

/// A worker that crashes (unfair) or finishes (fair): whether the promise is kept is a question of fairness,
/// which stateright cannot be asked.
#[test]
fn stateright_knows_no_fairness() {
    // 0 working, 1 crashed; only the crash is unfair, the restart leads back to work and then to 2.
    let table = Table::new(&[&[(1, None), (2, A)], &[(0, Some(1))], &[]]).with_goal(&[2]);
    let graph = explore(&table, Limits::default()).unwrap();
    let report = graph.check_property(PROMISE).unwrap();
    // Crashing again and again is fair to the worker, who is disabled now and then: a violation, and not a stutter.
    let Outcome::Violated(Counterexample::Lasso(lasso)) = report.outcome else {
        panic!("{:?}", report.outcome);
    };
    assert_eq!(lasso.cycle.len(), 2);
    assert_eq!(who_finds(&table), ONLY_OURS);
}
