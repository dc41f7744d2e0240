//! Goal: docs/theory.md says only what can be shown. Method: each command of its tables is run, and prints what stands
//! beside it.

use leaseproof_model::witness::witnesses;

use super::{Place, repository, text};

const CARGO_RUN: &str = "cargo run -- ";

/// The pieces of a text that stand between backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Each table row with a command: the command, and what it is said to print.
fn rows(page: &str) -> Vec<(&str, Vec<&str>)> {
    let cells = page.lines().filter(|line| line.starts_with('|')).map(|line| line.trim_matches('|').rsplit('|'));
    cells
        .filter_map(|mut cells| {
            let (prints, command) = (cells.next()?, cells.next()?);
            Some((*quoted(command).first()?, quoted(prints)))
        })
        .collect()
}

/// What the command of the page prints, with its exit code.
fn run(command: &str) -> (Option<i32>, String) {
    let args: Vec<String> = command
        .split_whitespace()
        .map(|arg| if arg.starts_with("scenarios/") { repository(arg) } else { arg.to_owned() })
        .collect();
    let output = Place::empty().run(&args.iter().map(String::as_str).collect::<Vec<_>>());
    (output.status.code(), text(&output.stdout))
}

#[test]
fn each_command_prints_what_stands_beside_it() {
    let page = std::fs::read_to_string(repository("docs/theory.md")).unwrap();
    let rows = rows(&page);
    assert!(rows.len() > 20, "{rows:?}");
    for (command, prints) in rows {
        assert!(!prints.is_empty(), "{command} is not said to print anything");
        let Some(command) = command.strip_prefix(CARGO_RUN) else {
            let (_, name) = command.split_once("cargo test -p leaseproof-model --test worlds ").unwrap();
            let tests = std::fs::read_to_string(repository("model/tests/worlds.rs")).unwrap();
            assert!(tests.contains(&format!("#[test]\nfn {name}")), "there is no test {name}");
            continue;
        };
        if command == "check" {
            // It takes as long as all the others together, and another test runs it: here only the names.
            let names: Vec<String> = witnesses().into_iter().map(|witness| witness.name).collect();
            assert!(prints.iter().all(|part| names.iter().any(|name| name == part)), "{prints:?}");
            continue;
        }
        let (code, out) = run(command);
        assert_eq!(code, Some(i32::from(command.contains("--without"))), "{command}:\n{out}");
        for part in prints {
            assert!(out.contains(part), "{command} does not print {part:?}:\n{out}");
        }
    }
}

#[test]
fn every_command_of_the_page_is_in_a_table_or_is_the_explorer() {
    let page = std::fs::read_to_string(repository("docs/theory.md")).unwrap();
    let outside = page.lines().filter(|line| !line.starts_with('|')).flat_map(quoted);
    let commands: Vec<&str> = outside.filter_map(|piece| piece.strip_prefix(CARGO_RUN)).collect();
    assert_eq!(commands, ["explore --without fence_complete"]);
}
