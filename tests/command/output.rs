//! Goal: what is printed is safe for a terminal, exact for a program, and no cause of a panic where it can not be written.

use std::fs::OpenOptions;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use super::{Place, text};

/// Clears a screen, turns the direction of reading, begins a command in one letter.
const EVIL: &str = "a\u{1b}[2Jb\u{202e}c\u{9b}31md";
const TAMED: &str = r"a\u{1b}[2Jb\u{202e}c\u{9b}31md";

/// As to a terminal: nothing is stripped on the way.
fn as_on_a_terminal(place: &Place, args: &[&str]) -> Output {
    place.command(args).env("CLICOLOR_FORCE", "1").env("HOSTNAME", EVIL).output().unwrap()
}

#[track_caller]
fn is_tamed(what: &[u8]) {
    let what = text(what);
    assert!(what.contains(TAMED) && !what.contains("\u{1b}[2J"), "{what}");
    assert!(!what.contains(['\u{202e}', '\u{9b}']), "{what}");
}

#[test]
fn text_from_the_database_can_not_speak_to_the_terminal() {
    let place = Place::with_queue();
    let says = json!({"command": format!("echo '{EVIL}' >&2; exit 65")}).to_string();
    place.good(&["queue", "enqueue", "--payload", &says]);
    place.good(&["queue", "enqueue", "--kind", EVIL, "--payload", &format!("\"{EVIL}\"").replace('\u{1b}', " ")]);
    let worked = as_on_a_terminal(&place, &["queue", "work", "--until-empty", "--boot-id", EVIL]);
    is_tamed(&worked.stdout);
    is_tamed(&as_on_a_terminal(&place, &["queue", "list"]).stdout);
    is_tamed(&as_on_a_terminal(&place, &["queue", "show", "1"]).stdout);
    is_tamed(&as_on_a_terminal(&place, &["queue", "show", "2"]).stdout);
    // Its message names host and boot id of the first one.
    is_tamed(&as_on_a_terminal(&place, &["queue", "work", "--until-empty", "--boot-id", EVIL]).stderr);
    is_tamed(&worked.stderr);
}

#[test]
fn a_line_of_an_error_can_not_pass_for_a_fact() {
    let place = Place::with_queue();
    let lines = json!({"command": "printf 'no\\nowner     mallory' >&2; exit 65"}).to_string();
    place.good(&["queue", "enqueue", "--payload", &lines]);
    place.run(&["queue", "work", "--until-empty"]);
    let shown = place.good(&["queue", "show", "1"]);
    assert!(shown.contains("\nerror     bad input: exit-65: no\n          owner     mallory\n"), "{shown}");
}

#[test]
fn json_is_what_was_stored_byte_for_byte() {
    let place = Place::with_queue();
    let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    let payloads = [
        "{\"n\": 123456789012345678901234567890, \"n\":1.00000000000000000001, \"e\":1E5}",
        "\"\\u001b[31m \\ud83d\\ude00 \u{9b}31m \u{202e} \\/\"",
        &deep,
    ];
    for payload in payloads {
        place.good(&["queue", "enqueue", "--kind", "other", "--payload", payload]);
    }
    let listed = place.good(&["queue", "list", "--json"]);
    for (nth, payload) in payloads.iter().enumerate() {
        assert!(listed.contains(&format!("\"payload\": {payload},\n")), "{payload}: {listed}");
        let shown = place.good(&["queue", "show", &(nth + 1).to_string(), "--json"]);
        assert!(shown.contains(payload), "{payload}: {shown}");
    }
}

/// The built command with its outputs as given, the place's queue in it.
fn command(place: &Place, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leaseproof"));
    command.args(args).current_dir(place.path()).env_remove("LEASEPROOF_URL");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A device on which nothing fits.
fn full() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").unwrap().into()
}

const TELLING: [&[&str]; 6] = [
    &["--help"],
    &["--version"],
    &["queue", "list"],
    &["queue", "list", "--json"],
    &["queue", "sweep"],
    &["explore", "--list"],
];

#[test]
fn a_full_standard_output_is_told_and_a_reader_that_has_gone_is_not() {
    let place = Place::with_queue();
    for args in TELLING {
        let output = command(&place, args).stdout(full()).output().unwrap();
        let complaint = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{args:?}: {complaint}");
        assert!(complaint.contains("standard output can not be written"), "{args:?}: {complaint}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command(&place, args).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn a_standard_error_that_can_not_be_written_does_not_change_the_exit_code() {
    let place = Place::with_queue();
    for args in [&["queue", "show", "9"][..], &["check", "--world", "x"], &["queue", "list", "--limit", "0"], &[]] {
        assert_eq!(command(&place, args).stderr(full()).output().unwrap().status.code(), Some(2), "{args:?}");
        let output = command(&place, args).stdout(full()).stderr(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn a_worker_works_on_where_nobody_listens() {
    let place = Place::with_queue();
    for _ in 0..3 {
        place.good(&["queue", "enqueue", "--payload", r#"{"command":"true"}"#]);
        place.good(&["queue", "enqueue", "--payload", r#"{"command":"exit 65"}"#]);
        let worked = command(&place, &["queue", "work", "--until-empty"]).stdout(full()).stderr(full()).output();
        assert_eq!(worked.unwrap().status.code(), Some(3));
        let tasks = place.json(&["queue", "list"]);
        let open = tasks
            .as_array()
            .unwrap()
            .iter()
            .find(|task| task["finished_at_ms"].is_null() && task["reason"] == Value::Null);
        assert_eq!(open, None);
    }
}

#[test]
fn closed_outputs_are_no_failure() {
    let place = Place::with_queue();
    for closed in [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"] {
        for args in ["--help", "queue list", "queue list --json", "queue work --until-empty"] {
            let line = format!("{} {args} {closed}", env!("CARGO_BIN_EXE_leaseproof"));
            let status =
                Command::new("sh").args(["-c", &line]).current_dir(place.path()).stdout(Stdio::null()).status();
            assert_eq!(status.unwrap().code(), Some(0), "{line}");
        }
    }
}
