//! What a check answers.

use super::store::Stats;
use super::trace::{Lasso, Trace};

/// The kind of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// True in every reachable state.
    Always,
    /// True in at least one reachable state: what keeps the others from holding vacuously.
    Sometimes,
    /// True of every reachable step.
    EveryStep,
    /// Every fair run comes to the goal.
    LeadsTo,
}

impl Kind {
    /// One lower-case word, for reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Always => "always",
            Kind::Sometimes => "sometimes",
            Kind::EveryStep => "step",
            Kind::LeadsTo => "eventually",
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// The evidence against a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counterexample<S, A> {
    /// A shortest run to the state (or through the step) that violates it.
    Run(Trace<S, A>),
    /// A fair run that never comes to the goal.
    Lasso(Lasso<S, A>),
    /// A `sometimes` property: all states were looked at, and none has it.
    NoState,
}

impl<S, A> Counterexample<S, A> {
    /// Steps shown: of the run, or of the lasso's stem and cycle together.
    pub fn len(&self) -> usize {
        match self {
            Counterexample::Run(trace) => trace.len(),
            Counterexample::Lasso(lasso) => lasso.len(),
            Counterexample::NoState => 0,
        }
    }

    /// True if no step is shown.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The answer of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<S, A> {
    /// Proven of all reachable states within the boundary.
    Holds,
    /// Refuted. True even if the search was cut: the evidence is a real run.
    Violated(Counterexample<S, A>),
    /// Neither: no violation in the states explored, and there are more.
    Cut {
        /// States explored.
        states: usize,
    },
}

impl<S, A> Outcome<S, A> {
    /// True only if proven.
    pub fn holds(&self) -> bool {
        matches!(self, Outcome::Holds)
    }

    /// The evidence, if refuted.
    pub fn counterexample(&self) -> Option<&Counterexample<S, A>> {
        match self {
            Outcome::Violated(counterexample) => Some(counterexample),
            Outcome::Holds | Outcome::Cut { .. } => None,
        }
    }
}

/// One property's answer with what it cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Report<S, A> {
    /// The property, as a sentence.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// The answer.
    pub outcome: Outcome<S, A>,
    /// For a `sometimes` property that holds: a shortest run to a state that has it.
    pub example: Option<Trace<S, A>>,
    /// The graph it was checked on.
    pub stats: Stats,
    /// Wall seconds of this check, without the exploration. Step properties are checked together: each carries the time
    /// of all.
    pub seconds: f64,
}

/// A [`Report`] of a model.
pub type ReportOf<M> = Report<<M as stateright::Model>::State, <M as stateright::Model>::Action>;

/// Why a check could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// No property of the model has this name.
    #[error("the model has no property named {name:?}; it has {known:?}")]
    UnknownProperty {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<&'static str>,
    },
    /// Liveness was asked of a graph without steps.
    #[error("the search kept the states alone: liveness needs the steps between them")]
    NoEdges,
    /// The model answered differently than during the search.
    #[error("the model does not repeat a step it took before: its actions must depend on the state alone")]
    NotRepeatable,
}
