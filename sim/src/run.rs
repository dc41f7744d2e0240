//! A story, told by the real code: sets the world up, lets it run until everything is quiet, and judges what was seen.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, atomic::AtomicBool};
use std::time::Duration;

use leaseproof_queue_sim::{NewTask, Queue, sqlite_schema};
use leaseproof_rules::{Guards, Status};
use leaseproof_scenarios::{Met, Node, Story, Verdict};
use madsim::runtime::{Handle, NodeHandle};

use crate::check::{self, Finding, RecordEntry, Seen};
use crate::db::Database;
use crate::event::{Actor, Event, What};
use crate::process;
use crate::room::{self, RoomError};
use crate::trace::{self, Header, Line};
use crate::validate::{Divergence, validate};
use crate::world::World;
use crate::{net, outside};

/// How often it is looked whether everything is quiet, in simulated time.
const LOOK: Duration = Duration::from_millis(250);

const PG_OPTIONS: &str = "PGOPTIONS";

/// A run that did not come to a verdict.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RunError {
    /// The simulation did not come to its end.
    #[error(transparent)]
    Room(#[from] RoomError),
    /// The driver reads this variable of the environment, and nothing in the simulation can keep it from doing so.
    #[error(
        "{variable} is set: it would reach the simulated driver, and a run would not be the same elsewhere; unset it"
    )]
    Environment {
        /// Its name.
        variable: &'static str,
    },
    /// The story could not be set up.
    #[error("the story could not be set up: {0}")]
    SetUp(String),
}

/// A run and what is to be said of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// How it ended.
    pub verdict: Verdict,
    /// The first line of its trace.
    pub header: Header,
    /// The further lines.
    pub lines: Vec<Line>,
    /// The trace as it is written to a file.
    pub trace: String,
    /// From the first fault, or from the start if there is none, to the resolution of the last task, in ms. `None`:
    /// something is unresolved.
    pub recovered_ms: Option<u64>,
    /// The faults of the story that struck, by their indices.
    pub struck: BTreeSet<usize>,
    /// How often the effect of a task happened, at most. 0 if no task has one.
    pub effects_max: u32,
    /// How often the effect of a task that has one happened, at least. 0 if no task has one.
    pub effects_min: u32,
    /// Late results on the record.
    pub late_results: u32,
    /// How often a task was claimed, at most.
    pub runs_max: u32,
    /// What is wrong, in order of time.
    pub findings: Vec<Finding>,
    /// Where the observer could not make sense of what it saw: defects of the simulator or of the queue.
    pub defects: Vec<String>,
    /// Where its trace is no path of the rules.
    pub divergence: Option<Divergence>,
    /// Statements that the database executed.
    pub statements: u64,
    /// Transaction blocks that were begun: transactions that outlive a statement.
    pub blocks: u64,
    /// How long it took, in ms of simulated time.
    pub virtual_ms: u64,
}

impl Run {
    /// What its story's bounds are held against.
    pub fn met(&self) -> Met {
        Met {
            recovered_ms: self.recovered_ms,
            effects_max: self.effects_max,
            effects_min: self.effects_min,
            late_results: self.late_results,
            runs_max: self.runs_max,
        }
    }

    /// What is wrong with it as its file sees it: verdict, bounds, and what the checkers can not explain.
    pub fn complaints(&self, story: &Story) -> Vec<String> {
        let mut wrong = Vec::new();
        if !story.expect.verdicts.contains(&self.verdict) {
            let expected: Vec<String> = story.expect.verdicts.iter().map(ToString::to_string).collect();
            wrong.push(format!("verdict {}, expected {}", self.verdict, expected.join(" or ")));
        }
        // What a run that was broken off by a violation would have met, nobody knows.
        if !matches!(self.verdict, Verdict::Violated(_)) {
            wrong.extend(self.met().complaints(&story.expect));
        }
        let unexplained = self.findings.iter().filter(|finding| finding.property.is_none());
        wrong.extend(unexplained.map(|finding| finding.why.clone()));
        wrong.extend(self.defects.iter().cloned());
        wrong.extend(self.divergence.iter().map(ToString::to_string));
        wrong
    }
}

/// What comes out of the simulation.
struct Told {
    events: Vec<Event>,
    defects: Vec<String>,
    record: Vec<Vec<RecordEntry>>,
    effects: Vec<u32>,
    runs: Vec<u32>,
    begin_ms: i64,
    first_fault: Duration,
    struck: BTreeSet<usize>,
    statements: u64,
    blocks: u64,
    virtual_ms: u64,
}

