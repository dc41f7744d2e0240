//! The command. Everything it tells is computed elsewhere; here are arguments, tables, lanes and exit codes.

#![warn(clippy::unwrap_used)]

mod cli;
mod commands;
mod failure;
mod lanes;
mod narrate;
mod style;
mod table;

use std::panic::catch_unwind;
use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use failure::Failure;

fn main() -> ExitCode {
    let answer = match Cli::try_parse() {
        Ok(Cli { command }) => catch_unwind(move || run(command))
            .unwrap_or_else(|_| Err(Failure::Internal("a defect, told above; please report it".to_owned()))),
        // Help and version come this way, too.
        Err(told) if !told.use_stderr() => style::print(&told.render().ansi().to_string()),
        Err(refused) => {
            // If standard error is closed or full, the exit code still says it.
            let _ = refused.print();
            return ExitCode::from(2);
        }
    };
    match answer {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !matches!(failure, Failure::Violated) {
                style::complain(&failure);
            }
            failure.exit_code()
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Matrix(args) => commands::matrix::run(&args),
        Command::Replay(args) => commands::replay::run(&args),
        Command::Sweep(args) => commands::sweep::run(&args),
        Command::Validate(args) => commands::exports::validate(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::Compare(args) => commands::compare::run(&args),
        Command::Explore(args) => commands::explore::run(&args),
        Command::Queue(args) => commands::queue::run(args),
    }
}
