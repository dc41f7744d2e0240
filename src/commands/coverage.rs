//! `leaseproof check --coverage`: which steps the checks have really seen, by design.

use std::time::Duration;

use indicatif::ProgressBar;
use leaseproof_model::check::ModelError;
use leaseproof_model::coverage::{Cell, Coverage, coverage};
use leaseproof_model::designs::Design;
use serde::Serialize;

use crate::cli::CheckArgs;
use crate::failure::Failure;
use crate::style::{Tone, paint, print, print_json};
use crate::table::layout;

/// Runs the command. 0 only if every step happens, or is said why it can not.
pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let progress = ProgressBar::new_spinner();
    progress.enable_steady_tick(Duration::from_millis(100));
    let mut all = Vec::new();
    for design in Design::ALL {
        progress.set_message(format!("every step of the design {design}"));
        all.push(coverage(design).map_err(|error: ModelError| Failure::Internal(error.to_string()))?);
    }
    progress.finish_and_clear();
    if args.json {
        print_json(&all.iter().flat_map(rows).collect::<Vec<_>>())?;
    } else {
        print(&report(&all))?;
    }
    match all.iter().flat_map(|of| &of.cells).all(Cell::is_as_said) {
        true => Ok(()),
        false => Err(Failure::Violated),
    }
}

/// A row of `check --coverage --json`. Fields are only ever added, at the end.
#[derive(Serialize)]
struct Row<'a> {
    design: &'a str,
    step: &'a str,
    count: u64,
    absent: Option<&'a str>,
}

fn rows(of: &Coverage) -> impl Iterator<Item = Row<'_>> {
    of.cells.iter().map(|cell| Row {
        design: of.design.name(),
        step: cell.kind.words(),
        count: cell.steps,
        absent: cell.absent,
    })
}

/// One line a kind of step, and the reasons for what is not there below, by letter.
fn report(all: &[Coverage]) -> String {
    let mut reasons: Vec<&str> = Vec::new();
    let mut told = |cell: &Cell| match cell.absent {
        Some(reason) if cell.steps == 0 => {
            let known = reasons.iter().position(|other| *other == reason);
            let at = known.unwrap_or_else(|| {
                reasons.push(reason);
                reasons.len() - 1
            });
            format!("– {}", letter(at))
        }
        _ => cell.steps.to_string(),
    };
    let Some(first) = all.first() else { return String::new() };
    let mut cells = Vec::new();
    let mut good = Vec::new();
    for (index, cell) in first.cells.iter().enumerate() {
        let of_kind: Vec<&Cell> = all.iter().map(|of| &of.cells[index]).collect();
        good.push(of_kind.iter().all(|cell| cell.is_as_said()));
        let mark = if good[index] { "✓" } else { "✗" };
        let mut line = vec![mark.to_owned(), cell.kind.words().to_owned()];
        line.extend(of_kind.into_iter().map(&mut told));
        cells.push(line);
    }
    let mut header = vec!["", "step"];
    header.extend(all.iter().map(|of| of.design.name()));
    let mut out = String::new();
    for (index, line) in layout(&header, &cells).iter().enumerate() {
        let tone = match index.checked_sub(1) {
            None => Tone::Strong,
            Some(row) if good[row] => Tone::Plain,
            Some(_) => Tone::Bad,
        };
        out.push_str(&paint(tone, line));
        out.push('\n');
    }
    out.push('\n');
    for (at, reason) in reasons.iter().enumerate() {
        out.push_str(&format!("{} {reason}\n", letter(at)));
    }
    let sums = all.iter().map(|of| format!("{} {} states in {} worlds", of.design, of.states, of.worlds));
    out.push_str(&format!("\n{}\n", sums.collect::<Vec<_>>().join("; ")));
    out
}

fn letter(at: usize) -> char {
    char::from(b'a' + u8::try_from(at).unwrap_or(u8::MAX).min(25))
}
