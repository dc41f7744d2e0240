//! The design *commit-running* (S1): RUNNING is committed by compare-and-set, the work runs, then SUCCESS or FAIL.
//!
//! The row has neither owner nor lease, and nothing takes a RUNNING row back: whoever dies, hangs, or never hears that
//! its claim went through leaves it RUNNING for ever (P1, P3). An optional *reset* shows the other horn of P1: something that
//! takes RUNNING for dead after a while runs into executors that are only slow.

use leaseproof_rules::{Property, Status, Verb, transition};
use stateright::Model;

use super::handler::{self, MAX_EXECUTORS, Outside, Phase, Setup, Turn};
use super::safety_properties;
use crate::free::Fate;
use crate::graph::Fair;
use crate::properties::bit;

/// A world of the design.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommitRunning {
    /// Its name in reports.
    pub name: String,
    /// Executors, handler, faults.
    pub setup: Setup,
    /// The claim writes only if the row is still PENDING (P2). Off only to show what it is for.
    pub compare_and_set: bool,
    /// Something outside the design resets a RUNNING row to PENDING after a while. It can not tell a dead executor from
    /// a slow one; the time is longer than any run that nothing disturbs.
    pub reset: bool,
}

/// The row, the executors, and the third party.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    /// What the database, and so everybody, sees.
    pub status: Status,
    /// By executor; those beyond the world's stay idle.
    pub runs: [Phase; MAX_EXECUTORS],
    /// The third party.
    pub outside: Outside,
    /// Ghost: the executor that made the claim which the row stands for, if it lives and knows. The row has no such
    /// column.
    pub owner: Option<u8>,
    /// Ghost: how often a RUNNING row was reset.
    pub lost: u8,
    /// Ghost: no fault happens from now on.
    pub calm: bool,
    /// Ghost: the properties violated so far, as in the lease's state.
    pub bad: u16,
}

/// A step. `run` is the executor's index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Action {
    /// An idle executor reads the row as PENDING.
    Look { run: u8 },
    /// It sets RUNNING.
    Claim { run: u8, fate: Fate },
    /// Its handler or its call goes on.
    Work { run: u8, turn: Turn },
    /// It writes SUCCESS or FAIL.
    Report { run: u8, fate: Fate },
    /// Its process or host dies.
    Crash { run: u8 },
    /// Its handler hangs for ever; another slot of the process takes its place.
    Hang { run: u8 },
    /// RUNNING is reset to PENDING.
    Reset,
    /// A call without sender is done.
    StrayArrives,
    /// A call without sender is lost.
    StrayLost,
    /// Faults come to an end.
    Calm,
}

impl CommitRunning {
    /// The design as it is meant, in a world of this setup.
    pub fn new(name: &str, setup: Setup) -> CommitRunning {
        CommitRunning { name: name.to_owned(), setup, compare_and_set: true, reset: false }
    }

    fn claim(&self, state: &mut State, run: u8) {
        let legal = transition(Verb::Claim, state.status, Status::Running).is_some();
        if self.compare_and_set && !legal {
            return;
        }
        if state.status == Status::Running {
            state.bad |= bit(Property::OneCurrentOwner);
        }
        if state.status.is_final() {
            state.bad |= bit(Property::FinalIsFinal);
        }
        state.status = Status::Running;
        state.owner = Some(run);
    }

    fn report(&self, state: &mut State, run: u8) {
        let (verb, to) = match state.runs[usize::from(run)] {
            Phase::Succeeding => (Verb::Complete, Status::Success),
            _ => (Verb::GiveUp, Status::Fail),
        };
        // `WHERE status = 'RUNNING'`: there is no epoch to ask for.
        if transition(verb, state.status, to).is_none() {
            return;
        }
        if state.owner != Some(run) {
            state.bad |= bit(Property::StaleWriteChangesNothing);
        }
        if to == Status::Success {
            state.bad |= handler::broken_by_success(&self.setup, &state.outside);
        }
        state.status = to;
        state.owner = None;
    }

    fn lose(state: &mut State, run: u8) {
        handler::forget(&mut state.runs[usize::from(run)], &mut state.outside);
        state.owner = state.owner.filter(|owner| *owner != run);
    }
}

impl Model for CommitRunning {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            status: Status::Pending,
            runs: [Phase::Idle; MAX_EXECUTORS],
            outside: Outside::default(),
            owner: None,
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
            let phase = state.runs[usize::from(run)];
            match phase {
                Phase::Idle if state.status == Status::Pending => out.push(Action::Look { run }),
                Phase::Claiming => out.extend(fates.clone().map(|fate| Action::Claim { run, fate })),
                Phase::Succeeding | Phase::Failing => {
                    out.extend(fates.clone().map(|fate| Action::Report { run, fate }));
                }
                _ => out.extend(handler::turns(&self.setup, phase, state.calm).map(|turn| Action::Work { run, turn })),
            }
            if troubled && faults.crash && phase != Phase::Idle {
                out.push(Action::Crash { run });
            }
            if troubled && faults.hang && phase.is_at_work() {
                out.push(Action::Hang { run });
            }
        }
        // While faults last a pause can make any run look dead; afterwards the time is long enough for all that live.
        if self.reset && state.status == Status::Running && (troubled || state.owner.is_none()) {
            out.push(Action::Reset);
        }
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
            Action::Look { run } => state.runs[usize::from(run)] = Phase::Claiming,
            Action::Claim { run, fate } => {
                if fate != Fate::RequestLost {
                    self.claim(state, run);
                }
                if fate == Fate::Fine && state.owner == Some(run) {
                    state.runs[usize::from(run)] = Phase::Working;
                } else {
                    // Lost, or 0 rows. Whoever hears nothing can not find out either: RUNNING names nobody.
                    Self::lose(state, run);
                }
            }
            Action::Work { run, turn } => {
                state.bad |= handler::take(&mut state.runs[usize::from(run)], &mut state.outside, turn);
            }
            Action::Report { run, fate } => {
                if fate != Fate::RequestLost {
                    self.report(state, run);
                }
                // Unanswered, it is sent again: a second time it changes 0 rows.
                if fate == Fate::Fine {
                    Self::lose(state, run);
                }
            }
            Action::Crash { run } | Action::Hang { run } => Self::lose(state, run),
            Action::Reset => {
                state.status = Status::Pending;
                state.owner = None;
                state.bad |= self.setup.interrupted(&mut state.lost);
            }
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

impl Fair for CommitRunning {
    /// As in the lease's worlds: who can act for ever acts some day, what is not lost arrives, the reset comes. Nothing
    /// forces a fault.
    fn fair_class(&self, _: &State, action: &Action) -> Option<u8> {
        const PER_RUN: u8 = 8;
        const WORLD: u8 = PER_RUN * MAX_EXECUTORS as u8;
        match *action {
            Action::Look { run } => Some(run * PER_RUN),
            Action::Claim { run, fate: Fate::Fine } => Some(run * PER_RUN + 1),
            Action::Report { run, fate: Fate::Fine } => Some(run * PER_RUN + 2),
            Action::Work { run, turn } => turn.fair_kind().map(|kind| run * PER_RUN + 3 + kind),
            Action::StrayArrives => Some(WORLD),
            Action::Reset => Some(WORLD + 1),
            Action::Calm => Some(WORLD + 2),
            Action::Claim { .. }
            | Action::Report { .. }
            | Action::Crash { .. }
            | Action::Hang { .. }
            | Action::StrayLost => None,
        }
    }
}
