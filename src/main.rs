//! The command. Everything it tells is computed elsewhere; here are arguments, tables, lanes and exit codes.

mod cli;
mod commands;
mod expect;
mod failure;
mod lanes;
mod narrate;
mod style;
mod table;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use failure::Failure;

fn main() -> ExitCode {
    let answer = match Cli::parse().command {
        Command::Matrix(args) => commands::matrix::run(&args),
        Command::Replay(args) => commands::replay::run(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::Queue(args) => commands::queue::run(args),
    };
    match answer {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !matches!(failure, Failure::Violated) {
                anstream::eprintln!("{} {failure}", style::paint(style::Tone::Bad, "leaseproof:"));
            }
            failure.exit_code()
        }
    }
}
