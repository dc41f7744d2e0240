//! Goal: equal story and seed give the same bytes: again in this process, beside other simulations, and in a fresh
//! process. Other seeds give others.
//! Method: the stories with the most going on; traces are compared whole.

use std::collections::BTreeSet;
use std::process::Command;

use leaseproof_scenarios::{Story, stories};
use leaseproof_sim::run::{Collected, run_many, run_story};

const BUSY: [&str; 4] = ["batch-oom", "crash-around-the-call", "database-restart", "zombie-calls-late-fenced"];
const SEEDS: u64 = 6;

/// Set in the child process: which story to print.
const CHILD: &str = "LEASEPROOF_DETERMINISM_CHILD";

fn story(name: &str) -> Story {
    stories().unwrap().into_iter().find(|story| story.name == name).unwrap()
}

fn traces(name: &str) -> Vec<String> {
    (0..SEEDS).map(|seed| run_story(&story(name), seed).unwrap().trace).collect()
}

#[test]
fn the_same_seed_gives_the_same_bytes_again_and_beside_other_simulations() {
    for name in BUSY {
        let first = traces(name);
        assert!(first.iter().all(|trace| trace.lines().count() > 8), "{name}");
        assert_eq!(first, traces(name), "{name}");
        let collected = Collected::default();
        run_many(&story(name), 0..SEEDS, 3, &|seed, run| collected.add(seed, run));
        let beside: Vec<_> = collected.into_runs().into_values().map(|run| run.unwrap().trace).collect();
        assert_eq!(first, beside, "{name}, on three threads");
    }
}

#[test]
fn different_seeds_give_different_bytes() {
    for name in BUSY {
        let all: BTreeSet<String> = traces(name).iter().map(|trace| trace.split_once('\n').unwrap().1.into()).collect();
        assert_eq!(all.len() as u64, SEEDS, "{name}");
    }
}

#[test]
fn a_fresh_process_gives_the_same_bytes() {
    const SELF: &str = "a_fresh_process_gives_the_same_bytes";
    if let Ok(name) = std::env::var(CHILD) {
        let text = traces(&name).concat();
        assert!(!text.is_empty());
        print!("<<<{text}>>>");
        return;
    }
    for name in BUSY {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", SELF, "--nocapture"])
            .env(CHILD, name)
            // What sqlx and a worker would read of their surroundings.
            .envs([("PGAPPNAME", "another"), ("PGPASSWORD", "secret"), ("PGSSLMODE", "require"), ("PGPORT", "1")])
            .env("HOSTNAME", "h".repeat(1_200))
            .output()
            .unwrap();
        let said = String::from_utf8(child.stdout).unwrap();
        let theirs = said.split_once("<<<").and_then(|(_, rest)| rest.split_once(">>>")).map(|(text, _)| text);
        assert_eq!(theirs, Some(traces(name).concat().as_str()), "{name}");
    }
}

/// It can be added to but not replaced, so a run that it would reach is refused.
#[test]
fn options_for_every_session_in_the_environment_are_refused() {
    const SELF: &str = "options_for_every_session_in_the_environment_are_refused";
    if std::env::var_os(CHILD).is_some() {
        println!("<<<{}>>>", run_story(&story(BUSY[0]), 0).unwrap_err());
        return;
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", SELF, "--nocapture"])
        .envs([(CHILD, "yes"), ("PGOPTIONS", "-c lock_timeout=1")])
        .output()
        .unwrap();
    let said = String::from_utf8(child.stdout).unwrap();
    assert!(said.contains("<<<PGOPTIONS is set") && said.contains("unset it"), "{said}");
}
