//! The two older designs beside the lease, each as a model over the same statuses, transitions and properties:
//! [`CommitRunning`] (S1) and [`SingleTransaction`] (S2). They are here to be compared (S4), and are expected to fail.
//!
//! Neither has a person, WAIT_MANUAL, RETRY_WAIT or two budgets, so the properties that speak of these have nothing to
//! speak of.

mod cases;
pub mod commit_running;
mod compare;
pub mod handler;
mod session;
pub mod single_transaction;
mod words;

pub use cases::{Case, Find, Older, Witness};
pub use commit_running::CommitRunning;
pub use compare::{Design, check_design, check_older};
pub use single_transaction::SingleTransaction;

use leaseproof_rules::Property;

use crate::free::Fate;
use handler::Faults;

/// The properties that make sense without a person and a manual status.
pub const APPLICABLE: [Property; 7] = [
    Property::OneCurrentOwner,
    Property::StaleWriteChangesNothing,
    Property::EffectAtMostOnce,
    Property::SuccessMeansEffect,
    Property::FinalIsFinal,
    Property::AttemptsAreBounded,
    Property::EventuallyResolved,
];

/// What may become of an exchange with the database.
fn fates(faults: Faults, calm: bool) -> impl Iterator<Item = Fate> + Clone + use<> {
    Fate::ALL.into_iter().filter(move |fate| match fate {
        Fate::Fine => true,
        Fate::RequestLost => faults.lost_request && !calm,
        Fate::ReplyLost => faults.lost_reply && !calm,
    })
}

/// The safety properties of [`APPLICABLE`] as stateright wants them.
macro_rules! safety_properties {
    () => {
        safety_properties![
            OneCurrentOwner,
            StaleWriteChangesNothing,
            EffectAtMostOnce,
            SuccessMeansEffect,
            FinalIsFinal,
            AttemptsAreBounded
        ]
    };
    ($($property:ident),*) => {
        vec![$(stateright::Property::always(leaseproof_rules::Property::$property.name(), |_, state: &State| {
            state.bad & crate::properties::bit(leaseproof_rules::Property::$property) == 0
        })),*]
    };
}
use safety_properties;
