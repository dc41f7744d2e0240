//! The table of legal transitions, and the one function that says what a conditional write does to a row.
//!
//! The model applies [`judge`]; the SQL `WHERE` clauses of the queue are tested, case by case, to say the same.

use crate::guard::{Guard, Guards};
use crate::status::Status;

/// The fencing token: grows at every change of ownership and at every decision by a person.
pub type Epoch = u64;

/// The largest epoch that a row may hold: 2^53 - 1, the largest whole number that every reader of JSON keeps exactly.
pub const EPOCH_MAX: Epoch = (1 << 53) - 1;

/// From this epoch on a task is not claimed any more. No queue gets there by itself; a row that another program has put
/// there still has room for every write that ends a run, and stops no other task.
pub const EPOCH_LIMIT: Epoch = 9_000_000_000_000_000;

/// How far a lease may end beyond its whole length from now, in ms on the database's clock: what a clock is moved by in
/// the ordinary way. One that ends later can only be there because the clock was set back since.
pub const CLOCK_SLACK_MS: u64 = 60_000;

/// Whether a lease of this length can not end so late: the database's clock was set back, and nobody would see its owner
/// lost until it has caught up. The sweeper cuts such a lease to its length from now on. Its owner is not lost for it.
pub const fn ends_too_late(lease_ms: u64, ends_in_ms: u64) -> bool {
    ends_in_ms > lease_ms.saturating_add(CLOCK_SLACK_MS)
}

/// Where the counts of failures and losses stop growing.
pub const COUNT_MAX: u32 = i32::MAX as u32;

/// Who may take an edge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Actor {
    /// An executor that looks for work.
    Claimer,
    /// The executor that holds the claim.
    Owner,
    /// The periodic sweep, in whichever process it runs.
    Sweeper,
    /// A person at the desk.
    Person,
}

/// A write to a task row. Every one is conditional.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Verb {
    /// Take a due task (P2).
    Claim,
    /// Move the end of the lease.
    Heartbeat,
    /// Journal that an outside call is about to be made.
    Intent,
    /// Journal what an outside call brought.
    Outcome,
    /// Report success.
    Complete,
    /// Put the task back after a failure, for a later attempt (A3).
    Retry,
    /// Put the task back unharmed, e.g. at shutdown; costs no attempt.
    Release,
    /// End the task from inside: to a person (M2, M3), or to FAIL where the policy says so.
    GiveUp,
    /// Take the task back from an owner that is lost (A1, A2).
    Requeue,
    /// Hand the task to a person (M1, M2, M3).
    Escalate,
    /// A person: run again.
    Rerun,
    /// A person: it has failed.
    MarkFailed,
    /// A person: it has succeeded.
    MarkSucceeded,
}

impl Verb {
    /// Every verb, in the order of the discriminants.
    pub const ALL: [Verb; 13] = [
        Verb::Claim,
        Verb::Heartbeat,
        Verb::Intent,
        Verb::Outcome,
        Verb::Complete,
        Verb::Retry,
        Verb::Release,
        Verb::GiveUp,
        Verb::Requeue,
        Verb::Escalate,
        Verb::Rerun,
        Verb::MarkFailed,
        Verb::MarkSucceeded,
    ];

    /// The name used in execution records, statement tags and protocol points, e.g. `give_up`.
    pub const fn name(self) -> &'static str {
        match self {
            Verb::Claim => "claim",
            Verb::Heartbeat => "heartbeat",
            Verb::Intent => "intent",
            Verb::Outcome => "outcome",
            Verb::Complete => "complete",
            Verb::Retry => "retry",
            Verb::Release => "release",
            Verb::GiveUp => "give_up",
            Verb::Requeue => "requeue",
            Verb::Escalate => "escalate",
            Verb::Rerun => "rerun",
            Verb::MarkFailed => "mark_failed",
            Verb::MarkSucceeded => "mark_succeeded",
        }
    }

    /// Who writes it.
    pub const fn actor(self) -> Actor {
        match self {
            Verb::Claim => Actor::Claimer,
            Verb::Heartbeat
            | Verb::Intent
            | Verb::Outcome
            | Verb::Complete
            | Verb::Retry
            | Verb::Release
            | Verb::GiveUp => Actor::Owner,
            Verb::Requeue | Verb::Escalate => Actor::Sweeper,
            Verb::Rerun | Verb::MarkFailed | Verb::MarkSucceeded => Actor::Person,
        }
    }
}

