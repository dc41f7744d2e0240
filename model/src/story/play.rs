//! Playing a story: the steps that are possible at one moment, and the passing of time.
//!
//! Explicit time: `Tick` moves the clock to the next moment at which something falls due, and is possible only when
//! nothing is due now. What falls due in the same tick happens in every order. Messages take no time.

use leaseproof_rules::{Status, Verb};
use leaseproof_scenarios::{Node, Op};

use super::live::{Life, Live, Stage, Wire};
use super::script::{NEVER, Script, Ticks};
use crate::executor::{self, Next};
use crate::properties;
use crate::state::{MAX_EPOCH, Phase, Seen};
use crate::sweeper;
use crate::trace::Event;

/// A step of a story. Numbers are indices: of an executor, slot, task, fault, orphan, decision.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Step {
    Tick,
    Strike(u8),
    Heal(u8),
    Revive(Node),
    Expire(u8),
    Overrun(u8),
    Due(u8),
    Poll(u8),
    ClaimArrives(u8),
    ClaimReply(u8),
    ClaimDeadline(u8),
    Beat(u8),
    BeatArrives(u8),
    BeatReply(u8),
    BeatDeadline(u8),
    Work(u8),
    Send(u8),
    Connect(u8),
    Arrives(u8),
    Reply(u8),
    Deadline(u8),
    SelfFence(u8),
    CallArrives {
        task: u8,
        token: u8,
    },
    Orphan(u8),
    /// A statement under way turns out to have no connection: nothing of it left.
    NoConnection(Exchange),
    Sweep,
    SweeperSend,
    SweeperArrives,
    SweeperReply,
    SweeperDeadline,
    Open(u8),
    Decide,
}

/// An exchange with the database.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Exchange {
    Claim(u8),
    Beat(u8),
    Slot(u8),
    Sweeper,
}

/// A moment of a story being looked at or moved on.
pub(crate) struct Play<'a> {
    pub script: &'a Script,
    pub live: Live,
    /// Where events are noted, if anybody wants them.
    pub log: Option<Vec<Event>>,
}

/// The protocol point of a write.
pub(crate) fn op_of(verb: Verb) -> Option<Op> {
    Op::ALL.into_iter().find(|op| op.name() == verb.name())
}

/// The earliest of the moments looked at that is still to come, and whether any has come.
struct Alarm {
    now: Ticks,
    next: Ticks,
}

impl Alarm {
    /// True if the moment has come.
    fn at(&mut self, moment: Ticks) -> bool {
        if moment > self.now {
            self.next = self.next.min(moment);
        }
        moment <= self.now
    }

    /// True if the moment is now.
    fn just(&mut self, moment: Ticks) -> bool {
        self.at(moment) && moment == self.now
    }
}

