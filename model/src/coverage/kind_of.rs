//! Of which kind a step of each design is.

use leaseproof_rules::Verb;

use super::{Kind, Kinds};
use crate::designs::handler::{Phase as OlderPhase, Turn as OlderTurn};
use crate::designs::{CommitRunning, SingleTransaction, commit_running, single_transaction};
use crate::executor::Turn;
use crate::free::{Action, Fate, LeaseModel};
use crate::packed::Packed;
use crate::person::Act;
use crate::state::State;

/// What an exchange is if it goes through, else which message was lost.
fn by_fate(fate: Fate, fine: impl FnOnce() -> Kind) -> Kind {
    match fate {
        Fate::Fine => fine(),
        Fate::RequestLost => Kind::RequestLost,
        Fate::ReplyLost => Kind::ReplyLost,
    }
}

const fn of_verb(verb: Verb) -> Kind {
    match verb {
        Verb::Claim => Kind::Claim,
        Verb::Heartbeat => Kind::Heartbeat,
        Verb::Intent => Kind::Intent,
        Verb::Outcome => Kind::Outcome,
        Verb::Complete => Kind::Complete,
        Verb::Retry => Kind::Retry,
        Verb::Release => Kind::Release,
        Verb::GiveUp => Kind::GiveUp,
        Verb::Requeue => Kind::Requeue,
        Verb::Escalate => Kind::Escalate,
        Verb::Rerun => Kind::Rerun,
        Verb::MarkFailed => Kind::MarkFailed,
        Verb::MarkSucceeded => Kind::MarkSucceeded,
    }
}

impl Kinds for LeaseModel {
    fn kind(&self, state: &Packed, action: &Action) -> Kind {
        self.kind_of(&state.unpack(), action)
    }

    fn kinds(&self, state: &Packed, scratch: &mut Vec<Action>, mut each: impl FnMut(Kind)) {
        let state = state.unpack();
        self.actions_of(&state, scratch);
        for action in scratch.drain(..) {
            each(self.kind_of(&state, &action));
        }
    }
}

impl LeaseModel {
    /// The kinds of the steps that can be taken in this state.
    pub(crate) fn kinds_in(&self, state: &State) -> impl Iterator<Item = Kind> {
        let mut actions = Vec::new();
        self.actions_of(state, &mut actions);
        actions.into_iter().map(|action| self.kind_of(state, &action))
    }

    /// The kind of a step from this state.
    pub(crate) fn kind_of(&self, state: &State, action: &Action) -> Kind {
        let write = |none: Kind| self.request_of(state, action).map_or(none, |request| of_verb(request.verb));
        match *action {
            Action::Look { .. } => Kind::Look,
            Action::Exchange { fate, .. } => by_fate(fate, || write(Kind::Forget)),
            Action::Work { turn, .. } => match turn {
                Turn::Effect => Kind::ComeToCall,
                Turn::Ok => Kind::Succeed,
                Turn::Error => Kind::Fail,
                Turn::BadInput => Kind::BadInput,
            },
            Action::Call { .. } => Kind::Call,
            Action::NotSent { .. } => Kind::NotSent,
            Action::Deliver { task, token, lost, .. } => match (self.sender_of(state, task, token), lost) {
                (None, _) => Kind::ArrivesLate,
                (Some(_), true) => Kind::ArrivesUnheard,
                (Some(_), false) => Kind::Arrives,
            },
            Action::DeliverPart { .. } => Kind::ArrivesInPart,
            Action::CallLost { .. } => Kind::CallLost,
            Action::DeliverCopy { .. } => Kind::ArrivesTwice,
            Action::Deadline { .. } => Kind::Deadline,
            Action::Query { fate, .. } => by_fate(fate, || Kind::Ask),
            Action::Heartbeat { .. } => Kind::Heartbeat,
            Action::SelfFence { .. } => Kind::SelfFence,
            Action::Crash { .. } => Kind::Crash,
            Action::Start { .. } => Kind::Start,
            Action::Release { fate, .. } => by_fate(fate, || Kind::Release),
            Action::Deploy => Kind::Deploy,
            Action::Expire { .. } => Kind::Expire,
            Action::Overrun { .. } => Kind::Overrun,
            Action::ClockBack { .. } => Kind::ClockBack,
            Action::Due { .. } => Kind::Due,
            Action::Sweep { .. } => Kind::Sweep,
            Action::SweeperAsks { fate, .. } => by_fate(fate, || Kind::SweeperAsks),
            Action::SweeperWrites { fate, .. } => by_fate(fate, || write(Kind::Forget)),
            Action::Open { .. } => Kind::Open,
            Action::FindOut { .. } => Kind::FindOut,
            Action::Decide { act, .. } => match act {
                Act::Rerun => Kind::Rerun,
                Act::MarkFailed => Kind::MarkFailed,
                Act::MarkSucceeded => Kind::MarkSucceeded,
            },
            Action::Copy { .. } => Kind::Copy,
            Action::CopyArrives => Kind::CopyArrives,
            Action::FailOver => Kind::FailOver,
            Action::Calm => Kind::Calm,
        }
    }
}

/// What a handler of the older designs, or its call, does.
const fn of_turn(turn: OlderTurn) -> Kind {
    match turn {
        OlderTurn::Call => Kind::Call,
        OlderTurn::Succeed => Kind::Succeed,
        OlderTurn::Fail => Kind::Fail,
        OlderTurn::Reply => Kind::Arrives,
        OlderTurn::ReplyLost => Kind::ArrivesUnheard,
        OlderTurn::CallLost => Kind::CallLost,
        OlderTurn::Deadline => Kind::Deadline,
    }
}

fn of_report(phase: OlderPhase) -> Kind {
    if phase == OlderPhase::Succeeding { Kind::Complete } else { Kind::GiveUp }
}

impl Kinds for CommitRunning {
    fn kind(&self, state: &commit_running::State, action: &commit_running::Action) -> Kind {
        use commit_running::Action;
        match *action {
            Action::Look { .. } => Kind::Look,
            Action::Claim { fate, .. } => by_fate(fate, || Kind::Claim),
            Action::Work { turn, .. } => of_turn(turn),
            Action::Report { run, fate } => by_fate(fate, || of_report(state.runs[usize::from(run)])),
            Action::Crash { .. } => Kind::Crash,
            Action::Hang { .. } => Kind::Hang,
            Action::Reset => Kind::Reset,
            Action::StrayArrives => Kind::ArrivesLate,
            Action::StrayLost => Kind::CallLost,
            Action::Calm => Kind::Calm,
        }
    }
}

impl Kinds for SingleTransaction {
    fn kind(&self, state: &single_transaction::State, action: &single_transaction::Action) -> Kind {
        use single_transaction::Action;
        match *action {
            Action::Look { .. } => Kind::Look,
            Action::Claim { fate, .. } => by_fate(fate, || Kind::Claim),
            Action::Work { turn, .. } => of_turn(turn),
            Action::Commit { run, fate } => by_fate(fate, || of_report(state.runs[usize::from(run)].0)),
            Action::Shrug { .. } => Kind::Shrug,
            Action::Crash { .. } => Kind::Crash,
            Action::HostFault { .. } => Kind::Silence,
            Action::Hang { .. } => Kind::Hang,
            Action::Cut { .. } => Kind::Cut,
            Action::Keepalive { .. } => Kind::Keepalive,
            Action::IdleTimeout { .. } => Kind::IdleTimeout,
            Action::StrayArrives => Kind::ArrivesLate,
            Action::StrayLost => Kind::CallLost,
            Action::Calm => Kind::Calm,
        }
    }
}
