//! `leaseproof matrix`.

use crate::cli::MatrixArgs;
use crate::failure::Failure;

/// Runs the command.
pub fn run(_: &MatrixArgs) -> Result<(), Failure> {
    Err(Failure::Internal("the simulation is not built yet".to_owned()))
}
