//! Goal: the life of tasks in a SQLite file, as the command tells it.

use serde_json::{Value, json};

use super::{Place, repository, text};

const FAILS: &str = r#"{"command":"echo it broke >&2; exit 3"}"#;

fn statuses(place: &Place) -> Vec<Value> {
    let tasks = place.json(&["queue", "list"]);
    tasks.as_array().unwrap().iter().map(|task| task["status"].clone()).collect()
}

#[test]
fn migrate_says_what_it_did_and_is_safe_to_repeat() {
    let place = Place::empty();
    assert_eq!(place.json(&["queue", "migrate"]), json!({"from": 0, "to": 1}));
    assert_eq!(place.json(&["queue", "migrate"]), json!({"from": 1, "to": 1}));
}

#[test]
fn a_command_runs_and_its_output_is_the_result() {
    let place = Place::with_queue();
    let payload = json!({"command": "echo task $LEASEPROOF_TASK_ID epoch $LEASEPROOF_EPOCH"}).to_string();
    assert_eq!(place.json(&["queue", "enqueue", "--payload", &payload]), json!({"id": 1, "new": true}));
    place.work();
    let shown = place.json(&["queue", "show", "1"]);
    assert_eq!(shown["task"]["status"], "SUCCESS");
    assert_eq!(shown["task"]["result"], json!({"exit": 0, "stdout": "task 1 epoch 1\n", "truncated": false}));
    let verbs: Vec<&str> = shown["record"].as_array().unwrap().iter().map(|e| e["verb"].as_str().unwrap()).collect();
    assert_eq!(verbs, ["enqueue", "claim", "complete"]);
}

