//! Faults of a story: at points and by time, crashes, pauses and cuts.

use leaseproof_scenarios::{Act, Fault, Node, Op, Phase as Half, Point, Trigger, Way};

use super::live::{Life, MAX_ORPHANS, Orphan, SlotClock, Stage, Wire};
use super::play::Play;
use super::script::{NEVER, Ticks};
use crate::database::Request;
use crate::executor;
use crate::state::{Phase, Seen};

/// What a node's passing of a point leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Struck {
    /// The message is lost.
    pub lost: bool,
    /// The node is dead.
    pub dead: bool,
    /// The node stands still.
    pub still: bool,
}

fn later(now: Ticks, long: Ticks) -> Ticks {
    if long == NEVER { NEVER } else { now + long }
}

/// Whether a fault is a cut that loses messages from one node to another.
fn is_between(fault: Fault, from: Node, to: Node) -> bool {
    let Fault { on, act: Act::Cut { peer, way, .. }, .. } = fault else { return false };
    let out = (on, peer) == (from, to) && matches!(way, Way::Both | Way::To);
    let back = (on, peer) == (to, from) && matches!(way, Way::Both | Way::From);
    out || back
}

impl Play<'_> {
    /// A node passes a protocol point: faults that wait for it strike.
    pub fn pass(&mut self, node: Node, op: Op, phase: Half) -> Struck {
        let mut struck = Struck::default();
        for index in 0..self.script.faults.len() {
            let fault = self.script.faults[index].fault;
            let Trigger::At { point, nth } = fault.trigger else { continue };
            if fault.on != node || point != (Point { op, phase }) {
                continue;
            }
            let passes = self.live.passes[index].saturating_add(1);
            self.live.passes[index] = passes;
            let passes = u32::from(passes);
            let strikes = match fault.act {
                Act::Lose { times } => (nth..nth.saturating_add(times)).contains(&passes),
                _ => passes == nth,
            };
            if strikes {
                match fault.act {
                    Act::Lose { .. } => struck.lost = true,
                    Act::Crash { .. } => struck.dead = true,
                    Act::Pause { .. } => struck.still = true,
                    Act::Cut { .. } => {}
                }
                self.strike(index);
            }
        }
        struck
    }

    /// A fault strikes now, unless it finds its process dead.
    pub fn strike(&mut self, index: usize) {
        let script = self.script.faults[index];
        let node = script.fault.on;
        let until = later(self.live.now, script.long);
        match (script.fault.act, *self.life(node)) {
            (Act::Crash { .. } | Act::Pause { .. }, Life::Down(_)) => return,
            (Act::Lose { .. }, _) => {}
            (Act::Crash { .. }, _) => {
                self.note(node, None, None, || "CRASH".into());
                self.crash(node);
                *self.life(node) = Life::Down(until);
            }
            (Act::Pause { .. }, Life::Paused(before)) => *self.life(node) = Life::Paused(before.max(until)),
            (Act::Pause { .. }, Life::Up) => {
                self.note(node, None, None, || "stands still".into());
                *self.life(node) = Life::Paused(until);
            }
            (Act::Cut { peer, .. }, _) => {
                let peer = self.script.node_name(peer).to_owned();
                self.note(node, None, None, || format!("cut off from {peer}"));
                self.live.cut_until[index] = until;
            }
        }
        self.live.struck |= 1 << index;
        if self.live.first_fault == 0 {
            self.live.first_fault = self.live.now + 1;
        }
    }

    /// A cut heals.
    pub fn heal(&mut self, index: usize) {
        self.live.cut_until[index] = 0;
        let fault = self.script.faults[index].fault;
        self.note(fault.on, None, None, || "cut heals".into());
    }

    /// Whether a message from one node to another is lost in a cut.
    pub fn is_cut(&self, from: Node, to: Node) -> bool {
        self.script
            .faults
            .iter()
            .zip(&self.live.cut_until)
            .any(|(script, until)| *until > 0 && is_between(script.fault, from, to))
    }

    /// What becomes of a request that its sender lets go now.
    pub fn leave(&self, from: Node, to: Node, struck: Struck) -> Stage {
        match struck {
            Struck { still: true, .. } => Stage::Held,
            Struck { lost: true, .. } => Stage::Lost,
            _ if self.is_cut(from, to) || (to == Node::Database && self.is_deaf_for_long(from)) => Stage::Lost,
            _ => Stage::Sent,
        }
    }

    /// Whether a node has not heard the database for so long that each connection is tried before it is used: whatever the
    /// node says then stays with it.
    fn is_deaf_for_long(&self, node: Node) -> bool {
        let now = self.live.now;
        self.script.faults.iter().zip(&self.live.cut_until).any(|(script, until)| {
            // Of a cut for good at a point the moment is not kept: it may just have begun.
            let began = script.at.or((*until != NEVER).then(|| until.saturating_sub(script.long)));
            let hears = !is_between(script.fault, Node::Database, node);
            *until > 0 && !hears && began.is_some_and(|began| now > began + self.script.trusted)
        })
    }

    /// A request without a sender still arrives.
    pub fn orphan(&mut self, request: Request, by_sweeper: bool) {
        let orphan = Orphan { request, by_sweeper };
        if !self.live.orphans.contains(&orphan) && self.live.orphans.len() < MAX_ORPHANS {
            self.live.orphans.push(orphan);
            self.live.orphans.sort_by_key(|o| (o.request.task, o.request.epoch, o.request.verb, o.by_sweeper));
        }
    }

    /// What a process had in memory is gone. What it had sent is under way.
    fn crash(&mut self, node: Node) {
        match node {
            Node::Executor(index) => {
                if self.live.executors[index].claim.stage == Stage::Sent {
                    self.orphan_claims(index);
                }
                for slot in self.script.slots(index) {
                    self.end_run(slot);
                }
                let clock = &mut self.live.executors[index];
                (clock.claim, clock.beat) = (Wire::QUIET, Wire::QUIET);
                (clock.beat_slots, clock.beat_refused) = (0, 0);
            }
            Node::Sweeper => {
                if let (Stage::Sent, Some(request)) = (self.live.sweeper.wire.stage, self.live.sweeper.write) {
                    self.orphan(request, true);
                }
                let clock = &mut self.live.sweeper;
                (clock.wire, clock.about, clock.write) = (Wire::QUIET, None, None);
                self.live.core.seen.fill(Seen::NOTHING);
            }
            Node::Database => self.live.orphans.clear(),
            Node::ThirdParty => {}
        }
    }

    /// A claim that its executor has forgotten may still be committed.
    pub fn orphan_claims(&mut self, executor: usize) {
        for slot in self.script.slots(executor) {
            let run = self.live.core.runs[slot];
            if let (Phase::Claiming, executor::Next::Write(request)) =
                (run.phase, executor::next(&self.script.setup, &self.live.core, slot))
            {
                self.orphan(request, false);
            }
        }
    }

    /// A run is over in its slot, or cancelled. Requests that are under way stay so.
    pub fn end_run(&mut self, slot: usize) {
        let executor = self.script.executor_of[slot];
        let timer = self.live.slots[slot];
        if let (Stage::Sent, Some(request)) = (timer.wire.stage, timer.write) {
            self.orphan(request, false);
        }
        let bit = 1 << (slot - self.script.first_slot[executor]);
        let clock = self.live.executors[executor];
        if clock.beat_slots & bit != 0 && clock.beat.stage == Stage::Sent {
            self.orphan(executor::heartbeat(self.live.core.runs[slot]), false);
        }
        let clock = &mut self.live.executors[executor];
        clock.beat_slots &= !bit;
        clock.beat_refused &= !bit;
        executor::cancel(&mut self.live.core, slot);
        self.live.slots[slot] = SlotClock::IDLE;
    }

    /// A process is started (again), or goes on.
    pub fn revive(&mut self, node: Node) {
        let (now, was) = (self.live.now, *self.life(node));
        *self.life(node) = Life::Up;
        let restarted = matches!(was, Life::Down(_));
        self.note(node, None, None, || if restarted { "starts".into() } else { "goes on".into() });
        match node {
            Node::Executor(index) if restarted => {
                let clock = &mut self.live.executors[index];
                (clock.next_poll, clock.next_beat) = (now, now + self.script.heartbeat);
            }
            Node::Executor(index) => self.let_go(index),
            Node::Sweeper => {
                if restarted {
                    self.live.sweeper.next_sweep = now;
                }
                let asks = self.live.sweeper.about.is_some() && self.live.sweeper.write.is_none();
                let to = if asks { Node::ThirdParty } else { Node::Database };
                if self.live.sweeper.wire.stage == Stage::Held {
                    self.live.sweeper.wire.stage = self.leave(node, to, Struck::default());
                }
            }
            Node::Database | Node::ThirdParty => {}
        }
    }

    /// Messages that were about to leave when the executor came to a stop leave now: nothing can keep them back.
    fn let_go(&mut self, index: usize) {
        let node = Node::Executor(index);
        let to_database = self.leave(node, Node::Database, Struck::default());
        let clock = &mut self.live.executors[index];
        for wire in [&mut clock.claim, &mut clock.beat] {
            if wire.stage == Stage::Held {
                wire.stage = to_database;
            }
        }
        for slot in self.script.slots(index) {
            let timer = self.live.slots[slot];
            if timer.wire.stage == Stage::Held {
                let to = if timer.write.is_some() { Node::Database } else { Node::ThirdParty };
                self.live.slots[slot].wire.stage = self.leave(node, to, Struck::default());
                self.launch_call(slot);
            }
        }
    }

    /// A call that has left its sender is under way on its own.
    pub fn launch_call(&mut self, slot: usize) {
        let (run, timer) = (self.live.core.runs[slot], self.live.slots[slot]);
        let is_call = timer.write.is_none() && !timer.asks;
        if is_call && timer.wire.stage == Stage::Sent {
            let core = &mut self.live.core;
            crate::outside::send_call(&self.script.setup, core, run.task.into(), run.epoch, run.step);
        }
    }
}
