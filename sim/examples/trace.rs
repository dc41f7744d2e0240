//! Prints the trace of one run.
//!
//! `cargo run -p leaseproof-sim --example trace -- scenarios/stories/batch-oom.toml 7`

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let (Some(file), Some(Ok(seed))) = (args.next(), args.next().map(|seed| seed.parse::<u64>())) else {
        eprintln!("usage: trace FILE SEED");
        return ExitCode::from(2);
    };
    let story = match leaseproof_scenarios::load(Path::new(&file)) {
        Ok(story) => story,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    match leaseproof_sim::run::run_story(&story, seed) {
        Ok(run) => {
            print!("{}", run.trace);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(3)
        }
    }
}
