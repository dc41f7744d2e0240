//! Chrome's Trace Event Format, which Perfetto (ui.perfetto.dev) opens.
//!
//! A node is a process. What happens at an instant is an instant event on its first thread; a pause is a slice there, and a
//! downtime another. A task is an asynchronous track of the database: its claims are spans from the claim to what ended
//! them, with the epoch as a counter beside. A call to the third party is a flow from the caller to the ledger; one that was
//! lost ends nowhere.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::trace::{Header, Line};

/// The thread of a node on which its own life is shown.
const LIFE: u32 = 0;

/// The trace as one JSON document, one event a line.
pub fn perfetto(header: &Header, lines: &[Line]) -> String {
    let mut events = Vec::new();
    let pids: BTreeMap<&str, u32> = header.nodes.iter().map(String::as_str).zip(1..).collect();
    for (node, pid) in &pids {
        events.push((0, json!({"name": "process_name", "ph": "M", "pid": pid, "tid": LIFE, "args": {"name": node}})));
        events.push((
            0,
            json!({"name": "process_sort_index", "ph": "M", "pid": pid, "tid": LIFE, "args": {"sort_index": pid}}),
        ));
    }
    let mut open = Open::default();
    for line in lines {
        let Some(pid) = pids.get(line.node.as_str()).copied() else { continue };
        let database = pids.get("database").copied().unwrap_or(pid);
        open.life(line, pid, &mut events);
        open.claims(header, line, database, &mut events);
        open.calls(line, pid, &mut events);
        let event = json!({
            "name": name(line), "cat": category(line), "ph": "i", "s": "t",
            "ts": micros(line.t_ns), "pid": pid, "tid": LIFE, "args": arguments(line),
        });
        events.push((line.t_ns, event));
    }
    open.close(lines.last().map_or(0, |line| line.t_ns), &mut events);
    // What is open at the end was written late; viewers want the order of time.
    events.sort_by_key(|(t_ns, _)| *t_ns);
    let rows: Vec<String> = events.iter().map(|(_, event)| event.to_string()).collect();
    let about = json!({"scenario": header.scenario, "seed": header.seed, "without": header.without});
    format!("{{\"displayTimeUnit\":\"ms\",\"otherData\":{about},\"traceEvents\":[\n{}\n]}}\n", rows.join(",\n"))
}

type Events = Vec<(u64, Value)>;

/// What has begun and not ended.
#[derive(Default)]
struct Open {
    /// Pauses and downtimes, by process: name and beginning.
    lives: BTreeMap<u32, (&'static str, u64)>,
    /// Claims by the number of the task: the span's name and the process it is shown in.
    claims: BTreeMap<usize, (String, u32)>,
    /// How many flows there were.
    flows: u64,
    /// Calls on their way, by task and token: the flow.
    calls: BTreeMap<(String, u64), u64>,
}

impl Open {
    fn life(&mut self, line: &Line, pid: u32, events: &mut Events) {
        let begins = match line.event.as_str() {
            "crash" => Some("dead"),
            "pause" => Some("paused"),
            "start" | "resume" => None,
            _ => return,
        };
        // A pause that is cut short by a crash, and one in another, end where the next begins.
        if let Some((name, from)) = self.lives.remove(&pid) {
            events.push((from, slice(name, from, line.t_ns, pid)));
        }
        if let Some(name) = begins {
            self.lives.insert(pid, (name, line.t_ns));
        }
    }

    fn claims(&mut self, header: &Header, line: &Line, pid: u32, events: &mut Events) {
        let (Some(task), Some(to), Some(epoch)) = (&line.task, &line.to, line.row_epoch) else { return };
        let id = header.tasks.iter().position(|name| name == task).unwrap_or_default() + 1;
        if line.event == "claim" || to != "RUNNING" {
            if let Some((name, pid)) = self.claims.remove(&id) {
                events.push((line.t_ns, span("e", &name, id, line.t_ns, pid)));
            }
            let counter = json!({
                "name": format!("{task} epoch"), "ph": "C", "ts": micros(line.t_ns), "pid": pid,
                "args": {"epoch": epoch},
            });
            events.push((line.t_ns, counter));
        }
        if line.event == "claim" {
            let name = format!("{task} epoch {epoch} by {}", line.node);
            events.push((line.t_ns, span("b", &name, id, line.t_ns, pid)));
            self.claims.insert(id, (name, pid));
        }
    }

    fn calls(&mut self, line: &Line, pid: u32, events: &mut Events) {
        let (Some(task), Some(token)) = (&line.task, line.epoch) else { return };
        let key = (task.clone(), token);
        let flow = |phase: &str, id: u64| {
            json!({
                "name": format!("call {task} token {token}"), "cat": "call", "ph": phase, "bp": "e", "id": id,
                "ts": micros(line.t_ns), "pid": pid, "tid": LIFE,
            })
        };
        match line.event.as_str() {
            "call" => {
                self.flows += 1;
                self.calls.insert(key, self.flows);
                // A flow begins and ends in slices.
                events.push((line.t_ns, slice("call", line.t_ns, line.t_ns + 1_000, pid)));
                events.push((line.t_ns, flow("s", self.flows)));
            }
            "effect" | "repeat" | "refuse_call" => {
                if let Some(id) = self.calls.remove(&key) {
                    events.push((line.t_ns, slice("receive", line.t_ns, line.t_ns + 1_000, pid)));
                    events.push((line.t_ns, flow("f", id)));
                }
            }
            _ => {}
        }
    }

    fn close(self, t_ns: u64, events: &mut Events) {
        for (pid, (name, from)) in self.lives {
            events.push((from, slice(name, from, t_ns, pid)));
        }
        for (id, (name, pid)) in self.claims {
            events.push((t_ns, span("e", &name, id, t_ns, pid)));
        }
    }
}

/// The beginning or the end of a claim.
fn span(phase: &str, name: &str, id: usize, t_ns: u64, pid: u32) -> Value {
    json!({"name": name, "cat": "claim", "ph": phase, "id": id, "ts": micros(t_ns), "pid": pid, "tid": LIFE})
}

fn slice(name: &str, from: u64, to: u64, pid: u32) -> Value {
    json!({"name": name, "ph": "X", "ts": micros(from), "dur": micros(to.saturating_sub(from)), "pid": pid, "tid": LIFE})
}

/// The format's unit.
fn micros(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// What an instant is called.
pub(super) fn name(line: &Line) -> String {
    let point = line.point.as_ref().or(line.verb.as_ref()).map(|point| format!(" {point}")).unwrap_or_default();
    let task = line.task.as_ref().map(|task| format!(" {task}")).unwrap_or_default();
    format!("{}{point}{task}", line.event)
}

fn category(line: &Line) -> &'static str {
    match line.event.as_str() {
        "crash" | "pause" | "resume" | "cut" | "heal" | "lose" | "hold" => "fault",
        "effect" | "repeat" | "refuse_call" | "ask" => "third_party",
        _ if line.to.is_some() => "write",
        _ => "event",
    }
}

/// All that the line says besides when, where and what.
fn arguments(line: &Line) -> Value {
    let mut all = serde_json::to_value(line).unwrap_or_default();
    if let Some(fields) = all.as_object_mut() {
        for known in ["t_ns", "node", "event"] {
            fields.remove(known);
        }
    }
    all
}
