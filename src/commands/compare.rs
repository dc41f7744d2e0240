//! `leaseproof compare`: the three designs beside each other, measured.

use leaseproof_sim::older::compare::{Cell, CompareError, Row, compare};
use serde::Serialize;

use crate::cli::CompareArgs;
use crate::failure::Failure;
use crate::style::{Tone, paint, print, print_json};
use crate::table::fill;

/// The designs, in the order of the columns.
const DESIGNS: [&str; 3] = ["single-transaction", "commit-running", "lease"];

/// How wide the text is filled.
const COLUMNS: usize = 96;

/// Runs the command.
pub fn run(args: &CompareArgs) -> Result<(), Failure> {
    let rows = compare(args.seed)?;
    if args.json {
        print_json(&rows.iter().map(JsonRow::from).collect::<Vec<_>>())
    } else if args.markdown {
        print(&markdown(&rows))
    } else {
        print(&report(&rows))
    }
}

impl From<CompareError> for Failure {
    fn from(error: CompareError) -> Failure {
        Failure::Internal(error.to_string())
    }
}

/// A row of `compare --json`. Fields are only ever added, at the end.
#[derive(Serialize)]
struct JsonRow<'a> {
    aspect: &'a str,
    single_transaction: JsonCell<'a>,
    commit_running: JsonCell<'a>,
    lease: JsonCell<'a>,
}

#[derive(Serialize)]
struct JsonCell<'a> {
    value: &'a str,
    measured_in: &'a [&'static str],
    numbers: &'a std::collections::BTreeMap<&'static str, f64>,
}

impl<'a> From<&'a Row> for JsonRow<'a> {
    fn from(row: &'a Row) -> JsonRow<'a> {
        let cell =
            |cell: &'a Cell| JsonCell { value: &cell.value, measured_in: &cell.measured_in, numbers: &cell.numbers };
        JsonRow {
            aspect: row.aspect,
            single_transaction: cell(&row.single_transaction),
            commit_running: cell(&row.commit_running),
            lease: cell(&row.lease),
        }
    }
}

fn cells(row: &Row) -> [&Cell; 3] {
    [&row.single_transaction, &row.commit_running, &row.lease]
}

/// Where a cell was measured.
fn place(cell: &Cell) -> String {
    format!("[{}]", cell.measured_in.join(", "))
}

/// One block an aspect.
fn report(rows: &[Row]) -> String {
    let mut out = String::new();
    for row in rows {
        out.push_str(&format!("{}\n", paint(Tone::Strong, row.aspect)));
        for (design, cell) in DESIGNS.iter().zip(cells(row)) {
            for (index, line) in fill(&cell.value, COLUMNS - 22).iter().enumerate() {
                out.push_str(&format!("  {:<20}{line}\n", if index == 0 { design } else { "" }));
            }
            out.push_str(&format!("  {:<20}{}\n", "", paint(Tone::Dim, &place(cell))));
        }
    }
    out.push_str(
        "\n[…]: the stories of scenarios/designs in whose runs it was measured, on the real code in the simulation\n",
    );
    out
}

/// The table of docs/designs.md.
fn markdown(rows: &[Row]) -> String {
    let mut out = format!("| | {} |\n|---|---|---|---|\n", DESIGNS.join(" | "));
    for row in rows {
        let cells = cells(row).map(|cell| format!("{} *{}*", cell.value, place(cell)));
        out.push_str(&format!("| {} | {} |\n", row.aspect, cells.join(" | ")));
    }
    out
}
