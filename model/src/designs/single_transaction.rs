//! The design *single-transaction* (S2): one transaction spans the whole run.
//!
//! The claim locks the row without waiting and sets RUNNING, uncommitted; the work runs; SUCCESS or FAIL is written and
//! committed. Others see PENDING all the while and find out by meeting the lock. A process that dies cleanly has its
//! connection reset, and the server rolls back at once. Whoever falls silent keeps the lock until the *server* ends the
//! session, by TCP keepalive (2 h by default) or by its idle timeout (8 h): two clocks of the server, neither of the task.

use leaseproof_rules::{Property, Status, Verb, transition};
use stateright::Model;

use super::handler::{self, MAX_EXECUTORS, Outside, Phase, Setup};
use super::safety_properties;
pub use super::session::{Action, Orphan, Session, Sessions, State, Whose};
use crate::free::Fate;
use crate::graph::Fair;
use crate::properties::bit;

/// A world of the design.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SingleTransaction {
    /// Its name in reports.
    pub name: String,
    /// Executors, handler, faults.
    pub setup: Setup,
    /// How the server ends sessions.
    pub sessions: Sessions,
    /// A run sends no statement for longer than the idle timeout, though nothing disturbs it.
    pub outlasts_timeout: bool,
    /// The claim meets the lock of another transaction. Off only to show what the lock is for.
    pub row_lock: bool,
    /// The claim writes only if the row is still PENDING. Off only to show what it is for.
    pub compare_and_set: bool,
    /// The client library reconnects by itself, and what was to end the transaction runs without one. Off in the
    /// design; on to show what the session protects.
    pub reconnects: bool,
}

impl SingleTransaction {
    /// The design as it is meant, with both clocks, in a world of this setup.
    pub fn new(name: &str, setup: Setup) -> SingleTransaction {
        SingleTransaction {
            name: name.to_owned(),
            setup,
            sessions: Sessions::BOTH,
            outlasts_timeout: false,
            row_lock: true,
            compare_and_set: true,
            reconnects: false,
        }
    }

    /// Whether a claim gets the row now.
    pub fn is_free(&self, state: &State) -> bool {
        let legal = transition(Verb::Claim, state.status, Status::Running).is_some();
        !(self.row_lock && state.is_locked()) && (legal || !self.compare_and_set)
    }

    fn claim(&self, state: &mut State, run: u8, fate: Fate) {
        let slot = usize::from(run);
        state.runs[slot] = (Phase::Idle, Session::None);
        if fate == Fate::RequestLost || !self.is_free(state) {
            return;
        }
        if state.is_locked() {
            state.bad |= bit(Property::OneCurrentOwner);
        }
        if state.status.is_final() {
            state.bad |= bit(Property::FinalIsFinal);
        }
        match fate {
            Fate::Fine => state.runs[slot] = (Phase::Working, Session::Open),
            // The connection is lost with the reply. The executor starts anew; the server does not know.
            _ => state.orphan = Some(Orphan::Gone),
        }
    }

    fn commit(&self, state: &mut State, run: u8, fate: Fate) {
        let slot = usize::from(run);
        let (phase, session) = state.runs[slot];
        let to = if phase == Phase::Succeeding { Status::Success } else { Status::Fail };
        let heard = if fate == Fate::Fine { Phase::Idle } else { Phase::Unsure };
        state.runs[slot] = (heard, Session::None);
        match session {
            _ if session.holds_lock() && fate == Fate::RequestLost => state.orphan = Some(Orphan::Gone),
            Session::Open => self.write_end(state, to),
            // The server knows no such session: refused. A library that reconnects writes all the same, unless the row
            // is locked.
            Session::Ended if self.reconnects && fate != Fate::RequestLost && !state.is_locked() => {
                state.bad |= bit(Property::StaleWriteChangesNothing);
                self.write_end(state, to);
            }
            _ => {}
        }
    }

    fn write_end(&self, state: &mut State, to: Status) {
        if state.status.is_final() && state.status != to {
            state.bad |= bit(Property::FinalIsFinal);
        }
        if to == Status::Success {
            state.bad |= handler::broken_by_success(&self.setup, &state.outside);
        }
        state.status = to;
    }

    fn rolled_back(&self, state: &mut State) {
        state.bad |= self.setup.interrupted(&mut state.lost);
    }

    fn end_session(&self, state: &mut State, whose: Whose) {
        match whose {
            Whose::Run(run) => state.runs[usize::from(run)].1 = Session::Ended,
            Whose::Orphan => state.orphan = None,
        }
        self.rolled_back(state);
    }

    /// The executor is gone; `left` is what its open session becomes, `None` if the server hears of it.
    fn lose(&self, state: &mut State, run: u8, left: Option<Orphan>) {
        let (phase, session) = &mut state.runs[usize::from(run)];
        handler::forget(phase, &mut state.outside);
        match std::mem::replace(session, Session::None) {
            Session::Open if left.is_none() => self.rolled_back(state),
            Session::Open => state.orphan = left,
            // Through a cut nothing is heard, and no kernel answers.
            Session::Cut => state.orphan = Some(Orphan::Gone),
            Session::None | Session::Ended => {}
        }
    }

