//! `leaseproof sweep`: stories drawn from seeds, on the real code.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use leaseproof_rules::TRANSITIONS;
use leaseproof_scenarios::Story;
use leaseproof_sim::sweep::{Blow, Coverage, Pick, Place, Plan, Shrunk, State, Violation, run_one, shrink, story};
use serde::Serialize;

use super::replay::{drawn, heading};
use super::sim::defect;
use super::{jobs, trace_file};
use crate::cli::SweepArgs;
use crate::failure::Failure;
use crate::narrate;
use crate::style::{Tone, paint, print, print_json};

/// Runs, if neither a number nor a time is given.
const RUNS: u64 = 1_000;
/// Simulated runs that the shrinking of one violation may take.
const SHRINKING: u32 = 600;

/// Runs the command.
pub fn run(args: &SweepArgs) -> Result<(), Failure> {
    match args.only {
        Some(pick) => only(pick, args),
        None => sweep(args),
    }
}

/// What `sweep --json` prints. Fields are only ever added, at the end.
#[derive(Serialize)]
struct Swept<'a> {
    without: Option<&'a str>,
    runs: u64,
    variations: u64,
    next_seed: u64,
    violations: Vec<Told<'a>>,
    faults: u64,
    cells_reached: usize,
    cells: usize,
    faults_by_place: &'a BTreeMap<Place, BTreeMap<String, u64>>,
    steps: &'a BTreeMap<String, u64>,
    edges_missing: Vec<String>,
    statements: u64,
    virtual_s: u64,
    seconds: f64,
    runs_per_s: f64,
    statements_per_s: f64,
    peak_memory_kib: Option<u64>,
}

/// A violation, with what brings it back.
#[derive(Serialize)]
struct Told<'a> {
    run: Pick,
    complaints: &'a [String],
    replay: String,
    shrunk: Option<Smaller>,
}

#[derive(Serialize)]
struct Smaller {
    file: String,
    replay: String,
    faults: usize,
    tasks: usize,
    runs: u32,
}

/// How far this part of the sweep went.
struct Part {
    violations: Vec<Violation>,
    runs: u64,
    statements: u64,
    elapsed: Duration,
}

fn sweep(args: &SweepArgs) -> Result<(), Failure> {
    let mut state = begin(args)?;
    let part = rounds(&mut state, args)?;
    let shrunk = match part.violations.first() {
        Some(first) if !args.no_shrink => shrink(&story(first.run, args.without), SHRINKING, jobs(args.jobs)),
        _ => None,
    };
    let saved = match (&shrunk, &args.save) {
        (Some(shrunk), Some(folder)) => Some(save(folder, shrunk)?),
        _ => None,
    };
    let told = |(index, violation): (usize, &'_ Violation)| {
        let smaller = shrunk.as_ref().zip(saved.as_ref()).filter(|_| index == 0).map(|(shrunk, file)| Smaller {
            file: file.display().to_string(),
            replay: format!("leaseproof replay {}", file.display()),
            faults: shrunk.story.faults.len(),
            tasks: shrunk.story.tasks.len(),
            runs: shrunk.runs,
        });
        (violation.run, command(violation.run, args), smaller)
    };
    let seconds = part.elapsed.as_secs_f64().max(1e-9);
    if args.json {
        let (cells_reached, cells) = state.coverage.share();
        let violations = part.violations.iter().enumerate().map(|(index, violation)| {
            let (run, replay, shrunk) = told((index, violation));
            Told { run, complaints: &violation.complaints, replay, shrunk }
        });
        print_json(&Swept {
            without: state.without.as_deref(),
            runs: state.totals.runs,
            variations: state.totals.variations,
            next_seed: state.next_seed,
            violations: violations.collect(),
            faults: state.totals.faults,
            cells_reached,
            cells,
            faults_by_place: &state.coverage.cells,
            steps: &state.coverage.steps,
            edges_missing: state.coverage.missing_edges(),
            statements: state.totals.statements,
            virtual_s: state.totals.virtual_ms / 1_000,
            seconds: (seconds * 1e3).round() / 1e3,
            runs_per_s: (part.runs as f64 / seconds * 10.0).round() / 10.0,
            statements_per_s: (part.statements as f64 / seconds).round(),
            peak_memory_kib: peak_memory_kib(),
        })?;
    } else {
        let mut out = table(&state.coverage);
        out.push_str(&summary(&state, &part, seconds));
        for (index, violation) in part.violations.iter().enumerate().take(5) {
            let (run, replay, smaller) = told((index, violation));
            let why = violation.complaints.first().map_or("", String::as_str);
            out.push_str(&paint(Tone::Bad, &format!("run {run}: {why}")));
            out.push_str(&format!("\n  {replay}\n"));
            if let Some(smaller) = smaller {
                out.push_str(&format!(
                    "  shrunk to {} fault(s) and {} task(s) in {} runs:\n  {}\n",
                    smaller.faults, smaller.tasks, smaller.runs, smaller.replay
                ));
            } else if let Some(shrunk) = shrunk.as_ref().filter(|_| index == 0) {
                out.push_str(&format!(
                    "  shrunk to this in {} runs (--save DIR keeps it):\n\n{}\n",
                    shrunk.runs,
                    shrunk.story.to_toml()
                ));
            }
        }
        if part.violations.len() > 5 {
            out.push_str(&format!("… and {} runs more\n", part.violations.len() - 5));
        }
        print(&out)?;
    }
    if part.violations.is_empty() { Ok(()) } else { Err(Failure::Violated) }
}

