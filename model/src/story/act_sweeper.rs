//! What each step of a story does: the sweeper and the person.

use leaseproof_rules::Answer;
use leaseproof_scenarios::{Node, Op, Phase as Half};

use super::faults::Struck;
use super::live::{Life, Stage, Wire};
use super::play::{Play, op_of};
use crate::executor::Heard;
use crate::person;
use crate::state::{Desk, Seen};
use crate::sweeper::{self, Next};

impl Play<'_> {
    pub(super) fn sweep(&mut self) {
        let now = self.live.now;
        while self.live.sweeper.next_sweep <= now {
            self.live.sweeper.next_sweep += self.script.sweep;
        }
        if !self.finds_any() {
            return;
        }
        self.note(Node::Sweeper, None, None, || "sweeps".into());
        self.sweeper_sends(Op::Sweep, None, None, Node::Database);
    }

    fn finds_any(&self) -> bool {
        (0..self.script.setup.shape.tasks).any(|task| self.is_sweepable(task))
    }

    fn sweeper_sends(&mut self, op: Op, about: Option<u8>, write: Option<crate::database::Request>, to: Node) {
        let (stage, struck) = match self.unconnected(to) {
            Some(stage) => (stage, Struck::default()),
            None => {
                let struck = self.pass(Node::Sweeper, op, Half::Request);
                (self.leave(Node::Sweeper, to, struck), struck)
            }
        };
        if struck.dead {
            return;
        }
        let clock = &mut self.live.sweeper;
        (clock.about, clock.write) = (about, write);
        clock.wire = Wire { stage, sent: self.live.now };
        self.note_lost(Node::Sweeper, op.name(), "request", stage);
    }

    /// What becomes of a question for which there is no connection; `None`: it can be sent.
    fn unconnected(&self, to: Node) -> Option<Stage> {
        if to != Node::ThirdParty {
            return None;
        }
        let cut = self.is_cut(Node::Sweeper, to) || self.is_cut(to, Node::Sweeper);
        let refused = matches!(self.live.third_party, Life::Down(_));
        match (cut, refused) {
            (true, _) => Some(Stage::Lost),
            (false, true) => Some(Stage::Replied(Heard::Answer(Answer::Unavailable))),
            (false, false) => None,
        }
    }

    pub(super) fn sweeper_send(&mut self) {
        let Some(task) = self.live.core.seen.iter().position(|seen| *seen != Seen::NOTHING) else { return };
        let seen = self.live.core.seen[task];
        match self.sweeper_next(task, &seen) {
            Next::Forget => self.live.core.seen[task] = Seen::NOTHING,
            Next::Query => {
                self.note(Node::Sweeper, Some(task), Some(seen.epoch), || "asks the third party".into());
                self.sweeper_sends(Op::Query, Some(task as u8), None, Node::ThirdParty);
            }
            Next::Write(request) => {
                let Some(op) = op_of(request.verb) else { return };
                self.note(Node::Sweeper, Some(task), Some(seen.epoch), || match request.reason {
                    Some(reason) => format!("{}: {reason}", op.name()),
                    None => op.name().into(),
                });
                self.sweeper_sends(op, Some(task as u8), Some(request), Node::Database);
            }
        }
    }

    pub(super) fn sweeper_arrives(&mut self) {
        let clock = self.live.sweeper;
        let asks = clock.about.is_some() && clock.write.is_none();
        let (server, life) =
            if asks { (Node::ThirdParty, self.live.third_party) } else { (Node::Database, self.live.database) };
        if life != Life::Up {
            self.live.sweeper.wire.stage = Stage::Lost;
            return self.note_lost(Node::Sweeper, "message", "request", Stage::Lost);
        }
        let (heard, op) = match (clock.about, clock.write) {
            (_, Some(request)) => (self.commit(request).into(), op_of(request.verb)),
            (Some(task), None) => {
                let epoch = self.live.core.seen[usize::from(task)].epoch;
                (Heard::Answer(self.ask(task.into(), epoch)), Some(Op::Query))
            }
            (None, None) => {
                let found = self.finds_any();
                for task in 0..self.script.setup.shape.tasks {
                    if self.is_sweepable(task) {
                        let seen = sweeper::read(&self.live.core, task).unwrap_or(Seen::NOTHING);
                        self.live.core.seen[task] = seen;
                    }
                }
                (Heard::Accepted, found.then_some(Op::Sweep))
            }
        };
        let struck = op.map_or(Struck::default(), |op| self.pass(Node::Sweeper, op, Half::Reply));
        if struck.dead {
            return;
        }
        let lost = struck.lost || self.is_cut(server, Node::Sweeper);
        let stage = if lost { Stage::Lost } else { Stage::Replied(heard) };
        self.live.sweeper.wire.stage = stage;
        self.note_lost(Node::Sweeper, op.map_or("sweep", Op::name), "reply", stage);
    }

    pub(super) fn sweeper_reply(&mut self) {
        let clock = self.live.sweeper;
        self.quiet_sweeper();
        let Some(task) = clock.about.map(usize::from) else { return };
        match (clock.write, clock.wire.stage) {
            (None, Stage::Replied(Heard::Answer(answer))) => self.answered(task, answer),
            _ => self.live.core.seen[task] = Seen::NOTHING,
        }
    }

    fn answered(&mut self, task: usize, answer: Answer) {
        self.live.core.seen[task].answer = Some(answer);
        let seen = self.live.core.seen[task];
        if self.sweeper_next(task, &seen) == Next::Forget {
            self.live.core.seen[task] = Seen::NOTHING;
        }
    }

    pub(super) fn sweeper_deadline(&mut self) {
        let clock = self.live.sweeper;
        self.note(Node::Sweeper, clock.about.map(usize::from), None, || "no reply in time".into());
        self.quiet_sweeper();
        match (clock.about.map(usize::from), clock.write) {
            (None, _) => self.live.core.seen.fill(Seen::NOTHING),
            (Some(task), None) => self.answered(task, Answer::Unavailable),
            (Some(task), Some(request)) => {
                if clock.wire.stage == Stage::Sent {
                    self.orphan(request, true);
                }
                self.live.core.seen[task] = Seen::NOTHING;
            }
        }
    }

    fn quiet_sweeper(&mut self) {
        let clock = &mut self.live.sweeper;
        (clock.wire, clock.about, clock.write) = (Wire::QUIET, None, None);
    }

    pub(super) fn decide(&mut self) {
        let Desk { task, epoch, .. } = self.live.core.desks[0];
        let task = usize::from(task);
        self.live.core.desks[0] = Desk::EMPTY;
        let Some(index) = self.decision_about(task) else { return };
        self.live.taken |= 1 << index;
        let act = self.script.decisions[index].act;
        self.note_at("person".into(), Some(task), Some(epoch), || act.write().0.name().into());
        let (request, judgement) = {
            let core = &mut self.live.core;
            // In a story the person finds out and decides in one moment.
            let truth = person::truth(&self.script.setup, core, task);
            person::decide(&self.script.setup, core, task, epoch, act, truth)
        };
        self.follow(request, judgement);
    }
}
