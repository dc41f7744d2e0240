//! Goal: what `queue work` does with commands: limits, output, errors.

use leaseproof_queue::{NewTask, Queue};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::signals::{background, tell, wait_for};
use super::{Place, text};

fn enqueue(place: &Place, payload: &Value, policy: &[&str]) {
    place.good(&[&["queue", "enqueue", "--payload", &payload.to_string()], policy].concat());
}

/// The only task, after all work is done.
fn done(place: &Place) -> Value {
    place.work();
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
    assert!(line["seconds"].is_f64() && line["error"].is_null() && line["status"] == "SUCCESS");
}

#[test]
fn the_exit_code_and_the_last_line_say_what_became_of_the_tasks() {
    let place = Place::with_queue();
    let again = json!({"command": "test -f once || { touch once; exit 3; }"});
    enqueue(&place, &again, &["--retry-delay", "10ms"]);
    let output = place.run(&["queue", "work", "--until-empty", "--poll", "20ms"]);
    let out = text(&output.stdout);
    let lines: Vec<&str> = out.lines().map(|line| line.split_once(" s  ").map_or(line, |(_, rest)| rest)).collect();
    assert_eq!(lines, ["RETRY_WAIT: exit-3", "SUCCESS", "1 task: 1 SUCCESS"]);
    assert_eq!(output.status.code(), Some(0));

    enqueue(&place, &json!({"command": "true"}), &[]);
    enqueue(&place, &json!({"command": "exit 65"}), &[]);
    enqueue(&place, &json!({"command": "exit 3"}), &["--max-attempts", "1", "--on-exhausted", "fail"]);
    place.good(&["queue", "enqueue", "--kind", "letter", "--payload", "{}"]);
    let output = place.run(&["queue", "work", "--until-empty", "--poll", "20ms"]);
    let out = text(&output.stdout);
    assert_eq!(out.lines().last(), Some("4 tasks: 1 SUCCESS, 1 FAIL (4), 2 WAIT_MANUAL (3, 5)"), "{out}");
    assert_eq!((output.status.code(), text(&output.stderr).contains("leaseproof:")), (Some(1), false));
}

#[test]
fn a_worker_until_empty_waits_for_what_another_one_runs() {
    let place = Place::with_queue();
    enqueue(&place, &json!({"command": "touch begun; until test -e go; do sleep 0.05; done; sleep 1"}), &[]);
    let mut earlier = background(&place, &["--slots", "1"]);
    wait_for(&place.path().join("begun"));
    enqueue(&place, &json!({"command": "touch second"}), &[]);
    let mut later = background(&place, &["--until-empty"]);
    wait_for(&place.path().join("second"));
    place.write("go", "");
    assert_eq!(later.wait().unwrap().code(), Some(0));
    assert_eq!(place.json(&["queue", "show", "1"])["task"]["status"], "SUCCESS");
    tell(&earlier, Signal::TERM);
    assert_eq!(earlier.wait().unwrap().code(), Some(0));
}

/// As from a program that puts tasks in by itself.
fn put(place: &Place, payload: &str) {
    let url = format!("sqlite:{}", place.path().join("leaseproof.db").display());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let queue = Queue::connect(&url).await.unwrap();
        queue.enqueue(NewTask::new("shell", payload)).await.unwrap();
        queue.close().await;
    });
}

#[test]
fn what_no_shell_can_be_given_goes_to_a_person_after_one_run() {
    let place = Place::with_queue();
    let long = json!({"command": "x".repeat(131_072)}).to_string();
    for (payload, says) in [(&*long, "131072 bytes"), (r#"{"cmd":"a"}"#, "cmd")] {
        put(&place, payload);
        place.work();
        let tasks = place.json(&["queue", "list", "--status", "wait_manual"]);
        let task = tasks.as_array().unwrap().last().unwrap();
        assert_eq!((&task["reason"], &task["attempts"]), (&json!("not_retryable"), &json!(1)));
        assert!(task["last_error"].as_str().unwrap().contains(says), "{task}");
    }
}
