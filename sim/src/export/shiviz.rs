//! ShiViz (bestchai.bitbucket.io/shiviz): one line an event with a vector clock, so that it draws who knew of what.
//!
//! The first two lines of the export are the settings that ShiViz asks for: the expression by which it reads the log, and an
//! empty delimiter. What a write or a refusal has told its writer, and what the third party was told, are the messages.

use std::collections::BTreeMap;

use serde_json::json;

use super::perfetto::name;
use crate::trace::{Header, Line};

/// How ShiViz is to read a line.
const EXPRESSION: &str = r"(?<host>\S+) (?<clock>{.*}) (?<event>.*)";

type Clock<'a> = BTreeMap<&'a str, u64>;

/// The trace as a log with vector clocks.
pub fn shiviz(header: &Header, lines: &[Line]) -> String {
    let mut clocks: BTreeMap<&str, Clock<'_>> =
        header.nodes.iter().map(|node| (node.as_str(), Clock::default())).collect();
    let mut calls: BTreeMap<(&str, u64), Clock<'_>> = BTreeMap::new();
    let mut out = format!("{EXPRESSION}\n\n");
    for line in lines {
        let node = line.node.as_str();
        let call = || Some((line.task.as_deref()?, line.epoch?));
        match line.event.as_str() {
            // The sender's clock travels with the call.
            "call" => {
                tell(&mut out, &mut clocks, node, &name(line));
                if let (Some(key), Some(clock)) = (call(), clocks.get(node)) {
                    calls.insert(key, clock.clone());
                }
            }
            "effect" | "repeat" | "refuse_call" => {
                if let Some(clock) = call().and_then(|key| calls.remove(&key)) {
                    learn(&mut clocks, node, &clock);
                }
                tell(&mut out, &mut clocks, node, &name(line));
            }
            // A statement: the writer sends, the database executes, and what the row says is known to both.
            _ if line.now_ms.is_some() && node != "database" => {
                tell(&mut out, &mut clocks, node, &format!("sends {}", statement(line)));
                exchange(&mut clocks, node, "database");
                let to = line.to.as_ref().or(line.from.as_ref()).map(|to| format!(" {to}")).unwrap_or_default();
                let epoch = line.row_epoch.map(|epoch| format!(" epoch {epoch}")).unwrap_or_default();
                tell(&mut out, &mut clocks, "database", &format!("{}{to}{epoch}", name(line)));
            }
            _ => tell(&mut out, &mut clocks, node, &name(line)),
        }
    }
    out
}

/// What was sent, whatever came of it.
fn statement(line: &Line) -> String {
    let verb = line.verb.as_deref().unwrap_or(if line.event == "adopt" { "complete" } else { &line.event });
    let task = line.task.as_ref().map(|task| format!(" {task}")).unwrap_or_default();
    format!("{verb}{task}")
}

/// An event of a node: its own time goes on, and a line is written.
fn tell<'a>(out: &mut String, clocks: &mut BTreeMap<&'a str, Clock<'a>>, node: &str, event: &str) {
    let Some((host, _)) = clocks.get_key_value(node).map(|(host, clock)| (*host, clock)) else { return };
    let Some(clock) = clocks.get_mut(host) else { return };
    *clock.entry(host).or_default() += 1;
    out.push_str(&format!("{host} {} {event}\n", json!(clock)));
}

/// The node knows what the clock knows.
fn learn<'a>(clocks: &mut BTreeMap<&'a str, Clock<'a>>, node: &str, told: &Clock<'a>) {
    let Some(clock) = clocks.get_mut(node) else { return };
    for (host, time) in told {
        let known = clock.entry(host).or_default();
        *known = (*known).max(*time);
    }
}

/// The receiver knows what the sender knows.
fn exchange<'a>(clocks: &mut BTreeMap<&'a str, Clock<'a>>, from: &str, to: &str) {
    if let Some(told) = clocks.get(from).cloned() {
        learn(clocks, to, &told);
    }
}
