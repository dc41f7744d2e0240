//! The world of one run as its parts share it, and the gate through which the database reports to it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leaseproof_queue_sim::tags;
use leaseproof_rules::{Entry, Status, Verb};
use leaseproof_scenarios::{Node, Op, Story};

use crate::db::{Answer, Arrival, Commit, Executed, Gate, Request, TaskChange};
use crate::event::{Actor, RowWrite, What, op_of, verb_of};
use crate::faults::{Faults, reply, request};
use crate::net;
use crate::observer::Observer;
use crate::outside::Ledger;

/// What the nodes of a run share outside the simulated network: the observer, the injector, the third party's books.
pub struct World {
    /// The story that is told.
    pub story: Arc<Story>,
    /// Sees everything.
    pub observer: Arc<Observer>,
    /// Strikes.
    pub faults: Arc<Faults>,
    ledger: Mutex<Ledger>,
    tasks: Mutex<Tasks>,
}

/// The task rows as last committed.
#[derive(Default)]
struct Tasks {
    /// From the queue's ids to the story's indices.
    index: BTreeMap<i64, usize>,
    id: Vec<Option<i64>>,
    status: Vec<Option<Status>>,
    claims: Vec<u32>,
    resolved: bool,
}

impl World {
    /// The world of a story, before anything has happened.
    pub fn new(story: Arc<Story>) -> Arc<World> {
        let observer = Observer::new();
        let count = story.tasks.len();
        let tasks =
            Tasks { id: vec![None; count], status: vec![None; count], claims: vec![0; count], ..Tasks::default() };
        Arc::new(World {
            faults: Arc::new(Faults::new(&story, observer.clone())),
            observer,
            ledger: Mutex::default(),
            tasks: Mutex::new(tasks),
            story,
        })
    }

    /// The story's task has this id in the queue.
    pub fn bind_task(&self, index: usize, id: i64) {
        let task = &self.story.tasks[index];
        if let Some(effect) = &task.effect {
            self.ledger(|ledger| ledger.open(id, &effect.key, effect.rule.instruments));
        }
        let mut tasks = self.tasks();
        tasks.index.insert(id, index);
        tasks.id[index] = Some(id);
        tasks.status[index].get_or_insert(Status::Pending);
        drop(tasks);
        self.observer.record(Actor::Person, What::Enqueue { task: index });
    }

    /// The index of a task in the story.
    pub fn task_index(&self, id: i64) -> usize {
        let index = self.tasks().index.get(&id).copied();
        index.unwrap_or_else(|| {
            self.observer.defect(format!("task {id} is not in the story"));
            usize::MAX
        })
    }

    /// The queue's id of a task.
    pub fn task_id(&self, index: usize) -> Option<i64> {
        self.tasks().id.get(index).copied().flatten()
    }

    /// The number of the latest run of a task: how often it was claimed so far.
    pub fn run_number(&self, index: usize) -> u32 {
        self.tasks().claims.get(index).copied().unwrap_or_default()
    }

    /// The statuses of all tasks as last committed.
    pub fn statuses(&self) -> Vec<Option<Status>> {
        self.tasks().status.clone()
    }

    /// Every task is in SUCCESS, FAIL or WAIT_MANUAL.
    pub fn is_resolved(&self) -> bool {
        self.tasks().resolved
    }

