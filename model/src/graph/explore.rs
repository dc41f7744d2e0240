//! Breadth-first exploration into an exact graph.

use std::num::NonZeroUsize;
use std::time::Instant;

use super::batch::{BATCH, Batch};
use super::fixed_hash::hash_of;
use super::intern::{Interned, Interner};
use super::store::{Edges, Exit, Graph, NONE, StateId, Stats};
use super::{CLASSES, Fair, pipeline};

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

/// Explores `model` breadth first, at most to `limits`.
///
/// States outside `within_boundary` are left out, as stateright does. The result is the same in every run.
///
/// # Errors
/// A model without an initial state, or with a fairness class of [`CLASSES`] or more.
pub fn explore<M: Fair>(model: &M, limits: Limits) -> Result<Graph<'_, M>, ExploreError> {
    let mut search = Search::begin(model, limits, Keep::Edges)?;
    search.run()?;
    Ok(search.finish())
}

/// As [`explore`], but keeps the states alone: faster, in less memory, and enough for safety. Of such a graph liveness
/// cannot be asked ([`CheckError::NoEdges`](super::CheckError::NoEdges)).
///
/// # Errors
/// As [`explore`].
pub fn explore_states<M: Fair>(model: &M, limits: Limits) -> Result<Graph<'_, M>, ExploreError> {
    let mut search = Search::begin(model, limits, Keep::StatesOnly)?;
    search.run()?;
    Ok(search.finish())
}

/// As [`explore`], with several threads. The graph is the same, number by number: threads take the steps, and this one
/// numbers the states, in order.
///
/// # Errors
/// As [`explore`].
pub fn explore_on<M>(model: &M, limits: Limits, threads: NonZeroUsize) -> Result<Graph<'_, M>, ExploreError>
where
    M: Fair<State: Send, Action: Send> + Sync,
{
    let mut search = Search::begin(model, limits, Keep::Edges)?;
    pipeline::run(&mut search, threads)?;
    Ok(search.finish())
}

/// What a search keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Edges,
    StatesOnly,
}

/// A search under way.
pub(super) struct Search<'m, M: Fair> {
    started: Instant,
    pub(super) model: &'m M,
    keep: Keep,
    seen: Interner<M::State>,
    parents: Vec<StateId>,
    levels: Vec<StateId>,
    /// Where the level after that of the state next expanded begins.
    next_level: usize,
    edges: Edges,
    exits: Vec<Exit>,
    expanded: usize,
    stats: Stats,
}

impl<'m, M: Fair> Search<'m, M> {
    fn begin(model: &'m M, limits: Limits, keep: Keep) -> Result<Self, ExploreError> {
        let mut search = Search {
            started: Instant::now(),
            model,
            keep,
            seen: Interner::new(limits.max_states.min(NONE as usize)),
            parents: Vec::new(),
            levels: Vec::new(),
            next_level: 0,
            edges: Edges::new(),
            exits: Vec::new(),
            expanded: 0,
            stats: Stats::default(),
        };
        for state in model.init_states() {
            if model.within_boundary(&state) {
                match search.seen.intern(hash_of(&state), state) {
                    Interned::New(_) => search.parents.push(NONE),
                    Interned::Known(_) => {}
                    Interned::Full => search.stats.cut = true,
                }
            }
        }
        search.stats.initial = search.seen.states.len();
        if search.stats.initial == 0 && !search.stats.cut {
            return Err(ExploreError::NoInitialState);
        }
        Ok(search)
    }

    /// The states found so far.
    pub(super) fn states(&self) -> &[M::State] {
        &self.seen.states
    }

    /// The first state that is not expanded.
    pub(super) fn expanded(&self) -> usize {
        self.expanded
    }

    /// A limit was met: nothing more is taken in.
    pub(super) fn is_cut(&self) -> bool {
        self.stats.cut
    }

    fn run(&mut self) -> Result<(), ExploreError> {
        let mut batch = Batch::default();
        while !self.is_cut() && self.expanded < self.seen.states.len() {
            let end = self.seen.states.len().min(self.expanded + BATCH);
            batch.expand(self.model, &self.seen.states[self.expanded..end]);
            self.take_in(&mut batch)?;
        }
        Ok(())
    }

    /// Takes in the steps of the states that come next, in their order.
    pub(super) fn take_in(&mut self, batch: &mut Batch<M>) -> Result<(), ExploreError> {
        self.seen.look_up(&batch.successors, &mut batch.known);
        let mut successors = batch.known.iter().zip(batch.successors.drain(..));
        let mut begin = 0;
        for row in &batch.rows {
            if let Some(class) = row.bad_class {
                return Err(ExploreError::ClassOutOfRange { class });
            }
            if self.expanded == self.next_level {
                self.levels.push(self.expanded as StateId);
                self.next_level = self.seen.states.len();
            }
            for (&known, successor) in successors.by_ref().take(row.end - begin) {
                let found = match known {
                    NONE => self.seen.intern(successor.hash, successor.state),
                    id => Interned::Known(id),
                };
                let to = match found {
                    Interned::Known(id) => id,
                    Interned::New(id) => {
                        self.parents.push(self.expanded as StateId);
                        id
                    }
                    Interned::Full => {
                        self.stats.cut = true;
                        break;
                    }
                };
                if self.keep == Keep::Edges {
                    self.edges.push(to, successor.class);
                }
            }
            // A state that could not be expanded to the end counts as not expanded at all: then whatever is said about
            // an expanded state rests on all its steps.
            if self.stats.cut || (self.keep == Keep::Edges && !self.edges.end_row()) {
                self.edges.drop_row();
                self.stats.cut = true;
                return Ok(());
            }
            self.stats.edges += row.end - begin;
            self.stats.self_loops += row.self_loops;
            self.stats.boundary_exits += row.exit_steps;
            if row.exit_steps > 0 {
                self.exits.push(Exit { from: self.expanded as StateId, classes: row.exit_classes });
            }
            self.expanded += 1;
            begin = row.end;
        }
        Ok(())
    }

    fn finish(mut self) -> Graph<'m, M> {
        // A cut search has one level more than it began to expand.
        if self.next_level < self.seen.states.len() {
            self.levels.push(self.next_level as StateId);
        }
        let table_bytes = self.seen.table_bytes();
        let states = self.seen.into_states();
        self.stats.states = states.len();
        self.stats.depth = self.levels.len().saturating_sub(1);
        let mut graph = Graph {
            model: self.model,
            states,
            parents: self.parents,
            levels: self.levels,
            edges: self.edges,
            has_edges: self.keep == Keep::Edges,
            exits: self.exits,
            expanded: self.expanded as StateId,
            stats: self.stats,
        };
        graph.stats.memory_bytes = graph.bytes() + table_bytes;
        graph.stats.seconds = self.started.elapsed().as_secs_f64();
        graph
    }
}
