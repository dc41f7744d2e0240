//! A component too rich for the search of a shortest cycle: what is shown may be longer, but it is still a violation.

use leaseproof_model::graph::{Counterexample, Fair, Limits, Outcome, Trigger, check_lasso, explore};
use stateright::Model;

const DIALS: u32 = 10;
const HOURS: u32 = 3;

/// Ten dials of three hours in one number; each turns for ever, and each is a class of its own. A fair cycle must turn
/// all of them all the way round.
struct Dials;

impl Model for Dials {
    type State = u32;
    type Action = u32;

    fn init_states(&self) -> Vec<u32> {
        vec![0]
    }

    fn actions(&self, _: &u32, actions: &mut Vec<u32>) {
        actions.extend(0..DIALS);
    }

    fn next_state(&self, state: &u32, dial: u32) -> Option<u32> {
        let unit = HOURS.pow(dial);
        let is_last = state / unit % HOURS == HOURS - 1;
        Some(if is_last { state - (HOURS - 1) * unit } else { state + unit })
    }
}

impl Fair for Dials {
    fn fair_class(&self, _: &u32, dial: &u32) -> Option<u8> {
        Some(*dial as u8)
    }
}

#[test]
fn a_lasso_that_is_not_proven_shortest_says_so_and_is_valid() {
    let graph = explore(&Dials, Limits::default()).unwrap();
    assert_eq!(graph.states().len(), HOURS.pow(DIALS) as usize);
    let report = graph.check_leads_to("", Trigger::Start, |_| false).unwrap();
    let Outcome::Violated(Counterexample::Lasso(lasso)) = report.outcome else {
        panic!("{:?}", report.outcome);
    };
    assert!(!lasso.shortest);
    assert!(lasso.cycle.len() >= (DIALS * HOURS) as usize);
    let checked = check_lasso(&Dials, &lasso, Trigger::Start, |_| false);
    assert_eq!(checked, Ok(()));
}
