//! The steps of a story's servers: what the database and the third party have before them.

use leaseproof_scenarios::Node;

use super::live::{Life, Stage, Wire};
use super::play::{Exchange, Play, Step};

impl Play<'_> {
    /// What the database and the third party have before them. A server that is down loses it; one that stands still
    /// takes it up later.
    pub(super) fn server_steps(&self, out: &mut Vec<Step>) {
        let live = &self.live;
        self.deaf_steps(out);
        let awake = |life: Life| !matches!(life, Life::Paused(_));
        for index in 0..self.script.executor_names.len() {
            if awake(live.database) {
                if live.executors[index].claim.stage == Stage::Sent {
                    out.push(Step::ClaimArrives(index as u8));
                }
                if live.executors[index].beat.stage == Stage::Sent {
                    out.push(Step::BeatArrives(index as u8));
                }
            }
        }
        for (index, slot) in live.slots[..self.script.setup.shape.runs].iter().enumerate() {
            let server = if slot.write.is_some() { live.database } else { live.third_party };
            // Calls arrive on their own.
            let counts = slot.write.is_some() || slot.asks;
            if slot.wire.stage == Stage::Sent && counts && awake(server) {
                out.push(Step::Arrives(index as u8));
            }
        }
        if awake(live.database) {
            out.extend((0..live.orphans.len()).map(|index| Step::Orphan(index as u8)));
        }
        if awake(live.third_party) {
            for (index, task) in live.core.tasks[..self.script.setup.shape.tasks].iter().enumerate() {
                let tokens = (0..32).filter(|token| task.calls & (1 << token) != 0);
                out.extend(tokens.map(|token| Step::CallArrives { task: index as u8, token }));
            }
        }
        let sweeper = &live.sweeper;
        let asks = sweeper.about.is_some() && sweeper.write.is_none();
        let server = if asks { live.third_party } else { live.database };
        if sweeper.wire.stage == Stage::Sent && awake(server) {
            out.push(Step::SweeperArrives);
        }
    }

    /// Who does not hear the database can say something over a connection that was used of late, but gets no other. Which
    /// of the two a statement meets is a matter of what the pool has done before: both are tried.
    fn deaf_steps(&self, out: &mut Vec<Step>) {
        let live = &self.live;
        let deaf = |node| self.is_cut(Node::Database, node);
        let mut add = |wire: Wire, exchange| {
            if wire.stage == Stage::Sent {
                out.push(Step::NoConnection(exchange));
            }
        };
        for index in (0..self.script.executor_names.len()).filter(|&index| deaf(Node::Executor(index))) {
            add(live.executors[index].claim, Exchange::Claim(index as u8));
            add(live.executors[index].beat, Exchange::Beat(index as u8));
            for slot in self.script.slots(index).filter(|&slot| live.slots[slot].write.is_some()) {
                add(live.slots[slot].wire, Exchange::Slot(slot as u8));
            }
        }
        let asks = live.sweeper.about.is_some() && live.sweeper.write.is_none();
        if !asks && deaf(Node::Sweeper) {
            add(live.sweeper.wire, Exchange::Sweeper);
        }
    }
}
