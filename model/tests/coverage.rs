//! Goal: every kind of step is seen in the worlds of a design or is said to be absent, and the count could say otherwise.

use leaseproof_model::check::beyond_worlds;
use leaseproof_model::coverage::{Coverage, Kind, coverage, coverage_of_worlds};
use leaseproof_model::designs::Design;
use leaseproof_model::world::World;

fn steps(of: &Coverage, kind: Kind) -> u64 {
    of.cells.iter().find(|cell| cell.kind == kind).unwrap().steps
}

fn wrong(of: &Coverage) -> Vec<Kind> {
    of.cells.iter().filter(|cell| !cell.is_as_said()).map(|cell| cell.kind).collect()
}

/// What stands in docs/model.md is this, and a test of the command compares the two.
#[test]
fn every_step_of_every_design_happens_or_is_said_why_it_can_not() {
    for design in Design::ALL {
        let all = coverage(design).unwrap();
        assert_eq!(all.cells.iter().map(|cell| cell.kind).collect::<Vec<_>>(), Kind::ALL, "{design}");
        assert_eq!(wrong(&all), [], "{design}");
    }
}

#[test]
fn a_step_that_no_world_shows_is_found_out() {
    let few = coverage_of_worlds(vec![World::lease(1, 2).unwrap().errors()]).unwrap();
    assert_eq!((few.design, few.worlds), (Design::Lease, 1));
    let missing = wrong(&few);
    for kind in [Kind::Call, Kind::Rerun, Kind::Deploy, Kind::Start, Kind::Overrun, Kind::Copy] {
        assert!(missing.contains(&kind), "{kind:?}: {missing:?}");
    }
    for kind in [Kind::Claim, Kind::Crash, Kind::Retry, Kind::Requeue, Kind::Calm] {
        assert!(!missing.contains(&kind), "{kind:?}: {missing:?}");
    }
}

#[test]
fn a_step_that_is_said_to_be_absent_and_happens_is_found_out() {
    let beyond = coverage_of_worlds(beyond_worlds().unwrap()).unwrap();
    assert!(steps(&beyond, Kind::FailOver) > 0);
    assert!(wrong(&beyond).contains(&Kind::FailOver));
}

#[test]
fn worlds_are_summed_up() {
    let world = || World::lease(1, 1).unwrap();
    let once = coverage_of_worlds(vec![world()]).unwrap();
    let twice = coverage_of_worlds(vec![world(), world()]).unwrap();
    assert_eq!((twice.states, twice.worlds), (2 * once.states, 2));
    for kind in Kind::ALL {
        assert_eq!(steps(&twice, kind), 2 * steps(&once, kind), "{kind:?}");
    }
}