/// The state that the sweep begins with: a new one, or that of the file.
fn begin(args: &SweepArgs) -> Result<State, Failure> {
    let from = args.from.unwrap_or(0);
    let Some(path) = args.state.as_ref().filter(|path| path.exists()) else {
        return Ok(State::new(from, args.without));
    };
    let refuse = |why: String| Failure::BadInput(format!("--state {}: {why}", path.display()));
    if args.from.is_some() {
        return Err(refuse("the file says from where to go on; leave out --from, or name another file".to_owned()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| refuse(format!("can not be read: {error}")))?;
    let state = State::from_json(&text)
        .map_err(|error| refuse(format!("{error}; name a file that is not there yet, and the sweep begins anew")))?;
    if state.without.as_deref() != args.without.map(|guard| guard.name()) {
        let guard = state.without.as_ref().map_or("no guard was off".to_owned(), |guard| format!("{guard} was off"));
        return Err(refuse(format!("{guard} in that sweep; go on with the same --without")));
    }
    Ok(state)
}

/// Rounds until the runs or the time are used up, or something is violated. The state is written after each.
fn rounds(state: &mut State, args: &SweepArgs) -> Result<Part, Failure> {
    let before = state.totals;
    let runs = match (args.seeds, args.time) {
        (Some(runs), _) => before.runs.saturating_add(runs),
        (None, Some(_)) => u64::MAX,
        (None, None) => before.runs.saturating_add(RUNS),
    };
    let progress = match args.seeds.or(args.time.is_none().then_some(RUNS)) {
        Some(runs) => ProgressBar::new(runs),
        None => ProgressBar::no_length(),
    };
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos} runs, {per_sec:.0}  {msg}") {
        progress.set_style(style);
    }
    let plan = Plan { jobs: jobs(args.jobs), runs };
    let began = Instant::now();
    let mut violations = Vec::new();
    while violations.is_empty() && args.time.is_none_or(|time| began.elapsed() < Duration::from_millis(time.0)) {
        let round = state.round(plan, args.without, &|| progress.inc(1));
        match round {
            Ok(None) => break,
            Ok(Some(more)) => violations = more,
            Err((pick, error)) => {
                progress.finish_and_clear();
                let again = command(pick, args);
                return Err(match defect(&story(pick, args.without), pick.seed, &error) {
                    Failure::Internal(why) => Failure::Internal(format!("{why}; again with: {again}")),
                    other => other,
                });
            }
        }
        let (reached, of) = state.coverage.share();
        progress.set_message(format!("{reached} of {of} faults at points"));
        if let Some(path) = &args.state {
            keep(path, &state.to_json()).map_err(|error| {
                Failure::BadInput(format!("--state {}: can not be written: {error}", path.display()))
            })?;
        }
    }
    let elapsed = began.elapsed();
    progress.finish_and_clear();
    Ok(Part {
        violations,
        runs: state.totals.runs - before.runs,
        statements: state.totals.statements - before.statements,
        elapsed,
    })
}

/// Puts the new text in place of the old in one step: a sweep that is killed leaves one or the other.
fn keep(path: &Path, text: &str) -> std::io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, path)
}

