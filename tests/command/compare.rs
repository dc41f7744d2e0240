//! Goal: the comparison of the three designs is what the command measures, in the page and as JSON. Its words and counts are
//! held exactly. A time of the older designs is held to half a second; one of the lease to a sweep, for a change of the queue
//! by a few milliseconds may move the end of a lease behind the next sweep.

use serde_json::Value;

use super::json::documented;
use super::{Place, repository};

/// By how much a time of the older designs may differ, in seconds.
const OLDER_S: f64 = 0.5;
/// The same for the lease: the sweeper of the stories looks every 5 s.
const LEASE_S: f64 = 5.5;

/// The text without its times, and the times: the numbers with a decimal point.
fn times(text: &str) -> (String, Vec<f64>) {
    let (mut words, mut times, mut number) = (String::new(), Vec::new(), String::new());
    for c in text.chars().chain(['\n']) {
        if c.is_ascii_digit() || (c == '.' && !number.is_empty()) {
            number.push(c);
            continue;
        }
        match number.parse::<f64>() {
            Ok(time) if number.contains('.') => times.push(time),
            _ => words.push_str(&number),
        }
        number.clear();
        words.push(c);
    }
    (words, times)
}

#[track_caller]
fn same(shown: &str, printed: &str, within_s: f64) {
    let ((words, shown_times), (other_words, printed_times)) = (times(shown), times(printed));
    assert_eq!(words, other_words);
    for (one, other) in shown_times.iter().zip(&printed_times) {
        assert!((one - other).abs() < within_s, "{one} is shown, {other} is printed:\n{shown}\n{printed}");
    }
}

#[test]
fn the_page_has_the_table_that_the_command_fills() {
    let page = std::fs::read_to_string(repository("docs/designs.md")).unwrap();
    let table = Place::empty().good(&["compare", "--markdown"]);
    assert_eq!(table.lines().count(), 2 + 7, "{table}");
    let begin = page.find(table.lines().next().unwrap()).unwrap();
    let shown: Vec<&str> = page[begin..].lines().take(2 + 7).collect();
    for (shown, printed) in shown.into_iter().zip(table.lines()) {
        let (shown, printed): (Vec<&str>, Vec<&str>) = (shown.split('|').collect(), printed.split('|').collect());
        assert_eq!((shown.len(), printed.len()), (6, 6));
        for (column, (shown, printed)) in shown.into_iter().zip(printed).enumerate() {
            same(shown, printed, if column == 4 { LEASE_S } else { OLDER_S });
        }
    }
}

#[test]
fn compare_as_json() {
    let rows = Place::empty().json(&["compare"]);
    let shown = &documented("compare --json")[0];
    let rows = rows.as_array().unwrap();
    let printed = rows.iter().find(|row| row["aspect"] == shown["aspect"]).unwrap();
    for design in ["single_transaction", "commit_running", "lease"] {
        let (shown, printed) = (&shown[design], &printed[design]);
        let within_s = if design == "lease" { LEASE_S } else { OLDER_S };
        same(shown["value"].as_str().unwrap(), printed["value"].as_str().unwrap(), within_s);
        assert_eq!(shown["measured_in"], printed["measured_in"]);
        let names = |cell: &Value| cell["numbers"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(shown), names(printed));
        for row in rows {
            assert!(!row[design]["measured_in"].as_array().unwrap().is_empty(), "{row}");
            assert!(row[design]["numbers"].as_object().unwrap().values().all(Value::is_f64), "{row}");
        }
    }
}
