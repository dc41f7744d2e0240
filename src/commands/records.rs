//! Tasks and their records as people and programs read them.

use leaseproof_queue as queue;
use queue::rules::Status;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::style::{Tone, paint, plain, width};
use crate::table::{cut, layout};

/// A task in `queue list`, `show` and `resolve --json`. Times are ms since the Unix epoch, on the database's clock.
#[derive(Serialize)]
pub struct Task<'a> {
    id: i64,
    kind: &'a str,
    status: &'a str,
    epoch: u64,
    attempts: u32,
    interruptions: u32,
    reason: Option<&'a str>,
    owner: Option<&'a str>,
    payload: Option<Box<RawValue>>,
    result: Option<Box<RawValue>>,
    last_error: Option<&'a str>,
    created_at_ms: i64,
    due_at_ms: i64,
    claimed_at_ms: Option<i64>,
    heartbeat_at_ms: Option<i64>,
    lease_until_ms: Option<i64>,
    finished_at_ms: Option<i64>,
    unique_key: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    bad: &'a [String],
}

/// A row of `queue list --json`: a task, or what is known of a row that can not be read as one.
#[derive(Serialize)]
#[serde(untagged)]
pub enum ListedRow<'a> {
    Task(Box<Task<'a>>),
    Bad { id: i64, bad: [&'a str; 1] },
}

/// The rows of a page by id.
pub fn listed(listed: &queue::Listed) -> Vec<ListedRow<'_>> {
    let tasks = listed.tasks.iter().map(|task| (task.id, ListedRow::Task(Box::new(Task::of(task)))));
    let bad = listed.bad.iter().map(|bad| (bad.id, ListedRow::Bad { id: bad.id, bad: [&bad.why] }));
    let mut rows: Vec<_> = tasks.chain(bad).collect();
    rows.sort_by_key(|(id, _)| *id);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// JSON as it is stored, byte for byte: numbers that no program here could hold, and fields that are there twice, included.
/// A text that is none is shown as a text.
fn value(bytes: &[u8]) -> Option<Box<RawValue>> {
    let stored = serde_json::from_slice::<Box<RawValue>>(bytes);
    // A text always is JSON.
    stored.or_else(|_| to_raw_value(&String::from_utf8_lossy(bytes))).ok()
}

impl<'a> Task<'a> {
    pub fn of(task: &'a queue::Task) -> Task<'a> {
        Task {
            id: task.id,
            kind: &task.kind,
            status: task.status.name(),
            epoch: task.epoch,
            attempts: task.attempts,
            interruptions: task.interruptions,
            reason: task.reason.map(|reason| reason.name()),
            owner: task.owner.as_deref(),
            payload: value(&task.payload),
            result: task.result.as_deref().and_then(|result| value(result.as_bytes())),
            last_error: task.last_error.as_deref(),
            created_at_ms: task.created_at_ms,
            due_at_ms: task.due_at_ms,
            claimed_at_ms: task.claimed_at_ms,
            heartbeat_at_ms: task.heartbeat_at_ms,
            lease_until_ms: task.lease_until_ms,
            finished_at_ms: task.finished_at_ms,
            unique_key: task.unique_key.as_deref(),
            bad: &task.bad,
        }
    }
}

/// A task with its record in `queue show --json`.
#[derive(Serialize)]
pub struct Shown<'a> {
    task: Task<'a>,
    record: Vec<Entry<'a>>,
    effects: Vec<Effect<'a>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    bad: &'a [String],
}

#[derive(Serialize)]
struct Entry<'a> {
    at_ms: i64,
    epoch: u64,
    verb: &'a str,
    actor: &'a str,
    from: Option<&'a str>,
    to: &'a str,
    note: Option<&'a str>,
    effect: Option<&'a str>,
    beat_gap_ms: Option<i64>,
}

#[derive(Serialize)]
struct Effect<'a> {
    key: &'a str,
    state: &'a str,
    epoch: u64,
    at_ms: i64,
    outcome: Option<Box<RawValue>>,
    instruments: Vec<&'static str>,
    on_unknown: &'static str,
}

