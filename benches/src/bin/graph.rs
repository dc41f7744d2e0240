//! How fast the exact graph checker is on a synthetic model whose steps cost next to nothing.
//!
//! `cargo run --release -p leaseproof-benches --bin graph [SIDE]` (default 14: 7.5 M states, 45 M steps)
//!
//! The model is six dials of `SIDE` hours packed into one `u64`; a step turns one dial by one hour, and each dial is a
//! fairness class of its own. *Stopping* dials end at the last hour: no cycles, as in a protocol whose budgets run out.
//! *Turning* dials go round: one component of all states, and a depth-first path through millions of them, the worst
//! case for the liveness pass.

use leaseproof_model::graph::{Fair, Limits, Trigger, explore};
use stateright::Model;

const DIALS: u32 = 6;
/// Bits of the state for each dial.
const WIDTH: u32 = 10;

struct Dials {
    side: u64,
    turning: bool,
}

impl Model for Dials {
    type State = u64;
    type Action = u8;

    fn init_states(&self) -> Vec<u64> {
        vec![0]
    }

    fn actions(&self, _: &u64, actions: &mut Vec<u8>) {
        actions.extend(0..DIALS as u8);
    }

    fn next_state(&self, state: &u64, dial: u8) -> Option<u64> {
        let shift = u32::from(dial) * WIDTH;
        let hour = (state >> shift) & ((1 << WIDTH) - 1);
        let turned = match hour + 1 {
            next if next < self.side => next,
            _ if self.turning => 0,
            _ => return None,
        };
        Some(state - (hour << shift) + (turned << shift))
    }
}

impl Fair for Dials {
    fn fair_class(&self, _: &u64, dial: &u8) -> Option<u8> {
        Some(*dial)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let side = match std::env::args().nth(1) {
        Some(text) => text.parse()?,
        None => 14,
    };
    if !(2..1 << WIDTH).contains(&side) {
        return Err(format!("SIDE must be 2 to {}, not {side}", (1 << WIDTH) - 1).into());
    }
    for turning in [false, true] {
        println!("{} dials", if turning { "turning" } else { "stopping" });
        let model = Dials { side, turning };
        let graph = explore(&model, Limits::default())?;
        let stats = graph.stats();
        println!(
            "  explore: {} states, {} steps, depth {}, {:.2} s, {:.2} M states/s, {:.1} M steps/s, {} MiB",
            stats.states,
            stats.edges,
            stats.depth,
            stats.seconds,
            stats.states as f64 / stats.seconds / 1e6,
            stats.edges as f64 / stats.seconds / 1e6,
            stats.memory_bytes >> 20,
        );
        let always = graph.check_always("no state is all ones", |&state| state != u64::MAX)?;
        println!("  always: {:.3} s", always.seconds);
        // The state that is reached last: all dials at their last hour.
        let last = (0..DIALS).fold(0, |state, dial| state | (side - 1) << (dial * WIDTH));
        let goal = |&state: &u64| state == last;
        let report = graph.check_leads_to("all come to the end", Trigger::Anywhere, goal)?;
        println!(
            "  liveness: holds = {}, {:.3} s, lasso of {} steps",
            report.outcome.holds(),
            report.seconds,
            report.outcome.counterexample().map_or(0, |found| found.len()),
        );
        assert_eq!(report.outcome.holds(), !turning);
    }
    Ok(())
}
