//! What each step of a story does: the exchanges of one slot, with the database and with the third party.

use leaseproof_rules::Answer;
use leaseproof_scenarios::{Node, Op, Phase as Half};

use super::live::{Life, Stage, Wire};
use super::play::{Play, op_of};
use crate::executor::{self, Heard, Next};
use crate::outside;
use crate::state::{Phase, Run};

impl Play<'_> {
    pub(super) fn send(&mut self, slot: usize) {
        let node = self.script.node_of(slot);
        let run = self.live.core.runs[slot];
        let next = self.next_of(slot);
        // A write of unknown outcome is sent again as it was.
        let (op, write, asks, to) = match (self.live.slots[slot].write, next) {
            (Some(request), _) | (None, Next::Write(request)) => {
                (op_of(request.verb), Some(request), false, Node::Database)
            }
            (None, Next::Call) => (Some(Op::Call), None, false, Node::ThirdParty),
            (None, Next::Query) => (Some(Op::Query), None, true, Node::ThirdParty),
            (None, Next::Wait | Next::Work) => return,
        };
        let Some(op) = op else { return };
        self.note(node, Some(run.task.into()), Some(run.epoch), || op.name().into());
        let timer = &mut self.live.slots[slot];
        (timer.write, timer.asks) = (write, asks);
        if asks && timer.asking_since == 0 {
            timer.asking_since = self.live.now;
        }
        if to == Node::ThirdParty {
            self.live.slots[slot].wire = Wire { stage: Stage::Connecting, sent: self.live.now };
            self.connect(slot);
        } else {
            self.send_on(slot, op, to);
        }
    }

    /// A connection to the third party is asked for: what was to be sent is sent, or can not be.
    pub(super) fn connect(&mut self, slot: usize) {
        let node = self.script.node_of(slot);
        let run = self.live.core.runs[slot];
        let asks = self.live.slots[slot].asks;
        if !self.may_connect(self.script.executor_of[slot], asks) {
            return self.note(node, Some(run.task.into()), Some(run.epoch), || "no connection so far".into());
        }
        if matches!(self.live.third_party, Life::Down(_)) {
            self.live.slots[slot].wire.stage = Stage::Replied(Heard::CallNotDone);
            return self.note(node, Some(run.task.into()), Some(run.epoch), || "the connection is refused".into());
        }
        if !asks {
            self.live.core.runs[slot].phase = Phase::Waiting;
        }
        self.send_on(slot, if asks { Op::Query } else { Op::Call }, Node::ThirdParty);
    }

    /// The request leaves.
    fn send_on(&mut self, slot: usize, op: Op, to: Node) {
        let node = self.script.node_of(slot);
        let struck = self.pass(node, op, Half::Request);
        if struck.dead {
            return;
        }
        let stage = self.leave(node, to, struck);
        self.live.slots[slot].wire = Wire { stage, sent: self.live.now };
        self.launch_call(slot);
        self.note_lost(node, op.name(), "request", stage);
    }

    pub(super) fn arrives(&mut self, slot: usize) {
        let node = self.script.node_of(slot);
        let run = self.live.core.runs[slot];
        let timer = self.live.slots[slot];
        let (server, life) = match timer.write {
            Some(_) => (Node::Database, self.live.database),
            None => (Node::ThirdParty, self.live.third_party),
        };
        if life != Life::Up {
            self.live.slots[slot].wire.stage = Stage::Lost;
            return self.note_lost(node, "message", "request", Stage::Lost);
        }
        let (heard, op) = match timer.write {
            Some(request) => (self.commit(request).into(), op_of(request.verb).unwrap_or(Op::Complete)),
            None => (Heard::Answer(self.ask(run.task.into(), run.epoch)), Op::Query),
        };
        let struck = self.pass(node, op, Half::Reply);
        if !struck.dead {
            let stage = self.answer(node, server, struck, heard, op.name());
            self.live.slots[slot].wire.stage = stage;
        }
    }

    /// The third party is asked about the call of the run with this epoch.
    pub(super) fn ask(&mut self, task: usize, epoch: u8) -> Answer {
        let setup = &self.script.setup;
        let token = outside::token_of_query(setup, epoch);
        let answer = outside::query(setup, &mut self.live.core, task, epoch, 0);
        self.note(Node::ThirdParty, Some(task), Some(token), || match answer {
            Answer::Done => "says: done".into(),
            // A story's effect has one part.
            Answer::NotDone | Answer::Partial | Answer::Unavailable => "says: not done".into(),
        });
        answer
    }

    pub(super) fn call_arrives(&mut self, task: usize, token: u8) {
        outside::take_call(&self.script.setup, &mut self.live.core, task, token, 0);
        let waits = |run: &Run| run.phase == Phase::Waiting && usize::from(run.task) == task && run.epoch == token;
        let sender = self.live.core.runs[..self.script.setup.shape.runs].iter().position(waits);
        let sender = sender.filter(|&slot| self.live.slots[slot].wire.stage == Stage::Sent);
        if self.live.third_party != Life::Up {
            if let Some(slot) = sender {
                self.live.slots[slot].wire.stage = Stage::Lost;
            }
            return;
        }
        let before = self.live.core.tasks[task].happened();
        let done = outside::call(&self.script.setup, &mut self.live.core, task, token, 0, None);
        let after = self.live.core.tasks[task].happened();
        self.note(Node::ThirdParty, Some(task), Some(token), || match (done, after > before) {
            (false, _) => "refuses the call: old token".into(),
            (true, true) => format!("executes the call ({after}×)"),
            (true, false) => "knows the key: nothing new".into(),
        });
        let Some(slot) = sender else { return };
        let node = self.script.node_of(slot);
        let struck = self.pass(node, Op::Call, Half::Reply);
        if !struck.dead {
            let heard = if done { Heard::CallDone } else { Heard::CallNotDone };
            let stage = self.answer(node, Node::ThirdParty, struck, heard, "call");
            self.live.slots[slot].wire.stage = stage;
        }
    }

    pub(super) fn reply(&mut self, slot: usize) {
        let Stage::Replied(heard) = self.live.slots[slot].wire.stage else { return };
        self.quiet_slot(slot);
        self.live.slots[slot].write = None;
        self.hear(slot, heard);
    }

    pub(super) fn deadline(&mut self, slot: usize) {
        let timer = self.live.slots[slot];
        let node = self.script.node_of(slot);
        let run = self.live.core.runs[slot];
        let unsent = timer.wire.stage == Stage::Connecting;
        self.note(node, Some(run.task.into()), Some(run.epoch), || match unsent {
            true => "no connection in time: nothing was sent".into(),
            false => "no reply in time: outcome unknown".into(),
        });
        if let (Stage::Sent, Some(request)) = (timer.wire.stage, timer.write) {
            self.orphan(request, false);
        }
        self.quiet_slot(slot);
        self.hear(
            slot,
            match (timer.asks, unsent) {
                (true, _) => Heard::Answer(Answer::Unavailable),
                (false, true) => Heard::CallNotDone,
                (false, false) => Heard::Unknown,
            },
        );
    }

    fn quiet_slot(&mut self, slot: usize) {
        let timer = &mut self.live.slots[slot];
        (timer.wire, timer.asks) = (Wire::QUIET, false);
    }

    fn hear(&mut self, slot: usize, heard: Heard) {
        let before = self.live.core.runs[slot];
        executor::hear(&self.script.setup, &mut self.live.core, slot, heard);
        let after = self.live.core.runs[slot];
        if after.phase == Phase::Idle {
            // What it was is still needed to end it.
            self.live.core.runs[slot] = before;
            self.end_run(slot);
        } else if before.phase == Phase::Recording && after.phase == Phase::Finishing {
            let work = &self.script.tasks[usize::from(after.task)];
            self.live.slots[slot].work_due = self.live.now + (work.work - work.call_after);
            self.never_ends(slot);
        }
    }
}
