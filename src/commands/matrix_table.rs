//! The matrix for the terminal: one row a story, one line a verdict, the question beneath.

use std::collections::BTreeSet;

use leaseproof_scenarios::Verdict;
use unicode_width::UnicodeWidthStr;

use super::matrix::{Row, covered};
use crate::style::{Tone, paint};
use crate::table::fill;

const HEADER: [&str; 8] = ["scenario", "verdict", "model", "sim", "recovers within", "model", "sim", "effects"];

/// Draws the rows of a matrix of so many seeds, made in so many wall seconds, for a terminal of so many columns.
pub fn draw(rows: &[Row], seeds: u64, seconds: f64, columns: usize) -> String {
    let blocks: Vec<Vec<[String; 8]>> = rows.iter().map(cells).collect();
    let mut widths = HEADER.map(UnicodeWidthStr::width);
    for line in blocks.iter().flatten() {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.width());
        }
    }
    // Where the line would not fit, the scenario has one of its own.
    let stacked = widths.iter().sum::<usize>() + 2 * widths.len() > columns;
    let line = |cells: &[String; 8]| {
        let skipped = usize::from(stacked);
        let padded = cells.iter().zip(widths).enumerate().skip(skipped).map(|(index, (cell, width))| {
            let room = " ".repeat(width.saturating_sub(cell.width()));
            // Numbers to the right, words to the left.
            if index < 2 { format!("{cell}{room}") } else { format!("{room}{cell}") }
        });
        let text = padded.collect::<Vec<_>>().join("  ");
        if stacked { format!("  {text}") } else { text }
    };
    let mut out = String::new();
    let mut push = |margin: &str, tone: Tone, text: &str| {
        out.push_str(margin);
        out.push_str(&paint(tone, text.trim_end()));
        out.push('\n');
    };
    push("  ", Tone::Strong, &line(&HEADER.map(str::to_owned)));
    for (row, block) in rows.iter().zip(&blocks) {
        let agrees = row.disagreements.is_empty();
        let mark = if agrees { paint(Tone::Good, "✓ ") } else { paint(Tone::Bad, "✗ ") };
        if stacked {
            push(&mark, Tone::Strong, &row.story.name);
        }
        for (index, cells) in block.iter().enumerate() {
            let margin = if index == 0 && !stacked { mark.as_str() } else { "  " };
            push(margin, if agrees { Tone::Plain } else { Tone::Bad }, &line(cells));
        }
        for text in fill(&row.story.question, columns.saturating_sub(4).max(40)) {
            push("    ", Tone::Dim, &text);
        }
        for why in &row.disagreements {
            push("    ", Tone::Bad, why);
        }
    }
    out.push('\n');
    out.push_str(&closing(rows, seeds, seconds));
    out
}

/// The lines of one story.
fn cells(row: &Row) -> Vec<[String; 8]> {
    let mut verdicts: BTreeSet<Verdict> = row.story.expect.verdicts.clone();
    verdicts.extend(row.model.verdicts.keys());
    verdicts.extend(row.sim.verdicts.keys());
    let seconds = |ms: Option<u64>| ms.map_or_else(|| "–".to_owned(), |ms| format!("{:.1}s", ms as f64 / 1e3));
    let runs: u64 = row.sim.verdicts.values().sum();
    let lines = verdicts.into_iter().enumerate().map(|(index, verdict)| {
        let first = |text: String| if index == 0 { text } else { String::new() };
        let expected = row.story.expect.verdicts.contains(&verdict);
        let model = match (expected, row.model.verdicts.contains_key(&verdict)) {
            (true, true) => "✓",
            (true, false) => "missing",
            (false, true) => "unexpected",
            (false, false) => "no",
        };
        let effects = row.story.tasks.iter().any(|task| task.effect.is_some());
        let most = row.model.effects_max.max(row.sim.effects_max);
        [
            first(row.story.name.clone()),
            verdict.to_string(),
            model.to_owned(),
            format!("{}/{runs}", row.sim.verdicts.get(&verdict).copied().unwrap_or_default()),
            first(
                row.story
                    .expect
                    .recovers_within_ms
                    .map_or_else(|| "–".to_owned(), |ms| format!("{}s", ms as f64 / 1e3)),
            ),
            first(seconds(row.model.recovered_within_ms)),
            first(seconds(row.sim.recovered_ms)),
            first(if effects { format!("≤ {most}") } else { "–".to_owned() }),
        ]
    });
    lines.collect()
}

fn closing(rows: &[Row], seeds: u64, seconds: f64) -> String {
    let agree = rows.iter().filter(|row| row.disagreements.is_empty()).count();
    let runs: u64 = rows.iter().flat_map(|row| row.sim.verdicts.values()).sum();
    let found: usize = rows.iter().map(|row| row.model.verdicts.len()).sum();
    let seen: f64 = rows.iter().map(|row| covered(row) * row.model.verdicts.len() as f64).sum();
    let states: usize = rows.iter().map(|row| row.model.states).sum();
    let statements: u64 = rows.iter().map(|row| row.sim.statements).sum();
    let hours = rows.iter().map(|row| row.sim.virtual_ms).sum::<u64>() as f64 / 3_600_000.0;
    let tone = if agree == rows.len() { Tone::Good } else { Tone::Bad };
    format!(
        "{}: the model in all interleavings ({states} states), the real code over {seeds} seeds each\n\
         ({runs} runs, {statements} statements, {hours:.1} virtual hours), which saw {seen:.0} of the model's {found} verdicts; {seconds:.1} s\n",
        paint(tone, &format!("{agree} of {} stories agree", rows.len()))
    )
}
