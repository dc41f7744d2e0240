//! Runs of a model: finite ones, and lassos for infinite ones.

use super::Fair;
use super::report::CheckError;
use super::store::{Graph, NONE, StateId};

/// One step: the action and the state it led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step<S, A> {
    /// What happened.
    pub action: A,
    /// The state afterwards.
    pub state: S,
}

/// A finite run from an initial state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace<S, A> {
    /// Where it starts.
    pub initial: S,
    /// What happens, in order; empty if the initial state itself is the point.
    pub steps: Vec<Step<S, A>>,
}

/// An infinite run: the stem once, then the cycle for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lasso<S, A> {
    /// From an initial state to the first state of the cycle.
    pub stem: Trace<S, A>,
    /// From the stem's last state back to it. Empty: the run stays in that state for ever (it *stutters*), because
    /// nothing that must happen can happen.
    pub cycle: Vec<Step<S, A>>,
    /// True if no shorter lasso violates the property; false if the search for one was given up for its cost.
    pub shortest: bool,
}

/// A [`Trace`] of a model.
pub type TraceOf<M> = Trace<<M as stateright::Model>::State, <M as stateright::Model>::Action>;
/// A [`Lasso`] of a model.
pub type LassoOf<M> = Lasso<<M as stateright::Model>::State, <M as stateright::Model>::Action>;
/// A [`Step`] of a model.
pub(super) type StepOf<M> = Step<<M as stateright::Model>::State, <M as stateright::Model>::Action>;

impl<S, A> Trace<S, A> {
    /// Steps taken.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// True if no step is taken.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The state it ends in.
    pub fn last(&self) -> &S {
        self.steps.last().map_or(&self.initial, |step| &step.state)
    }

    /// All states in order, the initial one first: one more than there are steps.
    pub fn states(&self) -> impl Iterator<Item = &S> {
        std::iter::once(&self.initial).chain(self.steps.iter().map(|step| &step.state))
    }
}

impl<S, A> Lasso<S, A> {
    /// Steps of stem and cycle together.
    pub fn len(&self) -> usize {
        self.stem.len() + self.cycle.len()
    }

    /// True if it stutters in an initial state.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if the run ends by staying in one state.
    pub fn stutters(&self) -> bool {
        self.cycle.is_empty()
    }
}

impl<M: Fair> Graph<'_, M> {
    /// A shortest run to `id`.
    ///
    /// # Errors
    /// [`CheckError::NotRepeatable`] if the model no longer takes a step it took during the search.
    ///
    /// # Panics
    /// If `id` is not a number of this graph.
    pub fn trace_to(&self, id: StateId) -> Result<TraceOf<M>, CheckError> {
        let mut path = vec![id];
        let mut at = id;
        while self.parents[at as usize] != NONE {
            at = self.parents[at as usize];
            path.push(at);
        }
        path.reverse();
        let mut steps = Vec::with_capacity(path.len() - 1);
        for pair in path.windows(2) {
            steps.push(self.step_between(pair[0], pair[1])?);
        }
        Ok(Trace { initial: self.state(at).clone(), steps })
    }

    /// The model's first action from `from` to `to`, whatever its class. Actions are not stored: the few that are ever
    /// shown are found again.
    pub(super) fn step_between(&self, from: StateId, to: StateId) -> Result<StepOf<M>, CheckError> {
        self.find_step(from, to, |_| true)
    }

    /// The model's first action along an edge, of that edge's class.
    pub(super) fn step_along(&self, from: StateId, position: usize) -> Result<StepOf<M>, CheckError> {
        let wanted = self.edges.class(position);
        self.find_step(from, self.edges.target(position), |class| class == wanted)
    }

    fn find_step(
        &self,
        from: StateId,
        to: StateId,
        accept: impl Fn(Option<u8>) -> bool,
    ) -> Result<StepOf<M>, CheckError> {
        let (before, after) = (self.state(from), self.state(to));
        let mut actions = Vec::new();
        self.model.actions(before, &mut actions);
        for action in actions {
            if accept(self.model.fair_class(before, &action))
                && self.model.next_state(before, action.clone()).as_ref() == Some(after)
            {
                return Ok(Step { action, state: after.clone() });
            }
        }
        Err(CheckError::NotRepeatable)
    }
}
