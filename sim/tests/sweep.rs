//! Goal: a sweep draws stories that files can hold, breaks nothing, is the same on any number of threads and when it is
//! gone on with, and finds and shrinks what the absence of a guard breaks.
//! Method: small sweeps; the command runs the large ones.

use leaseproof_rules::Guard;
use leaseproof_scenarios::{Story, parse, recorded};
use leaseproof_sim::run::run_story;
use leaseproof_sim::sweep::{Pick, Plan, State, Violation, story};

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
