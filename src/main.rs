//! The command. Everything it tells is computed elsewhere; here are arguments, tables, lanes and exit codes.

use std::process::ExitCode;

fn main() -> ExitCode {
    eprintln!(
        "leaseproof: no command is built yet; `cargo test` runs the model, the queue's store and the simulated network"
    );
    ExitCode::from(3)
}