    fn endings(&self, state: &State, out: &mut Vec<Action>) {
        let Sessions { keepalive, idle_timeout } = self.sessions;
        for run in 0..self.setup.executors {
            let whose = Whose::Run(run);
            let session = state.runs[usize::from(run)].1;
            if !session.holds_lock() {
                continue;
            }
            // While faults last a whole host may stand still, and its kernel with it.
            let unanswered = session == Session::Cut || (self.setup.faults.silence && !state.calm);
            if keepalive && unanswered {
                out.push(Action::Keepalive { whose });
            }
            // A pause may be longer than any timeout, but is a fault; a run that only works is shorter, if it does not
            // outlast the timeout.
            if idle_timeout && (session == Session::Cut || !state.calm || self.outlasts_timeout) {
                out.push(Action::IdleTimeout { whose });
            }
        }
        let whose = Whose::Orphan;
        if keepalive && state.orphan == Some(Orphan::Gone) {
            out.push(Action::Keepalive { whose });
        }
        if idle_timeout && state.orphan.is_some() {
            out.push(Action::IdleTimeout { whose });
        }
    }
}

impl Model for SingleTransaction {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            status: Status::Pending,
            runs: [(Phase::Idle, Session::None); MAX_EXECUTORS],
            orphan: None,
            outside: Outside::default(),
            lost: 0,
            calm: false,
            bad: 0,
        }]
    }

    fn actions(&self, state: &State, out: &mut Vec<Action>) {
        let faults = self.setup.faults;
        let troubled = !state.calm;
        let fates = super::fates(faults, state.calm);
        for run in 0..self.setup.executors {
            let (phase, session) = state.runs[usize::from(run)];
            match phase {
                Phase::Idle if state.status == Status::Pending => out.push(Action::Look { run }),
                Phase::Claiming => out.extend(fates.clone().map(|fate| Action::Claim { run, fate })),
                Phase::Succeeding | Phase::Failing if session == Session::Cut => {
                    out.push(Action::Commit { run, fate: Fate::RequestLost });
                }
                Phase::Succeeding | Phase::Failing => {
                    out.extend(fates.clone().map(|fate| Action::Commit { run, fate }));
                }
                Phase::Unsure => out.push(Action::Shrug { run }),
                _ => out.extend(handler::turns(&self.setup, phase, state.calm).map(|turn| Action::Work { run, turn })),
            }
            if troubled && faults.crash && phase != Phase::Idle {
                out.push(Action::Crash { run });
            }
            if troubled && faults.silence && phase != Phase::Idle {
                out.push(Action::HostFault { run });
            }
            if troubled && faults.silence && session == Session::Open {
                out.push(Action::Cut { run });
            }
            if troubled && faults.hang && phase.is_at_work() {
                out.push(Action::Hang { run });
            }
        }
        self.endings(state, out);
        if state.outside.stray > 0 {
            out.push(Action::StrayArrives);
            if troubled && faults.lost_request {
                out.push(Action::StrayLost);
            }
        }
        if troubled {
            out.push(Action::Calm);
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut after = *before;
        let state = &mut after;
        match action {
            Action::Look { run } => state.runs[usize::from(run)].0 = Phase::Claiming,
            Action::Claim { run, fate } => self.claim(state, run, fate),
            Action::Work { run, turn } => {
                state.bad |= handler::take(&mut state.runs[usize::from(run)].0, &mut state.outside, turn);
            }
            Action::Commit { run, fate } => self.commit(state, run, fate),
            Action::Shrug { run } => state.runs[usize::from(run)].0 = Phase::Idle,
            Action::Crash { run } => self.lose(state, run, None),
            Action::HostFault { run } => self.lose(state, run, Some(Orphan::Gone)),
            Action::Hang { run } => self.lose(state, run, Some(Orphan::Hung)),
            Action::Cut { run } => state.runs[usize::from(run)].1 = Session::Cut,
            Action::Keepalive { whose } | Action::IdleTimeout { whose } => self.end_session(state, whose),
            Action::StrayArrives => {
                state.outside.stray -= 1;
                state.bad |= state.outside.execute();
            }
            Action::StrayLost => state.outside.stray -= 1,
            Action::Calm => state.calm = true,
        }
        Some(after)
    }

    fn properties(&self) -> Vec<stateright::Property<Self>> {
        safety_properties!()
    }
}

impl Fair for SingleTransaction {
    /// As in the lease's worlds. The server's clocks end some day every session that is of no use, and nothing forces
    /// them to end one that is.
    fn fair_class(&self, state: &State, action: &Action) -> Option<u8> {
        const PER_RUN: u8 = 9;
        const WORLD: u8 = PER_RUN * MAX_EXECUTORS as u8;
        let is_cut = |run: u8| state.runs[usize::from(run)].1 == Session::Cut;
        match *action {
            Action::Look { run } => Some(run * PER_RUN),
            Action::Claim { run, fate: Fate::Fine } => Some(run * PER_RUN + 1),
            Action::Commit { run, fate } if fate == Fate::Fine || is_cut(run) => Some(run * PER_RUN + 2),
            Action::Work { run, turn } => turn.fair_kind().map(|kind| run * PER_RUN + 3 + kind),
            Action::Shrug { run } => Some(run * PER_RUN + 6),
            Action::Keepalive { whose: Whose::Run(run) } if is_cut(run) => Some(run * PER_RUN + 7),
            Action::IdleTimeout { whose: Whose::Run(run) } if is_cut(run) => Some(run * PER_RUN + 8),
            Action::Keepalive { whose: Whose::Orphan } => Some(WORLD),
            Action::IdleTimeout { whose: Whose::Orphan } => Some(WORLD + 1),
            Action::StrayArrives => Some(WORLD + 2),
            Action::Calm => Some(WORLD + 3),
            Action::Claim { .. }
            | Action::Commit { .. }
            | Action::Crash { .. }
            | Action::HostFault { .. }
            | Action::Hang { .. }
            | Action::Cut { .. }
            | Action::Keepalive { .. }
            | Action::IdleTimeout { .. }
            | Action::StrayLost => None,
        }
    }
}
