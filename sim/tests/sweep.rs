//! Goal: a sweep draws stories that files can hold, breaks nothing, is the same on any number of threads and when it is
//! gone on with, and finds and shrinks what the absence of a guard breaks.
//! Method: small sweeps; the command runs the large ones.

use leaseproof_rules::Guard;
use leaseproof_scenarios::{Story, parse, recorded};
use leaseproof_sim::run::run_story;
use leaseproof_sim::sweep::{Pick, Plan, State, Violation, shrink, story};

fn read_back(story: &Story) -> Story {
    let text = story.to_toml();
    parse(&format!("{}.toml", story.name), &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Goes on with a sweep up to so many runs.
fn go_on(state: &mut State, runs: u64, jobs: usize, without: Option<Guard>) -> Vec<Violation> {
    let mut violations = Vec::new();
    while let Some(more) = state.round(Plan { jobs, runs }, without, &|| {}).unwrap() {
        violations.extend(more);
    }
    violations
}

#[test]
fn every_story_of_a_sweep_is_one_that_a_file_can_hold() {
    for seed in 0..1_500 {
        for variation in [0, 1, 5] {
            let story = story(Pick { seed, variation }, None);
            assert_eq!(read_back(&story), story, "{}", story.to_toml());
        }
    }
}

#[test]
fn a_sweep_breaks_nothing_and_its_faults_strike() {
    let mut state = State::new(1_000_000, None);
    let violations = go_on(&mut state, 384, 2, None);
    assert_eq!(violations, []);
    assert_eq!(state.totals.runs, 384);
    assert!(state.totals.variations > 50 && state.totals.faults > 384, "{:?}", state.totals);
    let (reached, of) = state.coverage.share();
    assert!(reached * 2 > of, "{reached} of {of}");
}

#[test]
fn a_sweep_is_the_same_on_any_number_of_threads_and_when_it_is_gone_on_with() {
    let mut whole = State::new(7, None);
    go_on(&mut whole, 256, 1, None);
    let mut begun = State::new(7, None);
    go_on(&mut begun, 128, 3, None);
    let mut resumed = State::from_json(&begun.to_json()).unwrap();
    assert_eq!(resumed, begun);
    go_on(&mut resumed, 256, 2, None);
    assert_eq!(resumed.to_json(), whole.to_json());
}

#[test]
fn the_state_of_another_version_is_refused() {
    let text = State::new(0, None).to_json();
    let other = text.replacen("\"leaseproof_sweep\":1", "\"leaseproof_sweep\":9", 1);
    assert!(State::from_json(&other).unwrap_err().to_string().contains("version 9"));
    assert!(State::from_json("{}").is_err());
    assert!(State::from_json(&text.replacen("next_seed", "next_sead", 1)).is_err());
}

/// What a sweep has once found stays found: the stories of `scenarios/recorded`, each under the seed that it names.
#[test]
fn every_recorded_story_ends_as_its_file_expects() {
    let all = recorded().unwrap();
    assert!(all.len() >= 2);
    for story in all {
        let seed = story.seed.unwrap_or_else(|| panic!("{} names no seed", story.name));
        let run = run_story(&story, seed).unwrap();
        assert_eq!(run.complaints(&story), [""; 0], "{}", story.name);
    }
}

/// Runs of a sweep without a guard until something breaks, and the runs that the shrinking may take.
const MOST_RUNS: u64 = 1_536;
const SHRINKING: u32 = 250;

/// The first run that breaks what the guard protects, and how many runs that took.
fn first_without(guard: Guard) -> Option<(Pick, u64)> {
    let mut state = State::new(0, Some(guard));
    while let Some(violations) = state.round(Plan { jobs: 2, runs: MOST_RUNS }, Some(guard), &|| {}).unwrap() {
        let breaks = |violation: &&Violation| violation.complaints[0].starts_with("verdict ");
        if let Some(first) = violations.iter().find(breaks) {
            return Some((first.run, state.totals.runs));
        }
    }
    None
}

/// What breaks without this guard is found, shrunk to four faults at most, and does not break with the guard.
fn is_found_and_shrunk(guard: Guard) {
    let (pick, runs) = first_without(guard).unwrap_or_else(|| panic!("{guard} is not missed in {MOST_RUNS} runs"));
    let shrunk = shrink(&story(pick, Some(guard)), SHRINKING, 2).unwrap();
    let small = read_back(&shrunk.story);
    println!(
        "without {guard}: run {pick}, within {runs} runs; shrunk to {} faults in {} runs",
        small.faults.len(),
        shrunk.runs
    );
    assert_eq!(small, shrunk.story);
    assert!(small.faults.len() <= 4, "{}", small.to_toml());
    let seed = small.seed.unwrap();
    assert_eq!(run_story(&small, seed).unwrap().complaints(&small), [""; 0], "{}", small.to_toml());
    let guarded = Story { without: None, ..small.clone() };
    assert_eq!(run_story(&guarded, seed).unwrap().verdict.broken(), None, "with {guard}: {}", small.to_toml());
}

/// Those that a few hundred runs miss at the least; `leaseproof sweep --without GUARD` looks longer for the others.
#[test]
fn what_breaks_without_a_guard_is_found_and_shrunk() {
    use Guard::{BumpOnDecision, BumpOnEscalate, FenceFailure, FenceJournal, IntentBeforeCall};
    for guard in [Guard::CasAtClaim, Guard::FenceComplete, Guard::FenceHeartbeat, FenceFailure, FenceJournal] {
        is_found_and_shrunk(guard);
    }
    for guard in [BumpOnDecision, BumpOnEscalate, IntentBeforeCall] {
        is_found_and_shrunk(guard);
    }
}
