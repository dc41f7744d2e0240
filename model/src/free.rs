//! The free worlds as a transition system: every step that may happen, with no clock to say when.
//!
//! An exchange with the database is one step with three fates. That loses nothing: the sender does nothing else in the
//! slot until it knows or gives up; a row changes only by writes that carry its epoch, so a request that arrives late
//! does what it would have done at once, or is refused. A *call* is different: it can arrive late, after its sender has
//! died, and then it does harm. So calls are under way on their own.

use leaseproof_rules::Status;
use stateright::{Model, Property as Checked};

use crate::boots;
use crate::copies::Source;
use crate::executor::{self, Next, Turn};
use crate::outside;
use crate::packed::Packed;
use crate::person::{self, Act};
use crate::properties;
use crate::state::{Phase, State};
use crate::sweeper;
use crate::world::World;

/// What becomes of an exchange.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fate {
    /// The request arrives, the reply arrives.
    Fine,
    /// The request is lost.
    RequestLost,
    /// The request arrives, the reply is lost.
    ReplyLost,
}

impl Fate {
    /// Every fate.
    pub const ALL: [Fate; 3] = [Fate::Fine, Fate::RequestLost, Fate::ReplyLost];
}

/// A step. `run` is the executor's index, `task` the task's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Action {
    /// An idle executor reads a candidate.
    Look { run: u8, task: u8 },
    /// An executor's write to the database; which one follows from its phase.
    Exchange { run: u8, fate: Fate },
    /// An executor's handler comes to its call, or ends.
    Work { run: u8, turn: Turn },
    /// An executor sends its call.
    Call { run: u8 },
    /// An executor can not send its call: nobody takes the connection.
    NotSent { run: u8 },
    /// The third party executes, or refuses, a call. `lost`: its reply is lost.
    Deliver { task: u8, token: u8, step: u8, lost: bool },
    /// The third party does only the first parts of what a call asks for, and does not answer.
    DeliverPart { task: u8, token: u8, parts: u8 },
    /// A call is lost.
    CallLost { task: u8, token: u8, step: u8 },
    /// The third party executes a call that is delivered twice: it is still under way.
    DeliverCopy { task: u8, token: u8, step: u8 },
    /// An executor stops waiting for the third party.
    Deadline { run: u8 },
    /// A failed executor asks the third party.
    Query { run: u8, fate: Fate },
    /// An executor renews its lease and hears the answer. A renewal that is lost changes nothing here.
    Heartbeat { run: u8 },
    /// An executor stops a handler by its own clock.
    SelfFence { run: u8 },
    /// An executor dies and is there again, knowing nothing.
    Crash { run: u8 },
    /// An executor starts anew at this place, and registers (A2).
    Start { run: u8 },
    /// An executor that is to stop puts its task back unharmed, and is there again, knowing nothing.
    Release { run: u8, fate: Fate },
    /// All executors die at once, and are there again, knowing nothing.
    Deploy,
    /// A lease ends.
    Expire { task: u8 },
    /// A run goes over its expected time.
    Overrun { task: u8 },
    /// The database's clock is set back, so far that this task's lease has not ended yet, or the task is not due yet.
    ClockBack { task: u8 },
    /// A task is due, which it was not since the clock was set back.
    Due { task: u8 },
    /// A sweeper reads a task.
    Sweep { by: u8, task: u8 },
    /// A sweeper asks the third party.
    SweeperAsks { by: u8, task: u8, fate: Fate },
    /// A sweeper writes what follows from what it read. A lost request and a dead sweeper look alike.
    SweeperWrites { by: u8, task: u8, fate: Fate },
    /// A person opens a task.
    Open { by: u8, task: u8 },
    /// A person finds out whether the call of the task has happened.
    FindOut { by: u8 },
    /// A person decides, on what was read and found out.
    Decide { by: u8, act: Act },
    /// The network copies a write on its way to the database.
    Copy { of: Source },
    /// The copy arrives, and its reply is heard by nobody.
    CopyArrives,
    /// The database goes back to what it was before its last commit.
    FailOver,
    /// Faults come to an end.
    Calm,
}

