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
    /// A failure, a release and a giving-up carry their epoch in the `WHERE` clause (A3).
    FenceFailure = 6,
    /// A write to the effect journal carries its epoch in the `WHERE` clause (M3).
    FenceJournal = 7,
    /// A write checks the status besides the epoch: a success leaves the epoch as it is (T1).
    StatusAtWrite = 8,
    /// A claimer takes nothing out of WAIT_MANUAL (T1).
    ManualIsClosed = 9,
    /// The sweeper's write is a compare-and-set on the epoch that it read (A1).
    CasAtSweep = 10,
    /// Handing a task to a person moves the epoch. (Putting it back does too, but nothing rests on that: the next claim
    /// moves it again.)
    BumpOnEscalate = 11,
    /// A person's write is a compare-and-set on the epoch that the person read (M5).
    CasAtDecision = 12,
    /// Failed attempts end the automatic retries some day (M2).
    BoundedAttempts = 13,
    /// Lost owners end the automatic reclaims some day: a task may be what kills its workers (A4).
    BoundedInterruptions = 14,
    /// Lost owners do not count as failed attempts: a deploy must not use up a task's attempts (A4).
    TwoBudgets = 15,
    /// A call without an answer counts as "maybe done", not as "not done" (E-B, M3).
    UnknownIsUnknown = 16,
    /// "Not done" is believed only of a third party that refuses older tokens: the call may be on its way (E2, E6).
    TokenForNotDone = 17,
    /// A query carries a newer token than the call, so that the call is refused when it arrives late (E6).
    TokenInQuery = 18,
    /// The idempotency key is the same in every run of the task (E1).
    StableKey = 19,
    /// The database's clock is the only judge of a lease, not a worker's (A1).
    DatabaseClock = 20,
    /// A lease that has ended is not renewed: what a sweeper has read of it stays true until somebody changes the epoch.
    EndedIsEnded = 21,
    /// A process is told by its boot id, new at every start, and never by an address or a process id, which are used
    /// again (A2).
    BootIdentity = 22,
    /// A step of unknown outcome is not undone before it is known, or surely can not happen any more (E5).
    KnownBeforeUndo = 23,
}

impl Guard {
    /// Every guard.
    pub const ALL: [Guard; 24] = [
        Guard::FenceComplete,
        Guard::FenceHeartbeat,
        Guard::CasAtClaim,
        Guard::BumpOnDecision,
        Guard::IntentBeforeCall,
        Guard::OverrunRule,
        Guard::FenceFailure,
        Guard::FenceJournal,
        Guard::StatusAtWrite,
        Guard::ManualIsClosed,
        Guard::CasAtSweep,
        Guard::BumpOnEscalate,
        Guard::CasAtDecision,
        Guard::BoundedAttempts,
        Guard::BoundedInterruptions,
        Guard::TwoBudgets,
        Guard::UnknownIsUnknown,
        Guard::TokenForNotDone,
        Guard::TokenInQuery,
        Guard::StableKey,
        Guard::DatabaseClock,
        Guard::EndedIsEnded,
        Guard::BootIdentity,
        Guard::KnownBeforeUndo,
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
            Guard::FenceFailure => "fence_failure",
            Guard::FenceJournal => "fence_journal",
            Guard::StatusAtWrite => "status_at_write",
            Guard::ManualIsClosed => "manual_is_closed",
            Guard::CasAtSweep => "cas_at_sweep",
            Guard::BumpOnEscalate => "bump_on_escalate",
            Guard::CasAtDecision => "cas_at_decision",
            Guard::BoundedAttempts => "bounded_attempts",
            Guard::BoundedInterruptions => "bounded_interruptions",
            Guard::TwoBudgets => "two_budgets",
            Guard::UnknownIsUnknown => "unknown_is_unknown",
            Guard::TokenForNotDone => "token_for_not_done",
            Guard::TokenInQuery => "token_in_query",
            Guard::StableKey => "stable_key",
            Guard::DatabaseClock => "database_clock",
            Guard::EndedIsEnded => "ended_is_ended",
            Guard::BootIdentity => "boot_identity",
            Guard::KnownBeforeUndo => "known_before_undo",
        }
    }

    /// Whether the queue's code can be built without it too (its feature `ablation`). The others are removed in the
    /// model only: they are more than one condition of one statement, or need what no story can tell.
    pub const fn on_code(self) -> bool {
        !matches!(
            self,
            Guard::StatusAtWrite
                | Guard::CasAtDecision
                | Guard::DatabaseClock
                | Guard::EndedIsEnded
                | Guard::BootIdentity
                | Guard::KnownBeforeUndo
        )
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