/// Saves a shrunk story as a file that is read back as the same story.
fn save(folder: &Path, shrunk: &Shrunk) -> Result<PathBuf, Failure> {
    let path = folder.join(format!("{}.toml", shrunk.story.name));
    let refuse = |why: String| Failure::BadInput(format!("--save {}: {why}", path.display()));
    std::fs::create_dir_all(folder).map_err(|error| refuse(format!("the folder can not be made: {error}")))?;
    let text = format!(
        "# Found by `leaseproof sweep` and shrunk; `leaseproof replay` runs it under its seed.\n{}",
        shrunk.story.to_toml()
    );
    if path.exists() && std::fs::read_to_string(&path).ok().as_deref() != Some(text.as_str()) {
        return Err(refuse("is there already and is not the same; move it away first".to_owned()));
    }
    keep(&path, &text).map_err(|error| refuse(format!("can not be written: {error}")))?;
    Ok(path)
}

/// The one command that brings a run back.
fn command(pick: Pick, args: &SweepArgs) -> String {
    let without = args.without.map(|guard| format!(" --without {guard}")).unwrap_or_default();
    format!("leaseproof sweep --only {pick}{without}")
}

/// One run, drawn.
fn only(pick: Pick, args: &SweepArgs) -> Result<(), Failure> {
    let story: Story = story(pick, args.without);
    if let Some(path) = &args.trace {
        trace_file::check(path)?;
    }
    let run = run_one(pick, args.without).map_err(|error| defect(&story, pick.seed, &error))?;
    if let Some(path) = &args.trace {
        trace_file::write(path, &run.trace)?;
    }
    let complaints = run.complaints(&story);
    if args.json {
        let violation = Violation { run: pick, complaints };
        let told = Told { run: pick, complaints: &violation.complaints, replay: command(pick, args), shrunk: None };
        print_json(&told)?;
        return if violation.complaints.is_empty() { Ok(()) } else { Err(Failure::Violated) };
    }
    let mut out = heading(&story);
    out.push_str(&drawn(&narrate::of_sim(&story, &run)));
    let tone = if complaints.is_empty() { Tone::Good } else { Tone::Bad };
    out.push_str(&format!("\n{}  run {pick} of a sweep\n", paint(tone, &run.verdict.to_string())));
    for why in &complaints {
        out.push_str(&paint(Tone::Bad, why));
        out.push('\n');
    }
    print(&out)?;
    if complaints.is_empty() { Ok(()) } else { Err(Failure::Violated) }
}

/// How often each fault struck where.
fn table(coverage: &Coverage) -> String {
    let mut out = format!("{:28}", "faults that struck");
    for blow in Blow::ALL {
        out.push_str(&format!("{:>17}", blow.name()));
    }
    out.push('\n');
    for place in Place::all() {
        out.push_str(&format!("{place:28}"));
        for blow in Blow::ALL {
            let cell = match coverage.count(place, blow) {
                _ if !place.can(blow) => String::new(),
                0 => "·".to_owned(),
                count => count.to_string(),
            };
            out.push_str(&format!("{cell:>17}"));
        }
        out.push('\n');
    }
    out
}

fn summary(state: &State, part: &Part, seconds: f64) -> String {
    let totals = &state.totals;
    let (reached, of) = state.coverage.share();
    let missing = state.coverage.missing_edges();
    let mut out = format!(
        "\n{reached} of {of} pairs of place and fault; {} of {} edges of the transition table; {} kinds of steps\n",
        TRANSITIONS.len() - missing.len(),
        TRANSITIONS.len(),
        state.coverage.steps.len()
    );
    if !missing.is_empty() {
        out.push_str(&format!("not taken: {}\n", missing.join(", ")));
    }
    let memory = peak_memory_kib().map(|kib| format!(", peak memory {} MiB", kib / 1_024)).unwrap_or_default();
    out.push_str(&format!(
        "{} runs ({} of them variations), {} faults struck, {:.1} virtual hours; the next seed is {}\n",
        totals.runs,
        totals.variations,
        totals.faults,
        totals.virtual_ms as f64 / 3.6e6,
        state.next_seed
    ));
    out.push_str(&format!(
        "{} runs in {seconds:.1} s: {:.1} runs/s, {:.0} statements/s{memory}\n",
        part.runs,
        part.runs as f64 / seconds,
        part.statements as f64 / seconds
    ));
    let verdict = match part.violations.len() {
        0 => paint(Tone::Good, "no violation"),
        some => paint(Tone::Bad, &format!("{some} run(s) with a violation")),
    };
    out.push_str(&verdict);
    out.push('\n');
    out
}

/// The most memory that this process has held, where the system tells.
fn peak_memory_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