/// The lease design in a free world, for stateright and for this crate's checker.
#[derive(Clone, Debug)]
pub struct LeaseModel {
    /// The world.
    pub world: World,
}

impl LeaseModel {
    /// The model of a world.
    pub fn new(world: World) -> LeaseModel {
        LeaseModel { world }
    }

    fn fates(&self, calm: bool) -> impl Iterator<Item = Fate> + use<> {
        let faults = self.world.faults;
        Fate::ALL.into_iter().filter(move |fate| match fate {
            Fate::Fine => true,
            Fate::RequestLost => faults.lost_request && !calm,
            Fate::ReplyLost => faults.lost_reply && !calm,
        })
    }

    /// Every step that may be taken.
    pub(crate) fn actions_of(&self, state: &State, out: &mut Vec<Action>) {
        // What comes after a broken property says nothing; and without a bound it may come for ever.
        if state.bad != 0 {
            return;
        }
        let from = out.len();
        for slot in 0..self.world.setup.shape.runs {
            self.executor_steps(state, slot, out);
        }
        if self.world.faults.deploy && !state.calm && state.runs.iter().any(|run| run.phase != Phase::Idle) {
            out.push(Action::Deploy);
        }
        for task in 0..self.world.setup.shape.tasks {
            self.task_steps(state, task, out);
            for by in 0..self.world.setup.shape.extras.sweepers() {
                self.sweeper_steps(state, by, task, out);
            }
        }
        self.person_steps(state, out);
        self.copy_steps(state, from, out);
        if self.world.fail_over.is_some() && !state.calm && state.extra.past.is_some() {
            out.push(Action::FailOver);
        }
        if self.world.faults.calm_some_day && !state.calm {
            out.push(Action::Calm);
        }
    }

    fn executor_steps(&self, state: &State, slot: usize, out: &mut Vec<Action>) {
        let setup = &self.world.setup;
        let run = slot as u8;
        let phase = state.runs[slot].phase;
        match executor::next(setup, state, slot) {
            Next::Wait if phase == Phase::Idle && !boots::looks_for_work(setup, state, slot) => {}
            Next::Wait if phase == Phase::Idle => {
                let candidates = (0..setup.shape.tasks).filter(|&task| executor::is_candidate(setup, state, task));
                out.extend(candidates.map(|task| Action::Look { run, task: task as u8 }));
            }
            Next::Wait if phase == Phase::Waiting => out.push(Action::Deadline { run }),
            Next::Wait => {}
            Next::Work => {
                let ends = self.world.ends;
                match phase {
                    Phase::Working | Phase::Doomed => out.push(Action::Work { run, turn: Turn::Effect }),
                    _ => out.push(Action::Work { run, turn: Turn::Ok }),
                }
                out.extend(ends.error.then_some(Action::Work { run, turn: Turn::Error }));
                out.extend(ends.bad_input.then_some(Action::Work { run, turn: Turn::BadInput }));
            }
            Next::Write(_) => out.extend(self.fates(state.calm).map(|fate| Action::Exchange { run, fate })),
            Next::Call => {
                out.push(Action::Call { run });
                out.extend((!state.calm && self.world.faults.not_sent).then_some(Action::NotSent { run }));
            }
            Next::Query => out.extend(self.fates(state.calm).map(|fate| Action::Query { run, fate })),
        }
        if phase.is_at_work() {
            out.push(Action::Heartbeat { run });
        }
        if self.world.faults.crash && !state.calm {
            if phase.is_at_work() {
                out.push(Action::SelfFence { run });
            }
            if boots::can_start(setup, state, slot) {
                out.push(Action::Start { run });
            }
            // Of the newest start nothing is left without a newer one.
            if phase != Phase::Idle && !boots::starts_anew(setup, state, slot) {
                out.push(Action::Crash { run });
            }
        }
        if state.extra.releases < self.world.releases && executor::release(state, slot).is_some() {
            out.extend(self.fates(state.calm).map(|fate| Action::Release { run, fate }));
        }
    }

