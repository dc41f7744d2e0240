//! `leaseproof check --decisions`: what a sweeper may decide by what it can see, and where a person is needed.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use leaseproof_model::knowledge::class::{class_text, decision_text};
use leaseproof_model::knowledge::combinations::{declaration_text, declarations};
use leaseproof_model::knowledge::judge::Finding;
use leaseproof_model::knowledge::slow::slow_or_dead;
use leaseproof_model::knowledge::table::{Group, group_title, groups, markdown, verdict_text};
use leaseproof_model::knowledge::{Candidate, ClassRow, Combination, Settles, Side, Verdict, examine_all};
use leaseproof_rules::{Policy, decide_under};
use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::CheckArgs;
use crate::failure::Failure;
use crate::style::{Tone, paint, print, print_json, width};
use crate::table::{fill, layout};

/// Runs the command. 0 only if the rules are sound and maximal in every declaration examined.
pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let started = Instant::now();
    let progress = ProgressBar::new_spinner();
    progress.enable_steady_tick(Duration::from_millis(100));
    progress.set_message("every decision in every class");
    let internal = |error: leaseproof_model::check::ModelError| Failure::Internal(error.to_string());
    let only = args.only.as_deref().unwrap_or_default();
    let all = examine_all(only, decide_under).map_err(internal)?;
    progress.finish_and_clear();
    if all.is_empty() {
        let known: Vec<String> = declarations().into_iter().map(declaration_text).collect();
        return Err(Failure::BadInput(format!(
            "--only {only:?}: no such declaration; there are: {}",
            known.join(" · ")
        )));
    }
    if args.json {
        print_json(&all.iter().map(to_json).collect::<Vec<_>>())?;
    } else if args.markdown {
        let lease_ms = Policy::default().lease_ms;
        print(&markdown(&all, slow_or_dead(lease_ms).map_err(internal)?.as_ref()))?;
    } else {
        print(&report(&all, started.elapsed()))?;
    }
    match all.iter().all(|found| found.is_sound() && found.is_maximal()) {
        true => Ok(()),
        false => Err(Failure::Violated),
    }
}

/// A member of `check --decisions --json`. Fields are only ever added, at the end.
#[derive(Serialize)]
struct Declared<'a> {
    declaration: String,
    instruments: Vec<&'a str>,
    on_unknown: Option<&'a str>,
    sound: bool,
    maximal: bool,
    classes: Vec<Class>,
    worlds: Vec<&'a str>,
    states: usize,
}

#[derive(Serialize)]
struct Class {
    sees: String,
    decides: String,
    verdict: &'static str,
    why: String,
    decisions: Vec<Tried>,
    pair: Vec<Case>,
}

#[derive(Serialize)]
struct Tried {
    decision: String,
    safe: Value,
    settles: Value,
    breaks: Option<&'static str>,
    trace: Vec<String>,
}

#[derive(Serialize)]
struct Case {
    run: Vec<String>,
    state: String,
    right: Vec<String>,
}

fn to_json(found: &Combination) -> Declared<'_> {
    let has = found.declaration.map(|call| call.rule.instruments).unwrap_or_default();
    Declared {
        declaration: declaration_text(found.declaration),
        instruments: has.names().collect(),
        on_unknown: found.declaration.map(|call| call.rule.on_unknown.name()),
        sound: found.is_sound(),
        maximal: found.is_maximal(),
        classes: found.classes.iter().map(|row| class(&found.policy, row)).collect(),
        worlds: found.rules.iter().map(|(world, _)| world.as_str()).collect(),
        states: found.rules.iter().map(|(_, finding)| states(finding)).sum(),
    }
}

fn states(finding: &Finding) -> usize {
    match finding {
        Finding::Safe { states } => *states,
        Finding::Refuted(_) | Finding::Skipped => 0,
    }
}

fn class(policy: &Policy, row: &ClassRow) -> Class {
    let case = |side: &Side| Case {
        run: side.run.clone(),
        state: side.state.clone(),
        right: side.right.iter().map(|decision| decision_text(&row.class, *decision)).collect(),
    };
    Class {
        sees: class_text(policy, &row.class),
        decides: decision_text(&row.class, row.decided),
        verdict: match row.verdict {
            Verdict::Automatic => "automatic",
            Verdict::Person => "person",
            Verdict::Declined { .. } => "declined",
            Verdict::CouldBeAutomatic(_) => "could_be_automatic",
            Verdict::Unknown => "unknown",
        },
        why: verdict_text(row),
        decisions: row.candidates.iter().map(|candidate| tried(row, candidate)).collect(),
        pair: row.pair.iter().flat_map(|pair| [case(&pair.first), case(&pair.second)]).collect(),
    }
}

fn tried(row: &ClassRow, candidate: &Candidate) -> Tried {
    let (safe, breaks, trace) = match &candidate.finding {
        Finding::Safe { .. } => (true.into(), None, Vec::new()),
        Finding::Refuted(against) => (false.into(), Some(against.property.name()), against.steps.clone()),
        Finding::Skipped => ("cut".into(), None, Vec::new()),
    };
    let settles = match candidate.settles {
        None => Value::Null,
        Some(Settles::Yes) => true.into(),
        Some(Settles::No) => false.into(),
        Some(Settles::IfHandlersEnd) => json!("if_handlers_end"),
    };
    Tried { decision: decision_text(&row.class, candidate.decision), safe, settles, breaks, trace }
}

fn report(all: &[Combination], took: Duration) -> String {
    let mut out = String::new();
    for group in groups(all) {
        for line in fill(&group_title(&group), width()) {
            out.push_str(&paint(Tone::Strong, &line));
            out.push('\n');
        }
        out.push_str(&rows(&group));
        out.push('\n');
    }
    let classes: usize = all.iter().map(|found| found.classes.len()).sum();
    let every = |holds: fn(&Combination) -> bool| if all.iter().all(holds) { "yes" } else { "NO" };
    out.push_str(&format!(
        "sound: {}, maximal: {}; {} declarations, {classes} classes; * only postpones, ? ends only if the handler does; {:.1} s\n",
        every(Combination::is_sound),
        every(Combination::is_maximal),
        all.len(),
        took.as_secs_f64()
    ));
    out
}

fn rows(group: &Group<'_>) -> String {
    if !group.first.is_sound() {
        return format!("{}\n", paint(Tone::Bad, "  not sound"));
    }
    let cells: Vec<Vec<String>> = group
        .lines
        .iter()
        .map(|line| [&line.sees, &line.decides, &line.safe].map(|cell| cell.replace("; ", ", ")).to_vec())
        .collect();
    let mut out = String::new();
    let verdicts = group.rows.iter().map(|row| Some(row.verdict));
    for (line, verdict) in
        layout(&["what is seen", "the rules", "safe"], &cells).iter().zip(std::iter::once(None).chain(verdicts))
    {
        let (mark, tone) = match verdict {
            None => (" ", Tone::Dim),
            Some(Verdict::Automatic) => ("✓", Tone::Plain),
            Some(Verdict::Person | Verdict::Declined { .. }) => ("☞", Tone::Plain),
            Some(Verdict::CouldBeAutomatic(_) | Verdict::Unknown) => ("✗", Tone::Bad),
        };
        out.push_str(&paint(tone, &format!("{mark} {line}")));
        out.push('\n');
    }
    out
}