/// What must hold besides the status and the epoch. Judged by the database, on the database's clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Condition {
    /// Nothing further.
    None,
    /// The task's due time has come, and its epoch is below [`EPOCH_LIMIT`].
    Due,
    /// The lease has not ended. Once it has, its owner may report, but neither renew nor begin anything: an
    /// owner that a sweeper has read as lost therefore stays lost until somebody changes the epoch.
    LeaseLive,
    /// The lease has ended, or the owner's process is known to be gone (A2).
    OwnerLost,
    /// The owner is lost, or its run is far over the expected time (M1).
    OwnerLostOrOverrun,
}

/// One legal edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transition {
    /// The write that takes it.
    pub verb: Verb,
    /// The status before.
    pub from: Status,
    /// The status after.
    pub to: Status,
    /// What must hold besides status and epoch.
    pub condition: Condition,
    /// Whether the epoch grows by one.
    pub bumps_epoch: bool,
}

const fn edge(verb: Verb, from: Status, to: Status, condition: Condition, bumps_epoch: bool) -> Transition {
    Transition { verb, from, to, condition, bumps_epoch }
}

/// Every legal edge. Whatever is not here does not happen.
///
/// All edges also demand that the writer presents the row's current epoch; the one exception is the adoption of a
/// late result, see [`judge`].
pub const TRANSITIONS: &[Transition] = {
    use Condition as C;
    use Status::*;
    &[
        edge(Verb::Claim, Pending, Running, C::Due, true),
        edge(Verb::Claim, RetryWait, Running, C::Due, true),
        edge(Verb::Heartbeat, Running, Running, C::LeaseLive, false),
        edge(Verb::Intent, Running, Running, C::LeaseLive, false),
        edge(Verb::Outcome, Running, Running, C::None, false),
        edge(Verb::Complete, Running, Success, C::None, false),
        edge(Verb::Retry, Running, Pending, C::None, true),
        edge(Verb::Retry, Running, RetryWait, C::None, true),
        edge(Verb::Release, Running, Pending, C::None, true),
        edge(Verb::GiveUp, Running, WaitManual, C::None, true),
        edge(Verb::GiveUp, Running, Fail, C::None, true),
        edge(Verb::Requeue, Running, Pending, C::OwnerLost, true),
        edge(Verb::Requeue, Running, RetryWait, C::OwnerLost, true),
        edge(Verb::Escalate, Running, WaitManual, C::OwnerLostOrOverrun, true),
        edge(Verb::Rerun, WaitManual, Pending, C::None, true),
        edge(Verb::MarkFailed, WaitManual, Fail, C::None, true),
        edge(Verb::MarkSucceeded, WaitManual, Success, C::None, true),
    ]
};

/// The edge a verb takes from one status to another; `None` if there is none.
pub fn transition(verb: Verb, from: Status, to: Status) -> Option<&'static Transition> {
    TRANSITIONS.iter().find(|t| t.verb == verb && t.from == from && t.to == to)
}

/// What the database knows of a row at the moment of a write.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Row {
    /// Its status.
    pub status: Status,
    /// Its epoch.
    pub epoch: Epoch,
    /// The due time has come (claimable states).
    pub due: bool,
    /// The lease has not ended (RUNNING).
    pub lease_live: bool,
    /// The owner's process is known to be gone (RUNNING, A2).
    pub owner_superseded: bool,
    /// The run is over its expected time (RUNNING, M1).
    pub overrun: bool,
}

impl Row {
    /// Its owner is lost: the lease has ended, or the owner's process is known to be gone (A1, A2).
    pub const fn owner_lost(&self) -> bool {
        !self.lease_live || self.owner_superseded
    }
}

/// How often a task has failed and how often its owners were lost, since it was put in or a person let it run again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Counts {
    /// Failed attempts (M2).
    pub attempts: u32,
    /// Lost owners.
    pub interruptions: u32,
}

impl Counts {
    /// The counts after `verb` has been applied to `row`. A write that is not applied counts nothing.
    ///
    /// A loss is counted by whoever ends the lost run, a handing over to a person included: the person has to see it.
    pub const fn after(self, row: &Row, verb: Verb) -> Counts {
        match verb {
            Verb::Retry | Verb::GiveUp => Counts { attempts: one_more(self.attempts), ..self },
            // An overrun under a live lease is no loss.
            Verb::Requeue | Verb::Escalate if row.owner_lost() => {
                Counts { interruptions: one_more(self.interruptions), ..self }
            }
            // A person who lets it run again gives both budgets back.
            Verb::Rerun => Counts { attempts: 0, interruptions: 0 },
            _ => self,
        }
    }
}

const fn one_more(count: u32) -> u32 {
    if count < COUNT_MAX { count + 1 } else { count }
}

/// A conditional write as its writer presents it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Write {
    /// Which write.
    pub verb: Verb,
    /// The status it wants to reach.
    pub to: Status,
    /// The epoch the writer knows: of its claim, or as it read the row.
    pub epoch: Epoch,
}

