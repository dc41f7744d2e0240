//! The processes of the story: executors and sweeper run the queue's own code, a person decides at its desk.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leaseproof_queue_sim::{
    CallError, Ctx, HeartbeatMode, Queue, Resolution, Signed, StatusQueries, Sweeper, TaskError, Worker,
};
use leaseproof_rules::{Entry, Guards, Status};
use leaseproof_scenarios::{Node, PersonAct, PersonDecision, RunEnd, Story};
use madsim::rand::Rng;
use sqlx::postgres::{PgConnectOptions, PgSslMode};

use crate::event::{Actor, What};
use crate::net;
use crate::outside::{CallFailed, Client};
use crate::world::World;

/// The kind of all tasks of a story.
pub const KIND: &str = "story";

/// How far apart processes start that the story starts together, in ms: the seed decides which is first.
const START_JITTER_MS: std::ops::Range<u64> = 0..20;

/// How often a person looks whether something waits.
const GLANCE: Duration = Duration::from_millis(100);

/// A process's queue, on the simulated database.
pub fn queue(story: &Story, guards: Guards) -> Queue {
    let options = PgConnectOptions::new_without_pgpass()
        .host(&net::DATABASE.to_string())
        .port(net::DATABASE_PORT)
        .username("queue")
        .database("queue")
        .ssl_mode(PgSslMode::Disable)
        // Else it is $PGAPPNAME, and the length of what is sent would depend on it.
        .application_name("leaseproof");
    Queue::with_pg_options(options).deadline(Duration::from_millis(story.timing.deadline_ms)).with_guards(guards)
}

/// The life of an executor's process.
pub async fn executor(world: Arc<World>, index: usize, guards: Guards, started: Arc<AtomicBool>) {
    let node = Node::Executor(index);
    let setup = &world.story.executors[index];
    if !started.load(Ordering::Relaxed) {
        let late = madsim::rand::thread_rng().gen_range(START_JITTER_MS);
        madsim::time::sleep(Duration::from_millis(setup.start_ms + late)).await;
        started.store(true, Ordering::Relaxed);
    }
    world.observer.record(Actor::Node(node), What::Start);
    let client = client(&world, node);
    let handled = (world.clone(), client.clone());
    let worker = Worker::builder(queue(&world.story, guards))
        .slots(setup.slots)
        .poll(Duration::from_millis(world.story.timing.poll_ms))
        .heartbeat(HeartbeatMode::Task)
        .process(&*setup.name, 1)
        .queries(queries(&world.story, &client))
        .handler(KIND, move |ctx| {
            let (world, client) = handled.clone();
            async move { handle(world, client, node, ctx).await }
        })
        .build();
    let ended = match worker {
        Ok(worker) => worker.run(std::future::pending()).await,
        Err(error) => Err(error),
    };
    if let Err(error) = ended {
        world.observer.defect(format!("{}: {error}", setup.name));
    }
}

/// The life of the sweeper's process.
pub async fn sweeper(world: Arc<World>, guards: Guards) {
    let client = client(&world, Node::Sweeper);
    let every = Duration::from_millis(world.story.timing.sweep_ms);
    let sweeper = Sweeper::new(queue(&world.story, guards), every).queries(queries(&world.story, &client));
    if let Err(error) = sweeper.run(std::future::pending()).await {
        world.observer.defect(format!("sweeper: {error}"));
    }
}

fn client(world: &Arc<World>, node: Node) -> Client {
    Client::new(world.clone(), node, Duration::from_millis(world.story.timing.deadline_ms))
}

fn queries(story: &Story, client: &Client) -> StatusQueries {
    let effects = story.tasks.iter().filter_map(|task| task.effect.as_ref());
    effects.fold(StatusQueries::new(), |queries, effect| {
        let client = client.clone();
        queries.with(KIND, &effect.key, move |question| {
            let client = client.clone();
            async move { client.ask(question.task_id, &question.effect_key, Some(question.token)).await }
        })
    })
}