/// Runs a story under the guards that it names. Equal story and seed give an equal run, to the byte of the trace.
///
/// # Errors
/// A story that can not be set up, a panic inside, or a variable in the environment that would change the run.
pub fn run_story(story: &Story, seed: u64) -> Result<Run, RunError> {
    // sqlx takes the defaults of its options from PG*; this one can be added to but not replaced.
    if std::env::var_os(PG_OPTIONS).is_some() {
        return Err(RunError::Environment { variable: PG_OPTIONS });
    }
    let story = Arc::new(story.clone());
    let told = {
        let story = story.clone();
        room::simulate(seed, move || tell(story))?.map_err(RunError::SetUp)?
    };
    Ok(judge(&story, seed, told))
}

/// Runs a story for each seed, on so many threads, and hands every run over as it comes, in no particular order. What a
/// seed gives does not depend on the number of threads.
pub fn run_many(story: &Story, seeds: Range<u64>, jobs: usize, each: &(dyn Fn(u64, Result<Run, RunError>) + Sync)) {
    let next = AtomicU64::new(seeds.start);
    std::thread::scope(|scope| {
        let most = usize::try_from(seeds.end.saturating_sub(seeds.start)).unwrap_or(usize::MAX);
        for _ in 0..jobs.min(most).max(1) {
            scope.spawn(|| {
                // Never beyond the end: the last seed there is has no next one.
                let take = |seed| (seed < seeds.end).then(|| seed + 1);
                while let Ok(seed) = next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
                    each(seed, run_story(story, seed));
                }
            });
        }
    });
}

/// Lives through the story.
async fn tell(story: Arc<Story>) -> Result<Told, String> {
    let guards = story.without.map_or(Guards::ALL, Guards::without);
    let world = World::new(story.clone());
    let database = Database::open(&sqlite_schema("leaseproof_now_ms()"), world.clone()).map_err(|e| e.to_string())?;
    let machines = Machines::start(&world, &database).await;

    let desk = process::queue(&story, guards);
    let enqueued = machines.person.spawn(enqueue(world.clone(), desk.clone()));
    enqueued.await.map_err(|error| error.to_string())??;

    world.observer.begin();
    let begin_ms = database.now_ms();
    machines.arm(&world, guards);
    let deciding = Arc::new(process::Decisions::new(&story));
    machines.person.spawn(process::decide(world.clone(), desk, deciding.clone()));

    let settle = Duration::from_millis(2 * story.policy.lease_ms.max(story.timing.deadline_ms));
    let horizon = Duration::from_millis(story.timing.horizon_ms);
    let mut resolved_since = None;
    loop {
        madsim::time::sleep(LOOK).await;
        let now = world.observer.now();
        resolved_since = if world.is_resolved() { resolved_since.or(Some(now)) } else { None };
        let quiet = resolved_since.zip(world.faults.quiet_since()).map(|(resolved, faults)| resolved.max(faults));
        if quiet.is_some_and(|since| now >= since + settle) && !deciding.are_due(&world) {
            break;
        }
        if now >= horizon {
            if resolved_since.is_none() {
                world.observer.record(Actor::Node(Node::Database), What::Horizon);
            }
            break;
        }
    }

    let record = record(&world, &database).map_err(|error| error.to_string())?;
    let (events, defects) = world.observer.take();
    let effects = story.tasks.iter().enumerate().filter_map(|(index, task)| {
        let (effect, id) = (task.effect.as_ref()?, world.task_id(index)?);
        Some(world.ledger(|ledger| ledger.count(id, &effect.key)))
    });
    Ok(Told {
        record,
        defects,
        effects: effects.collect(),
        runs: (0..story.tasks.len()).map(|index| world.run_number(index)).collect(),
        begin_ms,
        first_fault: world.faults.first().unwrap_or_default(),
        struck: world.faults.struck_ones(),
        statements: database.statements(),
        blocks: database.blocks(),
        virtual_ms: world.observer.now().as_millis() as u64,
        events,
    })
}

/// The machines of a run.
struct Machines {
    database: NodeHandle,
    third_party: NodeHandle,
    person: NodeHandle,
}

impl Machines {
    /// Starts the database and the third party, and waits until they serve.
    async fn start(world: &Arc<World>, database: &Arc<Database>) -> Machines {
        let handle = Handle::current();
        let serving = database.clone();
        let database = handle.create_node().name("database").ip(net::DATABASE.into()).init(move || {
            let database = serving.clone();
            async move {
                let Err(error) = database.serve().await;
                panic!("the database node can not serve: {error}");
            }
        });
        let database = database.build();
        let serving = world.clone();
        let third_party = handle.create_node().name("third_party").ip(net::THIRD_PARTY.into()).init(move || {
            let world = serving.clone();
            async move {
                let Err(error) = outside::serve(world).await;
                panic!("the third party can not serve: {error}");
            }
        });
        let third_party = third_party.build();
        let person = handle.create_node().name("person").ip(net::PERSON.into()).build();
        madsim::time::sleep(Duration::from_secs(1)).await;
        Machines { database, third_party, person }
    }

