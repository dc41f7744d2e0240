//! For the checkers' tests: a story of one task, and events put on the stage one by one.

use leaseproof_rules::{Epoch, Status, Verb};
use leaseproof_scenarios::{Story, parse};

use super::record::RecordEntry;
use super::{Finding, Seen, findings};
use crate::db::TaskRow;
use crate::event::{Actor, Event, RowWrite, What};

pub(super) struct Stage {
    pub story: Story,
    pub events: Vec<Event>,
    pub record: Vec<RecordEntry>,
    pub row: TaskRow,
    /// Written with the next write that goes to WAIT_MANUAL.
    pub reason: Option<String>,
    /// The database's clock, in ms.
    pub now_ms: i64,
}

const STORY: &str = r#"
version = 1
title = "t"
question = "q"
requirements = []
sources = []
[policy]
lease = "30s"
heartbeat = "10s"
max_attempts = 2
max_interruptions = 1
expected_run = "2m"
[[tasks]]
name = "t1"
work = "10s"
[[tasks.effects]]
key = "charge"
after = "5s"
ON_UNKNOWN
[[executors]]
name = "w1"
[[executors]]
name = "w2"
[expect]
verdicts = ["auto-recovered"]
"#;

impl Stage {
    /// The task is in the queue and has made its call already.
    pub fn new() -> Stage {
        let mut stage = Stage::bare("");
        stage.effect(1);
        stage
    }

    /// The task is in the queue. `on_unknown` is a line of the effect's table.
    pub fn bare(on_unknown: &str) -> Stage {
        let story = parse("staged.toml", &STORY.replace("ON_UNKNOWN", on_unknown)).unwrap();
        let row = TaskRow {
            status: Status::Pending,
            epoch: 0,
            owner: None,
            attempts: 0,
            interruptions: 0,
            due_at_ms: 0,
            lease_until_ms: None,
            overrun_at_ms: None,
            reason: None,
            effect: None,
            entry: None,
        };
        Stage { story, events: Vec::new(), record: Vec::new(), row, reason: None, now_ms: 1_000 }
    }

    pub fn event(&mut self, actor: Actor, what: What) {
        let at_ns = 1_000_000 * (self.events.len() as u64 + 1);
        self.events.push(Event { at_ns, actor, what });
    }

    pub fn effect(&mut self, count: u32) {
        self.event(Actor::Node(leaseproof_scenarios::Node::ThirdParty), What::Effect { task: 0, token: 1, count });
    }

    /// An executor claims, whatever the row says.
    pub fn claim(&mut self, executor: usize) {
        let before = self.row.clone();
        self.row.status = Status::Running;
        self.row.epoch += 1;
        self.row.owner = Some(format!("w{}", executor + 1));
        self.row.lease_until_ms = Some(self.now_ms + 30_000);
        self.push(Actor::executor(executor), Verb::Claim, None, before);
    }

    /// A write that leads to this status and epoch, whatever the rules say.
    pub fn write(&mut self, verb: Verb, presented: Epoch, to: Status, epoch: Epoch) {
        let before = self.row.clone();
        (self.row.status, self.row.epoch) = (to, epoch);
        if to == Status::WaitManual {
            self.row.reason = self.reason.clone();
        }
        let actor = match verb.actor() {
            leaseproof_rules::Actor::Person => Actor::Person,
            leaseproof_rules::Actor::Sweeper => Actor::Node(leaseproof_scenarios::Node::Sweeper),
            _ => Actor::executor(0),
        };
        // a sweeper that takes back does so after the lease, one that escalates after two minutes
        match verb {
            Verb::Requeue => self.now_ms += 31_000,
            Verb::Escalate => self.now_ms += 121_000,
            _ => {}
        }
        let counts = super::rules::counts(&before).after(&super::rules::row(&before, self.now_ms), verb);
        (self.row.attempts, self.row.interruptions) = (counts.attempts, counts.interruptions);
        self.push(actor, verb, Some(presented), before);
    }

    fn push(&mut self, actor: Actor, verb: Verb, presented: Option<Epoch>, before: TaskRow) {
        let (after, now_ms) = (self.row.clone(), self.now_ms);
        if before.status != after.status {
            self.record.push(RecordEntry {
                verb: verb.name().to_owned(),
                from: Some(before.status),
                to: after.status,
                epoch: after.epoch,
            });
        }
        self.event(actor, What::Write(RowWrite { verb, task: 0, presented, before, after, now_ms }));
    }

    pub fn findings(&self) -> Vec<Finding> {
        let mut events = self.events.clone();
        if self.row.status.is_resolved() {
            events.push(Event {
                at_ns: u64::MAX,
                actor: Actor::Node(leaseproof_scenarios::Node::Database),
                what: What::Resolved,
            });
        }
        let record = [self.record.clone()];
        findings(&Seen { story: &self.story, events: &events, record: &record })
    }

    /// The properties found broken.
    pub fn broken(&self) -> Vec<leaseproof_rules::Property> {
        let mut broken: Vec<_> = self.findings().into_iter().filter_map(|finding| finding.property).collect();
        broken.dedup();
        broken
    }
}