    fn task_steps(&self, state: &State, index: usize, out: &mut Vec<Action>) {
        let setup = &self.world.setup;
        let task = index as u8;
        let row = &state.tasks[index];
        if row.status == Status::Running {
            if !row.expired {
                out.push(Action::Expire { task });
            }
            if !row.overrun && setup.policy.expected_run_ms.is_some() {
                out.push(Action::Overrun { task });
            }
        }
        if self.world.faults.clock_back {
            let shown = executor::is_candidate(setup, state, index) && !setup.is_entry(index);
            if !state.calm && (row.expired || row.overrun || shown) {
                out.push(Action::ClockBack { task });
            }
            if row.status.is_claimable() && !row.due && !setup.is_entry(index) {
                out.push(Action::Due { task });
            }
        }
        for (token, step) in setup.shape.calls(row.calls) {
            out.push(Action::Deliver { task, token, step, lost: false });
            if !state.calm && self.world.faults.lost_reply {
                out.push(Action::Deliver { task, token, step, lost: true });
            }
            if !state.calm && self.world.faults.lost_request {
                out.push(Action::CallLost { task, token, step });
            }
            if !state.calm && self.world.faults.calls_twice {
                out.push(Action::DeliverCopy { task, token, step });
            }
            if !state.calm && self.world.faults.partial {
                let parts = 1..outside::parts_of(setup, index, step).len() as u8;
                out.extend(parts.map(|parts| Action::DeliverPart { task, token, parts }));
            }
        }
    }

    fn sweeper_steps(&self, state: &State, by: u8, index: usize, out: &mut Vec<Action>) {
        let setup = &self.world.setup;
        let task = index as u8;
        let seen = state.memory(by, index);
        if seen.signal.is_some() {
            match sweeper::next(setup, state, index, seen) {
                // What it remembers has been overtaken, and of what there is now it would make nothing.
                sweeper::Next::Forget => out.push(Action::SweeperWrites { by, task, fate: Fate::Fine }),
                sweeper::Next::Query => {
                    out.extend(self.fates(state.calm).map(|fate| Action::SweeperAsks { by, task, fate }));
                }
                sweeper::Next::Write(_) => {
                    out.extend(self.fates(state.calm).map(|fate| Action::SweeperWrites { by, task, fate }));
                }
            }
        } else if (0..setup.shape.tasks).all(|task| state.memory(by, task).signal.is_none())
            && let Some(seen) = sweeper::read(state, index)
            && sweeper::next(setup, state, index, &seen) != sweeper::Next::Forget
        {
            out.push(Action::Sweep { by, task });
        }
    }

    fn person_steps(&self, state: &State, out: &mut Vec<Action>) {
        let Some(reruns) = self.world.reruns else { return };
        let setup = &self.world.setup;
        for by in 0..self.world.persons {
            let desk = state.desks[usize::from(by)];
            if !desk.open {
                let waiting = (0..setup.shape.tasks).filter(|&task| state.tasks[task].status == Status::WaitManual);
                out.extend(waiting.map(|task| Action::Open { by, task: task as u8 }));
                continue;
            }
            let index = usize::from(desk.task);
            let asks = setup.effects[index].is_some() && !desk.found_out;
            if asks && (self.world.hasty_person || person::may_rerun(setup, state, index)) {
                out.push(Action::FindOut { by });
            }
            if state.reruns < reruns && !asks {
                out.push(Action::Decide { by, act: Act::Rerun });
            }
            out.push(Action::Decide { by, act: Act::MarkFailed });
            out.push(Action::Decide { by, act: Act::MarkSucceeded });
        }
    }
}

impl Model for LeaseModel {
    type State = Packed;
    type Action = Action;

    fn init_states(&self) -> Vec<Packed> {
        vec![Packed::pack(&self.world.setup.start(), self.world.setup.shape)]
    }

    fn actions(&self, state: &Packed, out: &mut Vec<Action>) {
        self.actions_of(&state.unpack(), out);
    }

    fn next_state(&self, state: &Packed, action: Action) -> Option<Packed> {
        let mut state = state.unpack();
        self.step(&mut state, action);
        Some(Packed::pack(&state, self.world.setup.shape))
    }

    fn properties(&self) -> Vec<Checked<Self>> {
        properties::declared()
    }
}

impl AsRef<World> for LeaseModel {
    fn as_ref(&self) -> &World {
        &self.world
    }
}
