//! The written form of a run: one JSON object a line, byte-identical for equal story and seed.
//!
//! The first line is a [`Header`], every further one a [`Line`]. Fields that do not apply are left out; the others come
//! in the order of the struct. There is no wall clock, no address and no random name in it. What a [`Reader`] reads,
//! [`validate`](crate::validate) can hold against the rules.

mod read;

use leaseproof_rules::{Answer, Verb};
use leaseproof_scenarios::{Node, Story};
use serde::{Deserialize, Serialize};

use crate::event::{Actor, Event, RowWrite, What};

pub use read::{Reader, TraceError};

/// The version of the format. 2: writes say the database's clock, what it makes of it, and the counts.
pub const VERSION: u32 = 2;

/// The first line of a trace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The version of the format.
    pub leaseproof_trace: u32,
    /// The name of the story.
    pub scenario: String,
    /// The seed of the run.
    pub seed: u64,
    /// The guard that was off.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub without: Option<String>,
    /// The nodes, in the order in which a picture shows them.
    pub nodes: Vec<String>,
    /// The tasks.
    pub tasks: Vec<String>,
}

/// An event of a trace.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Story time in ns.
    pub t_ns: u64,
    /// The node (for a write, the writer).
    pub node: String,
    /// What happened, see [`EVENTS`]. A write that was committed has the name of its verb.
    pub event: String,
    /// The task.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub task: Option<String>,
    /// The epoch that the writer presented, or of the run that speaks.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub epoch: Option<u64>,
    /// The task's status before.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<String>,
    /// The task's status after.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub to: Option<String>,
    /// The row's epoch after.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub row_epoch: Option<u64>,
    /// The database's clock when it executed the write, in ms of story time.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub now_ms: Option<i64>,
    /// End of the lease after the write, in ms of story time.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lease_until_ms: Option<i64>,
    /// When the claimed run is over its expected time, in ms of story time.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub overrun_ms: Option<i64>,
    /// When a task that was put back can be claimed, in ms of story time.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub due_ms: Option<i64>,
    /// Failed attempts after a write that changed the status or the epoch.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub attempts: Option<u32>,
    /// Lost owners after such a write.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interruptions: Option<u32>,
    /// Why a person is needed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// The verb of a write that was refused.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub verb: Option<String>,
    /// The effect journal's entry, or the third party's answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub entry: Option<String>,
    /// How often, so far.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub count: Option<u64>,
    /// The newest execution token the third party has seen.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub newest: Option<u64>,
    /// The protocol point.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub point: Option<String>,
    /// The other end of a cut.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub peer: Option<String>,
    /// The direction of a cut, seen from the node: `both`, `to`, `from`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub way: Option<String>,
    /// How long it will last, in ms. Absent: for good.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub for_ms: Option<u64>,
    /// How a run ended: `ok`, `error`, `bad_input`, `hang`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub end: Option<String>,
}

/// The events that are no verbs, with what they mean.
pub const EVENTS: &[(&str, &str)] = &[
    ("start", "a process starts"),
    ("enqueue", "a task is in the queue"),
    ("crash", "fault: the process dies"),
    ("pause", "fault: the process stands still"),
    ("resume", "it goes on"),
    ("cut", "fault: messages to or from the peer are lost"),
    ("heal", "the cut has ended"),
    ("lose", "fault: the message at the point is lost"),
    ("hold", "the message at the point did not leave: its sender stands still or is dead"),
    ("refuse", "a write changed nothing; status and row_epoch are the row's"),
    ("already", "a write had been applied before; its writer takes it as done"),
    ("adopt", "a late success became the result: nobody had claimed the task since"),
    ("late_result", "the result of a run that had lost its task is on the record"),
    ("learn", "what the third party said is in the journal"),
    ("sweep", "the sweeper has read tasks that need a decision"),
    ("run_begin", "a handler begins"),
    ("run_end", "a handler has come to its end"),
    ("call", "a handler sends a call to the third party"),
    ("call_unknown", "the caller has no answer"),
    ("effect", "the third party has done it"),
    ("repeat", "the third party knows the key and does nothing"),
    ("refuse_call", "the third party refuses an old token"),
    ("ask", "the third party is asked and answers"),
    ("resolved", "every task is resolved"),
    ("horizon", "the story is over, a task is not resolved"),
];