/// Why a write changed nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Refusal {
    /// No edge of that verb leaves the row's status.
    WrongStatus,
    /// The row's epoch is not the writer's: somebody else has owned or decided since.
    StaleEpoch,
    /// Status and epoch fit, the further condition does not hold.
    ConditionFails,
}

/// What a conditional write does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Judgement {
    /// It applies: the row's new status and epoch.
    Applied {
        /// The status after.
        status: Status,
        /// The epoch after.
        epoch: Epoch,
    },
    /// It had been applied before (its reply was lost): nothing changes and the writer may take it as done.
    Already,
    /// A late success of a run that only the sweeper has ended, and that nobody has claimed since: it becomes the
    /// result. The epoch stays.
    Adopted,
    /// Nothing changes.
    Refused(Refusal),
}

/// Whether a completion under this epoch, which the row refuses, repeats the one that was adopted: its first reply was lost.
///
/// An adoption leaves the epoch one ahead of the run's, and nobody else can have presented that run's epoch. So it does if
/// it brings the very same result; another one is a second result of the same run, and evidence.
pub fn repeats_adopted(status: Status, epoch: Epoch, completion: Epoch, same_result: bool) -> bool {
    status == Status::Success && epoch.checked_sub(1) == Some(completion) && same_result
}

/// What `write` does to `row`. This is *the* rule of fencing: model and SQL both answer to it.
///
/// `guards` is [`Guards::ALL`] everywhere but in ablations.
pub fn judge(row: Row, write: Write, guards: Guards) -> Judgement {
    if write.verb == Verb::Complete {
        if row.status == Status::Success && row.epoch == write.epoch {
            return Judgement::Already;
        }
        // The sweeper's requeue has moved the epoch by exactly one. A person's decision, which has to pass through
        // WAIT_MANUAL, moves it a second time, so an older run can not undo it (M5).
        if row.status.is_claimable() && row.epoch.checked_sub(1) == Some(write.epoch) {
            return Judgement::Adopted;
        }
    }
    if write.verb == Verb::Claim && !guards.has(Guard::CasAtClaim) {
        // Read, then write by id alone: whatever happened in between is overwritten.
        return Judgement::Applied { status: Status::Running, epoch: row.epoch + 1 };
    }
    // Without these two guards a status is not looked at: the edge is then that of the status it would have to be.
    let final_unseen = row.status.is_final() && !guards.has(Guard::StatusAtWrite);
    let manual_unseen = row.status == Status::WaitManual && !guards.has(Guard::ManualIsClosed);
    let from = match write.verb.actor() {
        Actor::Owner | Actor::Sweeper if final_unseen => Status::Running,
        Actor::Claimer if manual_unseen => Status::Pending,
        _ => row.status,
    };
    let Some(edge) = transition(write.verb, from, write.to) else {
        return Judgement::Refused(Refusal::WrongStatus);
    };
    let fenced = match write.verb {
        Verb::Complete => guards.has(Guard::FenceComplete),
        Verb::Heartbeat => guards.has(Guard::FenceHeartbeat),
        Verb::Intent | Verb::Outcome => guards.has(Guard::FenceJournal),
        Verb::Retry | Verb::Release | Verb::GiveUp => guards.has(Guard::FenceFailure),
        Verb::Requeue | Verb::Escalate => guards.has(Guard::CasAtSweep),
        Verb::Rerun | Verb::MarkFailed | Verb::MarkSucceeded => guards.has(Guard::CasAtDecision),
        Verb::Claim => true,
    };
    if fenced && row.epoch != write.epoch {
        return Judgement::Refused(Refusal::StaleEpoch);
    }
    // A row that is not RUNNING has no lease that could have ended: what does not see that sees no lease either.
    let lost = row.owner_lost() || from != row.status;
    let holds = match edge.condition {
        Condition::None => true,
        Condition::Due => row.due && row.epoch < EPOCH_LIMIT,
        Condition::LeaseLive => row.lease_live || (write.verb == Verb::Heartbeat && !guards.has(Guard::EndedIsEnded)),
        Condition::OwnerLost => lost,
        Condition::OwnerLostOrOverrun => lost || row.overrun,
    };
    if !holds {
        return Judgement::Refused(Refusal::ConditionFails);
    }
    let bump = match write.verb {
        Verb::Rerun | Verb::MarkFailed | Verb::MarkSucceeded => guards.has(Guard::BumpOnDecision),
        Verb::Escalate => guards.has(Guard::BumpOnEscalate),
        _ => true,
    };
    let bump = bump && edge.bumps_epoch;
    Judgement::Applied { status: edge.to, epoch: row.epoch + Epoch::from(bump) }
}
