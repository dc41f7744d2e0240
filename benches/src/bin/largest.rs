//! How large a world may be: explores one with all its steps and checks everything in it, and prints time and memory.
//!
//! `cargo run --release -p leaseproof-benches --bin largest [TASKS] [EXECUTORS] [MAX_STATES]` (default 2, 3, 100 million)
//!
//! The world has every fault and handlers that fail. A search that meets the limit is cut, and says so.

use std::num::NonZeroUsize;
use std::time::Instant;

use leaseproof_model::free::LeaseModel;
use leaseproof_model::graph::{Limits, Trigger, explore_on};
use leaseproof_model::packed::Packed;
use leaseproof_model::properties::all_resolved;
use leaseproof_model::world::World;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|arg| arg.parse::<usize>());
    let mut next = |default| numbers.next().unwrap_or(Ok(default));
    let (tasks, executors, max_states) = (next(2)?, next(3)?, next(100_000_000)?);
    let world = World::lease(tasks, executors)?.errors();
    world.validate()?;
    let model = LeaseModel::new(world);
    println!("{}", model.world.name);
    let begun = Instant::now();
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let graph = explore_on(&model, Limits { max_states }, threads)?;
    let stats = graph.stats();
    let (states, edges, depth) = (stats.states, stats.edges, stats.depth);
    println!(
        "{states} states, {edges} steps, depth {depth}: {:.1} s with {threads} threads{}",
        stats.seconds,
        if stats.cut { ", cut" } else { "" },
    );
    let safe = graph.check_always("nothing is broken", |state| state.unpack().bad == 0)?;
    let resolved = |state: &Packed| all_resolved(&model.world.setup, &state.unpack());
    let live = graph.check_leads_to("resolved", Trigger::Anywhere, resolved)?;
    println!(
        "safety {:.1} s: {}; liveness {:.1} s: {}",
        safe.seconds,
        said(&safe.outcome),
        live.seconds,
        said(&live.outcome)
    );
    println!("{:.1} s in all, {} MiB held by the graph", begun.elapsed().as_secs_f64(), stats.memory_bytes >> 20);
    Ok(())
}

fn said<S, A>(outcome: &leaseproof_model::graph::Outcome<S, A>) -> &'static str {
    match outcome {
        leaseproof_model::graph::Outcome::Holds => "holds",
        leaseproof_model::graph::Outcome::Violated(_) => "violated",
        leaseproof_model::graph::Outcome::Cut { .. } => "cut",
    }
}
