//! The explored graph: states in order of discovery, parent pointers, edges as compressed sparse rows.

use super::Fair;

/// A state's number: its place in the order of breadth-first discovery, so a smaller number is never deeper.
pub type StateId = u32;

/// "No state": the parent of an initial state.
pub(super) const NONE: StateId = StateId::MAX;
/// The stored class of an action that is not fair.
const UNFAIR: u8 = u8::MAX;

/// A step of the model that changes the state, as the graph stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The state it leads to.
    pub to: StateId,
    /// The fairness class of the action; `None` if it need never happen.
    pub class: Option<u8>,
}

/// Edges in compressed sparse rows: row `i` is the edges of state `i`.
pub(super) struct Edges {
    starts: Vec<u32>,
    targets: Vec<u32>,
    classes: Vec<u8>,
}

impl Edges {
    pub(super) fn new() -> Self {
        Edges { starts: vec![0], targets: Vec::new(), classes: Vec::new() }
    }

    /// Adds an edge to the row being built.
    #[inline]
    pub(super) fn push(&mut self, to: StateId, class: Option<u8>) {
        self.targets.push(to);
        self.classes.push(class.unwrap_or(UNFAIR));
    }

    /// Ends the row being built. False, and the row is dropped, if the edges no longer fit 32-bit offsets.
    #[inline]
    pub(super) fn end_row(&mut self) -> bool {
        match u32::try_from(self.targets.len()) {
            Ok(end) => {
                self.starts.push(end);
                true
            }
            Err(_) => {
                self.drop_row();
                false
            }
        }
    }

    /// Forgets the row being built.
    pub(super) fn drop_row(&mut self) {
        let end = self.starts[self.starts.len() - 1] as usize;
        self.targets.truncate(end);
        self.classes.truncate(end);
    }

    /// Positions of the edges of `id` in the flat arrays; empty for a state that was not expanded.
    #[inline]
    pub(super) fn row(&self, id: StateId) -> std::ops::Range<usize> {
        let row = id as usize;
        match self.starts.get(row + 1) {
            Some(&end) => self.starts[row] as usize..end as usize,
            None => 0..0,
        }
    }

    #[inline]
    pub(super) fn target(&self, position: usize) -> StateId {
        self.targets[position]
    }

    #[inline]
    pub(super) fn targets(&self, id: StateId) -> &[StateId] {
        &self.targets[self.row(id)]
    }

    #[inline]
    pub(super) fn class(&self, position: usize) -> Option<u8> {
        let class = self.classes[position];
        (class != UNFAIR).then_some(class)
    }

    /// The classes of the edges of `id`, one bit each.
    #[inline]
    pub(super) fn classes_of(&self, id: StateId) -> u64 {
        self.classes[self.row(id)].iter().fold(0, |mask, &class| mask | bit(class))
    }

    fn bytes(&self) -> usize {
        4 * (self.starts.capacity() + self.targets.capacity()) + self.classes.capacity()
    }
}

/// The bit of a stored class; none for an unfair one.
#[inline]
fn bit(class: u8) -> u64 {
    1_u64.checked_shl(u32::from(class)).unwrap_or(0)
}

/// The bit of a class; none for an unfair one.
#[inline]
pub(super) fn class_bit(class: Option<u8>) -> u64 {
    class.map_or(0, bit)
}

/// A state with steps that leave the model's boundary. They are not edges, but they do count as enabled.
pub(super) struct Exit {
    pub(super) from: StateId,
    pub(super) classes: u64,
}

/// What a search cost and found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Unique states within the boundary.
    pub states: usize,
    /// How many of them are initial.
    pub initial: usize,
    /// Steps between different states, parallel ones counted each.
    pub edges: usize,
    /// Steps that lead back to the same state. Not edges: a step that changes nothing serves no fairness class.
    pub self_loops: usize,
    /// Steps out of the model's `within_boundary`. If there are any, liveness may end as [`Outcome::Cut`].
    ///
    /// [`Outcome::Cut`]: super::Outcome::Cut
    pub boundary_exits: usize,
    /// Steps to the deepest state by its shortest path.
    pub depth: usize,
    /// Wall seconds of the exploration.
    pub seconds: f64,
    /// Bytes held by the graph, plus the hash table that is freed when the search ends. An estimate: what states own on
    /// the heap is not counted.
    pub memory_bytes: usize,
    /// The search stopped at its limit: there are states that were not expanded.
    pub cut: bool,
}

/// The reachable states of a model with every step between them. Built by [`explore`](super::explore).
pub struct Graph<'m, M: Fair> {
    pub(super) model: &'m M,
    pub(super) states: Vec<M::State>,
    /// Who discovered a state first; [`NONE`] for initial states.
    pub(super) parents: Vec<StateId>,
    /// The first state of each depth.
    pub(super) levels: Vec<StateId>,
    pub(super) edges: Edges,
    /// False if only states were kept: then all rows are empty.
    pub(super) has_edges: bool,
    /// In order of `from`.
    pub(super) exits: Vec<Exit>,
    /// States below this number have all their edges.
    pub(super) expanded: StateId,
    pub(super) stats: Stats,
}

impl<M: Fair> std::fmt::Debug for Graph<'_, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph").field("stats", &self.stats).finish_non_exhaustive()
    }
}

impl<'m, M: Fair> Graph<'m, M> {
    /// The model that was explored.
    pub fn model(&self) -> &'m M {
        self.model
    }

    /// All states found, by [`StateId`]: breadth first, so in order of depth.
    pub fn states(&self) -> &[M::State] {
        &self.states
    }

    /// The ids of all states found.
    pub fn ids(&self) -> std::ops::Range<StateId> {
        0..self.states.len() as StateId
    }

    /// A state by number.
    ///
    /// # Panics
    /// If `id` is not a number of this graph.
    pub fn state(&self, id: StateId) -> &M::State {
        &self.states[id as usize]
    }

    /// The steps from `id` that change the state and stay within the boundary. Empty if `id` was not expanded, or if
    /// only states were kept.
    pub fn edges_of(&self, id: StateId) -> impl Iterator<Item = Edge> + '_ {
        self.edges.row(id).map(|position| Edge { to: self.edges.target(position), class: self.edges.class(position) })
    }

    /// The fairness classes enabled in `id`, one bit each: those with an action that changes the state, wherever it
    /// leads (a goal, or out of the boundary). Known only for states that were expanded,
    /// in a graph with edges.
    pub fn enabled(&self, id: StateId) -> u64 {
        let mut mask = self.edges.classes_of(id);
        if let Some(exit) = self.exit_of(id) {
            mask |= exit.classes;
        }
        mask
    }

    /// True if all steps of `id` are known; false for the rim of a search that was cut.
    pub fn is_expanded(&self, id: StateId) -> bool {
        id < self.expanded
    }

    /// Length of the shortest path to `id`, in steps.
    pub fn depth_of(&self, id: StateId) -> usize {
        self.levels.partition_point(|&first| first <= id) - 1
    }

    /// What the exploration cost and found.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    pub(super) fn exit_of(&self, id: StateId) -> Option<&Exit> {
        if self.exits.is_empty() {
            return None;
        }
        let found = self.exits.binary_search_by_key(&id, |exit| exit.from);
        found.ok().map(|place| &self.exits[place])
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<M::State>() * self.states.capacity()
            + 4 * (self.parents.capacity() + self.levels.capacity())
            + size_of::<Exit>() * self.exits.capacity()
            + self.edges.bytes()
    }
}
