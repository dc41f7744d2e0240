//! The one place where the command meets the simulation.

use leaseproof_scenarios::Story;

use crate::cli::ReplayArgs;
use crate::failure::Failure;

/// Replays a story on the real code.
pub fn replay(_: &Story, _: &ReplayArgs) -> Result<(), Failure> {
    Err(Failure::Internal("the simulation is not built yet; replay it with --on model".to_owned()))
}
