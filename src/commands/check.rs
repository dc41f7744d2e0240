//! `leaseproof check`: the properties of the design on the model, with all guards or without one.

use std::time::Duration;

use indicatif::ProgressBar;
use leaseproof_model::check::{CheckRow, Holds, ModelError, RowKind, check_ablation, check_beyond, protects};
use leaseproof_model::designs::{Design, check_design};
use leaseproof_rules::{Guard, Property};
use serde::Serialize;
use serde_json::Value;

use crate::cli::CheckArgs;
use crate::failure::Failure;
use crate::style::{Tone, paint, print, print_json, width};
use crate::table::{fill, layout};

/// Runs the command. 0 only if everything holds: a search that was cut proves nothing.
pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    if args.decisions {
        return super::decisions::run(args);
    }
    if args.coverage {
        return super::coverage::run(args);
    }
    let progress = ProgressBar::new_spinner();
    progress.enable_steady_tick(Duration::from_millis(100));
    let internal = |error: ModelError| Failure::Internal(error.to_string());
    let mut rows = Vec::new();
    match (args.ablations, args.without) {
        _ if args.beyond => {
            progress.set_message("faults that the design does not promise to survive");
            rows = check_beyond().map_err(internal)?;
        }
        (true, _) => {
            for guard in Guard::ALL {
                progress.set_message(format!("the design without {guard}"));
                rows.extend(check_ablation(guard).map_err(internal)?);
            }
        }
        (false, Some(guard)) => {
            progress.set_message(format!("the design without {guard}"));
            rows = check_ablation(guard).map_err(internal)?;
        }
        (false, None) => {
            for design in &args.design.0 {
                progress.set_message(format!("the design {design} in all its worlds"));
                rows.extend(check_design(*design).map_err(internal)?);
            }
        }
    }
    progress.finish_and_clear();
    if args.json {
        print_json(&rows.iter().map(to_json).collect::<Vec<_>>())?;
    } else {
        let lease_alone = args.design.0 == [Design::Lease];
        print(&match lease_alone {
            _ if args.beyond => beyond(&rows),
            true => report(&rows, args.ablations),
            false => compared(&args.design.0, &rows),
        })?;
    }
    match rows.iter().all(|row| row.holds == Holds::Holds) {
        true => Ok(()),
        false => Err(Failure::Violated),
    }
}

/// A row of `check --json`. Fields are only ever added, at the end.
#[derive(Serialize)]
struct Row<'a> {
    design: &'a str,
    without: Option<&'a str>,
    property: &'a str,
    kind: &'a str,
    holds: Value,
    states: usize,
    trace_len: usize,
    seconds: f64,
    sentence: &'a str,
    shown_in: Option<&'a str>,
    worlds: &'a [String],
    trace: &'a [String],
}

fn to_json(row: &CheckRow) -> Row<'_> {
    Row {
        design: row.design,
        without: row.without.map(Guard::name),
        property: &row.property,
        kind: row.kind.name(),
        holds: match row.holds {
            Holds::Holds => true.into(),
            Holds::Violated => false.into(),
            Holds::Cut => "cut".into(),
        },
        states: row.states,
        trace_len: row.trace_len,
        seconds: (row.seconds * 1e3).round() / 1e3,
        sentence: sentence(row),
        shown_in: row.shown_in.as_deref(),
        worlds: &row.worlds,
        trace: &row.trace,
    }
}

fn sentence(row: &CheckRow) -> &str {
    match Property::from_name(&row.property) {
        Some(property) => property.sentence(),
        None => &row.property,
    }
}

fn report(rows: &[CheckRow], ablations: bool) -> String {
    let mut out = match ablations {
        true => ablation_table(rows),
        false => property_table(rows),
    };
    let shown: Vec<&CheckRow> =
        rows.iter().filter(|row| row.holds == Holds::Violated && !row.trace.is_empty()).collect();
    for row in shown.iter().filter(|row| !ablations && row.kind != RowKind::Sometimes) {
        out.push_str(&shortest_run(row));
    }
    let seconds: f64 = rows.iter().map(|row| row.seconds).sum();
    if ablations {
        let missed = Guard::ALL.iter().filter(|guard| is_missed(rows, **guard)).count();
        out.push_str(&format!(
            "\n{missed} of {} guards are missed when they are off; {seconds:.1} s\n",
            Guard::ALL.len()
        ));
        return out;
    }
    let count = |holds| rows.iter().filter(|row| row.holds == holds).count();
    let (states, worlds) = rows.first().map_or((0, 0), |row| (row.states, row.worlds.len()));
    out.push_str(&format!(
        "\n{} hold, {} violated, {} cut: {states} states in {worlds} {}, {seconds:.1} s\n",
        count(Holds::Holds),
        count(Holds::Violated),
        count(Holds::Cut),
        if worlds == 1 { "world" } else { "worlds" }
    ));
    out
}

fn shortest_run(row: &CheckRow) -> String {
    let world = row.shown_in.as_deref().unwrap_or_default();
    let mut out = paint(Tone::Strong, &format!("\nThe shortest run against “{}”, in {world}:", sentence(row)));
    out.push('\n');
    for (number, step) in (1..).zip(&row.trace) {
        for (index, line) in fill(step, width().saturating_sub(6).max(40)).into_iter().enumerate() {
            let margin = if index == 0 { format!("{number:>4}") } else { " ".repeat(4) };
            out.push_str(&format!("{margin}  {line}\n"));
        }
    }
    out
}

