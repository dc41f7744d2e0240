//! The two older designs in the simulation: the same stories, the same database node, network, faults and third party, with
//! `leaseproof-older-designs` in the executors instead of the queue.
//!
//! There is no sweeper and no person: the designs have none. Points of a story that they never come to (a heartbeat, an
//! intent) strike nothing. Of a single transaction the claim is committed with the report, so `claim.reply` is there too.

pub mod compare;
mod process;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use leaseproof_older_designs::{Claim, CommitRunning, Error, MainTransaction, SingleTransaction, Table, sqlite_schema};
use leaseproof_rules::{Property, Status};
use leaseproof_scenarios::{Node, Story, Verdict};
use madsim::runtime::Handle;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};

use crate::db::{Database, Longest};
use crate::run::RunError;
use crate::{net, outside, room};
use world::OlderWorld;
pub use world::Seen;

/// How often it is looked whether everything is quiet, in simulated time.
const LOOK: Duration = Duration::from_millis(250);

/// Which of the older designs the executors run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Older {
    /// S1, transaction 1 open for the whole run.
    CommitRunning,
    /// S1, transaction 1 ended before the work.
    CommitRunningShort,
    /// S2.
    SingleTransaction,
}

/// What the server does by itself about sessions: the two clocks of S2, as the article has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Server {
    /// After so long without a statement a session that is in a transaction is ended: MySQL's `wait_timeout`, or PostgreSQL's
    /// `idle_in_transaction_session_timeout`.
    pub idle_timeout: Option<Duration>,
}

impl Server {
    /// MySQL's default, 8 h; and TCP keepalive with Linux's defaults, which the database node always has: 7200 s of silence,
    /// then 9 probes 75 s apart.
    pub const DEFAULT: Server = Server { idle_timeout: Some(Duration::from_secs(8 * 3600)) };
}

/// A run of an older design and what is to be said of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OlderRun {
    /// How it ended.
    pub verdict: Verdict,
    /// The tasks' committed statuses at the end.
    pub statuses: Vec<Status>,
    /// When handlers began, in story time, by task.
    pub begun: Vec<Vec<Duration>>,
    /// What another session found of the tasks while their first handlers were at work, by task.
    pub seen_at_work: Vec<Option<Seen>>,
    /// When the first fault struck, in story time.
    pub first_fault: Option<Duration>,
    /// When the server first rolled back what a run had written, in story time.
    pub rolled_back: Option<Duration>,
    /// When the last task came to its end, in story time. `None`: one never did.
    pub resolved: Option<Duration>,
    /// How often each task's effect happened.
    pub effects: Vec<u32>,
    /// The faults of the story that struck, by their indices.
    pub struck: BTreeSet<usize>,
    /// How long transactions and locks lasted.
    pub longest: Longest,
    /// Writes to task rows that were committed.
    pub writes: u32,
    /// How long it took, in simulated time.
    pub virtual_time: Duration,
    /// Where the harness could not make sense of what it saw.
    pub defects: Vec<String>,
}

/// Runs a story with an older design. Equal arguments give an equal run.
///
/// # Errors
/// A story that can not be set up, or a panic inside.
pub fn run_older(story: &Story, older: Older, server: Server, seed: u64) -> Result<OlderRun, RunError> {
    let story = Arc::new(story.clone());
    room::simulate(seed, move || tell(story, older, server))?.map_err(RunError::SetUp)
}

/// A process's connections: so many, and patience for one as long as for an answer.
fn table(story: &Story, server: Server) -> Table {
    let idle_ms = server.idle_timeout.unwrap_or_default().as_millis().to_string();
    let options = PgConnectOptions::new_without_pgpass()
        .host(&net::DATABASE.to_string())
        .port(net::DATABASE_PORT)
        .username("older")
        .database("older")
        .ssl_mode(PgSslMode::Disable)
        .application_name("leaseproof")
        .options([("idle_in_transaction_session_timeout", idle_ms)]);
    let patience = Duration::from_millis(story.timing.deadline_ms);
    // What a connection has said before it is lent is no concern of a design: none is tried beforehand.
    let pool = PgPoolOptions::new().max_connections(2).acquire_timeout(patience).test_before_acquire(false);
    Table::on_postgres(pool.connect_lazy_with(options))
}