/// The handler: works, calls, works on and ends, as the story says of this run.
async fn handle(world: Arc<World>, client: Client, node: Node, ctx: Ctx) -> Result<String, TaskError> {
    let index: usize = ctx.payload()?;
    let (id, epoch) = (ctx.task().id, ctx.task().epoch);
    let run = world.run_number(index);
    let record = |what| world.observer.record(Actor::Node(node), what);
    record(What::RunBegin { task: index, epoch, run });
    let task = &world.story.tasks[index];
    let work = |ms| madsim::time::sleep(Duration::from_millis(ms));
    let mut left_ms = task.work_ms;
    if let Some(effect) = &task.effect {
        work(effect.after_ms).await;
        left_ms -= effect.after_ms;
        let call = |call: leaseproof_queue_sim::Call| async move {
            match client.call(id, &effect.key, &call.idempotency_key, call.token).await {
                Ok(()) => Ok("{}".to_owned()),
                Err(error @ (CallFailed::NotSent(_) | CallFailed::Refused(_))) => {
                    Err(CallError::NotDone(error.to_string()))
                }
                Err(error @ CallFailed::Unknown(_)) => Err(CallError::Unknown(error.to_string())),
            }
        };
        ctx.effect(&effect.key, effect.rule, call).await?;
    }
    work(left_ms).await;
    let ends = &task.ends;
    let end = ends[(run.saturating_sub(1) as usize).min(ends.len() - 1)];
    record(What::RunEnd { task: index, epoch, end });
    match end {
        RunEnd::Ok => Ok("{}".to_owned()),
        RunEnd::Error => Err(TaskError::Retryable("the story says so".to_owned())),
        RunEnd::BadInput => Err(TaskError::BadInput("the story says so".to_owned())),
        RunEnd::Hang => std::future::pending().await,
    }
}

/// The decisions of a story, and which of them are taken.
pub struct Decisions {
    taken: Vec<(PersonDecision, AtomicBool)>,
}

impl Decisions {
    /// None is taken.
    pub fn new(story: &Story) -> Decisions {
        Decisions { taken: story.decisions.iter().map(|decision| (*decision, AtomicBool::new(false))).collect() }
    }

    /// Whether a person is about to decide something.
    pub fn are_due(&self, world: &World) -> bool {
        let statuses = world.statuses();
        let waits = |task: usize| statuses.get(task) == Some(&Some(Status::WaitManual));
        self.taken.iter().any(|(decision, taken)| !taken.load(Ordering::Relaxed) && waits(decision.task))
    }
}

/// The person: takes each decision once, so long after its task has come to WAIT_MANUAL.
pub async fn decide(world: Arc<World>, queue: Queue, decisions: Arc<Decisions>) {
    let mut waiting_since = vec![None; world.story.tasks.len()];
    loop {
        madsim::time::sleep(GLANCE).await;
        let now = world.observer.now();
        for (task, status) in world.statuses().into_iter().enumerate() {
            waiting_since[task] =
                if status == Some(Status::WaitManual) { waiting_since[task].or(Some(now)) } else { None };
        }
        for (decision, taken) in &decisions.taken {
            let Some(since) = waiting_since[decision.task] else { continue };
            if taken.load(Ordering::Relaxed) || now < since + Duration::from_millis(decision.after_ms) {
                continue;
            }
            if resolve(&world, &queue, decision).await {
                taken.store(true, Ordering::Relaxed);
                waiting_since[decision.task] = None;
            }
        }
    }
}

/// One decision. False: try again, the database does not answer.
async fn resolve(world: &World, queue: &Queue, decision: &PersonDecision) -> bool {
    let Some(id) = world.task_id(decision.task) else { return true };
    let resolution = match decision.act {
        PersonAct::Fail => Resolution::Fail,
        PersonAct::Succeed => Resolution::Succeed,
        PersonAct::Rerun => match queue.show(id).await {
            // A person finds out the truth.
            Ok(shown) => {
                let unknown = shown.effects.iter().filter(|effect| effect.state == Entry::Intent);
                let truth = |key: &str| match world.ledger(|ledger| ledger.count(id, key)) {
                    0 => Entry::NotDone,
                    _ => Entry::Done,
                };
                let effects: BTreeMap<_, _> = unknown.map(|effect| (effect.key.clone(), truth(&effect.key))).collect();
                Resolution::Rerun { input: None, effects }
            }
            Err(_) => return false,
        },
    };
    let signed = Signed { by: "person", why: "the story says so" };
    match queue.resolve(id, None, &resolution, signed).await {
        Ok(_) => true,
        Err(error) if error.is_transient() => false,
        Err(error) => {
            world.observer.defect(format!("the person's decision about task {id}: {error}"));
            true
        }
    }
}
