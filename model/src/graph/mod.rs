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

mod batch;
mod explore;
mod fixed_hash;
mod intern;
mod lasso;
mod liveness;
mod pending;
mod pipeline;
mod report;
mod safety;
mod store;
mod tarjan;
mod trace;
mod validate;

use std::hash::Hash;

pub use explore::{ExploreError, Limits, explore, explore_on, explore_states};
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

    /// Tells `each` the class of every step from `state` and the state it leads to, in the order of `actions`. `scratch`
    /// is empty before and after.
    ///
    /// To be overridden only for speed, by what does the same: a packed state, say, that is unpacked but once.
    fn successors(
        &self,
        state: &Self::State,
        scratch: &mut Vec<Self::Action>,
        mut each: impl FnMut(Option<u8>, Self::State),
    ) {
        self.actions(state, scratch);
        for action in scratch.drain(..) {
            let class = self.fair_class(state, &action);
            if let Some(after) = self.next_state(state, action) {
                each(class, after);
            }
        }
    }
}

/// How many fairness classes a model may have: one bit each in a `u64`.
pub const CLASSES: u8 = 64;
