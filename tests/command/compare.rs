//! Goal: the comparison of the three designs is what the command measures, in the page and as JSON.

use super::json::{documented, same_shape};
use super::{Place, repository};

#[test]
fn the_page_has_the_table_that_the_command_fills() {
    let page = std::fs::read_to_string(repository("docs/designs.md")).unwrap();
    let table = Place::empty().good(&["compare", "--markdown"]);
    assert_eq!(table.lines().count(), 2 + 7, "{table}");
    assert!(page.contains(&table), "docs/designs.md lacks\n{table}");
}

#[test]
fn compare_as_json() {
    let rows = Place::empty().json(&["compare"]);
    let rows = rows.as_array().unwrap();
    let shown = &documented("compare --json")[0];
    for (index, row) in rows.iter().enumerate() {
        for design in ["single_transaction", "commit_running", "lease"] {
            let cell = &row[design];
            assert!(!cell["measured_in"].as_array().unwrap().is_empty(), "{row}");
            if index == 1 {
                // The one that the page shows.
                assert_eq!(cell, &shown[design]);
            }
            same_shape("cell", &shown[design]["value"], &cell["value"]);
        }
    }
    assert_eq!(rows[1]["aspect"], shown["aspect"]);
}