    /// Starts executors and sweeper, and sets the faults.
    fn arm(&self, world: &Arc<World>, guards: Guards) {
        let mut nodes = std::collections::BTreeMap::new();
        nodes.insert(Node::Database, self.database.id());
        nodes.insert(Node::ThirdParty, self.third_party.id());
        let handle = Handle::current();
        for index in 0..world.story.executors.len() {
            let shared = world.clone();
            // Set after the first start: a restarted process does not wait for the hour of the first.
            let started = Arc::new(AtomicBool::new(false));
            let node = handle
                .create_node()
                .name(&world.story.executors[index].name)
                .ip(net::executor(index))
                .init(move || process::executor(shared.clone(), index, guards, started.clone()))
                .build();
            nodes.insert(Node::Executor(index), node.id());
        }
        let shared = world.clone();
        let sweeper = handle
            .create_node()
            .name("sweeper")
            .ip(net::SWEEPER.into())
            .init(move || process::sweeper(shared.clone(), guards))
            .build();
        nodes.insert(Node::Sweeper, sweeper.id());
        let keeper = handle.create_node().name("keeper").build();
        world.faults.arm(nodes, keeper);
    }
}

async fn enqueue(world: Arc<World>, queue: Queue) -> Result<(), String> {
    for index in 0..world.story.tasks.len() {
        let payload = serde_json::to_vec(&index).map_err(|error| error.to_string())?;
        let task = NewTask::new(process::KIND, payload).policy(world.story.policy.clone());
        let enqueued = queue.enqueue(task).await.map_err(|error| error.to_string())?;
        world.bind_task(index, enqueued.id);
    }
    Ok(())
}

/// The queue's own execution record, read behind its back.
fn record(world: &World, database: &Database) -> rusqlite::Result<Vec<Vec<RecordEntry>>> {
    let mut all = Vec::new();
    for index in 0..world.story.tasks.len() {
        let id = world.task_id(index).unwrap_or_default();
        let entries = database.read(|connection| {
            let sql = "SELECT verb, from_status, to_status, epoch FROM task_events WHERE task_id = ?1 ORDER BY id";
            let mut statement = connection.prepare(sql)?;
            let rows = statement.query_map([id], |row| {
                let from: Option<String> = row.get(1)?;
                let to: String = row.get(2)?;
                Ok(RecordEntry {
                    verb: row.get(0)?,
                    from: from.as_deref().and_then(Status::from_name),
                    to: Status::from_name(&to).unwrap_or(Status::Fail),
                    epoch: row.get::<_, i64>(3)? as u64,
                })
            })?;
            rows.collect()
        })?;
        all.push(entries);
    }
    Ok(all)
}

fn judge(story: &Story, seed: u64, told: Told) -> Run {
    let findings = check::findings(&Seen { story, events: &told.events, record: &told.record });
    let verdict = check::verdict(&told.events, &findings);
    let header = trace::header(story, seed);
    let lines: Vec<Line> = told.events.iter().map(|event| trace::line(story, event, told.begin_ms)).collect();
    let mut text = trace::text(&header);
    text.push('\n');
    for line in &lines {
        text.push_str(&trace::text(line));
        text.push('\n');
    }
    let unresolved = matches!(verdict, Verdict::Stuck);
    let resolved = told.events.iter().rev().find(|event| event.what == What::Resolved);
    let first_fault_ms = told.first_fault.as_millis() as u64;
    let late = told.events.iter().filter(|event| matches!(event.what, What::LateResult { .. })).count();
    Run {
        verdict,
        header,
        trace: text,
        recovered_ms: resolved.filter(|_| !unresolved).map(|event| event.at_ms().saturating_sub(first_fault_ms)),
        struck: told.struck,
        effects_max: told.effects.iter().copied().max().unwrap_or_default(),
        effects_min: told.effects.iter().copied().min().unwrap_or_default(),
        late_results: late as u32,
        runs_max: told.runs.iter().copied().max().unwrap_or_default(),
        findings,
        defects: told.defects,
        divergence: validate(story, &lines).err(),
        statements: told.statements,
        blocks: told.blocks,
        virtual_ms: told.virtual_ms,
        lines,
    }
}

/// Collects what [`run_many`] hands over, in order of the seeds.
#[derive(Default)]
pub struct Collected {
    runs: Mutex<std::collections::BTreeMap<u64, Result<Run, RunError>>>,
}

impl Collected {
    /// Takes one run in.
    pub fn add(&self, seed: u64, run: Result<Run, RunError>) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).insert(seed, run);
    }

    /// All runs, by seed.
    pub fn into_runs(self) -> std::collections::BTreeMap<u64, Result<Run, RunError>> {
        self.runs.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