    /// Reads or writes the third party's books.
    pub fn ledger<T>(&self, act: impl FnOnce(&mut Ledger) -> T) -> T {
        act(&mut self.ledger.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The node whose machine has this address.
    pub fn node_at(&self, ip: IpAddr) -> Option<Node> {
        if let Some(index) = net::executor_at(ip) {
            return (index < self.story.executors.len()).then_some(Node::Executor(index));
        }
        match ip {
            IpAddr::V4(net::DATABASE) => Some(Node::Database),
            IpAddr::V4(net::THIRD_PARTY) => Some(Node::ThirdParty),
            IpAddr::V4(net::SWEEPER) => Some(Node::Sweeper),
            _ => None,
        }
    }

    fn actor_at(&self, ip: IpAddr) -> Actor {
        self.node_at(ip).map_or(Actor::Person, Actor::Node)
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a committed change, whoever made it.
    fn note(&self, change: &TaskChange, verb: Option<Verb>) {
        let mut tasks = self.tasks();
        let Some(&index) = tasks.index.get(&change.task) else { return };
        tasks.status[index] = change.after.as_ref().map(|row| row.status);
        if verb == Some(Verb::Claim) {
            tasks.claims[index] += 1;
        }
    }

    fn note_resolution(&self) {
        let mut tasks = self.tasks();
        let all = tasks.status.iter().all(|status| status.is_some_and(Status::is_resolved));
        let newly = all && !tasks.resolved;
        tasks.resolved = all;
        drop(tasks);
        if newly {
            self.observer.record(Actor::Node(Node::Database), What::Resolved);
        }
    }

    fn statement(&self, actor: Actor, executed: &Executed) {
        let tag = executed.request.op.as_str();
        let verb = verb_of(tag);
        for change in &executed.changes {
            self.note(change, verb);
            let presented = executed.request.behind(change).and_then(|one| one.epoch);
            match (verb, &change.before, &change.after) {
                (Some(verb), Some(before), Some(after)) => {
                    let write = RowWrite {
                        verb,
                        task: self.task_index(change.task),
                        presented,
                        before: before.clone(),
                        after: after.clone(),
                        now_ms: executed.now_ms,
                    };
                    self.observer.record(actor, What::Write(write));
                }
                (None, Some(_), Some(after)) if tag == tags::LEARN || tag == tags::SETTLE => {
                    let entry = after.entry.as_deref().and_then(Entry::from_name);
                    self.observer.record(actor, What::Learn { task: self.task_index(change.task), entry });
                }
                // It moves no task, and no story sets a clock back so far.
                (None, Some(_), Some(_)) if tag == tags::CUT_LEASE => {}
                (None, None, Some(_)) if tag == tags::ENQUEUE => {}
                _ => self.observer.defect(format!("the statement {tag:?} changed a task row: {change:?}")),
            }
        }
        if let Some(verb) = verb {
            for (presented, row) in &executed.unchanged {
                let already =
                    verb == Verb::Complete && row.status == Status::Success && Some(row.epoch) == presented.epoch;
                let what = What::Refuse {
                    verb,
                    task: self.task_index(presented.task),
                    presented: presented.epoch,
                    row: row.clone(),
                    already,
                    now_ms: executed.now_ms,
                };
                self.observer.record(actor, what);
            }
        }
        if tag == tags::LATE_RESULT && executed.count > 0 {
            for one in &executed.request.presented {
                let what = What::LateResult { task: self.task_index(one.task), epoch: one.epoch };
                self.observer.record(actor, what);
            }
        }
        if tag == tags::SWEEP && executed.count > 0 {
            self.observer.record(actor, What::Sweep { found: executed.count });
        }
    }
}

/// A poll that finds nothing is no exchange of the story.
const fn is_poll(op: Op) -> bool {
    matches!(op, Op::Claim | Op::Sweep)
}

impl Gate for World {
    fn asks(&self, peer: IpAddr, tag: &str) -> bool {
        match (self.node_at(peer), op_of(tag)) {
            (Some(node), Some(op)) => is_poll(op) && self.faults.waits_at(node, request(op)),
            _ => false,
        }
    }

    fn arrived(&self, asked: &Request) -> Arrival {
        match (self.node_at(asked.peer), op_of(&asked.op)) {
            (Some(node), Some(op)) if asked.does_something != Some(false) => self.faults.arrived(node, request(op)),
            _ => Arrival::Execute,
        }
    }

    fn committed(&self, commit: &Commit) -> Answer {
        let actor = self.actor_at(commit.peer);
        for change in &commit.untagged {
            self.note(change, None);
            self.observer.defect(format!("a statement without a tag changed a task row: {change:?}"));
        }
        let mut answer = Answer::Send;
        for executed in &commit.executed {
            self.statement(actor, executed);
        }
        self.note_resolution();
        for executed in &commit.executed {
            let Some((node, op)) = self.node_at(commit.peer).zip(op_of(&executed.request.op)) else { continue };
            if is_poll(op) && executed.count == 0 {
                continue;
            }
            if self.faults.committed(node, reply(op)) == Answer::Lose {
                answer = Answer::Lose;
            }
        }
        answer
    }

    fn started(&self) {
        self.observer.record(Actor::Node(Node::Database), What::Start);
    }
}