/// One table a design: each property in the world, or worlds, that the row is about. Then the shortest run against each
/// property in the first world of a design, which is the design as it is meant.
fn compared(designs: &[Design], rows: &[CheckRow]) -> String {
    let mut out = String::new();
    for design in designs {
        let of_design: Vec<&CheckRow> = rows.iter().filter(|row| row.design == design.name()).collect();
        let (cases, told): (Vec<&CheckRow>, _) = of_design.iter().partition(|row| row.kind == RowKind::Sometimes);
        let cells = told.iter().map(|row| {
            let trace = if row.trace_len == 0 { "–".to_owned() } else { row.trace_len.to_string() };
            let world = match row.worlds.as_slice() {
                [one] => one.clone(),
                many => format!("{} worlds", many.len()),
            };
            vec![mark(row.holds).to_owned(), sentence(row).to_owned(), trace, world]
        });
        out.push_str(&paint(Tone::Strong, &format!("{design}\n")));
        let lines = layout(&["", "property", "shortest trace", "in"], &cells.collect::<Vec<_>>());
        out.push_str(&painted(&lines, told.iter().map(|row| row.holds == Holds::Holds)));
        let reached = cases.iter().filter(|row| row.holds == Holds::Holds).count();
        out.push_str(&format!("{reached} of {} cases can be reached\n\n", cases.len()));
    }
    for row in rows.iter().filter(|row| row.holds == Holds::Violated && !row.trace.is_empty()) {
        let as_meant = rows.iter().find(|first| first.design == row.design);
        if as_meant.is_some_and(|first| first.worlds == row.worlds) {
            out.push_str(&shortest_run(row));
        }
    }
    out
}

/// One line a world: what breaks in it, with the length of the shortest run. Then that run for each property, once.
fn beyond(rows: &[CheckRow]) -> String {
    let mut worlds: Vec<&str> = rows.iter().filter_map(|row| row.worlds.first()).map(String::as_str).collect();
    worlds.dedup();
    let broken = |world: &str| {
        let of_world = rows.iter().filter(move |row| row.worlds.first().is_some_and(|name| name == world));
        of_world.filter(|row| row.holds == Holds::Violated).collect::<Vec<_>>()
    };
    let cells = worlds.iter().map(|world| {
        let told: Vec<String> = broken(world).iter().map(|row| format!("{} {}", row.property, row.trace_len)).collect();
        vec![(*world).to_owned(), if told.is_empty() { "nothing".to_owned() } else { told.join(", ") }]
    });
    let lines = layout(&["in", "breaks, in steps"], &cells.collect::<Vec<_>>());
    let mut out = painted(&lines, worlds.iter().map(|world| broken(world).is_empty()));
    for property in Property::ALL {
        let first = rows.iter().find(|row| row.property == property.name() && row.holds == Holds::Violated);
        out.push_str(&first.map_or_else(String::new, shortest_run));
    }
    out
}

/// Whether the property that a guard protects breaks without it.
fn is_missed(rows: &[CheckRow], guard: Guard) -> bool {
    rows.iter()
        .any(|row| row.without == Some(guard) && row.property == protects(guard).name() && row.holds == Holds::Violated)
}

fn property_table(rows: &[CheckRow]) -> String {
    let cells = rows.iter().map(|row| {
        let trace = if row.trace_len == 0 { "–".to_owned() } else { row.trace_len.to_string() };
        let cells = [mark(row.holds), row.kind.name(), sentence(row), &trace].map(str::to_owned);
        cells.to_vec()
    });
    let lines = layout(&["", "", "property", "shortest trace"], &cells.collect::<Vec<_>>());
    painted(&lines, rows.iter().map(|row| row.holds == Holds::Holds))
}

/// One line a guard: what it protects, and whether the model misses it.
fn ablation_table(rows: &[CheckRow]) -> String {
    let cells = Guard::ALL.map(|guard| {
        let broken: Vec<&CheckRow> =
            rows.iter().filter(|row| row.without == Some(guard) && row.holds == Holds::Violated).collect();
        let protected = protects(guard).name();
        let first = broken.iter().find(|row| row.property == protected);
        let others = broken.iter().map(|row| row.property.as_str()).filter(|name| *name != protected);
        vec![
            guard.name().to_owned(),
            first.map_or("nothing", |_| protected).to_owned(),
            first.map_or_else(String::new, |row| row.trace_len.to_string()),
            others.collect::<Vec<_>>().join(", "),
            if guard.on_code() { "model, code" } else { "model" }.to_owned(),
        ]
    });
    let lines = layout(&["without", "breaks", "in steps", "and then also", "shown on"], &cells);
    // A guard that nothing misses is the bad news here.
    painted(&lines, Guard::ALL.into_iter().map(|guard| is_missed(rows, guard)))
}

fn painted(lines: &[String], good: impl Iterator<Item = bool>) -> String {
    let mut out = String::new();
    for (index, (line, good)) in lines.iter().zip(std::iter::once(true).chain(good)).enumerate() {
        let tone = match (index, good) {
            (0, _) => Tone::Strong,
            (_, true) => Tone::Plain,
            (_, false) => Tone::Bad,
        };
        out.push_str(&paint(tone, line));
        out.push('\n');
    }
    out
}

fn mark(holds: Holds) -> &'static str {
    match holds {
        Holds::Holds => "✓",
        Holds::Violated => "✗",
        Holds::Cut => "cut",
    }
}