/// The name of whoever an event belongs to.
pub fn actor_name(story: &Story, actor: Actor) -> &str {
    match actor {
        Actor::Node(node) => story.node_name(node),
        Actor::Person => "person",
    }
}

/// The first line.
pub fn header(story: &Story, seed: u64) -> Header {
    let mut nodes: Vec<String> = story.executors.iter().map(|executor| executor.name.clone()).collect();
    nodes.extend([Node::Sweeper, Node::Database, Node::ThirdParty].map(|node| story.node_name(node).to_owned()));
    nodes.push("person".to_owned());
    Header {
        leaseproof_trace: VERSION,
        scenario: story.name.clone(),
        seed,
        without: story.without.map(|guard| guard.name().to_owned()),
        nodes,
        tasks: story.tasks.iter().map(|task| task.name.clone()).collect(),
    }
}

/// The line of an event. `begin_ms` is the database's clock at the beginning of story time.
pub fn line(story: &Story, event: &Event, begin_ms: i64) -> Line {
    let name = |node: Node| Some(story.node_name(node).to_owned());
    let task = |task: usize| story.tasks.get(task).map(|task| task.name.clone());
    let mut line = Line { t_ns: event.at_ns, node: actor_name(story, event.actor).to_owned(), ..Line::default() };
    let event_name = match &event.what {
        What::Start => "start",
        What::Enqueue { task: index } => {
            line.task = task(*index);
            "enqueue"
        }
        What::Crash { restart_ms } => {
            line.for_ms = *restart_ms;
            "crash"
        }
        What::Pause { ms } => {
            line.for_ms = Some(*ms);
            "pause"
        }
        What::Resume => "resume",
        What::Cut { peer, way, ms } => {
            (line.peer, line.way, line.for_ms) = (name(*peer), Some(way.name().to_owned()), *ms);
            "cut"
        }
        What::Heal { peer, way } => {
            (line.peer, line.way) = (name(*peer), Some(way.name().to_owned()));
            "heal"
        }
        What::Lose { point } => {
            line.point = Some(point.name());
            "lose"
        }
        What::Hold { point } => {
            line.point = Some(point.name());
            "hold"
        }
        What::Write(write) => {
            line.task = task(write.task);
            write_fields(&mut line, write, begin_ms);
            if write.is_adoption() { "adopt" } else { write.verb.name() }
        }
        What::Refuse { verb, task: index, presented, row, already, now_ms } => {
            line.now_ms = Some(now_ms - begin_ms);
            line.task = task(*index);
            (line.epoch, line.verb) = (*presented, Some(verb.name().to_owned()));
            (line.from, line.row_epoch) = (Some(row.status.name().to_owned()), Some(row.epoch));
            if *already { "already" } else { "refuse" }
        }
        What::LateResult { task: index, epoch } => {
            (line.task, line.epoch) = (task(*index), *epoch);
            "late_result"
        }
        What::Learn { task: index, entry } => {
            (line.task, line.entry) = (task(*index), entry.map(|entry| entry.name().to_owned()));
            "learn"
        }
        What::Sweep { found } => {
            line.count = Some(*found as u64);
            "sweep"
        }
        What::RunBegin { task: index, epoch, run } => {
            (line.task, line.epoch, line.count) = (task(*index), Some(*epoch), Some(u64::from(*run)));
            "run_begin"
        }
        What::RunEnd { task: index, epoch, end } => {
            (line.task, line.epoch, line.end) = (task(*index), Some(*epoch), Some(end.name().to_owned()));
            "run_end"
        }
        What::Call { task: index, token } => {
            (line.task, line.epoch) = (task(*index), Some(*token));
            "call"
        }
        What::CallUnknown { task: index, token } => {
            (line.task, line.epoch) = (task(*index), Some(*token));
            "call_unknown"
        }
        What::Effect { task: index, token, count } => {
            (line.task, line.epoch, line.count) = (task(*index), Some(*token), Some(u64::from(*count)));
            "effect"
        }
        What::Repeat { task: index, token } => {
            (line.task, line.epoch) = (task(*index), Some(*token));
            "repeat"
        }
        What::RefuseCall { task: index, token, newest } => {
            (line.task, line.epoch, line.newest) = (task(*index), Some(*token), Some(*newest));
            "refuse_call"
        }
        What::Ask { task: index, token, answer } => {
            (line.task, line.epoch) = (task(*index), *token);
            line.entry = Some(
                match answer {
                    Answer::Done => "DONE",
                    Answer::NotDone => "NOT_DONE",
                    Answer::Partial => "PARTIAL",
                    Answer::Unavailable => "UNAVAILABLE",
                }
                .to_owned(),
            );
            "ask"
        }
        What::Resolved => "resolved",
        What::Horizon => "horizon",
    };
    line.event = event_name.to_owned();
    line
}

