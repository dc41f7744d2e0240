//! The cycle to show: real steps inside a fair component that serve every class, as few as can be found.

use hashbrown::HashSet;

use super::Fair;
use super::fixed_hash::FixedState;
use super::pending::Pending;
use super::store::{Graph, StateId, class_bit};
use super::tarjan::Components;

/// A cycle on which every class is taken or disabled somewhere.
pub(super) struct Cycle {
    pub(super) head: StateId,
    /// Positions of its edges.
    pub(super) edges: Vec<usize>,
    /// True if no lasso of fewer steps exists.
    pub(super) shortest: bool,
}

/// Pairs of state and served classes that the search for a shortest cycle may visit in all: about half a second.
///
/// The search is exponential in the number of classes in the worst case (it asks for a shortest walk through given
/// places), so it must be able to give up; what it has by then is still a violation, only perhaps a longer one.
const WORK: usize = 2_000_000;

/// The fair lasso of fewest steps, stem and cycle together, whose cycle has its head among `entries`.
///
/// `entries` are the states of all fair components in order of distance. `bound` is the length of a lasso that is known
/// already; only a shorter one is of use.
pub(super) fn shortest<M: Fair>(
    graph: &Graph<'_, M>,
    parts: &Components,
    pending: &Pending,
    entries: &[StateId],
    bound: Option<u32>,
) -> Option<Cycle> {
    let mut bound = bound.map_or(usize::MAX, |length| length as usize);
    // A cycle has two steps at least.
    let could_help = |head: StateId, bound: usize| (pending.distance(head) as usize).saturating_add(2) < bound;
    let &first = entries.first()?;
    if !could_help(first, bound) {
        return None;
    }
    let walker = Walker { graph, parts };
    let mut best = None;
    let greedy = walker.greedy_cycle(first);
    let length = pending.distance(first) as usize + greedy.len();
    if length < bound {
        bound = length;
        best = Some((first, greedy));
    }
    let mut work = WORK;
    let mut shortest = true;
    for &head in entries {
        if !could_help(head, bound) {
            break;
        }
        let room = bound - 1 - pending.distance(head) as usize;
        let served = walker.served_in(head);
        let closed = |at: StateId, served: u64| at == head && served == u64::MAX;
        let seen = Seen::Pairs(HashSet::default());
        match walker.walk(head, served, seen, room, &mut work, closed) {
            Walk::Found { edges, .. } => {
                bound = pending.distance(head) as usize + edges.len();
                best = Some((head, edges));
            }
            Walk::None => {}
            Walk::TooMuchWork => {
                shortest = false;
                break;
            }
        }
    }
    let (head, edges) = best?;
    Some(Cycle { head, edges, shortest })
}

/// Walks inside one component while keeping account of the classes served.
struct Walker<'g, 'm, M: Fair> {
    graph: &'g Graph<'m, M>,
    parts: &'g Components,
}

enum Walk {
    Found { edges: Vec<usize>, end: StateId, served: u64 },
    None,
    TooMuchWork,
}

/// A place in a breadth-first search over pairs of state and served classes.
struct Visit {
    at: StateId,
    /// The visit before; the first visit is its own.
    before: u32,
    /// The edge from there.
    edge: u32,
    served: u64,
}

/// What a search has visited.
enum Seen {
    /// By state, when the search ends as soon as the served classes change.
    States(Vec<bool>),
    Pairs(HashSet<(StateId, u64), FixedState>),
}

impl Seen {
    /// True if it was not visited before.
    fn insert(&mut self, at: StateId, served: u64) -> bool {
        match self {
            Seen::States(seen) => !std::mem::replace(&mut seen[at as usize], true),
            Seen::Pairs(seen) => seen.insert((at, served)),
        }
    }
}

impl<M: Fair> Walker<'_, '_, M> {
    /// The classes that a run is excused from by passing through `id`.
    fn served_in(&self, id: StateId) -> u64 {
        !self.graph.enabled(id)
    }

    /// A cycle through `head`: always on to the nearest place that serves a class not served yet, then home. Its cost is
    /// bounded by the size of the component times the number of classes.
    ///
    /// `head` must be in a fair component, and some class must be enabled in it.
    fn greedy_cycle(&self, head: StateId) -> Vec<usize> {
        let mut cycle = Vec::new();
        let mut at = head;
        let mut served = self.served_in(head);
        let mut unlimited = usize::MAX;
        while served != u64::MAX || at != head || cycle.is_empty() {
            let before = served;
            let next = |place: StateId, now: u64| {
                if before == u64::MAX { place == head } else { now != before }
            };
            let seen = Seen::States(vec![false; self.graph.states.len()]);
            match self.walk(at, served, seen, usize::MAX, &mut unlimited, next) {
                Walk::Found { edges, end, served: now } => {
                    cycle.extend(edges);
                    at = end;
                    served = now;
                }
                // To answer "no lasso" here would turn a fault of this file into a proof of the property.
                Walk::None | Walk::TooMuchWork => unreachable!(
                    "in a fair component every class is served somewhere, and every state is reached from every other"
                ),
            }
        }
        cycle
    }

    /// A shortest walk of one to `room` steps from `start` to where `done` holds of state and served classes. Visits at
    /// most `work` pairs and takes them off.
    fn walk(
        &self,
        start: StateId,
        served: u64,
        mut seen: Seen,
        room: usize,
        work: &mut usize,
        done: impl Fn(StateId, u64) -> bool,
    ) -> Walk {
        let edges = &self.graph.edges;
        let mut visits = vec![Visit { at: start, before: 0, edge: 0, served }];
        seen.insert(start, served);
        let mut level_end = 1;
        let mut steps = 0;
        let mut place = 0;
        while place < visits.len() {
            if place == level_end {
                level_end = visits.len();
                steps += 1;
            }
            if steps >= room {
                break;
            }
            let Visit { at, served, .. } = visits[place];
            for position in edges.row(at) {
                let to = edges.target(position);
                if !self.parts.together(at, to) {
                    continue;
                }
                let now = served | class_bit(edges.class(position)) | self.served_in(to);
                if done(to, now) {
                    let mut edges = path(&visits, place);
                    edges.push(position);
                    return Walk::Found { edges, end: to, served: now };
                }
                if seen.insert(to, now) {
                    if *work == 0 {
                        return Walk::TooMuchWork;
                    }
                    *work -= 1;
                    visits.push(Visit { at: to, before: place as u32, edge: position as u32, served: now });
                }
            }
            place += 1;
        }
        Walk::None
    }
}

/// The edges from the first visit to the one at `place`.
fn path(visits: &[Visit], mut place: usize) -> Vec<usize> {
    let mut edges = Vec::new();
    while place != 0 {
        edges.push(visits[place].edge as usize);
        place = visits[place].before as usize;
    }
    edges.reverse();
    edges
}
