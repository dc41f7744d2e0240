//! The guards of the design that can be switched off, one by one, to show what each is for.
//!
//! A normal run has them all ([`Guards::ALL`]). The model and the simulator remove one and must then find a violation
//! of the [`Property`](crate::Property) it protects.

use std::fmt;

/// One guard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Guard {
    /// A completion carries its epoch in the `WHERE` clause.
    FenceComplete = 0,
    /// A heartbeat carries its epoch in the `WHERE` clause.
    FenceHeartbeat = 1,
    /// A claim is a compare-and-set on the status and epoch that were read (P2).
    CasAtClaim = 2,
    /// A person's decision moves the epoch (M5).
    BumpOnDecision = 3,
    /// The intent is in the effect journal before the outside call is made (M3).
    IntentBeforeCall = 4,
    /// A run far over its expected time goes to a person although its heartbeat is fine (M1).
    OverrunRule = 5,
}

impl Guard {
    /// Every guard.
    pub const ALL: [Guard; 6] = [
        Guard::FenceComplete,
        Guard::FenceHeartbeat,
        Guard::CasAtClaim,
        Guard::BumpOnDecision,
        Guard::IntentBeforeCall,
        Guard::OverrunRule,
    ];

    /// The name on the command line and in reports, e.g. `fence_complete`.
    pub const fn name(self) -> &'static str {
        match self {
            Guard::FenceComplete => "fence_complete",
            Guard::FenceHeartbeat => "fence_heartbeat",
            Guard::CasAtClaim => "cas_at_claim",
            Guard::BumpOnDecision => "bump_on_decision",
            Guard::IntentBeforeCall => "intent_before_call",
            Guard::OverrunRule => "overrun_rule",
        }
    }

    /// The guard of this name.
    pub fn from_name(name: &str) -> Option<Guard> {
        Guard::ALL.into_iter().find(|guard| guard.name() == name)
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The guards in force.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Guards(u32);

impl Guards {
    /// All of them: the design as it is meant.
    pub const ALL: Guards = Guards((1 << Guard::ALL.len()) - 1);

    /// All but one.
    pub const fn without(guard: Guard) -> Guards {
        Guards(Guards::ALL.0 & !(1 << guard as u32))
    }

    /// Whether a guard is in force.
    pub const fn has(self, guard: Guard) -> bool {
        self.0 & (1 << guard as u32) != 0
    }
}

impl Default for Guards {
    fn default() -> Guards {
        Guards::ALL
    }
}