async fn tell(story: Arc<Story>, older: Older, server: Server) -> Result<OlderRun, String> {
    let world = OlderWorld::new(story.clone());
    let database = Database::with_row_locks(&sqlite_schema(), world.clone()).map_err(|error| error.to_string())?;
    let handle = Handle::current();
    let mut nodes = BTreeMap::new();

    let serving = database.clone();
    let node = handle.create_node().name("database").ip(net::DATABASE.into()).init(move || {
        let database = serving.clone();
        async move {
            let Err(error) = database.serve().await;
            panic!("the database node can not serve: {error}");
        }
    });
    nodes.insert(Node::Database, node.build().id());
    let serving = world.inner.clone();
    let node = handle.create_node().name("third_party").ip(net::THIRD_PARTY.into()).init(move || {
        let world = serving.clone();
        async move {
            let Err(error) = outside::serve(world).await;
            panic!("the third party can not serve: {error}");
        }
    });
    nodes.insert(Node::ThirdParty, node.build().id());
    let person = handle.create_node().name("person").ip(net::PERSON.into()).build();
    madsim::time::sleep(Duration::from_secs(1)).await;

    let enqueuer = (world.clone(), table(&story, server));
    let enqueued = person.spawn(async move {
        let (world, table) = enqueuer;
        for index in 0..world.inner.story.tasks.len() {
            let payload = index.to_string().into_bytes();
            let id = table.enqueue("story", &payload).await.map_err(|error| error.to_string())?;
            world.bind_task(index, id);
        }
        Ok::<(), String>(())
    });
    enqueued.await.map_err(|error| error.to_string())??;

    let begun_at = madsim::time::TimeHandle::current().elapsed();
    world.inner.observer.begin();
    let looking = (world.clone(), table(&story, server));
    person.spawn(async move { looking.0.look_on(&looking.1, older).await });
    for (index, executor) in story.executors.iter().enumerate() {
        let shared = world.clone();
        let started = Arc::new(AtomicBool::new(false));
        let node = handle.create_node().name(&executor.name).ip(net::executor(index));
        let node = node.init(move || process::executor(shared.clone(), index, older, server, started.clone()));
        nodes.insert(Node::Executor(index), node.build().id());
    }
    world.inner.faults.arm(nodes, handle.create_node().name("keeper").build());

    let horizon = Duration::from_millis(story.timing.horizon_ms);
    let settle = Duration::from_millis(2 * story.timing.deadline_ms);
    loop {
        madsim::time::sleep(LOOK).await;
        let now = world.inner.observer.now();
        let quiet = world.resolved().zip(world.inner.faults.quiet_since());
        if quiet.is_some_and(|(resolved, faults)| now >= resolved.max(faults) + settle) || now >= horizon {
            break;
        }
    }
    let longest = database.longest();
    let effects: Vec<u32> = world.effects();
    let verdict = match effects.iter().any(|count| *count > 1) {
        true => Verdict::Violated(Property::EffectAtMostOnce),
        false if world.resolved().is_some() => Verdict::AutoRecovered,
        false => Verdict::Stuck,
    };
    let (_, defects) = world.inner.observer.take();
    Ok(OlderRun {
        verdict,
        statuses: world.statuses(),
        begun: world.begun(),
        seen_at_work: world.seen_at_work(),
        first_fault: world.inner.faults.first(),
        rolled_back: longest.rolled_back.map(|at| at.saturating_sub(begun_at)),
        resolved: world.resolved(),
        effects,
        struck: world.inner.faults.struck_ones(),
        longest,
        writes: world.writes(),
        virtual_time: world.inner.observer.now(),
        defects,
    })
}

impl Older {
    fn commit_running(self, table: Table) -> Option<CommitRunning> {
        match self {
            Older::CommitRunning => Some(CommitRunning::new(table).main(MainTransaction::SpansTheRun)),
            Older::CommitRunningShort => Some(CommitRunning::new(table).main(MainTransaction::EndsBeforeTheWork)),
            Older::SingleTransaction => None,
        }
    }

    async fn claim(self, table: &Table) -> Result<Option<Claim>, Error> {
        match self.commit_running(table.clone()) {
            Some(design) => design.claim().await,
            None => SingleTransaction::new(table.clone()).claim().await,
        }
    }

    async fn claim_task(self, table: &Table, id: i64) -> Result<Option<Claim>, Error> {
        match self.commit_running(table.clone()) {
            Some(design) => design.claim_task(id).await,
            None => SingleTransaction::new(table.clone()).claim_task(id).await,
        }
    }
}
