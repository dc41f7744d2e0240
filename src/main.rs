//! The command. Everything it tells is computed elsewhere; here are arguments, tables, lanes and exit codes.

use std::process::ExitCode;

mod cli;
mod failure;
mod lanes;
mod table;

fn main() -> ExitCode {
    ExitCode::SUCCESS
}
