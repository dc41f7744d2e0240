//! Goal: what `queue work` does with commands: limits, output, and their death.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
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
fn a_background_process_does_not_keep_a_run_open() {
    let place = Place::with_queue();
    enqueue(&place, &json!({"command": "sleep 30 & echo started"}), &[]);
    let began = Instant::now();
    assert_eq!(done(&place)["result"]["stdout"], "started\n");
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_command_over_its_time_is_killed_with_its_children() {
    let place = Place::with_queue();
    enqueue(&place, &json!({"command": "(sleep 2; touch late); true", "timeout_ms": 200}), &["--max-attempts", "1"]);
    let task = done(&place);
    assert_eq!(
        (&task["status"], &task["last_error"]),
        (&json!("WAIT_MANUAL"), &json!("timeout: no end within 200 ms"))
    );
    std::thread::sleep(Duration::from_millis(2_500));
    assert!(!place.path().join("late").exists());
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

/// A worker in the background.
fn worker(place: &Place, more: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_leaseproof"))
        .args(["queue", "work", "--poll", "20ms"])
        .args(more)
        .current_dir(place.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn terminate(worker: &Child) {
    let pid = Pid::from_raw(worker.id().try_into().unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
}

fn wait_for(path: &Path) {
    let began = Instant::now();
    while !path.exists() {
        assert!(began.elapsed() < Duration::from_secs(20), "{} never came", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_shutdown_lets_a_command_finish() {
    let place = Place::with_queue();
    enqueue(&place, &json!({"command": "touch begun; sleep 0.5; echo whole"}), &[]);
    let mut worker = worker(&place, &[]);
    wait_for(&place.path().join("begun"));
    terminate(&worker);
    assert_eq!(worker.wait().unwrap().code(), Some(0));
    assert_eq!(place.json(&["queue", "show", "1"])["task"]["result"]["stdout"], "whole\n");
}

#[test]
fn after_the_grace_a_command_is_killed_and_its_task_put_back() {
    let place = Place::with_queue();
    enqueue(&place, &json!({"command": "touch begun; sleep 2; touch late"}), &[]);
    let mut worker = worker(&place, &["--grace", "100ms"]);
    wait_for(&place.path().join("begun"));
    terminate(&worker);
    assert_eq!(worker.wait().unwrap().code(), Some(0));
    let task = place.json(&["queue", "show", "1"])["task"].clone();
    assert_eq!((&task["status"], &task["attempts"]), (&json!("PENDING"), &json!(0)));
    std::thread::sleep(Duration::from_millis(2_500));
    assert!(!place.path().join("late").exists());
}

#[test]
fn a_second_signal_kills_at_once_and_the_lease_decides() {
    let place = Place::with_queue();
    enqueue(&place, &json!({"command": "touch begun; sleep 2; touch late"}), &[]);
    let mut worker = worker(&place, &[]);
    wait_for(&place.path().join("begun"));
    terminate(&worker);
    std::thread::sleep(Duration::from_millis(300));
    terminate(&worker);
    assert_eq!(worker.wait().unwrap().code(), Some(0));
    assert_eq!(place.json(&["queue", "show", "1"])["task"]["status"], "RUNNING");
    std::thread::sleep(Duration::from_millis(2_500));
    assert!(!place.path().join("late").exists());
}

#[test]
fn a_killed_worker_s_task_is_swept_and_run_again() {
    let place = Place::with_queue();
    let lease = ["--lease", "1s", "--heartbeat", "200ms"];
    enqueue(&place, &json!({"command": "test -f begun && exit 0; touch begun; sleep 3"}), &lease);
    let mut worker = worker(&place, &[]);
    wait_for(&place.path().join("begun"));
    worker.kill().unwrap();
    worker.wait().unwrap();
    place.good(&["queue", "work", "--until-empty", "--poll", "20ms", "--sweep", "100ms"]);
    let task = place.json(&["queue", "show", "1"])["task"].clone();
    let told = (&task["status"], &task["epoch"], &task["interruptions"], &task["attempts"]);
    assert_eq!(told, (&json!("SUCCESS"), &json!(3), &json!(1), &json!(0)));
}
