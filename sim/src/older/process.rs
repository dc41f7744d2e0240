//! An executor's process: so many slots, each of which claims, works and reports.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leaseproof_older_designs::{Outcome, Task};
use leaseproof_scenarios::{Node, RunEnd};
use madsim::rand::Rng;

use super::world::OlderWorld;
use super::{Older, Server, table};
use crate::event::{Actor, What};
use crate::outside::Client;

/// How far apart processes start that the story starts together, in ms: the seed decides which is first.
const START_JITTER_MS: std::ops::Range<u64> = 0..20;

/// The life of the process.
pub async fn executor(world: Arc<OlderWorld>, index: usize, older: Older, server: Server, started: Arc<AtomicBool>) {
    let setup = &world.inner.story.executors[index];
    if !started.load(Ordering::Relaxed) {
        let late = madsim::rand::thread_rng().gen_range(START_JITTER_MS);
        madsim::time::sleep(Duration::from_millis(setup.start_ms + late)).await;
        started.store(true, Ordering::Relaxed);
    }
    world.inner.observer.record(Actor::Node(Node::Executor(index)), What::Start);
    for _ in 1..setup.slots {
        madsim::task::spawn(slot(world.clone(), index, older, server));
    }
    slot(world.clone(), index, older, server).await;
}

/// One task at a time, for ever. After whatever is not an answer it begins with new connections, as a process that was
/// restarted would: the designs themselves know no deadlines.
async fn slot(world: Arc<OlderWorld>, index: usize, older: Older, server: Server) {
    let story = world.inner.story.clone();
    let deadline = Duration::from_millis(story.timing.deadline_ms);
    let poll = Duration::from_millis(story.timing.poll_ms);
    let client = Client::new(world.inner.clone(), Node::Executor(index), deadline);
    let mut connections = table(&story, server);
    loop {
        match madsim::time::timeout(deadline, older.claim(&connections)).await {
            Ok(Ok(Some(claim))) => {
                let outcome = handle(&world, &client, claim.task()).await;
                match madsim::time::timeout(deadline, claim.report(outcome)).await {
                    Ok(Ok(_)) => {}
                    _ => connections = table(&story, server),
                }
            }
            Ok(Ok(None)) => madsim::time::sleep(poll).await,
            Ok(Err(_)) | Err(_) => {
                connections = table(&story, server);
                madsim::time::sleep(poll).await;
            }
        }
    }
}

/// The handler: works, calls, works on and ends, as the story says of this run. Neither design tells it of earlier runs.
async fn handle(world: &OlderWorld, client: &Client, task: &Task) -> Outcome {
    let index = world.inner.task_index(task.id);
    let Some(told) = world.inner.story.tasks.get(index) else { return Outcome::Fail };
    let run = world.begin(index);
    let work = |ms| madsim::time::sleep(Duration::from_millis(ms));
    let mut left_ms = told.work_ms;
    if let Some(effect) = &told.effect {
        work(effect.after_ms).await;
        left_ms -= effect.after_ms;
        // The key is the same in every run: a third party that knows keys helps these designs too.
        let key = format!("{}/{}", task.id, effect.key);
        if client.call(task.id, &effect.key, &key, 0).await.is_err() {
            world.end(index);
            return Outcome::Fail;
        }
    }
    work(left_ms).await;
    let end = told.ends[(run.saturating_sub(1) as usize).min(told.ends.len() - 1)];
    if end != RunEnd::Hang {
        world.end(index);
    }
    match end {
        RunEnd::Ok => Outcome::Success,
        RunEnd::Error | RunEnd::BadInput => Outcome::Fail,
        RunEnd::Hang => std::future::pending().await,
    }
}
