//! What must be reachable, so that no property holds for want of a case.

use leaseproof_rules::{Reason, Status};

use crate::free::LeaseModel;
use crate::properties;
use crate::state::State;

/// The name of the witness that two handlers may work on one task, see [`properties::concurrent_execution`].
pub const CONCURRENT_EXECUTION: &str = "concurrent_execution_is_reachable";

/// A name, and the states it speaks of.
pub type Witness = (String, Box<dyn Fn(&LeaseModel, &State) -> bool>);

/// What must be reachable somewhere in the default worlds, so that nothing holds for want of a case.
pub fn witnesses() -> Vec<Witness> {
    let mut all: Vec<Witness> = vec![(
        CONCURRENT_EXECUTION.to_owned(),
        Box::new(|model, state| properties::concurrent_execution(&model.world.setup, state)),
    )];
    all.push((
        "some effect has happened in part".to_owned(),
        Box::new(|model, state| properties::some_effect_is_partial(&model.world.setup, state)),
    ));
    for status in Status::ALL {
        all.push((
            format!("some task is {status}"),
            Box::new(move |model, state| properties::some_task_is(&model.world.setup, state, status)),
        ));
    }
    for reason in Reason::ALL {
        all.push((
            format!("some task is handed over because of {reason}"),
            Box::new(move |model, state| properties::some_task_because(&model.world.setup, state, reason)),
        ));
    }
    all
}
