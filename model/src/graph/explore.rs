//! Breadth-first exploration into an exact graph.

use std::time::Instant;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::fixed_hash::hash_of;
use super::store::{Edges, Exit, Graph, NONE, StateId, Stats, class_bit};
use super::{CLASSES, Fair};

/// How far a search may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// States kept at most. A search that meets one more is cut. At most `u32::MAX - 1` are ever kept.
    pub max_states: usize,
}

impl Default for Limits {
    /// As many states as the graph can number.
    fn default() -> Self {
        Limits { max_states: NONE as usize }
    }
}

/// Why a model cannot be explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExploreError {
    /// Every property of an empty graph would hold, which is never what was meant.
    #[error("the model has no initial state within its boundary")]
    NoInitialState,
    /// [`Fair::fair_class`] answered a class that does not fit the mask.
    #[error("fairness class {class} is out of range: a model may have classes 0 to {max}", max = CLASSES - 1)]
    ClassOutOfRange {
        /// What it answered.
        class: u8,
    },
}

/// The states by number, and the table that finds their numbers.
struct Interner<S> {
    /// Holds numbers only; a hit is confirmed by comparing the states themselves.
    table: HashTable<StateId>,
    states: Vec<S>,
    max_states: usize,
}

enum Interned {
    Known(StateId),
    New(StateId),
    Full,
}

impl<S: Eq + std::hash::Hash> Interner<S> {
    #[inline]
    fn intern(&mut self, hash: u64, state: S) -> Interned {
        let states = &self.states;
        let entry = self.table.entry(hash, |&id| states[id as usize] == state, |&id| hash_of(&states[id as usize]));
        match entry {
            Entry::Occupied(found) => Interned::Known(*found.get()),
            Entry::Vacant(_) if self.states.len() >= self.max_states => Interned::Full,
            Entry::Vacant(place) => {
                let id = self.states.len() as StateId;
                place.insert(id);
                self.states.push(state);
                Interned::New(id)
            }
        }
    }
}

/// A step from the state being expanded.
struct Successor<S> {
    hash: u64,
    state: S,
    class: Option<u8>,
}

/// Explores `model` breadth first, at most to `limits`.
///
/// States outside `within_boundary` are left out, as stateright does. The result is the same in every run.
///
/// # Errors
/// A model without an initial state, or with a fairness class of [`CLASSES`] or more.
pub fn explore<M: Fair>(model: &M, limits: Limits) -> Result<Graph<'_, M>, ExploreError> {
    let started = Instant::now();
    let max_states = limits.max_states.min(NONE as usize);
    let mut seen = Interner { table: HashTable::new(), states: Vec::new(), max_states };
    let mut parents = Vec::new();
    let mut stats = Stats::default();
    for state in model.init_states() {
        if model.within_boundary(&state) {
            match seen.intern(hash_of(&state), state) {
                Interned::New(_) => parents.push(NONE),
                Interned::Known(_) => {}
                Interned::Full => stats.cut = true,
            }
        }
    }
    if seen.states.is_empty() && !stats.cut {
        return Err(ExploreError::NoInitialState);
    }
    stats.initial = seen.states.len();

    let mut levels = Vec::new();
    let mut next_level = 0;
    let mut edges = Edges::new();
    let mut exits = Vec::new();
    let mut actions = Vec::new();
    let mut successors: Vec<Successor<M::State>> = Vec::new();
    let mut expanded = 0;
    while !stats.cut && expanded < seen.states.len() {
        if expanded == next_level {
            levels.push(expanded as StateId);
            next_level = seen.states.len();
        }
        // All steps first, then all look-ups: the look-ups miss the cache, and side by side the misses overlap.
        let mut self_loops = 0;
        let mut exit_steps = 0;
        let mut exit_classes = 0;
        let from = &seen.states[expanded];
        model.actions(from, &mut actions);
        for action in actions.drain(..) {
            let class = model.fair_class(from, &action);
            if let Some(class) = class
                && class >= CLASSES
            {
                return Err(ExploreError::ClassOutOfRange { class });
            }
            match model.next_state(from, action) {
                None => {}
                Some(state) if state == *from => self_loops += 1,
                Some(state) if !model.within_boundary(&state) => {
                    exit_steps += 1;
                    exit_classes |= class_bit(class);
                }
                Some(state) => successors.push(Successor { hash: hash_of(&state), state, class }),
            }
        }
        for successor in successors.drain(..) {
            match seen.intern(successor.hash, successor.state) {
                Interned::Known(id) => edges.push(id, successor.class),
                Interned::New(id) => {
                    parents.push(expanded as StateId);
                    edges.push(id, successor.class);
                }
                Interned::Full => {
                    stats.cut = true;
                    break;
                }
            }
        }
        // A state that could not be expanded to the end counts as not expanded at all: then whatever is said about an
        // expanded state rests on all its steps.
        if stats.cut {
            edges.drop_row();
        } else if edges.end_row() {
            expanded += 1;
            stats.self_loops += self_loops;
            stats.boundary_exits += exit_steps;
            if exit_steps > 0 {
                exits.push(Exit { from: (expanded - 1) as StateId, classes: exit_classes });
            }
        } else {
            stats.cut = true;
        }
    }
    // A cut search has one level more than it began to expand.
    if next_level < seen.states.len() {
        levels.push(next_level as StateId);
    }

    let table_bytes = seen.table.allocation_size();
    let Interner { states, table, .. } = seen;
    drop(table);
    stats.states = states.len();
    stats.edges = edges.len();
    stats.depth = levels.len().saturating_sub(1);
    let mut graph = Graph { model, states, parents, levels, edges, exits, expanded: expanded as StateId, stats };
    graph.stats.memory_bytes = graph.bytes() + table_bytes;
    graph.stats.seconds = started.elapsed().as_secs_f64();
    Ok(graph)
}
