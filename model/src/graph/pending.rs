//! The states in which a promise is open: it was triggered, and the goal has not come since.

use super::Fair;
use super::liveness::Trigger;
use super::report::CheckError;
use super::store::{Graph, NONE, StateId};
use super::trace::TraceOf;

/// The open states with their distances.
pub(super) struct Pending {
    /// Steps of a shortest run that ends in the state with the promise open; [`NONE`] if there is no such run.
    distances: Vec<u32>,
    /// The state before on that run; [`NONE`] if the promise is triggered in this very state. Empty if that is so of all.
    parents: Vec<StateId>,
}

impl Pending {
    /// Breadth first. A state that triggers the promise itself is open at its depth: no run to it is shorter. Any other is
    /// reached from an open one without passing the goal.
    pub(super) fn new<M: Fair>(
        graph: &Graph<'_, M>,
        trigger: Trigger<'_, M::State>,
        goal: impl Fn(&M::State) -> bool,
    ) -> Self {
        let count = graph.states.len();
        let mut distances = vec![NONE; count];
        let mut levels = graph.levels.clone();
        levels.push(count as StateId);
        let level = |depth: usize| match (levels.get(depth), levels.get(depth + 1)) {
            (Some(&first), Some(&end)) => first..end,
            _ => 0..0,
        };
        let not_goal: Vec<bool> = graph.states.iter().map(|state| !goal(state)).collect();
        let is_trigger = |id: StateId| match trigger {
            Trigger::Start => id < graph.stats.initial as StateId,
            Trigger::Anywhere => true,
            Trigger::When(condition) => condition(graph.state(id)),
        };
        if matches!(trigger, Trigger::Anywhere) {
            for depth in 0..graph.levels.len() {
                for id in level(depth) {
                    if not_goal[id as usize] {
                        distances[id as usize] = depth as u32;
                    }
                }
            }
            return Pending { distances, parents: Vec::new() };
        }

        let mut parents = vec![NONE; count];
        let mut frontier: Vec<StateId> = Vec::new();
        let mut next = Vec::new();
        let mut depth = 0;
        while depth < graph.levels.len() || !frontier.is_empty() {
            for id in level(depth) {
                let place = id as usize;
                if not_goal[place] && is_trigger(id) {
                    // It may have been reached from an open state at the same distance: one run is as good as the other.
                    if distances[place] == NONE {
                        distances[place] = depth as u32;
                        frontier.push(id);
                    }
                }
            }
            for &from in &frontier {
                for &to in graph.edges.targets(from) {
                    if not_goal[to as usize] && distances[to as usize] == NONE {
                        distances[to as usize] = depth as u32 + 1;
                        parents[to as usize] = from;
                        next.push(to);
                    }
                }
            }
            frontier.clear();
            std::mem::swap(&mut frontier, &mut next);
            depth += 1;
        }
        Pending { distances, parents }
    }

    /// Is the promise open in `id`, on some run?
    #[inline]
    pub(super) fn contains(&self, id: StateId) -> bool {
        self.distances[id as usize] != NONE
    }

    /// Steps of [`Pending::run_to`].
    #[inline]
    pub(super) fn distance(&self, id: StateId) -> u32 {
        self.distances[id as usize]
    }

    /// All open states, by number.
    pub(super) fn ids(&self) -> impl Iterator<Item = StateId> {
        let ids = 0..self.distances.len() as StateId;
        ids.filter(|&id| self.contains(id))
    }

    /// A shortest run from an initial state to `id` that leaves the promise open.
    pub(super) fn run_to<M: Fair>(&self, graph: &Graph<'_, M>, id: StateId) -> Result<TraceOf<M>, CheckError> {
        let mut path = vec![id];
        let mut at = id;
        while let Some(&parent) = self.parents.get(at as usize)
            && parent != NONE
        {
            at = parent;
            path.push(at);
        }
        let mut run = graph.trace_to(at)?;
        path.reverse();
        for pair in path.windows(2) {
            run.steps.push(graph.step_between(pair[0], pair[1])?);
        }
        Ok(run)
    }
}
