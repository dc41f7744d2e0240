//! How fast one large run is: `cargo run --release -p leaseproof-benches --bin workload [RUNS]` (default 40)
//!
//! Three workers, 60 tasks with a call each, 26 faults, on one thread: a workload larger than a story file may hold. Prints
//! runs, statements and virtual seconds per wall second.

use std::time::Instant;

use leaseproof_scenarios::{Act, Fault, Node, Op, Phase, Point, Story, Task, Trigger, parse};
use leaseproof_sim::run::run_story;

const STORY: &str = r#"
version = 1
title = "Sixty tasks"
question = "How fast?"
[policy]
lease = "30s"
heartbeat = "10s"
max_attempts = 9
max_interruptions = 9
[[tasks]]
name = "t"
work = "18s"
[[tasks.effects]]
key = "charge"
after = "9s"
instruments = ["idempotency_key"]
[[executors]]
name = "w1"
slots = 4
[[executors]]
name = "w2"
slots = 4
[[executors]]
name = "w3"
slots = 4
[expect]
verdicts = ["auto-recovered"]
"#;

fn story() -> Result<Story, leaseproof_scenarios::StoryError> {
    let mut story = parse("workload.toml", STORY)?;
    let task = story.tasks.remove(0);
    story.tasks = (1..=60).map(|number| Task { name: format!("t{number}"), ..task.clone() }).collect();
    let ops = [Op::Complete, Op::Outcome, Op::Intent, Op::Heartbeat];
    for number in 0..24_u32 {
        let point = Point { op: ops[number as usize % ops.len()], phase: Phase::Reply };
        let trigger = Trigger::At { point, nth: 1 + number / 12 };
        let on = Node::Executor(number as usize / 4 % 3);
        story.faults.push(Fault { trigger, on, act: Act::Lose { times: 1 } });
    }
    for (executor, ms) in [(0, 30_000), (1, 50_000)] {
        let act = Act::Crash { restart_ms: Some(2_000) };
        story.faults.push(Fault { trigger: Trigger::After { ms }, on: Node::Executor(executor), act });
    }
    Ok(story)
}

fn main() {
    let runs = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(40);
    let story = match story() {
        Ok(story) => story,
        Err(error) => return eprintln!("{error}"),
    };
    let (mut statements, mut virtual_ms, mut faults) = (0, 0, 0);
    let begun = Instant::now();
    for seed in 0..runs {
        match run_story(&story, seed) {
            Ok(run) => {
                statements += run.statements;
                virtual_ms += run.virtual_ms;
                faults += run.struck.len();
            }
            Err(error) => return eprintln!("seed {seed}: {error}"),
        }
    }
    let (seconds, runs) = (begun.elapsed().as_secs_f64(), runs as f64);
    println!(
        "a run: {:.0} statements, {:.0} virtual s, {:.0} faults; {:.1} runs/s, {:.0} statements/s, {:.0} virtual s per wall s",
        statements as f64 / runs,
        virtual_ms as f64 / 1e3 / runs,
        faults as f64 / runs,
        runs / seconds,
        statements as f64 / seconds,
        virtual_ms as f64 / 1e3 / seconds,
    );
}