#[test]
fn exit_65_and_used_up_attempts_go_to_a_person_who_can_decide_each_way() {
    let place = Place::with_queue();
    let bad = r#"{"command":"echo no such customer >&2; exit 65"}"#;
    place.good(&["queue", "enqueue", "--payload", bad]);
    for _ in 0..2 {
        place.good(&["queue", "enqueue", "--payload", FAILS, "--max-attempts", "2", "--retry-delay", "10ms"]);
    }
    place.work();
    assert_eq!(statuses(&place), ["WAIT_MANUAL", "WAIT_MANUAL", "WAIT_MANUAL"]);
    let waiting = place.json(&["queue", "list", "--status", "wait_manual"]);
    let told: Vec<_> = (waiting.as_array().unwrap().iter())
        .map(|task| (task["reason"].as_str().unwrap(), task["attempts"].as_u64().unwrap()))
        .collect();
    assert_eq!(told, [("not_retryable", 1), ("attempts_exhausted", 2), ("attempts_exhausted", 2)]);
    assert_eq!(waiting[0]["last_error"], "bad input: exit-65: no such customer");
    assert_eq!(waiting[1]["last_error"], "exit-3: it broke");

    let decide = |id: &str, how: &[&str]| {
        let said = ["--by", "alice", "--why", "asked the customer"];
        place.json(&[&["queue", "resolve", id], how, &said].concat())
    };
    place.write("input.json", r#"{"command":"echo now it works"}"#);
    assert_eq!(decide("1", &["--rerun", "--input", "input.json"])["status"], "PENDING");
    assert_eq!(decide("2", &["--fail"])["status"], "FAIL");
    assert_eq!(decide("3", &["--succeed"])["status"], "SUCCESS");
    place.work();
    assert_eq!(statuses(&place), ["SUCCESS", "FAIL", "SUCCESS"]);
    let shown = place.json(&["queue", "show", "1"]);
    assert_eq!(shown["task"]["result"]["stdout"], "now it works\n");
    let decision = &shown["record"].as_array().unwrap().iter().find(|entry| entry["verb"] == "rerun").unwrap();
    assert_eq!((&decision["actor"], &decision["note"]), (&json!("alice"), &json!("asked the customer")));
}

#[test]
fn a_decision_about_an_epoch_that_has_passed_is_refused() {
    let place = Place::with_queue();
    place.good(&["queue", "enqueue", "--payload", FAILS, "--max-attempts", "1"]);
    place.work();
    let epoch = place.json(&["queue", "show", "1"])["task"]["epoch"].as_u64().unwrap();
    let by = ["--by", "alice", "--why", "why not"];
    let stale = (epoch - 1).to_string();
    let output = place.run(&[&["queue", "resolve", "1", "--fail", "--epoch", &stale], &by[..]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let fresh = epoch.to_string();
    place.good(&[&["queue", "resolve", "1", "--fail", "--epoch", &fresh], &by[..]].concat());
}

#[test]
fn a_unique_key_makes_it_safe_to_enqueue_again() {
    let place = Place::with_queue();
    let args = ["queue", "enqueue", "--payload", r#"{"command":"true"}"#, "--unique-key", "order 7"];
    assert_eq!(place.json(&args), json!({"id": 1, "new": true}));
    assert_eq!(place.json(&args), json!({"id": 1, "new": false}));
    // As from a variable that is not set: it would make one task of all.
    let empty = ["queue", "enqueue", "--payload", r#"{"command":"true"}"#, "--unique-key", ""];
    assert_eq!(place.run(&empty).status.code(), Some(2));
}

#[test]
fn a_payload_can_come_from_standard_input() {
    let place = Place::with_queue();
    let mut command = place.command(&["queue", "enqueue", "--payload", "-"]);
    let output = command.write_stdin(r#"{"command":"echo from stdin"}"#).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    place.work();
    assert_eq!(place.json(&["queue", "show", "1"])["task"]["result"]["stdout"], "from stdin\n");
}

#[test]
fn the_list_has_pages_and_filters() {
    let place = Place::with_queue();
    for _ in 0..3 {
        place.good(&["queue", "enqueue", "--payload", r#"{"command":"true"}"#]);
    }
    place.good(&["queue", "enqueue", "--kind", "letter", "--payload", "{}"]);
    let ids = |args: &[&str]| -> Vec<i64> {
        let tasks = place.json(&[&["queue", "list"], args].concat());
        tasks.as_array().unwrap().iter().map(|task| task["id"].as_i64().unwrap()).collect()
    };
    assert_eq!(ids(&[]), [1, 2, 3, 4]);
    assert_eq!(ids(&["--limit", "2"]), [1, 2]);
    assert_eq!(ids(&["--limit", "2", "--after", "2"]), [3, 4]);
    assert_eq!(ids(&["--kind", "letter"]), [4]);
    assert_eq!(ids(&["--status", "SUCCESS"]), [0; 0]);
    assert!(place.good(&["queue", "list", "--limit", "2"]).ends_with("there may be more: --after 2\n"));
}

#[test]
fn a_sweep_reports_in_numbers() {
    let place = Place::with_queue();
    let nothing =
        json!({"seen": 0, "requeued": 0, "escalated": 0, "waiting": 0, "overtaken": 0, "failed": 0, "cut": 0});
    assert_eq!(place.json(&["queue", "sweep"]), nothing);
}

#[test]
fn people_read_the_whole_record() {
    let place = Place::with_queue();
    place.good(&["queue", "enqueue", "--payload", FAILS, "--max-attempts", "1"]);
    place.work();
    let shown = place.good(&["queue", "show", "1"]);
    for part in ["WAIT_MANUAL", "attempts_exhausted", "enqueue", "claim", "give_up", "exit-3: it broke"] {
        assert!(shown.contains(part), "{part} is missing in:\n{shown}");
    }
}

#[test]
fn an_error_that_the_task_never_retries_goes_to_a_person_at_once() {
    let place = Place::with_queue();
    let enqueue = ["queue", "enqueue", "--payload", FAILS, "--retry-delay", "10ms", "--max-attempts", "2"];
    place.good(&[&enqueue[..], &["--never-retry", "timeout", "--never-retry", "exit-3"]].concat());
    place.good(&[&enqueue[..], &["--never-retry", "exit-4"]].concat());
    place.work();
    let waiting = place.json(&["queue", "list", "--status", "wait_manual"]);
    let told: Vec<_> = (waiting.as_array().unwrap().iter())
        .map(|task| (task["reason"].as_str().unwrap(), task["attempts"].as_u64().unwrap()))
        .collect();
    assert_eq!(told, [("not_retryable", 1), ("attempts_exhausted", 2)]);
}

/// Times of this run and ids of this worker, made the same.
fn masked(text: &str) -> String {
    let mask = |word: &str| {
        let bare = word.trim();
        let time = bare.trim_start_matches('+').split_once('.').is_some_and(|(seconds, ms)| {
            ms.len() == 3 && (seconds.to_owned() + ms).bytes().all(|byte| byte.is_ascii_digit())
        });
        let id = bare.len() == 8 && bare.bytes().all(|byte| byte.is_ascii_hexdigit());
        if time || id { word.replace(bare, if id { "<id>" } else { "<time>" }) } else { word.to_owned() }
    };
    text.split_inclusive([' ', '\n']).map(mask).collect()
}

#[test]
fn the_readme_s_commands_print_what_it_shows() {
    for readme in ["README.md", "README.zh-CN.md"] {
        let page = std::fs::read_to_string(repository(readme)).unwrap();
        let (_, from) = page.split_once("```sh\ncargo run -- queue migrate").unwrap();
        let (commands, from) = from.split_once("```").unwrap();
        let (_, shown) = from.split_once("```text\n").unwrap();
        let (shown, _) = shown.split_once("```").unwrap();
        let place = Place::empty();
        let mut script = format!("set -e\ncargo run -- queue migrate{commands}");
        script = script.replace("cargo run --", env!("CARGO_BIN_EXE_leaseproof"));
        let mut shell = assert_cmd::Command::new("sh");
        let output =
            shell.args(["-c", &script]).current_dir(place.path()).env_remove("LEASEPROOF_URL").output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(masked(&text(&output.stdout)), masked(shown), "{readme}");
    }
}
