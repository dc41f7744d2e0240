//! The kinds of steps that the designs have, and why a design does not have one.

use crate::designs::Design;

macro_rules! kinds {
    ($($kind:ident $words:literal),* $(,)?) => {
        /// A kind of step. An exchange that goes through counts under what it writes or asks; one of which a message is
        /// lost counts as that loss.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[allow(missing_docs)]
        pub enum Kind { $($kind),* }

        impl Kind {
            /// Every kind, by who takes it.
            pub const ALL: [Kind; [$($words),*].len()] = [$(Kind::$kind),*];

            /// Who does what, e.g. `executor: claims`.
            pub const fn words(self) -> &'static str {
                match self { $(Kind::$kind => $words),* }
            }
        }
    };
}

kinds! {
    Look "executor: reads a candidate",
    Claim "executor: claims",
    ComeToCall "executor: its handler comes to its call",
    Intent "executor: journals the intent",
    Call "executor: calls the third party",
    Outcome "executor: journals the outcome",
    Deadline "executor: waits for the third party no longer",
    Ask "executor: asks the third party",
    Succeed "executor: its handler succeeds",
    Fail "executor: its handler fails",
    BadInput "executor: its handler meets bad input",
    Hang "executor: its handler hangs for ever",
    Complete "executor: reports success",
    Retry "executor: puts the task back for a retry",
    GiveUp "executor: ends the task, or hands it to a person",
    Shrug "executor: gives up asking what became of its commit",
    Heartbeat "executor: renews",
    SelfFence "executor: stops itself by its own clock",
    Release "executor: puts the task back unharmed",
    Crash "executor: dies",
    Silence "executor: dies, and its connection stays open",
    Start "executor: a new start registers",
    Deploy "executor: all die at once",
    RequestLost "network: a request is lost",
    ReplyLost "network: a reply is lost",
    Cut "network: a connection is cut",
    NotSent "network: no connection for a call",
    CallLost "network: a call is lost",
    Copy "network: copies a write",
    CopyArrives "network: the copy of a write arrives",
    Arrives "third party: a call arrives",
    ArrivesUnheard "third party: a call arrives, its reply lost",
    ArrivesLate "third party: a call arrives after its sender has gone",
    ArrivesInPart "third party: a call is done in part, no reply",
    ArrivesTwice "third party: a copy of a call arrives",
    Expire "database: a lease ends",
    Overrun "database: a run is over its expected time",
    ClockBack "database: its clock is set back",
    Due "database: a task is due again after that",
    Keepalive "database: keepalive ends a session",
    IdleTimeout "database: the idle timeout ends a session",
    Reset "database: RUNNING is reset by something outside",
    FailOver "database: loses its last commit",
    Sweep "sweeper: reads a task",
    SweeperAsks "sweeper: asks the third party",
    Requeue "sweeper: takes a task back",
    Escalate "sweeper: hands a task to a person",
    Forget "sweeper: drops what has been overtaken",
    Open "person: opens a task",
    FindOut "person: finds out about the call",
    Rerun "person: lets it run again",
    MarkFailed "person: says it has failed",
    MarkSucceeded "person: says it has succeeded",
    Calm "world: no more faults",
}

const NO_JOURNAL: &str = "there is no effect journal";
const NO_LEASE: &str = "there is no lease";
const NO_SWEEPER: &str = "nothing looks after tasks that are RUNNING";
const NO_PERSON: &str = "there is neither a person nor WAIT_MANUAL";
const NO_RETRY: &str = "a failure of any kind ends in FAIL";
const NO_OWNER: &str = "a row does not say whose it is";
const LEFT_OUT: &str = "left out: nothing of the comparison rests on it";
const NO_SESSION: &str = "no session of the database holds the task";
const ASKS_ON: &str = "a report is sent until it is answered";

impl Kind {
    /// Whether it is something that goes wrong, in some world of the lease design.
    pub const fn is_fault(self) -> bool {
        matches!(
            self,
            Kind::SelfFence
                | Kind::Crash
                | Kind::Start
                | Kind::Deploy
                | Kind::RequestLost
                | Kind::ReplyLost
                | Kind::NotSent
                | Kind::CallLost
                | Kind::Copy
                | Kind::CopyArrives
                | Kind::ArrivesUnheard
                | Kind::ArrivesLate
                | Kind::ArrivesInPart
                | Kind::ArrivesTwice
                | Kind::ClockBack
        )
    }

    /// Why there is no step of this kind in the worlds of a design; `None`: there must be some.
    pub const fn absent(self, design: Design) -> Option<&'static str> {
        match design {
            Design::Lease => self.absent_in_lease(),
            Design::CommitRunning => match self {
                Kind::Shrug => Some(ASKS_ON),
                Kind::Silence | Kind::Cut | Kind::Keepalive | Kind::IdleTimeout => Some(NO_SESSION),
                Kind::Reset => None,
                _ => self.absent_in_both(),
            },
            Design::SingleTransaction => match self {
                Kind::Reset => Some("others do not see RUNNING"),
                _ => self.absent_in_both(),
            },
        }
    }

    const fn absent_in_lease(self) -> Option<&'static str> {
        match self {
            Kind::Hang => Some("no step: where a handler may hang, nothing makes it go on"),
            Kind::Shrug => Some(ASKS_ON),
            Kind::Silence | Kind::Cut | Kind::Keepalive | Kind::IdleTimeout => Some(NO_SESSION),
            Kind::Reset => Some("the sweeper takes its place"),
            Kind::FailOver => Some("not promised to be survived: check --beyond"),
            Kind::Forget => Some("what the rules leave as it is is not remembered"),
            _ => None,
        }
    }

    /// What neither of the older designs has.
    const fn absent_in_both(self) -> Option<&'static str> {
        match self {
            Kind::ComeToCall | Kind::Intent | Kind::Outcome | Kind::Ask => Some(NO_JOURNAL),
            Kind::Heartbeat | Kind::SelfFence | Kind::Expire => Some(NO_LEASE),
            Kind::Sweep | Kind::SweeperAsks | Kind::Requeue | Kind::Escalate | Kind::Forget | Kind::Overrun => {
                Some(NO_SWEEPER)
            }
            Kind::Open | Kind::FindOut | Kind::Rerun | Kind::MarkFailed | Kind::MarkSucceeded => Some(NO_PERSON),
            Kind::BadInput | Kind::Retry => Some(NO_RETRY),
            Kind::Start => Some(NO_OWNER),
            Kind::Release
            | Kind::Deploy
            | Kind::NotSent
            | Kind::Copy
            | Kind::CopyArrives
            | Kind::ArrivesInPart
            | Kind::ArrivesTwice
            | Kind::ClockBack
            | Kind::Due
            | Kind::FailOver => Some(LEFT_OUT),
            _ => None,
        }
    }
}