impl Play<'_> {
    /// Notes an event.
    pub fn note(&mut self, node: Node, task: Option<usize>, epoch: Option<u8>, what: impl FnOnce() -> String) {
        let name = self.script.node_name(node).to_owned();
        self.note_at(name, task, epoch, what);
    }

    /// Notes an event in a lane by name.
    pub fn note_at(&mut self, node: String, task: Option<usize>, epoch: Option<u8>, what: impl FnOnce() -> String) {
        let time_ms = u64::from(self.live.now) * self.script.tick_ms;
        if let Some(log) = &mut self.log {
            let task = task.map(|task| self.script.task_names[task].clone());
            log.push(Event { time_ms, node, what: what(), task, epoch: epoch.map(u64::from) });
        }
    }

    pub fn life(&mut self, node: Node) -> &mut Life {
        match node {
            Node::Executor(index) => &mut self.live.executors[index].life,
            Node::Sweeper => &mut self.live.sweeper.life,
            Node::Database => &mut self.live.database,
            Node::ThirdParty => &mut self.live.third_party,
        }
    }

    fn lives(&self) -> impl Iterator<Item = (Node, Life)> + '_ {
        let live = &self.live;
        let executors =
            (0..self.script.executor_names.len()).map(|index| (Node::Executor(index), live.executors[index].life));
        executors.chain([
            (Node::Sweeper, live.sweeper.life),
            (Node::Database, live.database),
            (Node::ThirdParty, live.third_party),
        ])
    }

    /// The story is over: a safety property broke, or nothing can happen any more that matters.
    pub fn is_over(&self) -> bool {
        let (live, setup) = (&self.live, &self.script.setup);
        let quiet = |wire: Wire| wire.stage == Stage::Quiet;
        live.core.bad != 0
            || (properties::all_resolved(setup, &live.core)
                && !(0..setup.shape.tasks).any(|task| executor::is_candidate(setup, &live.core, task))
                && live.core.runs[..setup.shape.runs].iter().all(|run| run.phase == Phase::Idle)
                && live.core.tasks[..setup.shape.tasks].iter().all(|task| task.calls == 0)
                && live.core.seen.iter().all(|seen| *seen == Seen::NOTHING)
                && live.executors.iter().all(|executor| quiet(executor.claim) && quiet(executor.beat))
                && quiet(live.sweeper.wire)
                && live.orphans.is_empty()
                && !live.core.desks[0].open
                && self.waiting_decisions().next().is_none())
    }

    /// Decisions about tasks that wait for them, with the moment they fall due; the first of each task only.
    fn waiting_decisions(&self) -> impl Iterator<Item = (usize, Ticks)> + '_ {
        let live = &self.live;
        let open = |index: &usize| live.taken & (1 << index) == 0;
        (0..self.script.decisions.len()).filter(open).filter_map(move |index| {
            let decision = self.script.decisions[index];
            let earlier = (0..index).filter(open).any(|other| self.script.decisions[other].task == decision.task);
            let waits = live.core.tasks[decision.task].status == Status::WaitManual;
            let due = live.tasks[decision.task].waiting_since + decision.after;
            (waits && !earlier).then_some((index, due))
        })
    }

    /// A task has been claimed and taken back so often that the state has no room for a further epoch: the model can not
    /// go on from here.
    pub fn is_out_of_epochs(&self) -> bool {
        // A token is one more than an epoch.
        self.live.core.tasks.iter().any(|task| task.epoch >= MAX_EPOCH - 2)
    }

    /// Every step that can be taken now: those that are due, else the passing of time, else none.
    pub fn steps(&self, out: &mut Vec<Step>) {
        if self.is_over() || self.is_out_of_epochs() {
            return;
        }
        let mut alarm = Alarm { now: self.live.now, next: NEVER };
        let from = out.len();
        self.fault_steps(&mut alarm, out);
        self.task_steps(&mut alarm, out);
        for executor in 0..self.script.executor_names.len() {
            if self.live.executors[executor].life == Life::Up {
                self.executor_steps(executor, &mut alarm, out);
            }
        }
        self.server_steps(out);
        if self.live.sweeper.life == Life::Up {
            self.sweeper_steps(&mut alarm, out);
        }
        self.person_steps(&mut alarm, out);
        if out.len() == from && alarm.next <= self.script.horizon {
            out.push(Step::Tick);
        }
    }

    /// Moves the clock to the next moment at which something falls due.
    pub fn tick(&mut self) {
        let mut alarm = Alarm { now: self.live.now, next: NEVER };
        let mut due = Vec::new();
        self.fault_steps(&mut alarm, &mut due);
        self.task_steps(&mut alarm, &mut due);
        for executor in 0..self.script.executor_names.len() {
            if self.live.executors[executor].life == Life::Up {
                self.executor_steps(executor, &mut alarm, &mut due);
            }
        }
        if self.live.sweeper.life == Life::Up {
            self.sweeper_steps(&mut alarm, &mut due);
        }
        self.person_steps(&mut alarm, &mut due);
        self.live.now = alarm.next;
    }

    fn fault_steps(&self, alarm: &mut Alarm, out: &mut Vec<Step>) {
        for (index, fault) in self.script.faults.iter().enumerate() {
            let fault_index = index as u8;
            if let Some(at) = fault.at
                && self.live.passes[index] == 0
                && alarm.at(at)
            {
                out.push(Step::Strike(fault_index));
            }
            let until = self.live.cut_until[index];
            if until > 0 && until != NEVER && alarm.at(until) {
                out.push(Step::Heal(fault_index));
            }
        }
        for (node, life) in self.lives() {
            if let Life::Down(until) | Life::Paused(until) = life
                && until != NEVER
                && alarm.at(until)
            {
                out.push(Step::Revive(node));
            }
        }
    }

    fn task_steps(&self, alarm: &mut Alarm, out: &mut Vec<Step>) {
        for index in 0..self.script.setup.shape.tasks {
            let (row, clock, task) = (&self.live.core.tasks[index], &self.live.tasks[index], index as u8);
            if row.status == Status::Running {
                if !row.expired && alarm.at(clock.lease_end) {
                    out.push(Step::Expire(task));
                }
                if let Some(expected) = self.script.expected_run
                    && !row.overrun
                    && alarm.at(clock.claimed_at + expected)
                {
                    out.push(Step::Overrun(task));
                }
            }
            if row.status == Status::RetryWait && !row.due && alarm.at(clock.due_at) {
                out.push(Step::Due(task));
            }
        }
    }

    fn executor_steps(&self, index: usize, alarm: &mut Alarm, out: &mut Vec<Step>) {
        let (live, script) = (&self.live, self.script);
        let (clock, executor) = (&live.executors[index], index as u8);
        let reads = |stage| matches!(stage, Stage::Replied(_));
        let runs = &live.core.runs;
        if clock.claim.stage == Stage::Quiet {
            let free = script.slots(index).any(|slot| runs[slot].phase == Phase::Idle);
            if free && alarm.at(clock.next_poll) {
                out.push(Step::Poll(executor));
            }
        } else {
            if reads(clock.claim.stage) {
                out.push(Step::ClaimReply(executor));
            }
            if alarm.at(clock.claim.sent + script.deadline) {
                out.push(Step::ClaimDeadline(executor));
            }
        }
        if clock.beat.stage == Stage::Quiet {
            if self.holds_leases(index) && alarm.at(clock.next_beat) {
                out.push(Step::Beat(executor));
            }
        } else {
            if reads(clock.beat.stage) {
                out.push(Step::BeatReply(executor));
            }
            if alarm.at(clock.beat.sent + script.deadline) {
                out.push(Step::BeatDeadline(executor));
            }
        }
        for at in script.slots(index) {
            let (timer, slot) = (&live.slots[at], at as u8);
            if !runs[at].phase.is_executing() || timer.unborn {
                continue;
            }
            if timer.wire.stage == Stage::Quiet {
                match self.next_of(at) {
                    Next::Work if timer.work_due != NEVER && alarm.at(timer.work_due) => out.push(Step::Work(slot)),
                    Next::Work | Next::Wait => {}
                    Next::Write(_) | Next::Call | Next::Query => out.push(Step::Send(slot)),
                }
            } else {
                if reads(timer.wire.stage) {
                    out.push(Step::Reply(slot));
                }
                if alarm.at(timer.wire.sent + script.deadline) {
                    out.push(Step::Deadline(slot));
                }
                if timer.wire.stage == Stage::Connecting {
                    // Each of them is a time to wake up at: all are told to the alarm.
                    let due = script.retries.iter().filter(|after| alarm.just(timer.wire.sent + **after)).count() > 0;
                    if due && self.may_connect(index, timer.asks) {
                        out.push(Step::Connect(slot));
                    }
                }
            }
            if runs[at].phase.is_at_work() && alarm.at(timer.beat_sent + script.act_for) {
                out.push(Step::SelfFence(slot));
            }
        }
    }

    /// What the run in a slot does next. It does not ask a silent third party for ever.
    pub fn next_of(&self, slot: usize) -> Next {
        let (setup, core) = (&self.script.setup, &self.live.core);
        let since = self.live.slots[slot].asking_since;
        let asked_ms = u64::from(self.live.now.saturating_sub(since)) * self.script.tick_ms;
        let silent = (since > 0).then(|| executor::next_after_silence(setup, core, slot, asked_ms)).flatten();
        silent.unwrap_or_else(|| executor::next(setup, core, slot))
    }

    /// What the sweeper does about a task as it has read it.
    pub fn sweeper_next(&self, task: usize, seen: &Seen) -> sweeper::Next {
        let lost = self.live.now.saturating_sub(self.live.tasks[task].lease_end);
        let asked_ms = u64::from(lost) * self.script.tick_ms;
        sweeper::next_after(&self.script.setup, &self.live.core, task, seen, asked_ms)
    }

    /// Whether it comes out now if an executor asks for a connection to the third party: no segment of it is lost. Whoever
    /// is refused and wants to ask goes on asking.
    pub fn may_connect(&self, executor: usize, asks: bool) -> bool {
        let node = Node::Executor(executor);
        let cut = self.is_cut(node, Node::ThirdParty) || self.is_cut(Node::ThirdParty, node);
        let refused = asks && matches!(self.live.third_party, Life::Down(_));
        !cut && !refused
    }

    /// Whether an executor has leases to renew.
    pub fn holds_leases(&self, executor: usize) -> bool {
        self.script
            .slots(executor)
            .any(|slot| self.live.core.runs[slot].phase.is_executing() && !self.live.slots[slot].unborn)
    }

    fn sweeper_steps(&self, alarm: &mut Alarm, out: &mut Vec<Step>) {
        let (live, clock) = (&self.live, &self.live.sweeper);
        if clock.wire.stage != Stage::Quiet {
            if matches!(clock.wire.stage, Stage::Replied(_)) {
                out.push(Step::SweeperReply);
            }
            if alarm.at(clock.wire.sent + self.script.deadline) {
                out.push(Step::SweeperDeadline);
            }
        } else if live.core.seen.iter().any(|seen| *seen != Seen::NOTHING) {
            out.push(Step::SweeperSend);
        } else if alarm.at(clock.next_sweep) {
            out.push(Step::Sweep);
        }
    }

    fn person_steps(&self, alarm: &mut Alarm, out: &mut Vec<Step>) {
        if self.live.database != Life::Up {
            return;
        }
        if self.live.core.desks[0].open {
            out.push(Step::Decide);
            return;
        }
        for (index, due) in self.waiting_decisions() {
            if alarm.at(due) {
                out.push(Step::Open(index as u8));
            }
        }
    }

    /// The decision that is taken next about a task.
    pub fn decision_about(&self, task: usize) -> Option<usize> {
        (0..self.script.decisions.len())
            .find(|index| self.live.taken & (1 << index) == 0 && self.script.decisions[*index].task == task)
    }

    /// Whether a sweep would find this task worth acting on.
    pub fn is_sweepable(&self, task: usize) -> bool {
        sweeper::read(&self.live.core, task).is_some_and(|seen| self.sweeper_next(task, &seen) != sweeper::Next::Forget)
    }
}
