//! Goal: every guard is missed when it is off: the model finds the violation, and the real code, where it can be built
//! without it, shows the same one. Method: the ablation world and the ablation story of each guard; and the same story with the guard back.

use leaseproof_model::check::{Holds, check_ablation, protects};
use leaseproof_model::story::{run_story, run_story_under};
use leaseproof_rules::{Guard, Guards};
use leaseproof_scenarios::{Story, ablations};
use leaseproof_sim::run::{Collected, Run, run_many};

/// Seeds of a story on the real code.
const SEEDS: u64 = 20;

/// The story that shows what a guard is for.
fn story_of(guard: Guard) -> Story {
    let story = ablations().unwrap().into_iter().find(|story| story.without == Some(guard));
    story.unwrap_or_else(|| panic!("no story in scenarios/ablations is without {guard}"))
}

fn runs(story: &Story) -> Vec<Run> {
    let collected = Collected::default();
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    run_many(story, 0..SEEDS, jobs, &|seed, run| collected.add(seed, run));
    let runs = collected.into_runs().into_iter();
    runs.map(|(seed, run)| run.unwrap_or_else(|error| panic!("{} seed {seed}: {error}", story.name))).collect()
}

/// The guards that the code can be built without: at least fifteen.
fn on_code() -> Vec<Guard> {
    let guards: Vec<Guard> = Guard::ALL.into_iter().filter(|guard| guard.on_code()).collect();
    assert!(guards.len() >= 15, "{guards:?}");
    guards
}

#[test]
fn without_a_guard_the_model_finds_what_it_protects() {
    for guard in Guard::ALL {
        let rows = check_ablation(guard).unwrap();
        let row = rows.iter().find(|row| row.property == protects(guard).name()).unwrap();
        assert_eq!(row.holds, Holds::Violated, "the worlds, without {guard}");
        assert!(row.trace_len > 0, "without {guard}");
    }
    for guard in on_code() {
        let outcome = run_story(&story_of(guard)).unwrap();
        let broken: Vec<_> = outcome.verdicts.keys().filter_map(|verdict| verdict.broken()).collect();
        assert_eq!(broken, [protects(guard)], "the story, without {guard}");
    }
}

#[test]
fn without_a_guard_the_real_code_breaks_the_same_property() {
    for guard in on_code() {
        let runs = runs(&story_of(guard));
        let broken = runs.iter().filter(|run| run.verdict.broken() == Some(protects(guard))).count();
        assert!(broken > 0, "none of {SEEDS} seeds misses {guard}");
        assert!(runs.iter().all(|run| run.verdict.broken().is_none_or(|p| p == protects(guard))), "without {guard}");
    }
}

#[test]
fn with_its_guard_back_the_same_story_breaks_nothing_on_either_rung() {
    for guard in on_code() {
        let story = Story { without: None, ..story_of(guard) };
        let outcome = run_story_under(&story, Guards::ALL).unwrap();
        let broken: Vec<_> = outcome.verdicts.keys().filter(|verdict| verdict.broken().is_some()).collect();
        assert!(broken.is_empty(), "the model, with {guard}: {broken:?}");
        for run in runs(&story) {
            assert_eq!(run.verdict.broken(), None, "the real code, with {guard}, seed {}", run.header.seed);
        }
    }
}

#[test]
fn a_normal_build_of_the_queue_has_no_switches() {
    const { assert!(!leaseproof_queue::ABLATION, "the feature `ablation` has got into a normal build") };
}
