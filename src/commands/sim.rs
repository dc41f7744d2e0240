//! `leaseproof replay` on the real code, in the simulation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use indicatif::ProgressBar;
use leaseproof_rules::Property;
use leaseproof_scenarios::{Millis, Story, Verdict};
use leaseproof_sim::run::{Run, RunError, run_many};

use super::replay::{Replayed, drawn, heading, sha256};
use super::trace_file;
use crate::cli::ReplayArgs;
use crate::failure::Failure;
use crate::narrate;
use crate::style::{Tone, paint, print, print_json};

/// A simulation that does not come to its end is a defect, and its seed finds it again; unless the surroundings are to
/// blame.
pub fn defect(story: &Story, seed: u64, error: &RunError) -> Failure {
    match error {
        RunError::Environment { .. } => Failure::BadInput(error.to_string()),
        _ => Failure::Internal(format!("{}, seed {seed}: {error}", story.name)),
    }
}

/// All runs of a replay, but only one of them kept whole.
#[derive(Default)]
struct Tally {
    verdicts: BTreeMap<Verdict, u64>,
    complaints: BTreeMap<u64, String>,
    errors: BTreeMap<u64, RunError>,
    drawn: Option<(u64, Run)>,
    /// The faults that struck in some run.
    struck: BTreeSet<usize>,
}

impl Tally {
    fn add(&mut self, story: &Story, seed: u64, run: Result<Run, RunError>) {
        let run = match run {
            Ok(run) => run,
            Err(error) => {
                self.errors.insert(seed, error);
                return;
            }
        };
        *self.verdicts.entry(run.verdict).or_default() += 1;
        self.struck.extend(&run.struck);
        if let Some(first) = run.complaints(story).into_iter().next() {
            self.complaints.insert(seed, first);
        }
        // The worst, and the first of these: the same whatever the order of arrival.
        let beats = |(held, best): &(u64, Run)| (run.verdict, *held) > (best.verdict, seed);
        if self.drawn.as_ref().is_none_or(beats) {
            self.drawn = Some((seed, run));
        }
    }
}

/// Replays a story on the real code.
pub fn replay(story: &Story, args: &ReplayArgs) -> Result<(), Failure> {
    let first = args.seed.or(story.seed).unwrap_or(0);
    let count = args.seeds.unwrap_or(1);
    let Some(end) = first.checked_add(count) else {
        return Err(Failure::BadInput(format!("--seed {first} --seeds {count}: the last seed is over {}", u64::MAX)));
    };
    let progress = match count {
        1 => ProgressBar::hidden(),
        _ => ProgressBar::new(count),
    };
    let tally = Mutex::new(Tally::default());
    run_many(story, first..end, super::jobs(0).min(usize::try_from(count).unwrap_or(usize::MAX)), &|seed, run| {
        tally.lock().unwrap_or_else(PoisonError::into_inner).add(story, seed, run);
        progress.inc(1);
    });
    progress.finish_and_clear();
    let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some((seed, error)) = tally.errors.first_key_value() {
        return Err(defect(story, *seed, error));
    }
    let Some((seed, run)) = &tally.drawn else {
        return Err(Failure::Internal("no run".to_owned()));
    };
    if let Some(path) = &args.trace {
        trace_file::write(path, &run.trace)?;
    }
    super::exports::write(args.perfetto.as_deref(), args.shiviz.as_deref(), &run.header, &run.lines)?;
    // One run alone may well pass a fault by, e.g. because another executor was first.
    let unstruck = if count > 1 { story.unstruck(&tally.struck) } else { Vec::new() };
    if args.json {
        print_json(&Replayed {
            scenario: &story.name,
            rung: "sim",
            seed: Some(*seed),
            verdict: run.verdict.to_string(),
            trace_sha256: sha256(&run.trace),
            events: run.lines.len(),
            expected: story.expect.verdicts.iter().map(ToString::to_string).collect(),
            complaints: run.complaints(story).into_iter().chain(unstruck.iter().cloned()).collect(),
            recovered_within_s: run.recovered_ms.map(|ms| ms as f64 / 1e3),
            seeds: count,
            verdicts: tally.verdicts.iter().map(|(verdict, count)| (verdict.to_string(), *count)).collect(),
            endings: Vec::new(),
        })?;
    } else {
        let mut out = told(story, *seed, run, &tally, count);
        for why in &unstruck {
            out.push_str(&paint(Tone::Bad, &format!("not as expected: {why} in {count} seeds")));
            out.push('\n');
        }
        print(&out)?;
    }
    match tally.complaints.is_empty() && unstruck.is_empty() {
        true => Ok(()),
        false => Err(Failure::Violated),
    }
}

fn told(story: &Story, seed: u64, run: &Run, tally: &Tally, count: u64) -> String {
    let mut out = heading(story);
    out.push_str(&drawn(&narrate::of_sim(story, run)));
    let tone = if run.verdict.broken().is_some() { Tone::Bad } else { Tone::Good };
    out.push_str(&format!("\n{}  seed {seed}", paint(tone, &run.verdict.to_string())));
    let since = if run.struck.is_empty() { "the start" } else { "the first fault" };
    match run.recovered_ms {
        Some(ms) => out.push_str(&format!(", all resolved {:.1} s after {since}", ms as f64 / 1e3)),
        None => out.push_str(&format!(", not resolved by the horizon of {}", Millis(story.timing.horizon_ms))),
    }
    if run.struck.is_empty() && !story.faults.is_empty() {
        out.push_str("; no fault struck");
    }
    if story.tasks.iter().any(|task| task.effect.is_some()) {
        out.push_str(&match run.effects_min == run.effects_max {
            true => format!(", effect ×{}", run.effects_max),
            false => format!(", effects ×{} to ×{}", run.effects_min, run.effects_max),
        });
    }
    out.push('\n');
    let mut explained: Vec<Property> = Vec::new();
    for finding in &run.findings {
        let Some(property) = finding.property else { continue };
        if !explained.contains(&property) {
            explained.push(property);
            let text = format!("violated: {} ({}): {}", property.sentence(), property, finding.why);
            out.push_str(&paint(Tone::Bad, &text));
            out.push('\n');
        }
    }
    if count > 1 {
        let all: Vec<String> = tally.verdicts.iter().map(|(verdict, n)| format!("{verdict} {n}×")).collect();
        out.push_str(&format!("{count} seeds: {}; drawn is the first of the worst\n", all.join(", ")));
    }
    for (seed, why) in tally.complaints.iter().take(5) {
        out.push_str(&paint(Tone::Bad, &format!("not as expected, seed {seed}: {why}")));
        out.push('\n');
    }
    if tally.complaints.len() > 5 {
        out.push_str(&format!("… and {} seeds more\n", tally.complaints.len() - 5));
    }
    out
}
