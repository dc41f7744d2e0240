//! Who decides in the model: the rules, but for one class of observations.

use std::fmt;

use leaseproof_rules::{Decision, Guards, Observation, Policy, decide_under};

use crate::world::Setup;

/// A function in the place of [`decide_under`].
pub type DecideFn = fn(&Policy, &Observation, Guards) -> Decision;

/// Maps what is observed to what is done. What is decided may rest on the observation alone: that is the point.
#[derive(Clone, Copy)]
pub struct Strategy {
    /// Decides wherever no deviation does. [`decide_under`], but in tests of the examination itself.
    pub base: DecideFn,
    /// Of this task, this observation is answered by this decision.
    pub deviation: Option<(usize, Observation, Decision)>,
}

impl Strategy {
    /// The rules as they are.
    pub const RULES: Strategy = Strategy { base: decide_under, deviation: None };

    /// The same, but for one class of one task.
    pub const fn deviating(self, task: usize, class: Observation, decision: Decision) -> Strategy {
        Strategy { base: self.base, deviation: Some((task, class, decision)) }
    }
}

impl PartialEq for Strategy {
    fn eq(&self, other: &Strategy) -> bool {
        std::ptr::fn_addr_eq(self.base, other.base) && self.deviation == other.deviation
    }
}

impl Eq for Strategy {}

impl fmt::Debug for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = if std::ptr::fn_addr_eq(self.base, decide_under as DecideFn) { "rules" } else { "others" };
        f.debug_struct("Strategy").field("base", &base).field("deviation", &self.deviation).finish()
    }
}

impl Setup {
    /// What is decided about a task on this observation, by a sweeper and by a failing executor alike.
    pub fn decide(&self, task: usize, seen: &Observation) -> Decision {
        match self.strategy.deviation {
            Some((of, class, decision)) if of == task && class == *seen => decision,
            _ => (self.strategy.base)(&self.policy, seen, self.guards),
        }
    }
}