/// What a committed write says of the row.
fn write_fields(line: &mut Line, write: &RowWrite, begin_ms: i64) {
    line.epoch = write.presented;
    line.from = Some(write.before.status.name().to_owned());
    line.to = Some(write.after.status.name().to_owned());
    line.row_epoch = Some(write.after.epoch);
    line.now_ms = Some(write.now_ms - begin_ms);
    if matches!(write.verb, Verb::Claim | Verb::Heartbeat) {
        line.lease_until_ms = write.after.lease_until_ms.map(|until| until - begin_ms);
    }
    if write.verb == Verb::Claim {
        line.overrun_ms = write.after.overrun_at_ms.map(|at| at - begin_ms);
    }
    if write.after.status.is_claimable() {
        line.due_ms = Some(write.after.due_at_ms - begin_ms);
    }
    if write.moves() {
        (line.attempts, line.interruptions) = (Some(write.after.attempts), Some(write.after.interruptions));
        line.reason = write.after.reason.clone();
    }
    if write.after.effect.is_some() && write.verb != Verb::Heartbeat {
        line.entry = write.after.entry.clone();
    }
}

/// A line as bytes, without the line's end.
pub fn text(line: &impl Serialize) -> String {
    // strings, numbers and structs: nothing that JSON lacks
    serde_json::to_string(line).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/trace.md` names every field and every event, and no others.
    #[test]
    fn the_page_on_traces_is_complete() {
        let page = include_str!("../../docs/trace.md");
        let of_simulation = page.split("## Of the model").next().unwrap();
        let rows = |table: &str| -> Vec<String> {
            let (_, rest) = of_simulation.split_once(table).unwrap();
            let rows = rest.lines().skip(2).take_while(|line| line.starts_with("| `"));
            rows.map(|line| line.split('`').nth(1).unwrap().to_owned()).collect()
        };
        let full = Line {
            t_ns: 1,
            node: "n".into(),
            event: "e".into(),
            task: Some(String::new()),
            epoch: Some(1),
            from: Some(String::new()),
            to: Some(String::new()),
            row_epoch: Some(1),
            now_ms: Some(1),
            lease_until_ms: Some(1),
            overrun_ms: Some(1),
            due_ms: Some(1),
            attempts: Some(1),
            interruptions: Some(1),
            reason: Some(String::new()),
            verb: Some(String::new()),
            entry: Some(String::new()),
            count: Some(1),
            newest: Some(1),
            point: Some(String::new()),
            peer: Some(String::new()),
            way: Some(String::new()),
            for_ms: Some(1),
            end: Some(String::new()),
        };
        let written = text(&full);
        let fields: Vec<&str> =
            written.split('"').skip(1).step_by(2).filter(|name| written.contains(&format!("\"{name}\":"))).collect();
        assert_eq!(rows("| Field | Meaning |"), fields);
        assert_eq!(rows("| Event | Meaning |"), EVENTS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        assert!(page.contains(&format!("{{\"leaseproof_trace\":{VERSION},")));
        assert!(Verb::ALL.iter().all(|verb| page.contains(&format!("`{}`", verb.name()))));
    }
}
