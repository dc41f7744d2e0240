//! How fast the simulation is: `cargo run --release -p leaseproof-benches --bin simulation [RUNS] [JOBS]` (default 200, 1)
//!
//! Runs all shipped stories in turn, over and over, and prints runs, statements and virtual seconds per wall second, and
//! the peak memory of the process, which must not grow with the number of runs.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use leaseproof_sim::run::run_many;

fn main() {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u64>().unwrap_or(0));
    let (runs, jobs) = (args.next().unwrap_or(200), args.next().unwrap_or(1) as usize);
    let stories = match leaseproof_scenarios::stories() {
        Ok(stories) => stories,
        Err(error) => return eprintln!("{error}"),
    };
    let seeds = runs.div_ceil(stories.len() as u64);
    let (done, statements, virtual_ms) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let begun = Instant::now();
    for story in &stories {
        run_many(story, 0..seeds, jobs, &|_, run| {
            if let Ok(run) = run {
                done.fetch_add(1, Relaxed);
                statements.fetch_add(run.statements, Relaxed);
                virtual_ms.fetch_add(run.virtual_ms, Relaxed);
            }
        });
        println!("{:32} peak memory {}", story.name, peak());
    }
    let (seconds, done) = (begun.elapsed().as_secs_f64(), done.load(Relaxed) as f64);
    println!(
        "{done} runs on {jobs} thread(s) in {seconds:.2} s: {:.1} runs/s, {:.0} statements/s, {:.0} virtual s per wall s",
        done / seconds,
        statements.load(Relaxed) as f64 / seconds,
        virtual_ms.load(Relaxed) as f64 / 1e3 / seconds,
    );
}

fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("unknown").trim().to_owned()
}
