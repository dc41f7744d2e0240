//! `leaseproof replay`: one story, drawn.

use std::collections::BTreeMap;

use leaseproof_model::story::run_story;
use leaseproof_model::trace::Trace;
use leaseproof_scenarios::{Story, Verdict, load};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::trace_file;
use crate::cli::{ReplayArgs, Rung};
use crate::failure::Failure;
use crate::lanes::draw;
use crate::narrate::{self, Picture};
use crate::style::{Tone, paint, plain, print, print_json, width};
use crate::table::fill;

/// Runs the command.
pub fn run(args: &ReplayArgs) -> Result<(), Failure> {
    let story = load(&args.file)?;
    // Before anything runs: what is refused then was not waited for.
    if let Some(path) = &args.trace {
        trace_file::check(path)?;
    }
    match args.on {
        Rung::Model => on_model(&story, args),
        Rung::Sim => super::sim::replay(&story, args),
    }
}

/// What `replay --json` prints. Fields are only ever added, at the end.
#[derive(Serialize)]
pub struct Replayed<'a> {
    pub scenario: &'a str,
    pub rung: &'a str,
    /// `None` on the model, which has no seeds.
    pub seed: Option<u64>,
    pub verdict: String,
    pub trace_sha256: String,
    pub events: usize,
    pub expected: Vec<String>,
    /// What is not as the file expects it.
    pub complaints: Vec<String>,
    pub recovered_within_s: Option<f64>,
    /// Simulated runs; 0 on the model.
    pub seeds: u64,
    /// How many of them ended how.
    pub verdicts: BTreeMap<String, u64>,
    /// The model's: a shortest run to each verdict.
    pub endings: Vec<Ending>,
}

/// One of the verdicts that the interleavings end in.
#[derive(Serialize)]
pub struct Ending {
    pub verdict: String,
    pub trace_sha256: String,
    pub events: usize,
}

/// The first line of the model's trace.
#[derive(Serialize)]
struct ModelHeader<'a> {
    leaseproof_trace: u32,
    rung: &'a str,
    scenario: &'a str,
    verdict: String,
}

/// A further line of the model's trace.
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

fn model_lines(story: &Story, verdict: &Verdict, trace: &Trace) -> Result<String, Failure> {
    let header = ModelHeader {
        leaseproof_trace: leaseproof_sim::trace::VERSION,
        rung: "model",
        scenario: &story.name,
        verdict: verdict.to_string(),
    };
    let mut text = serde_json::to_string(&header)? + "\n";
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
    if args.perfetto.is_some() || args.shiviz.is_some() {
        let why = "--perfetto and --shiviz show simulated runs; leave them out, or take --on sim";
        return Err(Failure::BadInput(why.to_owned()));
    }
    let outcome = run_story(story)?;
    let Some((verdict, trace)) = outcome.verdicts.last_key_value() else {
        return Err(Failure::Internal(format!("{}: the model found no ending", story.name)));
    };
    let text = model_lines(story, verdict, trace)?;
    if let Some(path) = &args.trace {
        trace_file::write(path, &text)?;
    }
    let found: Vec<String> = outcome.verdicts.keys().map(ToString::to_string).collect();
    let expected: Vec<String> = story.expect.verdicts.iter().map(ToString::to_string).collect();
    let wrong = outcome.complaints(story);
    let agrees = wrong.is_empty();
    if args.json {
        let mut endings = Vec::new();
        for (verdict, trace) in &outcome.verdicts {
            let trace_sha256 = sha256(&model_lines(story, verdict, trace)?);
            endings.push(Ending { verdict: verdict.to_string(), trace_sha256, events: trace.events.len() });
        }
        print_json(&Replayed {
            scenario: &story.name,
            rung: "model",
            seed: None,
            verdict: verdict.to_string(),
            trace_sha256: sha256(&text),
            events: trace.events.len(),
            expected,
            complaints: wrong,
            recovered_within_s: outcome.recovered_within_ms.map(|ms| ms as f64 / 1e3),
            seeds: 0,
            verdicts: BTreeMap::new(),
            endings,
        })?;
    } else {
        let mut out = heading(story);
        out.push_str(&drawn(&narrate::of_model(story, &trace.events)));
        let tone = if verdict.broken().is_some() { Tone::Bad } else { Tone::Good };
        let states = outcome.states;
        out.push_str(&format!("\n{}  all interleavings, {states} states", paint(tone, &found.join(", "))));
        if let Some(ms) = outcome.recovered_within_ms {
            let since = if outcome.struck.is_empty() { "the start" } else { "the first fault" };
            out.push_str(&format!(", all resolved at most {:.1} s after {since}", ms as f64 / 1e3));
        }
        if found.len() > 1 {
            out.push_str("; drawn is a shortest run to the worst");
        }
        out.push('\n');
        if let Some(property) = verdict.broken() {
            out.push_str(&paint(Tone::Bad, &format!("violated: {} ({property})", property.sentence())));
            out.push('\n');
        }
        for why in wrong {
            out.push_str(&paint(Tone::Bad, &format!("not as expected: {why}")));
            out.push('\n');
        }
        print(&out)?;
    }
    if agrees { Ok(()) } else { Err(Failure::Violated) }
}

/// What the story is about, above its picture.
pub fn heading(story: &Story) -> String {
    let mut out = paint(Tone::Strong, &format!("{}: {}", plain(&story.name), plain(&story.title)));
    out.push('\n');
    for line in fill(&story.question, width()) {
        out.push_str(&plain(&line));
        out.push('\n');
    }
    out.push('\n');
    out
}

/// The picture as wide as the terminal.
pub fn drawn(picture: &Picture) -> String {
    draw(&picture.lanes, &picture.beats, width())
}

/// The hash of a trace, in hex.
pub fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
