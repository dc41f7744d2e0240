//! `leaseproof matrix`: every story on the model and on the real code.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use leaseproof_model::story::{StoryOutcome, run_story};
use leaseproof_scenarios::{Story, Verdict, stories};
use leaseproof_sim::run::{Run, RunError, run_many};
use serde::Serialize;

use super::sim::defect;
use super::{jobs, matrix_table};
use crate::cli::MatrixArgs;
use crate::failure::Failure;
use crate::style::{print, print_json, width};

/// A story on both rungs.
pub struct Row {
    pub story: Story,
    pub model: StoryOutcome,
    pub sim: Sim,
    /// What does not fit, in words. Empty: expectation, model and real code agree.
    pub disagreements: Vec<String>,
    /// Wall seconds of both rungs.
    pub seconds: f64,
}

/// What the simulated runs of a story have in common.
#[derive(Default)]
pub struct Sim {
    /// How many runs ended how.
    pub verdicts: BTreeMap<Verdict, u64>,
    /// The longest recovery, in ms. `None`: some run, violations aside, was not resolved, or there was none.
    pub recovered_ms: Option<u64>,
    pub effects_max: u32,
    pub statements: u64,
    pub virtual_ms: u64,
    unresolved: bool,
    /// The faults that struck in some run.
    struck: BTreeSet<usize>,
    complaints: BTreeMap<u64, String>,
    errors: BTreeMap<u64, RunError>,
}

impl Sim {
    fn add(&mut self, story: &Story, seed: u64, run: Result<Run, RunError>) {
        let run = match run {
            Ok(run) => run,
            Err(error) => {
                self.errors.insert(seed, error);
                return;
            }
        };
        *self.verdicts.entry(run.verdict).or_default() += 1;
        if !matches!(run.verdict, Verdict::Violated(_)) {
            self.unresolved |= run.recovered_ms.is_none();
            self.recovered_ms = self.recovered_ms.max(run.recovered_ms);
        }
        self.struck.extend(&run.struck);
        self.effects_max = self.effects_max.max(run.effects_max);
        self.statements += run.statements;
        self.virtual_ms += run.virtual_ms;
        if let Some(first) = run.complaints(story).into_iter().next() {
            self.complaints.insert(seed, first);
        }
    }
}

/// An object of `matrix --json`. Fields are only ever added, at the end.
#[derive(Serialize)]
struct Object<'a> {
    scenario: &'a str,
    question: &'a str,
    expected: BTreeSet<String>,
    model: BTreeSet<String>,
    sim: BTreeSet<String>,
    agree: bool,
    seeds: u64,
    effects_max: u32,
    /// Measured in the simulation: the worst.
    recovered_within_s: Option<f64>,
    /// Of the file.
    bound_s: Option<f64>,
    /// Over all interleavings: the worst.
    model_recovered_within_s: Option<f64>,
    /// How many of the seeds ended how.
    sim_runs: BTreeMap<String, u64>,
    /// The share of the model's verdicts that the simulation saw.
    covered: f64,
    disagreements: &'a [String],
    title: &'a str,
    requirements: &'a [String],
    sources: &'a [String],
    states: usize,
    statements: u64,
    seconds: f64,
}

/// Runs the command. 0 if every story agrees.
pub fn run(args: &MatrixArgs) -> Result<(), Failure> {
    let began = Instant::now();
    let all = stories()?;
    let names: Vec<String> = all.iter().map(|story| story.name.clone()).collect();
    let wanted = |story: &Story| args.only.as_ref().is_none_or(|only| story.name.contains(only.as_str()));
    let chosen: Vec<Story> = all.into_iter().filter(wanted).collect();
    if chosen.is_empty() {
        let only = args.only.as_deref().unwrap_or_default();
        return Err(Failure::BadInput(format!(
            "--only {only:?}: no story has this in its name; there are: {}",
            names.join(", ")
        )));
    }
    let progress = ProgressBar::new((chosen.len() as u64).saturating_mul(args.seeds));
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3}%  {msg}") {
        progress.set_style(style);
    }
    let mut rows = Vec::new();
    for story in chosen {
        progress.set_message(story.name.clone());
        rows.push(tell(story, args, &progress)?);
    }
    progress.finish_and_clear();
    if args.json {
        print_json(&rows.iter().map(|row| object(row, args.seeds)).collect::<Vec<_>>())?;
    } else {
        print(&matrix_table::draw(&rows, args.seeds, began.elapsed().as_secs_f64(), width()))?;
    }
    match rows.iter().all(|row| row.disagreements.is_empty()) {
        true => Ok(()),
        false => Err(Failure::Violated),
    }
}

/// One story on both rungs.
fn tell(story: Story, args: &MatrixArgs, progress: &ProgressBar) -> Result<Row, Failure> {
    let began = Instant::now();
    let model = run_story(&story)?;
    let shared = Mutex::new(Sim::default());
    run_many(&story, 0..args.seeds, jobs(args.jobs), &|seed, run| {
        shared.lock().unwrap_or_else(PoisonError::into_inner).add(&story, seed, run);
        progress.inc(1);
    });
    let mut sim = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some((seed, error)) = sim.errors.first_key_value() {
        return Err(defect(&story, *seed, error));
    }
    if sim.unresolved {
        sim.recovered_ms = None;
    }
    let disagreements = disagreements(&story, &model, &sim);
    Ok(Row { story, model, sim, disagreements, seconds: began.elapsed().as_secs_f64() })
}

