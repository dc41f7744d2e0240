//! Goal: nothing of a command outlives its run, however the run or its worker ends. Method: a command holds a pipe open
//! through which it would say something late; the pipe ends when the last process that holds it is gone.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::Place;

/// A pipe with a name, and what is said through it until everybody has closed it.
struct Said(PathBuf, JoinHandle<String>);

impl Said {
    fn through(place: &Place, name: &str) -> Said {
        let path = place.path().join(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        Said(path.clone(), std::thread::spawn(move || std::fs::read_to_string(path).unwrap()))
    }

    fn all(self) -> String {
        // In case that nobody has come to open it: for both ways it opens at once.
        drop(OpenOptions::new().read(true).write(true).open(self.0).unwrap());
        self.1.join().unwrap()
    }
}

fn enqueue(place: &Place, command: &str, more: &[&str]) {
    let payload = json!({"command": command}).to_string();
    place.good(&[&["queue", "enqueue", "--payload", &payload], more].concat());
}

const WORK: [&str; 4] = ["queue", "work", "--poll", "20ms"];

/// A worker in the background.
pub fn background(place: &Place, more: &[&str]) -> Child {
    start(Command::new(env!("CARGO_BIN_EXE_leaseproof")).args(WORK).args(more), place)
}

fn start(command: &mut Command, place: &Place) -> Child {
    command.current_dir(place.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

pub fn tell(worker: &Child, signal: Signal) {
    kill_process(Pid::from_raw(worker.id().try_into().unwrap()).unwrap(), signal).unwrap();
}

pub fn wait_for(path: &Path) {
    let began = Instant::now();
    while !path.exists() {
        assert!(began.elapsed() < Duration::from_secs(20), "{} never came", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn task(place: &Place) -> Value {
    place.json(&["queue", "show", "1"])["task"].clone()
}

/// Says `late` through the pipe if it is let live.
const LATE: &str = "exec 3>said; echo begun >&3; touch begun; sleep 20; echo late >&3";

/// The same, deaf, in the background of a command that waits for it.
const DEAF: &str = "exec 3>said; (trap '' TERM; echo begun >&3; touch begun; sleep 10; sleep 10; echo late >&3) & wait";

#[test]
fn a_shutdown_lets_a_command_finish() {
    let place = Place::with_queue();
    enqueue(&place, "touch begun; until test -e go; do sleep 0.05; done; echo whole", &[]);
    let mut worker = background(&place, &[]);
    wait_for(&place.path().join("begun"));
    tell(&worker, Signal::TERM);
    place.write("go", "");
    assert_eq!(worker.wait().unwrap().code(), Some(0));
    assert_eq!(task(&place)["result"]["stdout"], "whole\n");
}

#[test]
fn after_the_grace_a_command_is_told_to_end_and_its_task_put_back() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let place = Place::with_queue();
        let said = Said::through(&place, "said");
        let command =
            "trap 'echo told >&3; exit' TERM; exec 3>said; touch begun; sleep 20 & wait; sleep 20; echo late >&3";
        enqueue(&place, command, &[]);
        let mut worker = background(&place, &["--grace", "100ms"]);
        wait_for(&place.path().join("begun"));
        tell(&worker, signal);
        assert_eq!(worker.wait().unwrap().code(), Some(0), "{signal:?}");
        assert_eq!(said.all(), "told\n", "{signal:?}");
        let task = task(&place);
        assert_eq!((&task["status"], &task["attempts"]), (&json!("PENDING"), &json!(0)), "{signal:?}");
    }
}

#[test]
fn who_does_not_hear_is_killed_with_the_whole_group() {
    let place = Place::with_queue();
    let said = Said::through(&place, "said");
    enqueue(&place, DEAF, &[]);
    let mut worker = background(&place, &["--grace", "100ms"]);
    wait_for(&place.path().join("begun"));
    tell(&worker, Signal::TERM);
    assert_eq!(worker.wait().unwrap().code(), Some(0));
    assert_eq!(said.all(), "begun\n");
}

#[test]
fn a_second_signal_kills_at_once_and_the_lease_decides() {
    for second in [Signal::INT, Signal::QUIT] {
        let place = Place::with_queue();
        let said = Said::through(&place, "said");
        enqueue(&place, DEAF, &[]);
        let mut worker = background(&place, &[]);
        wait_for(&place.path().join("begun"));
        tell(&worker, Signal::TERM);
        tell(&worker, second);
        assert_eq!(worker.wait().unwrap().code(), Some(1));
        assert_eq!(said.all(), "begun\n");
        assert_eq!(task(&place)["status"], "RUNNING");
    }
}

#[test]
fn to_hang_up_twice_is_no_hurry() {
    let place = Place::with_queue();
    enqueue(&place, "touch begun; until test -e go; do sleep 0.05; done; echo whole", &[]);
    let mut worker = background(&place, &[]);
    wait_for(&place.path().join("begun"));
    tell(&worker, Signal::TERM);
    tell(&worker, Signal::HUP);
    place.write("go", "");
    assert_eq!(worker.wait().unwrap().code(), Some(0));
    assert_eq!(task(&place)["result"]["stdout"], "whole\n");
}

#[test]
fn a_worker_under_nohup_is_not_stopped_by_a_terminal_that_closes() {
    let place = Place::with_queue();
    enqueue(&place, "touch begun", &[]);
    let nohup = format!("trap '' HUP; exec {} {}", env!("CARGO_BIN_EXE_leaseproof"), WORK.join(" "));
    let mut worker = start(Command::new("sh").args(["-c", &nohup]), &place);
    wait_for(&place.path().join("begun"));
    tell(&worker, Signal::HUP);
    enqueue(&place, "touch goes-on", &[]);
    wait_for(&place.path().join("goes-on"));
    tell(&worker, Signal::TERM);
    assert_eq!(worker.wait().unwrap().code(), Some(0));
}

#[test]
fn a_killed_worker_takes_its_command_along() {
    let place = Place::with_queue();
    let said = Said::through(&place, "said");
    enqueue(&place, DEAF, &[]);
    let mut worker = background(&place, &[]);
    wait_for(&place.path().join("begun"));
    worker.kill().unwrap();
    worker.wait().unwrap();
    assert_eq!(said.all(), "begun\n");
}

#[test]
fn a_killed_worker_s_task_is_swept_and_run_again() {
    let place = Place::with_queue();
    let lease = ["--lease", "1s", "--heartbeat", "200ms"];
    enqueue(&place, "test -f begun && exit 0; touch begun; sleep 20", &lease);
    let mut worker = background(&place, &[]);
    wait_for(&place.path().join("begun"));
    worker.kill().unwrap();
    worker.wait().unwrap();
    place.good(&["queue", "work", "--until-empty", "--poll", "20ms", "--sweep", "100ms"]);
    let task = task(&place);
    let told = (&task["status"], &task["epoch"], &task["interruptions"], &task["attempts"]);
    assert_eq!(told, (&json!("SUCCESS"), &json!(3), &json!(1), &json!(0)));
}

#[test]
fn a_later_start_of_the_slot_ends_the_command_of_the_earlier_one() {
    let place = Place::with_queue();
    let said = Said::through(&place, "said");
    enqueue(&place, LATE, &["--max-interruptions", "0"]);
    let mut earlier = background(&place, &["--slot-name", "a"]);
    wait_for(&place.path().join("begun"));
    let mut later = background(&place, &["--slot-name", "a"]);
    assert_eq!(earlier.wait().unwrap().code(), Some(2));
    assert_eq!(said.all(), "begun\n");
    tell(&later, Signal::TERM);
    assert_eq!(later.wait().unwrap().code(), Some(0));
}

#[test]
fn a_command_over_its_time_is_ended_with_its_children() {
    let place = Place::with_queue();
    let said = Said::through(&place, "said");
    let payload = json!({"command": DEAF, "timeout_ms": 500}).to_string();
    place.good(&["queue", "enqueue", "--payload", &payload, "--max-attempts", "1"]);
    assert!(!place.work());
    let task = task(&place);
    let told = (&task["status"], &task["last_error"]);
    assert_eq!(told, (&json!("WAIT_MANUAL"), &json!("timeout: no end within 500 ms")));
    assert!(!said.all().contains("late"));
}

#[test]
fn what_a_command_leaves_in_the_background_ends_with_it() {
    let place = Place::with_queue();
    let said = Said::through(&place, "said");
    enqueue(&place, "exec 3>said; (sleep 20; echo late >&3) & echo started", &[]);
    assert!(place.work());
    assert_eq!(task(&place)["result"]["stdout"], "started\n");
    assert_eq!(said.all(), "");
}
