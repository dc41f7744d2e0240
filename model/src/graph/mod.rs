//! The exact graph checker: an explicit state graph over any [`stateright::Model`], with *shortest* safety
//! counterexamples and liveness under weak fairness.
//!
//! stateright 0.31 is kept for what it does well (the `Model` trait, the Explorer). This module answers what it cannot:
//! its `eventually` knows no fairness and reports "holds" on cycles and on joins of a DAG, its counterexamples are not
//! shortest, and a truncated run passes `assert_properties()`. Here
//!
//! * states are compared exactly, never by hash alone ([`explore`]);
//! * the first violation found is at the smallest depth ([`Graph::check_always`], [`Graph::check_steps`]);
//! * `eventually` and `leads to` are decided on the strongly connected components of the graph ([`Graph::check_leads_to`]);
//! * a search that was cut never says [`Outcome::Holds`];
//! * every lasso can be re-checked against the model alone ([`check_lasso`]).
//!
//! Never hand it a symmetry-reduced model for liveness: merging executors merges their fairness classes, and a run that
//! starves one of them then looks fair.

mod explore;
mod fixed_hash;
mod lasso;
mod liveness;
mod pending;
mod report;
mod safety;
mod store;
mod tarjan;
mod trace;
mod validate;

use std::hash::Hash;

pub use explore::{ExploreError, Limits, explore};
pub use liveness::Trigger;
pub use report::{CheckError, Counterexample, Kind, Outcome, Report, ReportOf};
pub use safety::StepProperty;
pub use store::{Edge, Graph, StateId, Stats};
pub use trace::{Lasso, LassoOf, Step, Trace, TraceOf};
pub use validate::{Flaw, check_lasso, check_trace};

/// A model whose actions are sorted into weak-fairness classes.
///
/// Weak fairness (justice) of a class: a run may not, from some point on, keep the class enabled in every state and
/// never take it. A class is *enabled* in a state when one of its actions changes that state; an action that leaves the
/// state as it is neither enables nor serves its class.
pub trait Fair: stateright::Model<State: Clone + Eq + Hash, Action: Clone> {
    /// The class of `action` in `state`, below [`CLASSES`]; `None` for what may never happen (a crash, a pause, a lost
    /// message). Must depend on its arguments only.
    fn fair_class(&self, state: &Self::State, action: &Self::Action) -> Option<u8>;
}

/// How many fairness classes a model may have: one bit each in a `u64`.
pub const CLASSES: u8 = 64;
