//! The gate of an older design's database: faults strike there, and committed statuses are read off.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leaseproof_older_designs::{Error, Table};
use leaseproof_rules::{Status, Verb};
use leaseproof_scenarios::{Op, Story};

use super::Older;
use crate::db::{Answer, Arrival, Commit, Gate, Request};
use crate::event::{Actor, What, op_of, verb_of};
use crate::faults::{reply, request};
use crate::world::World;

/// How often somebody looks at the rows.
const GLANCE: Duration = Duration::from_secs(1);

/// What somebody else finds while the first handler of a task is at work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// The status that is read.
    pub status: Status,
    /// The code of the lock that a claim meets; `None`: it is told that the task is not PENDING.
    pub lock: Option<String>,
}

/// The world of one run.
pub struct OlderWorld {
    /// Observer, faults, third party.
    pub inner: Arc<World>,
    tasks: Mutex<Tasks>,
}

#[derive(Default)]
struct Tasks {
    /// The story's index, by id.
    index: BTreeMap<i64, usize>,
    id: Vec<i64>,
    status: Vec<Status>,
    begun: Vec<Vec<Duration>>,
    /// Whether the first handler is still at work.
    at_work: Vec<bool>,
    seen_at_work: Vec<Option<Seen>>,
    writes: u32,
    resolved: Option<Duration>,
}

impl OlderWorld {
    pub fn new(story: Arc<Story>) -> Arc<OlderWorld> {
        Arc::new(OlderWorld { inner: World::new(story), tasks: Mutex::default() })
    }

    pub fn bind_task(&self, index: usize, id: i64) {
        self.inner.bind_task(index, id);
        let mut tasks = self.tasks();
        tasks.index.insert(id, index);
        tasks.id.push(id);
        tasks.status.push(Status::Pending);
        tasks.begun.push(Vec::new());
        tasks.at_work.push(false);
        tasks.seen_at_work.push(None);
    }

    /// A handler begins. Gives the number of the run.
    pub fn begin(&self, index: usize) -> u32 {
        let now = self.inner.observer.now();
        let mut tasks = self.tasks();
        tasks.at_work[index] = tasks.begun[index].is_empty();
        tasks.begun[index].push(now);
        tasks.begun[index].len() as u32
    }

    /// A handler has come to its end.
    pub fn end(&self, index: usize) {
        self.tasks().at_work[index] = false;
    }

    /// Reads the rows as anybody can, on a session of its own, and tries to claim what is at work.
    pub async fn look_on(&self, table: &Table, older: Older) {
        loop {
            madsim::time::sleep(GLANCE).await;
            let ids: Vec<(usize, i64)> = {
                let tasks = self.tasks();
                let open = |index: &usize| tasks.at_work[*index] && tasks.seen_at_work[*index].is_none();
                (0..tasks.id.len()).filter(open).map(|index| (index, tasks.id[index])).collect()
            };
            for (index, id) in ids {
                let Ok(Some(status)) = table.status(id).await else { continue };
                let lock = match older.claim_task(table, id).await {
                    Ok(None) => None,
                    Err(Error::Locked { code, .. }) => Some(code),
                    other => {
                        self.inner.observer.defect(format!("a claim of a task at work: {other:?}"));
                        continue;
                    }
                };
                self.tasks().seen_at_work[index] = Some(Seen { status, lock });
            }
        }
    }

    pub fn statuses(&self) -> Vec<Status> {
        self.tasks().status.clone()
    }

    pub fn begun(&self) -> Vec<Vec<Duration>> {
        self.tasks().begun.clone()
    }

    pub fn seen_at_work(&self) -> Vec<Option<Seen>> {
        self.tasks().seen_at_work.clone()
    }

    /// Writes to task rows that were committed.
    pub fn writes(&self) -> u32 {
        self.tasks().writes
    }

    /// Since when every task is in SUCCESS or FAIL.
    pub fn resolved(&self) -> Option<Duration> {
        self.tasks().resolved
    }

    pub fn effects(&self) -> Vec<u32> {
        let of_task = |(index, task): (usize, &leaseproof_scenarios::Task)| {
            let (effect, id) = (task.effect.as_ref()?, self.inner.task_id(index)?);
            Some(self.inner.ledger(|ledger| ledger.count(id, &effect.key)))
        };
        self.inner.story.tasks.iter().enumerate().filter_map(of_task).collect()
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A write has been committed.
    fn wrote(&self, verb: Verb, id: i64) {
        let now = self.inner.observer.now();
        let mut tasks = self.tasks();
        let Some(&index) = tasks.index.get(&id) else { return };
        tasks.writes += 1;
        tasks.status[index] = match verb {
            Verb::Claim => Status::Running,
            Verb::Complete => Status::Success,
            _ => Status::Fail,
        };
        if tasks.status.iter().all(|status| status.is_final()) {
            tasks.resolved.get_or_insert(now);
        }
    }
}

impl Gate for OlderWorld {
    fn asks(&self, peer: std::net::IpAddr, tag: &str) -> bool {
        let Some((node, op)) = self.inner.node_at(peer).zip(op_of(tag)) else { return false };
        op == Op::Claim && self.inner.faults.waits_at(node, request(op))
    }

    fn arrived(&self, asked: &Request) -> Arrival {
        match self.inner.node_at(asked.peer).zip(op_of(&asked.op)) {
            Some((node, op)) if asked.does_something != Some(false) => self.inner.faults.arrived(node, request(op)),
            _ => Arrival::Execute,
        }
    }

    fn committed(&self, commit: &Commit) -> Answer {
        let mut answer = Answer::Send;
        for executed in commit.executed.iter().filter(|executed| executed.count > 0) {
            let tag = executed.request.op.as_str();
            if let (Some(verb), Some(one)) = (verb_of(tag), executed.request.presented.first()) {
                self.wrote(verb, one.task);
            }
        }
        for executed in commit.executed.iter().filter(|executed| executed.count > 0) {
            let point = self.inner.node_at(commit.peer).zip(op_of(&executed.request.op));
            if point.is_some_and(|(node, op)| self.inner.faults.committed(node, reply(op)) == Answer::Lose) {
                answer = Answer::Lose;
            }
        }
        answer
    }

    fn started(&self) {
        self.inner.observer.record(Actor::Node(leaseproof_scenarios::Node::Database), What::Start);
    }
}
