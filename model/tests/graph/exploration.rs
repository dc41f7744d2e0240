//! The explored graph: the same states as stateright finds, exact, and the same in every run.

use std::fmt::Debug;
use std::hash::Hash;

use crate::oracle::distances;
use crate::samples::{Dials, Mail, Peterson};
use crate::table::{Table, any_table};
use leaseproof_model::graph::{ExploreError, Fair, Limits, check_trace, explore};
use proptest::prelude::*;
use stateright::{Checker, Model, Property};

/// Explores with both and compares states, steps and depth. Returns the number of states.
fn counts_like_stateright<M>(model: M) -> usize
where
    M: Fair<State: Debug + Send + Sync, Action: Debug + PartialEq> + Send + Sync + 'static,
{
    let graph = explore(&model, Limits::default()).unwrap();
    let stats = graph.stats();
    let mut seen = std::collections::HashSet::new();
    assert!(graph.states().iter().all(|state| seen.insert(state)));
    assert!(!stats.cut);

    let checker = model.checker().spawn_bfs().join();
    checker.assert_properties();
    assert_eq!(stats.states, checker.unique_state_count());
    assert_eq!(stats.initial + stats.edges + stats.self_loops, checker.state_count());
    assert_eq!(stats.depth + 1, checker.max_depth(), "stateright counts the states of a path");
    stats.states
}

#[test]
fn finds_as_many_states_and_steps_as_stateright() {
    assert_eq!(counts_like_stateright(Peterson), 20);
    // Ten ways to have up to three letters of two kinds under way, seven to have delivered up to three in turn.
    assert_eq!(counts_like_stateright(Mail), 70);
    assert_eq!(counts_like_stateright(Dials), 7_usize.pow(4));
}

/// A random table with a property that never fails: stateright stops as soon as every property is decided.
#[derive(Clone, Debug)]
struct Calm(Table);

impl Model for Calm {
    type State = u8;
    type Action = usize;
    fn init_states(&self) -> Vec<u8> {
        self.0.init_states()
    }
    fn actions(&self, state: &u8, actions: &mut Vec<usize>) {
        self.0.actions(state, actions);
    }
    fn next_state(&self, state: &u8, action: usize) -> Option<u8> {
        self.0.next_state(state, action)
    }
    fn within_boundary(&self, state: &u8) -> bool {
        self.0.within_boundary(state)
    }
    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("true", |_, _| true)]
    }
}

impl Fair for Calm {
    fn fair_class(&self, state: &u8, action: &usize) -> Option<u8> {
        self.0.fair_class(state, action)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn counts_random_tables_like_stateright(mut table in any_table(40), outside in any::<u64>(), more in any::<u64>()) {
        table.outside = outside & more & !(1 << table.initial[0]);
        table.initial.sort_unstable();
        table.initial.dedup();
        counts_like_stateright(Calm(table));
    }

    /// Depth and trace of every state against Bellman-Ford.
    #[test]
    fn every_trace_is_a_shortest_run(table in any_table(12)) {
        let graph = explore(&table, Limits::default()).unwrap();
        let distances = distances(&table);
        prop_assert_eq!(graph.states().len(), distances.iter().flatten().count());
        for id in graph.ids() {
            let distance = distances[usize::from(*graph.state(id))];
            prop_assert_eq!(Some(graph.depth_of(id)), distance);
            let trace = graph.trace_to(id).unwrap();
            prop_assert_eq!(Some(trace.len()), distance);
            prop_assert_eq!(trace.last(), graph.state(id));
            prop_assert_eq!(check_trace(&table, &trace), Ok(()));
        }
    }

    /// Edges are the table's rows: in order, without what changes nothing, with their classes.
    #[test]
    fn edges_are_the_steps_that_change_the_state(table in any_table(12)) {
        let graph = explore(&table, Limits::default()).unwrap();
        for id in graph.ids() {
            let state = *graph.state(id);
            let expected: Vec<_> = table.rows[usize::from(state)]
                .iter()
                .copied()
                .filter(|&(to, _)| to != state)
                .collect();
            let found: Vec<_> = graph.edges_of(id).map(|edge| (*graph.state(edge.to), edge.class)).collect();
            prop_assert_eq!(&found, &expected);
            let enabled = expected.iter().filter_map(|&(_, class)| class).fold(0, |mask, class| mask | 1 << class);
            prop_assert_eq!(graph.enabled(id), enabled);
        }
    }
}

#[test]
fn two_searches_number_the_states_alike() {
    let first = explore(&Mail, Limits::default()).unwrap();
    let second = explore(&Mail, Limits::default()).unwrap();
    assert_eq!(first.states(), second.states());
}

/// All states hash alike: only an exact comparison tells them apart.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Collides(u8);

impl Hash for Collides {
    fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
        0_u8.hash(hasher);
    }
}

struct Colliding;

impl Model for Colliding {
    type State = Collides;
    type Action = ();
    fn init_states(&self) -> Vec<Collides> {
        vec![Collides(0)]
    }
    fn actions(&self, _: &Collides, actions: &mut Vec<()>) {
        actions.push(());
    }
    fn next_state(&self, state: &Collides, (): ()) -> Option<Collides> {
        (state.0 < 99).then(|| Collides(state.0 + 1))
    }
    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("true", |_, _| true)]
    }
}

impl Fair for Colliding {
    fn fair_class(&self, _: &Collides, (): &()) -> Option<u8> {
        None
    }
}

#[test]
fn states_with_equal_hashes_stay_apart() {
    let graph = explore(&Colliding, Limits::default()).unwrap();
    assert_eq!(graph.states().len(), 100);
    let stateright = Colliding.checker().spawn_bfs().join();
    assert_eq!(stateright.unique_state_count(), 1, "stateright goes by the hash alone");
}

#[test]
fn a_model_without_a_start_is_refused() {
    let none = Table::default();
    let error = explore(&none, Limits::default()).unwrap_err();
    assert_eq!(error, ExploreError::NoInitialState);
    let outside = Table::new(&[&[]]).with_outside(&[0]);
    let error = explore(&outside, Limits::default()).unwrap_err();
    assert_eq!(error, ExploreError::NoInitialState);
}

#[test]
fn a_class_that_does_not_fit_is_refused() {
    let table = Table::new(&[&[(1, Some(63))], &[(0, Some(64))]]);
    let error = explore(&table, Limits::default()).unwrap_err();
    assert_eq!(error, ExploreError::ClassOutOfRange { class: 64 });
    assert_eq!(error.to_string(), "fairness class 64 is out of range: a model may have classes 0 to 63");
}
