//! What each step of a story does: the executors' side, the database and the third party.

use leaseproof_rules::{Judgement, Status, Verb};
use leaseproof_scenarios::{Node, Op, Phase as Half, RunEnd};

use super::faults::Struck;
use super::live::{Life, Stage, Wire};
use super::play::{Exchange, Play, Step};
use super::script::{NEVER, Ticks};
use crate::database::{Request, apply};
use crate::executor::{self, Heard, Next, Turn};
use crate::properties;
use crate::state::{Desk, Phase};

impl Play<'_> {
    /// Takes a step.
    pub fn take(&mut self, step: Step) {
        match step {
            Step::Tick => self.tick(),
            Step::Strike(fault) => {
                self.live.passes[usize::from(fault)] = 1;
                self.strike(fault.into());
            }
            Step::Heal(fault) => self.heal(fault.into()),
            Step::Revive(node) => self.revive(node),
            Step::Expire(task) => {
                self.live.core.tasks[usize::from(task)].expired = true;
                self.note(Node::Database, Some(task.into()), None, || "lease ends".into());
            }
            Step::Overrun(task) => {
                self.live.core.tasks[usize::from(task)].overrun = true;
                self.note(Node::Database, Some(task.into()), None, || "expected run time is over".into());
            }
            Step::Due(task) => {
                self.live.core.tasks[usize::from(task)].due = true;
                self.live.tasks[usize::from(task)].due_at = 0;
            }
            Step::Poll(executor) => self.poll(executor.into()),
            Step::ClaimArrives(executor) => self.claim_arrives(executor.into()),
            Step::ClaimReply(executor) => self.claim_reply(executor.into()),
            Step::ClaimDeadline(executor) => self.claim_deadline(executor.into()),
            Step::Beat(executor) => self.beat(executor.into()),
            Step::BeatArrives(executor) => self.beat_arrives(executor.into()),
            Step::BeatReply(executor) => self.beat_reply(executor.into()),
            Step::BeatDeadline(executor) => self.beat_deadline(executor.into()),
            Step::Work(slot) => self.work(slot.into()),
            Step::Send(slot) => self.send(slot.into()),
            Step::Connect(slot) => self.connect(slot.into()),
            Step::Arrives(slot) => self.arrives(slot.into()),
            Step::Reply(slot) => self.reply(slot.into()),
            Step::Deadline(slot) => self.deadline(slot.into()),
            Step::SelfFence(slot) => {
                let run = self.live.core.runs[usize::from(slot)];
                let node = self.script.node_of(slot.into());
                self.note(node, Some(run.task.into()), Some(run.epoch), || "stops itself: lease not renewed".into());
                self.end_run(slot.into());
            }
            Step::CallArrives { task, token } => self.call_arrives(task.into(), token),
            Step::Orphan(index) => {
                let orphan = self.live.orphans.remove(index.into());
                if self.live.database == Life::Up {
                    self.commit(orphan.request);
                }
            }
            Step::NoConnection(exchange) => self.no_connection(exchange),
            Step::Sweep => self.sweep(),
            Step::SweeperSend => self.sweeper_send(),
            Step::SweeperArrives => self.sweeper_arrives(),
            Step::SweeperReply => self.sweeper_reply(),
            Step::SweeperDeadline => self.sweeper_deadline(),
            Step::Open(decision) => {
                let task = self.script.decisions[usize::from(decision)].task;
                let epoch = self.live.core.tasks[task].epoch;
                self.live.core.desks[0] = Desk { open: true, task: task as u8, epoch, ..Desk::EMPTY };
                self.note_at("person".into(), Some(task), Some(epoch), || "opens the task".into());
            }
            Step::Decide => self.decide(),
        }
    }

    /// A write comes to the database, and the clocks of its task follow.
    pub fn commit(&mut self, request: Request) -> Judgement {
        let judgement = apply(&self.script.setup, &mut self.live.core, request);
        self.follow(request, judgement);
        judgement
    }

    pub(super) fn follow(&mut self, request: Request, judgement: Judgement) {
        let index = request.task;
        let row = self.live.core.tasks[index];
        let now = self.live.now;
        let claimed = request.verb == Verb::Claim && matches!(judgement, Judgement::Applied { .. });
        let epoch = if claimed { row.epoch } else { request.epoch };
        self.note(Node::Database, Some(index), Some(epoch), || match judgement {
            Judgement::Applied { .. } if request.verb == Verb::Heartbeat => "renews the lease".into(),
            Judgement::Applied { .. } => format!("{} → {}", request.verb.name(), row.status),
            Judgement::Already => format!("{} again: known", request.verb.name()),
            Judgement::Adopted => format!("late {} adopted → {}", request.verb.name(), row.status),
            Judgement::Refused(_) => format!("{} refused", request.verb.name()),
        });
        if matches!(judgement, Judgement::Already | Judgement::Refused(_)) {
            return;
        }
        let clock = &mut self.live.tasks[index];
        match request.verb {
            Verb::Claim => {
                (clock.lease_end, clock.claimed_at) = (now + self.script.lease, now);
                clock.runs = (clock.runs + 1).min(63);
            }
            Verb::Heartbeat => clock.lease_end = now + self.script.lease,
            _ => {}
        }
        if row.status != Status::Running {
            (clock.lease_end, clock.claimed_at) = (0, 0);
        }
        let delay = Ticks::try_from(u64::from(request.delay_ms) / self.script.tick_ms).unwrap_or(NEVER);
        clock.due_at = if row.status == Status::RetryWait { now + delay.min(NEVER / 4) } else { 0 };
        if row.status != Status::WaitManual {
            clock.waiting_since = 0;
        } else if matches!(request.verb, Verb::Escalate | Verb::GiveUp) {
            clock.waiting_since = now;
            self.live.first_reason = self.live.first_reason.or(row.reason);
        }
        if !properties::all_resolved(&self.script.setup, &self.live.core) {
            self.live.resolved = 0;
        } else if self.live.resolved == 0 {
            self.live.resolved = now + 1;
        }
    }

    fn poll(&mut self, index: usize) {
        let shape = self.script.setup.shape;
        self.live.executors[index].next_poll = self.live.now + self.script.poll;
        let core = &mut self.live.core;
        let mut candidates =
            (0..shape.tasks).filter(|&task| executor::is_candidate(&self.script.setup, core, task)).collect::<Vec<_>>();
        let free = self.script.slots(index).filter(|&slot| core.runs[slot].phase == Phase::Idle);
        candidates.truncate(free.clone().count());
        for (slot, &task) in free.collect::<Vec<_>>().into_iter().zip(&candidates) {
            executor::look(core, slot, task);
        }
        let Some(&first) = candidates.first() else { return };
        let node = Node::Executor(index);
        let task = (candidates.len() == 1).then_some(first);
        self.note(node, task, None, || format!("claims {}", plural(candidates.len())));
        let struck = self.pass(node, Op::Claim, Half::Request);
        if !struck.dead {
            let stage = self.leave(node, Node::Database, struck);
            self.live.executors[index].claim = Wire { stage, sent: self.live.now };
            self.note_lost(node, "claim", "request", stage);
        }
    }

    fn no_connection(&mut self, exchange: Exchange) {
        let live = &mut self.live;
        let (node, wire) = match exchange {
            Exchange::Claim(index) => (Node::Executor(index.into()), &mut live.executors[usize::from(index)].claim),
            Exchange::Beat(index) => (Node::Executor(index.into()), &mut live.executors[usize::from(index)].beat),
            Exchange::Slot(slot) => (self.script.node_of(slot.into()), &mut live.slots[usize::from(slot)].wire),
            Exchange::Sweeper => (Node::Sweeper, &mut live.sweeper.wire),
        };
        wire.stage = Stage::Lost;
        self.note(node, None, None, || "no connection to the database".into());
    }

    /// What the sender of a request gets back from a server.
    pub(super) fn answer(&mut self, node: Node, server: Node, struck: Struck, heard: Heard, what: &str) -> Stage {
        let stage = if struck.lost || self.is_cut(server, node) { Stage::Lost } else { Stage::Replied(heard) };
        self.note_lost(node, what, "reply", stage);
        stage
    }

    pub(super) fn note_lost(&mut self, node: Node, what: &str, half: &str, stage: Stage) {
        match stage {
            Stage::Lost => self.note(node, None, None, || format!("{what}: {half} lost")),
            Stage::Held => self.note(node, None, None, || format!("{what}: held back")),
            Stage::Quiet | Stage::Sent | Stage::Connecting | Stage::Replied(_) => {}
        }
    }

    fn claim_arrives(&mut self, index: usize) {
        let node = Node::Executor(index);
        if self.live.database != Life::Up {
            self.live.executors[index].claim.stage = Stage::Lost;
            return self.note_lost(node, "claim", "request", Stage::Lost);
        }
        let mut won = false;
        for slot in self.script.slots(index) {
            let run = self.live.core.runs[slot];
            let Next::Write(request) = executor::next(&self.script.setup, &self.live.core, slot) else { continue };
            if run.phase != Phase::Claiming {
                continue;
            }
            if let Judgement::Applied { .. } = self.commit(request) {
                executor::begin(&self.script.setup, &mut self.live.core, slot);
                self.live.slots[slot].unborn = true;
                self.live.slots[slot].run = self.live.tasks[request.task].runs;
                won = true;
            }
        }
        let struck = if won { self.pass(node, Op::Claim, Half::Reply) } else { Struck::default() };
        if !struck.dead {
            let stage = self.answer(node, Node::Database, struck, Heard::Accepted, "claim");
            self.live.executors[index].claim.stage = stage;
        }
    }

    fn claim_reply(&mut self, index: usize) {
        let clock = &mut self.live.executors[index];
        let sent = clock.claim.sent;
        clock.claim = Wire::QUIET;
        if !self.holds_leases(index) {
            let clock = &mut self.live.executors[index];
            while clock.next_beat < self.live.now {
                clock.next_beat += self.script.heartbeat;
            }
        }
        for slot in self.script.slots(index) {
            let run = self.live.core.runs[slot];
            if run.phase == Phase::Claiming {
                self.end_run(slot);
            } else if self.live.slots[slot].unborn {
                let work = &self.script.tasks[usize::from(run.task)];
                let long = if run.phase == Phase::Finishing { work.work } else { work.call_after };
                let timer = &mut self.live.slots[slot];
                (timer.unborn, timer.beat_sent) = (false, sent);
                timer.work_due = self.live.now + long;
                self.never_ends(slot);
                self.note(Node::Executor(index), Some(run.task.into()), Some(run.epoch), || "begins".into());
            }
        }
    }

    /// A handler that hangs comes to its call, but not to its end.
    pub(super) fn never_ends(&mut self, slot: usize) {
        let run = self.live.core.runs[slot];
        let end = self.script.tasks[usize::from(run.task)].end(self.live.slots[slot].run);
        if run.phase == Phase::Finishing && end == RunEnd::Hang {
            self.live.slots[slot].work_due = NEVER;
        }
    }

    fn claim_deadline(&mut self, index: usize) {
        self.note(Node::Executor(index), None, None, || "claim: outcome unknown, forgotten".into());
        if self.live.executors[index].claim.stage == Stage::Sent {
            self.orphan_claims(index);
        }
        self.live.executors[index].claim = Wire::QUIET;
        for slot in self.script.slots(index) {
            if self.live.core.runs[slot].phase == Phase::Claiming || self.live.slots[slot].unborn {
                self.end_run(slot);
            }
        }
    }

    fn beat(&mut self, index: usize) {
        let node = Node::Executor(index);
        let now = self.live.now;
        let clock = &mut self.live.executors[index];
        while clock.next_beat <= now {
            clock.next_beat += self.script.heartbeat;
        }
        let mut slots = 0;
        for (bit, slot) in self.script.slots(index).enumerate() {
            if self.live.core.runs[slot].phase.is_executing() && !self.live.slots[slot].unborn {
                slots |= 1 << bit;
            }
        }
        (self.live.executors[index].beat_slots, self.live.executors[index].beat_refused) = (slots, 0);
        self.note(node, None, None, || "heartbeat".into());
        let struck = self.pass(node, Op::Heartbeat, Half::Request);
        if !struck.dead {
            let stage = self.leave(node, Node::Database, struck);
            self.live.executors[index].beat = Wire { stage, sent: now };
            self.note_lost(node, "heartbeat", "request", stage);
        }
    }

    /// The slots that the heartbeat under way is about.
    fn beaten(&self, index: usize) -> Vec<(u8, usize)> {
        let slots = self.script.slots(index).enumerate().map(|(bit, slot)| (1 << bit, slot));
        slots.filter(|(bit, _)| self.live.executors[index].beat_slots & bit != 0).collect()
    }

    fn beat_arrives(&mut self, index: usize) {
        let node = Node::Executor(index);
        if self.live.database != Life::Up {
            self.live.executors[index].beat.stage = Stage::Lost;
            return self.note_lost(node, "heartbeat", "request", Stage::Lost);
        }
        for (bit, slot) in self.beaten(index) {
            if let Judgement::Refused(_) = self.commit(executor::heartbeat(self.live.core.runs[slot])) {
                self.live.executors[index].beat_refused |= bit;
            }
        }
        let struck = self.pass(node, Op::Heartbeat, Half::Reply);
        if !struck.dead {
            let stage = self.answer(node, Node::Database, struck, Heard::Accepted, "heartbeat");
            self.live.executors[index].beat.stage = stage;
        }
    }

    fn beat_reply(&mut self, index: usize) {
        let clock = self.live.executors[index];
        for (bit, slot) in self.beaten(index) {
            let run = self.live.core.runs[slot];
            if clock.beat_refused & bit == 0 {
                self.live.slots[slot].beat_sent = clock.beat.sent;
            } else if run.phase.is_at_work() {
                self.note(Node::Executor(index), Some(run.task.into()), Some(run.epoch), || {
                    "lease is lost: run cancelled".into()
                });
                self.end_run(slot);
            }
        }
        self.quiet_beat(index);
    }

    fn beat_deadline(&mut self, index: usize) {
        if self.live.executors[index].beat.stage == Stage::Sent {
            for (_, slot) in self.beaten(index) {
                self.orphan(executor::heartbeat(self.live.core.runs[slot]), false);
            }
        }
        self.quiet_beat(index);
    }

    fn quiet_beat(&mut self, index: usize) {
        let clock = &mut self.live.executors[index];
        (clock.beat, clock.beat_slots, clock.beat_refused) = (Wire::QUIET, 0, 0);
    }

    fn work(&mut self, slot: usize) {
        let run = self.live.core.runs[slot];
        let end = self.script.tasks[usize::from(run.task)].end(self.live.slots[slot].run);
        let turn = match (run.phase, end) {
            (Phase::Working | Phase::Doomed, _) => Turn::Effect,
            (_, RunEnd::Ok | RunEnd::Hang) => Turn::Ok,
            (_, RunEnd::Error) => Turn::Error,
            (_, RunEnd::BadInput) => Turn::BadInput,
        };
        self.live.slots[slot].work_due = 0;
        executor::turn(&self.script.setup, &mut self.live.core, slot, turn);
        let node = self.script.node_of(slot);
        self.note(node, Some(run.task.into()), Some(run.epoch), || match turn {
            Turn::Effect => "comes to its call".into(),
            Turn::Ok => "work done".into(),
            Turn::Error => "work failed".into(),
            Turn::BadInput => "input is bad".into(),
        });
    }
}

fn plural(count: usize) -> String {
    if count == 1 { "a task".to_owned() } else { format!("{count} tasks") }
}
