//! The three checkers on one world, in one run: states and states per second.
//!
//! `cargo run --release -p leaseproof-benches --bin checkers [MAX_ATTEMPTS] [MAX_INTERRUPTIONS]` (default 4, 3)
//!
//! The world is one task and two executors with every fault, handlers that fail, and a person who lets the task run
//! again once. SPIN checks `model/spin/lease.pml`, the same world written by hand, if `spin` and `gcc` are there; its time
//! is that of its search, without compilation.

use std::process::{Command, ExitCode};
use std::time::Instant;

use leaseproof_model::free::LeaseModel;
use leaseproof_model::graph::{Limits, explore};
use leaseproof_model::world::World;
use stateright::{Checker, Model};

fn line(name: &str, states: usize, seconds: f64) {
    println!("{name:24} {states:>10} states  {seconds:>8.3} s  {:>10.0} states/s", states as f64 / seconds.max(1e-9));
}

fn main() -> ExitCode {
    let mut budgets = std::env::args().skip(1).map(|arg| arg.parse::<u32>());
    let (Ok(attempts), Ok(interruptions)) = (budgets.next().unwrap_or(Ok(4)), budgets.next().unwrap_or(Ok(3))) else {
        eprintln!("usage: checkers [MAX_ATTEMPTS] [MAX_INTERRUPTIONS]");
        return ExitCode::from(2);
    };
    let world = match World::lease(1, 2) {
        Ok(world) => world.errors().reruns(1).budgets(attempts, interruptions),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    if let Err(error) = world.validate() {
        eprintln!("{error}");
        return ExitCode::from(2);
    }
    let model = LeaseModel::new(world);
    println!("{}", model.world.name);
    let ours = match explore(&model, Limits::default()) {
        Ok(graph) => graph.stats(),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(3);
        }
    };
    line("leaseproof, with edges", ours.states, ours.seconds);
    let begun = Instant::now();
    let theirs = model.clone().checker().threads(1).spawn_bfs().join().unique_state_count();
    line("stateright, BFS", theirs, begun.elapsed().as_secs_f64());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../model/spin/run.sh");
    let defines = [format!("-DMAX_ATTEMPTS={attempts}"), format!("-DMAX_INTERRUPTIONS={interruptions}")];
    let spin = Command::new("sh").arg(script).args(defines).env("LEASEPROOF_SPIN_TIME", "1").output();
    let said = spin.map(|run| String::from_utf8_lossy(&run.stdout).into_owned()).unwrap_or_default();
    let mut numbers = said.split_whitespace();
    match (numbers.next().and_then(|n| n.parse().ok()), numbers.next().and_then(|n| n.parse().ok())) {
        (Some(states), Some(seconds)) => line("SPIN, safety", states, seconds),
        _ => println!("SPIN: not there; apt-get install spin gcc"),
    }
    ExitCode::SUCCESS
}
