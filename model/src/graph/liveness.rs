//! Liveness under weak fairness: does every fair run come to the goal?

use std::time::Instant;

use super::Fair;
use super::lasso::{self, Cycle};
use super::pending::Pending;
use super::report::{CheckError, Counterexample, Kind, Outcome, ReportOf};
use super::store::{Graph, StateId, class_bit};
use super::tarjan::{Components, components};
use super::trace::{Lasso, LassoOf};

/// When the goal is owed.
pub enum Trigger<'a, S> {
    /// At the start: every fair run from an initial state comes to the goal at least once. (TLA+: `<>goal`.)
    Start,
    /// At any time: from every reachable state the goal comes, or comes again. (TLA+: `[]<>goal`.)
    Anywhere,
    /// Whenever this holds: the goal holds then or comes later. (TLA+: `trigger ~> goal`.)
    When(&'a dyn Fn(&S) -> bool),
}

impl<S> Clone for Trigger<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S> Copy for Trigger<'_, S> {}

impl<S> std::fmt::Debug for Trigger<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Trigger::Start => "Start",
            Trigger::Anywhere => "Anywhere",
            Trigger::When(_) => "When(..)",
        })
    }
}

impl<M: Fair> Graph<'_, M> {
    /// Does every fair run on which `trigger` comes to pass come to `goal` then or later?
    ///
    /// A run that has come to the goal has kept the promise; what it does afterwards matters only if it is triggered again.
    /// A violation is a lasso: it stays in one state for ever, or goes round a cycle.
    ///
    /// A fair action that leaves the model's boundary is enabled where it starts, but where it leads is not known: if a
    /// run with the promise open can leave the boundary and no violation is found inside, the answer is [`Outcome::Cut`].
    ///
    /// # Errors
    /// [`CheckError::NoEdges`]; [`CheckError::NotRepeatable`], see [`Graph::trace_to`].
    pub fn check_leads_to(
        &self,
        name: &str,
        trigger: Trigger<'_, M::State>,
        goal: impl Fn(&M::State) -> bool,
    ) -> Result<ReportOf<M>, CheckError> {
        if !self.has_edges {
            return Err(CheckError::NoEdges);
        }
        let started = Instant::now();
        let pending = Pending::new(self, trigger, goal);
        let outcome = match self.fair_lasso(&pending)? {
            Some(lasso) => Outcome::Violated(Counterexample::Lasso(lasso)),
            None if self.leaves_boundary(&pending) => self.cut(),
            None => self.nothing_found(),
        };
        Ok(self.report(name, Kind::LeadsTo, outcome, started))
    }

    fn leaves_boundary(&self, pending: &Pending) -> bool {
        self.exits.iter().any(|exit| pending.contains(exit.from))
    }

    /// A shortest fair run that stays open for ever.
    ///
    /// Such a run visits some set of states infinitely often. If that is a single state, the run stutters there, which is
    /// fair iff no fair class is enabled in it. Otherwise the set is strongly connected by steps that change the state, and
    /// the run is fair iff each class is taken on one of these steps or disabled in one of these states.
    ///
    /// It is enough to look at *maximal* components. The condition is monotone: a larger component has every step and
    /// every state of the smaller one inside it, so what is taken or disabled there is taken or disabled here. If any
    /// strongly connected set is fair, the maximal component around it is. (Strong fairness would not be monotone in
    /// this way: a state added may enable what is then never taken.)
    ///
    /// On a cut graph only states with all their steps known are in a cycle or judged for stuttering. Their component may
    /// be larger in the full graph, but by the same argument that cannot make it less fair.
    fn fair_lasso(&self, pending: &Pending) -> Result<Option<LassoOf<M>>, CheckError> {
        let stutter = pending
            .ids()
            .filter(|&id| self.is_expanded(id) && self.enabled(id) == 0)
            .min_by_key(|&id| (pending.distance(id), id));
        let parts = components(self.states.len(), &self.edges, |id| pending.contains(id));
        let mut entries: Vec<StateId> =
            parts.cyclic().filter(|members| self.is_fair_component(&parts, members)).flatten().copied().collect();
        entries.sort_unstable_by_key(|&id| (pending.distance(id), id));

        let bound = stutter.map(|id| pending.distance(id));
        let cycle = lasso::shortest(self, &parts, pending, &entries, bound);
        let (head, positions, shortest) = match (cycle, stutter) {
            (Some(Cycle { head, edges, shortest }), _) => (head, edges, shortest),
            (None, Some(head)) => (head, Vec::new(), true),
            (None, None) => return Ok(None),
        };
        let mut cycle = Vec::with_capacity(positions.len());
        let mut at = head;
        for position in positions {
            cycle.push(self.step_along(at, position)?);
            at = self.edges.target(position);
        }
        Ok(Some(Lasso { stem: pending.run_to(self, head)?, cycle, shortest }))
    }

    /// Is each class taken inside this component, or disabled somewhere in it?
    fn is_fair_component(&self, parts: &Components, members: &[StateId]) -> bool {
        let mut served = 0;
        for &id in members {
            served |= !self.enabled(id);
            for position in self.edges.row(id) {
                if parts.together(id, self.edges.target(position)) {
                    served |= class_bit(self.edges.class(position));
                }
            }
            if served == u64::MAX {
                return true;
            }
        }
        false
    }
}
