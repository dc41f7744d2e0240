//! `leaseproof replay`: one story, drawn.

use std::path::Path;

use leaseproof_model::story::run_story;
use leaseproof_model::trace::Trace;
use leaseproof_scenarios::{Node, Story, load};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::cli::{ReplayArgs, Rung};
use crate::failure::Failure;
use crate::lanes::draw;
use crate::narrate::{self, Picture};
use crate::style::{Tone, paint, print, print_json, width};
use crate::table::fill;

/// Runs the command.
pub fn run(args: &ReplayArgs) -> Result<(), Failure> {
    let story = load(&args.file)?;
    match args.on {
        Rung::Model => on_model(&story, args),
        Rung::Sim => super::sim::replay(&story, args),
    }
}

/// What `replay --json` prints. Fields are only ever added, at the end.
#[derive(Serialize)]
struct Replayed<'a> {
    scenario: &'a str,
    rung: &'a str,
    seed: Option<u64>,
    verdict: String,
    trace_sha256: String,
    events: usize,
    expected: Vec<String>,
    endings: Vec<Ending>,
}

/// One of the verdicts that the interleavings end in.
#[derive(Serialize)]
struct Ending {
    verdict: String,
    trace_sha256: String,
    events: usize,
}

/// A line of the model's trace.
#[derive(Serialize)]
struct ModelLine<'a> {
    t_ms: u64,
    node: &'a str,
    what: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<u64>,
}

fn model_lines(trace: &Trace) -> Result<String, Failure> {
    let mut text = String::new();
    for event in &trace.events {
        let line = ModelLine {
            t_ms: event.time_ms,
            node: &event.node,
            what: &event.what,
            task: event.task.as_deref(),
            epoch: event.epoch,
        };
        text.push_str(&serde_json::to_string(&line)?);
        text.push('\n');
    }
    Ok(text)
}

fn on_model(story: &Story, args: &ReplayArgs) -> Result<(), Failure> {
    if args.seed.is_some() || args.seeds.is_some() {
        let why = "--seed and --seeds choose simulated runs; the model takes all interleavings: leave them out";
        return Err(Failure::BadInput(why.to_owned()));
    }
    let outcome = run_story(story)?;
    let Some((verdict, trace)) = outcome.verdicts.last_key_value() else {
        return Err(Failure::Internal(format!("{}: the model found no ending", story.name)));
    };
    let text = model_lines(trace)?;
    write_trace(args.trace.as_deref(), &text)?;
    if args.json {
        let mut endings = Vec::new();
        for (verdict, trace) in &outcome.verdicts {
            let trace_sha256 = sha256(&model_lines(trace)?);
            endings.push(Ending { verdict: verdict.to_string(), trace_sha256, events: trace.events.len() });
        }
        print_json(&Replayed {
            scenario: &story.name,
            rung: "model",
            seed: None,
            verdict: verdict.to_string(),
            trace_sha256: sha256(&text),
            events: trace.events.len(),
            expected: story.expect.verdicts.iter().map(ToString::to_string).collect(),
            endings,
        })?;
    } else {
        let mut out = heading(story);
        out.push_str(&drawn(&narrate::of_model(&trace.events, &nodes(story))));
        let states = outcome.states;
        let found: Vec<String> = outcome.verdicts.keys().map(ToString::to_string).collect();
        out.push_str(&format!("\n{} in {states} states of the model", found.join(", ")));
        if found.len() > 1 {
            out.push_str("; drawn is a shortest run to the worst");
        }
        out.push('\n');
        print(&out)?;
    }
    let expected = &story.expect.verdicts;
    match !outcome.cut && outcome.verdicts.keys().eq(expected.iter()) {
        true => Ok(()),
        false => Err(Failure::Violated),
    }
}

/// The lanes of a story, in their order.
pub fn nodes(story: &Story) -> Vec<String> {
    let mut nodes: Vec<String> = story.executors.iter().map(|executor| executor.name.clone()).collect();
    nodes.extend([Node::Sweeper, Node::Database, Node::ThirdParty].map(|node| story.node_name(node).to_owned()));
    nodes.push("person".to_owned());
    nodes
}

/// What the story is about, above its picture.
pub fn heading(story: &Story) -> String {
    let mut out = paint(Tone::Strong, &format!("{}: {}", story.name, story.title));
    out.push('\n');
    for line in fill(&story.question, width()) {
        out.push_str(&line);
        out.push('\n');
    }
    out.push('\n');
    out
}

/// The picture as wide as the terminal.
pub fn drawn(picture: &Picture) -> String {
    draw(&picture.lanes, &picture.beats, width())
}

/// Writes the trace, if it is wanted.
pub fn write_trace(path: Option<&Path>, text: &str) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let wrong = |error| Failure::BadInput(format!("--trace {}: can not be written: {error}", path.display()));
    std::fs::write(path, text).map_err(wrong)
}

/// The hash of a trace, in hex.
pub fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
