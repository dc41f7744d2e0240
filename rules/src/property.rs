//! What must always, or eventually, be true: the sentences that the model proves and the simulator watches.

use std::fmt;

/// Whether a property speaks of every state or of the end of every fair run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// Holds in every reachable state, or on every step.
    Always,
    /// Comes true on every fair run.
    Eventually,
}

/// One property.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Property {
    /// See [`Property::sentence`]. P2.
    OneCurrentOwner = 0,
    /// See [`Property::sentence`]. Kleppmann's fencing argument.
    StaleWriteChangesNothing = 1,
    /// See [`Property::sentence`]. E-B, E7.
    EffectAtMostOnce = 2,
    /// See [`Property::sentence`]. E7.
    SuccessMeansEffect = 3,
    /// See [`Property::sentence`]. T1.
    FinalIsFinal = 4,
    /// See [`Property::sentence`]. T1.
    OnlyAPersonLeavesWaitManual = 5,
    /// See [`Property::sentence`]. M5.
    DecisionStands = 6,
    /// See [`Property::sentence`]. M2, A4.
    AttemptsAreBounded = 7,
    /// See [`Property::sentence`]. P1, H1.
    EventuallyResolved = 8,
    /// See [`Property::sentence`]. A4.
    OnlyFailuresUseUpAttempts = 9,
    /// See [`Property::sentence`]. E5.
    CompensationLeavesNothing = 10,
    /// See [`Property::sentence`]. E5.
    CompensationComesAfter = 11,
}

impl Property {
    /// Every property.
    pub const ALL: [Property; 12] = [
        Property::OneCurrentOwner,
        Property::StaleWriteChangesNothing,
        Property::EffectAtMostOnce,
        Property::SuccessMeansEffect,
        Property::FinalIsFinal,
        Property::OnlyAPersonLeavesWaitManual,
        Property::DecisionStands,
        Property::AttemptsAreBounded,
        Property::OnlyFailuresUseUpAttempts,
        Property::CompensationLeavesNothing,
        Property::CompensationComesAfter,
        Property::EventuallyResolved,
    ];

    /// The name in reports and verdicts, e.g. `one_current_owner`.
    pub const fn name(self) -> &'static str {
        match self {
            Property::OneCurrentOwner => "one_current_owner",
            Property::StaleWriteChangesNothing => "stale_write_changes_nothing",
            Property::EffectAtMostOnce => "effect_at_most_once",
            Property::SuccessMeansEffect => "success_means_effect",
            Property::FinalIsFinal => "final_is_final",
            Property::OnlyAPersonLeavesWaitManual => "only_a_person_leaves_wait_manual",
            Property::DecisionStands => "decision_stands",
            Property::AttemptsAreBounded => "attempts_are_bounded",
            Property::OnlyFailuresUseUpAttempts => "only_failures_use_up_attempts",
            Property::CompensationLeavesNothing => "compensation_leaves_nothing",
            Property::CompensationComesAfter => "compensation_comes_after",
            Property::EventuallyResolved => "eventually_resolved",
        }
    }

    /// The property with this name.
    pub fn from_name(name: &str) -> Option<Property> {
        Property::ALL.into_iter().find(|property| property.name() == name)
    }

    /// The property as a sentence.
    pub const fn sentence(self) -> &'static str {
        match self {
            Property::OneCurrentOwner => "a task has at most one current owner",
            Property::StaleWriteChangesNothing => {
                "a write by an executor whose claim has ended changes no run but its own"
            }
            Property::EffectAtMostOnce => "an outside effect happens at most once unless the policy allows repeats",
            Property::SuccessMeansEffect => "SUCCESS means the effect happened unless the policy allows misses",
            Property::FinalIsFinal => "nothing leaves SUCCESS or FAIL",
            Property::OnlyAPersonLeavesWaitManual => "only a person leaves WAIT_MANUAL",
            Property::DecisionStands => "a person's decision is not undone by an older run",
            Property::AttemptsAreBounded => "failed attempts and interruptions stay within their budgets",
            Property::OnlyFailuresUseUpAttempts => "a task whose attempts are exhausted has failed that often",
            Property::CompensationLeavesNothing => "FAIL after compensation means that nothing of the effect is left",
            Property::CompensationComesAfter => {
                "a compensation comes after its effect, and after those of all later steps"
            }
            Property::EventuallyResolved => "every task is eventually resolved: SUCCESS, FAIL or WAIT_MANUAL",
        }
    }

    /// Safety or liveness.
    pub const fn kind(self) -> Kind {
        match self {
            Property::EventuallyResolved => Kind::Eventually,
            _ => Kind::Always,
        }
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
