//! The explored graph: the same states as stateright finds, exact, and the same in every run.

use std::fmt::Debug;
use std::hash::Hash;
use std::num::NonZeroUsize;

use crate::oracle::distances;
use crate::samples::{Dials, Mail, Peterson};
use crate::table::{Table, any_table};
use leaseproof_model::graph::{
    CheckError, Edge, ExploreError, Fair, Graph, Limits, Stats, Trigger, check_trace, explore, explore_on,
    explore_states,
};
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

/// Wide enough that other threads get batches to do, with what the small models lack: classes, self-loops, exits.
struct Wide;

const SIDE: u32 = 40;

impl Model for Wide {
    type State = (u32, u32, u32);
    type Action = u8;
    fn init_states(&self) -> Vec<Self::State> {
        vec![(0, 0, 0), (7, 3, 1)]
    }
    fn actions(&self, _: &Self::State, actions: &mut Vec<u8>) {
        actions.extend(0..5);
    }
    fn next_state(&self, &(a, b, c): &Self::State, action: u8) -> Option<Self::State> {
        Some(match action {
            0 => ((a + 1) % SIDE, b, c),
            1 => (a, (b + 1) % SIDE, c),
            2 => (a, b, c + 1),
            3 => (b, a, c),
            _ => return (a % 2 == 0).then_some((a, b, c)),
        })
    }
    fn within_boundary(&self, &(_, _, c): &Self::State) -> bool {
        c < SIDE
    }
}

impl Fair for Wide {
    fn fair_class(&self, _: &Self::State, &action: &u8) -> Option<u8> {
        (action < 3).then_some(action)
    }
}

/// Everything that an answer can depend on. Seconds and memory may differ.
fn told<M: Fair>(graph: &Graph<'_, M>) -> impl PartialEq + Debug + use<M>
where
    M::State: Debug,
{
    let rows: Vec<(Vec<Edge>, u64, usize)> = graph
        .ids()
        .map(|id| (graph.edges_of(id).collect(), graph.enabled(id), graph.trace_to(id).map_or(0, |run| run.len())))
        .collect();
    let stats = Stats { seconds: 0.0, memory_bytes: 0, ..graph.stats() };
    let depths: Vec<usize> = graph.ids().map(|id| graph.depth_of(id)).collect();
    (graph.states().to_vec(), rows, depths, stats)
}

#[test]
fn the_number_of_threads_changes_nothing() {
    // Not a multiple of anything; and one that cuts the search in the middle.
    for max_states in [usize::MAX, 9_999] {
        let limits = Limits { max_states };
        let one = explore(&Wide, limits).unwrap();
        assert_eq!(one.stats().cut, max_states == 9_999);
        assert_eq!(one.stats().states, 64_000.min(max_states));
        for threads in [1, 2, 3, 8] {
            let many = explore_on(&Wide, limits, NonZeroUsize::new(threads).unwrap()).unwrap();
            assert!(told(&many) == told(&one), "{threads} threads, at most {max_states} states");
        }
    }
}

#[test]
fn threads_refuse_what_one_refuses() {
    let two = NonZeroUsize::new(2).unwrap();
    let error = explore_on(&Table::default(), Limits::default(), two).unwrap_err();
    assert_eq!(error, ExploreError::NoInitialState);
    let table = Table::new(&[&[(1, Some(63))], &[(0, Some(64))]]);
    let error = explore_on(&table, Limits::default(), two).unwrap_err();
    assert_eq!(error, ExploreError::ClassOutOfRange { class: 64 });
}

/// Panics late, in a state that a batch for another thread is likely to hold.
struct Fragile;

impl Model for Fragile {
    type State = (u32, u32, u32);
    type Action = u8;
    fn init_states(&self) -> Vec<Self::State> {
        Wide.init_states()
    }
    fn actions(&self, state: &Self::State, actions: &mut Vec<u8>) {
        assert!(state.2 < SIDE - 5, "this model is broken");
        Wide.actions(state, actions);
    }
    fn next_state(&self, state: &Self::State, action: u8) -> Option<Self::State> {
        Wide.next_state(state, action)
    }
}

impl Fair for Fragile {
    fn fair_class(&self, state: &Self::State, action: &u8) -> Option<u8> {
        Wide.fair_class(state, action)
    }
}

#[test]
#[should_panic]
fn a_model_that_panics_ends_the_search_with_threads() {
    let _ = explore_on(&Fragile, Limits::default(), NonZeroUsize::new(4).unwrap());
}

#[test]
fn states_alone_are_the_same_states_and_prove_no_liveness() {
    let whole = explore(&Wide, Limits::default()).unwrap();
    let states = explore_states(&Wide, Limits::default()).unwrap();
    assert_eq!(states.states(), whole.states());
    assert_eq!(states.stats().edges, whole.stats().edges);
    assert!(states.stats().memory_bytes < whole.stats().memory_bytes);
    let broken = |&(a, b, c): &(u32, u32, u32)| (a, b, c) != (20, 19, 18);
    let short = states.check_always("", broken).unwrap().outcome;
    assert_eq!(short, whole.check_always("", broken).unwrap().outcome);
    assert!(short.counterexample().is_some());
    let asked = states.check_leads_to("", Trigger::Start, |_| true);
    assert_eq!(asked.unwrap_err(), CheckError::NoEdges);
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