impl<'a> Shown<'a> {
    pub fn of(shown: &'a queue::Shown) -> Shown<'a> {
        let record = shown.record.iter().map(|event| Entry {
            at_ms: event.at_ms,
            epoch: event.epoch,
            verb: &event.verb,
            actor: &event.actor,
            from: event.from_status.map(Status::name),
            to: event.to_status.name(),
            note: event.note.as_deref(),
            effect: event.effect_key.as_deref(),
            beat_gap_ms: event.beat_gap_ms,
        });
        let effects = shown.effects.iter().map(|effect| Effect {
            key: &effect.key,
            state: effect.state.name(),
            epoch: effect.epoch,
            at_ms: effect.at_ms,
            outcome: effect.outcome.as_deref().and_then(|outcome| value(outcome.as_bytes())),
            instruments: effect.rule.instruments.names().collect(),
            on_unknown: effect.rule.on_unknown.name(),
        });
        Shown { task: Task::of(&shown.task), record: record.collect(), effects: effects.collect(), bad: &shown.bad }
    }
}

/// The tasks as a table.
pub fn list(listed: &queue::Listed, limit: u32) -> String {
    let tasks = &listed.tasks;
    if listed.rows() == 0 {
        return "no such task\n".to_owned();
    }
    let rows: Vec<Vec<String>> = tasks
        .iter()
        .map(|task| {
            let why = task.reason.map(|reason| reason.name().to_owned());
            let last = why.or_else(|| task.owner.as_deref().map(|owner| format!("owner {}", plain(short(owner)))));
            vec![
                task.id.to_string(),
                task.status.name().to_owned(),
                task.epoch.to_string(),
                plain(&task.kind).into_owned(),
                format!("{}+{}", task.attempts, task.interruptions),
                last.unwrap_or_default(),
                one_line(&String::from_utf8_lossy(&task.payload)),
            ]
        })
        .collect();
    let columns = width();
    let header = ["id", "status", "epoch", "kind", "failed+lost", "why", "payload"];
    let mut out = String::new();
    for (index, line) in layout(&header, &rows).into_iter().enumerate() {
        let tone = match index.checked_sub(1).map(|row| tasks[row].status) {
            None => Tone::Strong,
            Some(status) => tone(status),
        };
        out.push_str(&paint(tone, &cut(&line, columns)));
        out.push('\n');
    }
    for bad in &listed.bad {
        out.push_str(&format!("task {} can not be read: {}\n", bad.id, one_line(&bad.why)));
    }
    if let (true, Some(last)) = (listed.rows() == limit as usize, listed.last_id()) {
        out.push_str(&format!("there may be more: --after {last}\n"));
    }
    out
}

fn tone(status: Status) -> Tone {
    match status {
        Status::Success => Tone::Good,
        Status::WaitManual => Tone::Bad,
        Status::Fail | Status::RetryWait => Tone::Fault,
        Status::Pending | Status::Running => Tone::Plain,
    }
}

/// A task with its record, for people.
pub fn show(shown: &queue::Shown) -> String {
    let task = &shown.task;
    let mut out = format!(
        "{}\n",
        paint(
            Tone::Strong,
            &format!("task {}  {}  epoch {}  kind {}", task.id, task.status, task.epoch, plain(&task.kind))
        )
    );
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            // A line of its own for each line; none of them can pass for another fact.
            for (nth, line) in value.trim_end().split('\n').enumerate() {
                out.push_str(format!("{:<9} {}", if nth == 0 { name } else { "" }, plain(line)).trim_end());
                out.push('\n');
            }
        }
    };
    fact("why", task.reason.map(|reason| reason.name().to_owned()));
    fact("owner", task.owner.clone());
    fact("failed", Some(format!("{}; its worker was lost {}", times(task.attempts), times(task.interruptions))));
    fact("payload", Some(String::from_utf8_lossy(&task.payload).into_owned()));
    fact("result", task.result.clone());
    fact("error", task.last_error.clone());
    fact("policy", task.policy.as_ref().err().map(|why| format!("can not be read: {why}")));
    for why in task.bad.iter().chain(&shown.bad) {
        fact("bad", Some(one_line(why)));
    }

    let begin = shown.record.first().map_or(task.created_at_ms, |event| event.at_ms);
    let rows: Vec<Vec<String>> = shown
        .record
        .iter()
        .map(|event| {
            let from = event.from_status.map_or("–", Status::name);
            let moved = event.from_status != Some(event.to_status);
            let mut note = event.effect_key.iter().map(|key| format!("effect {}", plain(key))).collect::<Vec<_>>();
            note.extend(event.note.as_deref().map(one_line));
            note.extend(
                event
                    .beat_gap_ms
                    .filter(|gap| *gap >= 1_000)
                    .map(|gap| format!("largest heartbeat gap {} s", seconds(gap))),
            );
            vec![
                format!("+{} s", seconds(event.at_ms.saturating_sub(begin))),
                event.epoch.to_string(),
                plain(&event.verb).into_owned(),
                if moved { format!("{from} → {}", event.to_status) } else { event.to_status.name().to_owned() },
                plain(short(&event.actor)).into_owned(),
                note.join("; "),
            ]
        })
        .collect();
    out.push('\n');
    for (index, line) in layout(&["time", "epoch", "what", "status", "by", "note"], &rows).into_iter().enumerate() {
        out.push_str(&if index == 0 { paint(Tone::Strong, &line) } else { line });
        out.push('\n');
    }
    if !shown.effects.is_empty() {
        out.push('\n');
        for effect in &shown.effects {
            let has = effect.rule.instruments.names().collect::<Vec<_>>().join(", ");
            let has = if has.is_empty() { "no instrument".to_owned() } else { has };
            let key = plain(&effect.key);
            out.push_str(&format!("effect {key}: {}, epoch {} ({has})\n", effect.state.name(), effect.epoch));
        }
    }
    out
}

fn seconds(ms: i64) -> String {
    format!("{}.{:03}", ms / 1000, (ms % 1000).abs())
}

/// A random boot id is long and says little: its beginning tells processes apart.
fn short(actor: &str) -> &str {
    let random = actor.len() == 32 && actor.bytes().all(|byte| byte.is_ascii_hexdigit());
    if random { &actor[..8] } else { actor }
}

fn one_line(text: &str) -> String {
    plain(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

fn times(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}
