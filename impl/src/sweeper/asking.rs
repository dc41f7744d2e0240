//! The tasks that wait for what a third party says: asked side by side, so that a silent one holds up nobody else.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use leaseproof_rules::Epoch;

use super::{Case, Settled, Sweeper};
use crate::Error;

/// How many tasks are asked about at once, for each effect that can be asked about.
pub(super) const ASKED_AT_ONCE: usize = 8;

/// What is asked about together: the effects of one name of one kind of task, which is one third party's.
type Lane = (String, String);
type Claim = (i64, Epoch);
type Running<'a> = Pin<Box<dyn Future<Output = (Lane, Claim, Result<Settled, Error>)> + Send + 'a>>;

/// The tasks of one sweeper that wait for an answer. Each lane is a queue: who has not been asked about for longest is next,
/// so that the first tasks of a silent third party do not take every turn.
pub(super) struct Asking<'a> {
    sweeper: &'a Sweeper,
    claims: BTreeSet<Claim>,
    lanes: BTreeMap<Lane, Waiting>,
    running: FuturesUnordered<Running<'a>>,
}

#[derive(Default)]
struct Waiting {
    queue: VecDeque<Case>,
    asked: usize,
}

impl<'a> Asking<'a> {
    /// Nobody waits.
    pub(super) fn new(sweeper: &'a Sweeper) -> Asking<'a> {
        Asking { sweeper, claims: BTreeSet::new(), lanes: BTreeMap::new(), running: FuturesUnordered::new() }
    }

    /// Whether this claim waits already, since an earlier look.
    pub(super) fn has(&self, claim: Claim) -> bool {
        self.claims.contains(&claim)
    }

    /// Takes a task in, and asks about it as soon as there is room.
    pub(super) fn push(&mut self, case: Case) {
        let Some(effect) = case.next() else { return };
        let lane = (case.task.kind.clone(), effect.key.clone());
        self.claims.insert(case.claim());
        self.lanes.entry(lane.clone()).or_default().queue.push_back(case);
        self.fill(&lane);
    }

    /// The next task whose fate is decided, or postponed, and how. `None`: nobody waits.
    pub(super) async fn next(&mut self) -> Option<(i64, Result<Settled, Error>)> {
        let (lane, claim, settled) = self.running.next().await?;
        self.claims.remove(&claim);
        if let Some(waiting) = self.lanes.get_mut(&lane) {
            waiting.asked -= 1;
        }
        self.fill(&lane);
        Some((claim.0, settled))
    }

    fn fill(&mut self, lane: &Lane) {
        let Some(waiting) = self.lanes.get_mut(lane) else { return };
        while waiting.asked < ASKED_AT_ONCE
            && let Some(mut case) = waiting.queue.pop_front()
        {
            waiting.asked += 1;
            let (sweeper, lane) = (self.sweeper, lane.clone());
            self.running.push(Box::pin(async move {
                let settled = sweeper.settle(&mut case, true).await;
                (lane, case.claim(), settled)
            }));
        }
    }
}
