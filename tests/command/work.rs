//! Goal: what `queue work` does with commands: limits, output, errors.

use serde_json::{Value, json};

use super::Place;

fn enqueue(place: &Place, payload: &Value, policy: &[&str]) {
    place.good(&[&["queue", "enqueue", "--payload", &payload.to_string()], policy].concat());
}

/// The only task, after all work is done.
fn done(place: &Place) -> Value {
    place.good(&["queue", "work", "--until-empty", "--poll", "20ms"]);
    place.json(&["queue", "show", "1"])["task"].clone()
}

#[test]
fn output_is_kept_up_to_64_kib_and_never_blocks_the_command() {
    let place = Place::with_queue();
    enqueue(&place, &json!({"command": "head -c 300000 /dev/zero | tr '\\0' x; head -c 300000 /dev/zero >&2"}), &[]);
    let task = done(&place);
    assert_eq!(task["status"], "SUCCESS");
    assert_eq!(task["result"]["stdout"].as_str().unwrap().len(), 64 * 1024);
    assert_eq!(task["result"]["truncated"], true);
}

#[test]
fn a_command_that_is_killed_from_outside_is_tried_again() {
    let place = Place::with_queue();
    let command = "test -f once && exit 0; touch once; kill -9 $$";
    enqueue(&place, &json!({"command": command}), &["--retry-delay", "10ms"]);
    let task = done(&place);
    assert_eq!((&task["status"], &task["attempts"]), (&json!("SUCCESS"), &json!(1)));
}

#[test]
fn a_task_of_another_kind_goes_to_a_person() {
    let place = Place::with_queue();
    place.good(&["queue", "enqueue", "--kind", "letter", "--payload", "{}"]);
    let task = done(&place);
    assert_eq!((&task["status"], &task["reason"]), (&json!("WAIT_MANUAL"), &json!("not_retryable")));
}

#[test]
fn each_run_is_told_as_a_line_of_json() {
    let place = Place::with_queue();
    enqueue(&place, &json!({"command": "true"}), &[]);
    let out = place.good(&["queue", "work", "--until-empty", "--json"]);
    let line: Value = serde_json::from_str(out.trim()).unwrap();
    assert_eq!((&line["task"], &line["epoch"], &line["outcome"]), (&json!(1), &json!(1), &json!("ok")));
    assert!(line["seconds"].is_f64() && line["error"].is_null());
}
