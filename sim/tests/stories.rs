//! Goal: every story ends, on the real code, as its file expects, and every ablation shows what its guard is for.
//! Method: some seeds each; the matrix and the gate run more.

use std::collections::BTreeSet;

use leaseproof_scenarios::{Story, Verdict, ablations, stories};
use leaseproof_sim::run::{Collected, Run, run_many};

/// Seeds of a story.
const SEEDS: u64 = 50;

fn runs(story: &Story, seeds: u64) -> Vec<(u64, Run)> {
    let collected = Collected::default();
    run_many(story, 0..seeds, 2, &|seed, run| collected.add(seed, run));
    let runs = collected.into_runs().into_iter();
    runs.map(|(seed, run)| (seed, run.unwrap_or_else(|error| panic!("{} seed {seed}: {error}", story.name)))).collect()
}

#[test]
fn every_story_ends_as_its_file_expects() {
    let mut wrong = Vec::new();
    for story in stories().unwrap() {
        let mut struck = BTreeSet::new();
        for (seed, run) in runs(&story, SEEDS) {
            for what in run.complaints(&story) {
                wrong.push(format!("{} seed {seed}: {what}", story.name));
            }
            struck.extend(run.struck);
        }
        wrong.extend(story.unstruck(&struck).into_iter().map(|what| format!("{}: {what}", story.name)));
    }
    assert!(wrong.is_empty(), "{} complaints:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn without_its_guard_the_real_code_breaks_the_property_and_with_it_it_does_not() {
    for story in ablations().unwrap() {
        let broken: BTreeSet<Verdict> =
            story.expect.verdicts.iter().copied().filter(|verdict| verdict.broken().is_some()).collect();
        let without = runs(&story, SEEDS);
        for (seed, run) in &without {
            assert!(story.expect.verdicts.contains(&run.verdict), "{} seed {seed}: {}", story.name, run.verdict);
        }
        let hits = without.iter().filter(|(_, run)| broken.contains(&run.verdict)).count();
        assert!(hits > 0, "{}: no seed of {SEEDS} shows {broken:?}", story.name);
        let guarded = Story { without: None, ..story.clone() };
        for (seed, run) in runs(&guarded, SEEDS) {
            assert_eq!(run.verdict.broken(), None, "{} with its guard, seed {seed}", story.name);
            assert_eq!(run.defects, [""; 0], "{} with its guard, seed {seed}", story.name);
        }
    }
}

/// The verdict alone does not show that the zombie's call came at all: it stops itself in time in some of the seeds.
#[test]
fn a_late_call_is_made_in_some_runs_and_refused_where_tokens_are_checked() {
    let late = |name: &str, event: &str| {
        let story = stories().unwrap().into_iter().find(|story| story.name == name).unwrap();
        let happens = |run: &Run| run.trace.lines().any(|line| line.contains(&format!("\"event\":\"{event}\"")));
        runs(&story, SEEDS).iter().filter(|(_, run)| happens(run)).count()
    };
    assert!(late("zombie-calls-late", "effect") > 0, "nothing came late");
    assert!(late("zombie-calls-late-fenced", "refuse_call") > 0, "nothing was refused");
}

#[test]
fn a_fault_that_finds_its_process_dead_does_not_strike() {
    let story = |late: &str| {
        let text = format!(
            "version = 1\ntitle = \"t\"\nquestion = \"q\"\n[policy]\nlease = \"30s\"\nheartbeat = \"10s\"\n\
             [[tasks]]\nname = \"t1\"\nwork = \"20s\"\n[[executors]]\nname = \"w1\"\n[[executors]]\nname = \"w2\"\n\
             [[faults]]\nafter = \"5s\"\non = \"w1\"\ndo = \"crash\"\n\
             [[faults]]\nafter = \"9s\"\non = \"{late}\"\n[expect]\nverdicts = [\"auto-recovered\"]\n"
        );
        leaseproof_scenarios::parse("dead.toml", &text).unwrap()
    };
    let struck = |late: &str| runs(&story(late), 1).remove(0).1.struck;
    for act in ["do = \"crash", "do = \"pause\"\nfor = \"9s"] {
        assert_eq!(struck(&format!("w1\"\n{act}")), BTreeSet::from([0]), "{act}");
        assert_eq!(struck(&format!("w2\"\n{act}")), BTreeSet::from([0, 1]), "{act}");
    }
}
