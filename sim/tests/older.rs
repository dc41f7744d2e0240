//! Goal: the older designs show in the simulation what they are known for, in virtual hours.
//! Method: the stories of `scenarios/designs`, told by the real code of both, on a database with row locks.

// A test says what it expects by failing.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use leaseproof_rules::{Property, Status};
use leaseproof_scenarios::{Story, Verdict};
use leaseproof_sim::older::{Older, OlderRun, Seen, Server, run_older};
use leaseproof_sim::run::run_story;

const S1: [Older; 2] = [Older::CommitRunning, Older::CommitRunningShort];
const KEEPALIVE: Duration = Duration::from_secs(7200 + 9 * 75);
const IDLE_TIMEOUT: Duration = Duration::from_secs(8 * 3600);

fn story(name: &str) -> Story {
    leaseproof_scenarios::designs().unwrap().into_iter().find(|story| story.name == name).unwrap()
}

fn run(name: &str, older: Older) -> OlderRun {
    let told = run_older(&story(name), older, Server::DEFAULT, 1).unwrap();
    assert_eq!(told.defects, Vec::<String>::new());
    told
}

/// From the fault, or from the first run's begin, to the rollback.
fn rolled_back_after(run: &OlderRun) -> Duration {
    run.rolled_back.unwrap() - run.first_fault.unwrap_or(run.begun[0][0])
}

#[test]
fn the_lease_ends_each_story_as_its_file_expects() {
    for story in leaseproof_scenarios::designs().unwrap() {
        let complaints = run_story(&story, 1).unwrap().complaints(&story);
        assert_eq!(complaints, Vec::<String>::new(), "{}", story.name);
    }
}

#[test]
fn undisturbed_both_succeed_and_only_commit_running_is_seen() {
    for older in S1 {
        let told = run("undisturbed", older);
        assert_eq!((told.verdict, &*told.statuses), (Verdict::AutoRecovered, &[Status::Success][..]));
        assert_eq!(told.seen_at_work, [Some(Seen { status: Status::Running, lock: None })]);
        assert!(told.longest.lock < Duration::from_secs(1), "{:?}", told.longest);
        let spans = told.longest.transaction >= Duration::from_secs(60);
        assert_eq!(spans, older == Older::CommitRunning, "{:?}", told.longest);
    }
    let told = run("undisturbed", Older::SingleTransaction);
    assert_eq!((told.verdict, &*told.statuses), (Verdict::AutoRecovered, &[Status::Success][..]));
    assert_eq!(told.seen_at_work, [Some(Seen { status: Status::Pending, lock: Some("55P03".to_owned()) })]);
    assert!(told.longest.transaction >= Duration::from_secs(60) && told.longest.lock >= Duration::from_secs(60));
}

#[test]
fn commit_running_is_running_for_ever_whatever_became_of_its_executor() {
    for older in S1 {
        for name in ["clean-crash", "silent-host", "hang", "crash-after-call"] {
            let told = run(name, older);
            assert_eq!((told.verdict, &*told.statuses), (Verdict::Stuck, &[Status::Running][..]), "{name} {older:?}");
            assert_eq!(told.begun[0].len(), 1, "{name} {older:?}");
            assert!(told.virtual_time >= Duration::from_secs(24 * 3600));
        }
    }
}

#[test]
fn a_clean_death_rolls_a_single_transaction_back_at_once() {
    let told = run("clean-crash", Older::SingleTransaction);
    assert_eq!((told.verdict, &*told.statuses), (Verdict::AutoRecovered, &[Status::Success][..]));
    assert!(rolled_back_after(&told) < Duration::from_millis(100), "{:?}", rolled_back_after(&told));
    assert_eq!(told.begun[0].len(), 2);
}

#[test]
fn a_silent_host_keeps_its_lock_until_keepalive_finds_out() {
    for name in ["silent-host", "short-lease"] {
        let told = run(name, Older::SingleTransaction);
        assert_eq!(told.verdict, Verdict::AutoRecovered, "{name}");
        let after = rolled_back_after(&told);
        // The last word was up to the fault's moment before it.
        assert!(after > KEEPALIVE - Duration::from_secs(15) && after <= KEEPALIVE, "{name}: {after:?}");
    }
}

#[test]
fn a_hanging_handler_keeps_its_lock_until_the_session_has_idled_too_long() {
    let told = run("hang", Older::SingleTransaction);
    assert_eq!(told.verdict, Verdict::AutoRecovered);
    let after = rolled_back_after(&told);
    // The last statement was just before the handler began.
    assert!(
        after > IDLE_TIMEOUT - Duration::from_secs(1) && after < IDLE_TIMEOUT + Duration::from_secs(1),
        "{after:?}"
    );
    // Keepalive alone never does: the kernel answers.
    let without = Server { idle_timeout: None };
    let told = run_older(&story("hang"), Older::SingleTransaction, without, 1).unwrap();
    assert_eq!((told.verdict, &*told.statuses), (Verdict::Stuck, &[Status::Pending][..]));
}

#[test]
fn a_rollback_does_not_undo_the_call() {
    let told = run("crash-after-call", Older::SingleTransaction);
    assert_eq!(told.verdict, Verdict::Violated(Property::EffectAtMostOnce));
    assert_eq!(told.effects, [2]);
    assert_eq!(run("crash-after-call", Older::CommitRunning).effects, [1]);
}

#[test]
fn nothing_counts_the_runs_of_a_single_transaction() {
    let told = run("crash-loop", Older::SingleTransaction);
    assert_eq!((told.verdict, told.begun[0].len()), (Verdict::AutoRecovered, 7));
}

#[test]
fn a_failed_handler_is_not_run_again() {
    for older in [Older::CommitRunning, Older::SingleTransaction] {
        let told = run("handler-fails", older);
        assert_eq!((&*told.statuses, told.begun[0].len()), (&[Status::Fail][..], 1));
    }
}

#[test]
fn the_stories_of_the_matrix_drive_them_too() {
    let mut told = std::collections::BTreeMap::new();
    for story in leaseproof_scenarios::stories().unwrap() {
        for older in [Older::CommitRunning, Older::CommitRunningShort, Older::SingleTransaction] {
            let run = run_older(&story, older, Server::DEFAULT, 3).unwrap();
            assert_eq!(run.defects, Vec::<String>::new(), "{} {older:?}", story.name);
            told.insert((story.name.clone(), older), run);
        }
    }
    let of = |name: &str, older: Older| &told[&(name.to_owned(), older)];
    assert_eq!(of("batch-oom", Older::CommitRunning).verdict, Verdict::Stuck);
    assert_eq!(of("batch-oom", Older::SingleTransaction).verdict, Verdict::AutoRecovered);
    // No crash is needed: nobody heard of the claim, and nobody ever will.
    for older in S1 {
        let lost = of("claim-reply-lost", older);
        assert_eq!((lost.verdict, &*lost.statuses, lost.begun[0].len()), (Verdict::Stuck, &[Status::Running][..], 0));
    }
    let twice = of("cut-off-from-database", Older::SingleTransaction);
    assert_eq!(twice.verdict, Verdict::Violated(Property::EffectAtMostOnce));
    let with_a_key = of("cut-off-with-key", Older::SingleTransaction);
    assert_eq!((with_a_key.verdict, &*with_a_key.effects), (Verdict::AutoRecovered, &[1][..]));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for older in [Older::CommitRunning, Older::SingleTransaction] {
        let again = || run_older(&story("clean-crash"), older, Server::DEFAULT, 7).unwrap();
        assert_eq!(again(), again());
    }
}