/// The model must find exactly what the file expects; the real code some of it, and nothing else. Both keep the bounds.
fn disagreements(story: &Story, model: &StoryOutcome, sim: &Sim) -> Vec<String> {
    let mut wrong: Vec<String> = model.complaints(story).into_iter().map(|why| format!("model: {why}")).collect();
    let beyond: Vec<String> =
        sim.verdicts.keys().filter(|verdict| !model.verdicts.contains_key(verdict)).map(ToString::to_string).collect();
    if !beyond.is_empty() {
        wrong.push(format!("sim: ends in {}, which the model does not find", beyond.join(", ")));
    }
    if sim.verdicts.is_empty() {
        wrong.push("sim: no run".to_owned());
    }
    wrong.extend(story.unstruck(&sim.struck).into_iter().map(|why| format!("sim: {why}")));
    let more = sim.complaints.len().saturating_sub(1);
    if let Some((seed, why)) = sim.complaints.first_key_value() {
        let more = if more == 0 { String::new() } else { format!(" (and {more} seeds more)") };
        wrong.push(format!("sim, seed {seed}: {why}{more}"));
    }
    wrong
}

fn object(row: &Row, seeds: u64) -> Object<'_> {
    let Row { story, model, sim, .. } = row;
    let seconds = |ms: Option<u64>| ms.map(|ms| ms as f64 / 1e3);
    Object {
        scenario: &story.name,
        question: &story.question,
        expected: story.expect.verdicts.iter().map(ToString::to_string).collect(),
        model: model.verdicts.keys().map(ToString::to_string).collect(),
        sim: sim.verdicts.keys().map(ToString::to_string).collect(),
        agree: row.disagreements.is_empty(),
        seeds,
        effects_max: model.effects_max.max(sim.effects_max),
        recovered_within_s: seconds(sim.recovered_ms),
        bound_s: seconds(story.expect.recovers_within_ms),
        model_recovered_within_s: seconds(model.recovered_within_ms),
        sim_runs: sim.verdicts.iter().map(|(verdict, runs)| (verdict.to_string(), *runs)).collect(),
        covered: covered(row),
        disagreements: &row.disagreements,
        title: &story.title,
        requirements: &story.requirements,
        sources: &story.sources,
        states: model.states,
        statements: sim.statements,
        seconds: (row.seconds * 1e3).round() / 1e3,
    }
}

/// The share of the model's verdicts that the simulation saw, from 0 to 1.
pub fn covered(row: &Row) -> f64 {
    let seen = row.model.verdicts.keys().filter(|verdict| row.sim.verdicts.contains_key(verdict)).count();
    seen as f64 / row.model.verdicts.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use leaseproof_rules::Reason;

    use super::*;

    fn told(name: &str) -> (Story, StoryOutcome) {
        let story = stories().unwrap().into_iter().find(|story| story.name == name).unwrap();
        let model = run_story(&story).unwrap();
        (story, model)
    }

    fn seen(verdicts: &[(Verdict, u64)]) -> Sim {
        Sim { verdicts: verdicts.iter().copied().collect(), struck: BTreeSet::from([0, 1, 2, 3]), ..Sim::default() }
    }

    #[test]
    fn a_subset_agrees_and_anything_else_does_not() {
        let (story, model) = told("crash-around-the-call");
        assert_eq!(model.verdicts.len(), 2);
        let some = seen(&[(Verdict::AutoRecovered, 3)]);
        assert_eq!(disagreements(&story, &model, &some), [""; 0]);
        let other = seen(&[(Verdict::AutoRecovered, 3), (Verdict::Escalated(Reason::Overrun), 1)]);
        assert_eq!(
            disagreements(&story, &model, &other),
            ["sim: ends in escalated(overrun), which the model does not find"]
        );
        assert_eq!(disagreements(&story, &model, &seen(&[])), ["sim: no run"]);
        let unstruck = Sim { struck: BTreeSet::new(), ..some };
        assert_eq!(disagreements(&story, &model, &unstruck), ["sim: faults[0], on w1, never strikes"]);
    }

    #[test]
    fn a_file_that_expects_more_or_less_than_the_model_finds_does_not_agree() {
        let (mut story, model) = told("crash-around-the-call");
        let sim = seen(&[(Verdict::AutoRecovered, 1)]);
        story.expect.verdicts.insert(Verdict::Stuck);
        assert_eq!(disagreements(&story, &model, &sim).len(), 1);
        story.expect.verdicts = BTreeSet::from([Verdict::AutoRecovered]);
        assert_eq!(disagreements(&story, &model, &sim).len(), 1);
    }

    #[test]
    fn a_bound_that_the_model_misses_does_not_agree() {
        let (mut story, model) = told("batch-oom");
        story.expect.recovers_within_ms = Some(1_000);
        let wrong = disagreements(&story, &model, &seen(&[(Verdict::AutoRecovered, 1)]));
        assert!(wrong[0].starts_with("model: resolved after "), "{wrong:?}");
    }
}
