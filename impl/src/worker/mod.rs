//! The worker: claims, runs, renews, reports.

mod end;
mod heartbeat;
mod identity;
mod lease;
mod run;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

pub use end::RunEnd;
pub use heartbeat::HeartbeatMode;
pub(crate) use lease::Lease;

use crate::ctx::{Ctx, TaskError};
use crate::queries::StatusQueries;
use crate::store::{Instance, Registration};
use crate::{Error, Queue, Store, Sweeper};
use end::OnEnd;
use identity::{host, random_id};
use lease::Leases;

type Running = Pin<Box<dyn Future<Output = Result<String, TaskError>> + Send>>;
pub(crate) type Handler = Arc<dyn Fn(Ctx) -> Running + Send + Sync>;
pub(crate) type Handlers = BTreeMap<String, Handler>;

/// What all runs of a worker share.
pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) boot_id: String,
    pub(crate) handlers: Handlers,
    pub(crate) queries: StatusQueries,
    on_end: Option<OnEnd>,
}

/// It looks whether the tables are still its build's, and its slot its own, once in so many polls.
const FIT_CHECK: u32 = 10;

/// Most tasks that one worker runs at once.
pub const MOST_SLOTS: u32 = 10_000;

/// A process that works on tasks.
///
/// ```
/// # use leaseproof_queue::{Queue, Worker};
/// # async fn example(queue: Queue) -> Result<(), leaseproof_queue::Error> {
/// let worker = Worker::builder(queue)
///     .slots(8)
///     .handler("greet", |ctx| async move {
///         let name: String = ctx.payload()?;
///         Ok(format!("{:?}", format!("hello {name}")))
///     })
///     .build()?;
/// worker.run(std::future::pending()).await
/// # }
/// ```
pub struct Worker {
    shared: Arc<Shared>,
    registration: Registration,
    slots: u32,
    poll: Duration,
    grace: Duration,
    heartbeat: HeartbeatMode,
    sweeper: Option<Sweeper>,
}

/// Sets up a [`Worker`].
#[derive(Clone)]
pub struct WorkerBuilder {
    queue: Queue,
    boot_id: Option<String>,
    slot_name: Option<String>,
    process: Option<(String, u32)>,
    slots: u32,
    poll: Duration,
    grace: Duration,
    heartbeat: HeartbeatMode,
    handlers: Handlers,
    queries: StatusQueries,
    sweeper: Option<Sweeper>,
    on_end: Option<OnEnd>,
}

impl WorkerBuilder {
    /// How many tasks run at once (default 4).
    pub fn slots(mut self, slots: u32) -> WorkerBuilder {
        self.slots = slots;
        self
    }

    /// How often an idle worker looks for tasks, on its monotonic clock (default 1 s).
    pub fn poll(mut self, every: Duration) -> WorkerBuilder {
        self.poll = every;
        self
    }

    /// How long a shutdown waits for handlers and their reports, on the monotonic clock (default 30 s). After that it puts
    /// back the tasks whose handlers still run, and ends what is being written: a statement that is under way is waited
    /// for, up to its deadline, and not tried again. What could not be reported then stays RUNNING until its lease ends,
    /// and the sweeper decides. A handler that blocks its thread is waited for until it comes to an `.await`, however long
    /// that is.
    pub fn grace(mut self, grace: Duration) -> WorkerBuilder {
        self.grace = grace;
        self
    }

    /// An explicit boot id instead of a random one. It names one start of one process and must never have been used.
    pub fn boot_id(mut self, boot_id: impl Into<String>) -> WorkerBuilder {
        self.boot_id = Some(boot_id.into());
        self
    }

    /// The name of the place that this process fills: a worker that takes it over declares the one before it gone, and
    /// its tasks come back at once (A2).
    pub fn slot_name(mut self, name: impl Into<String>) -> WorkerBuilder {
        self.slot_name = Some(name.into());
        self
    }

    /// Where the heartbeat runs.
    pub fn heartbeat(mut self, mode: HeartbeatMode) -> WorkerBuilder {
        self.heartbeat = mode;
        self
    }

    /// The handler of a kind of task. Its result is JSON text, at most [`MOST_JSON_BYTES`](crate::MOST_JSON_BYTES), without
    /// a NUL; any other goes the way of bad input.
    pub fn handler<F, Fut>(mut self, kind: impl Into<String>, handler: F) -> WorkerBuilder
    where
        F: Fn(Ctx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, TaskError>> + Send + 'static,
    {
        self.handlers.insert(kind.into(), Arc::new(move |ctx| Box::pin(handler(ctx))));
        self
    }

    /// The status queries it can make when a call's outcome is unknown (E2).
    pub fn queries(mut self, queries: StatusQueries) -> WorkerBuilder {
        self.queries = queries;
        self
    }

    /// Sweeps beside its work, from when this start is registered and until it is told to stop. A process whose start is
    /// refused, because its boot id is taken or its slot is a later start's, so has not swept.
    pub fn sweeper(mut self, sweeper: Sweeper) -> WorkerBuilder {
        self.sweeper = Some(sweeper);
        self
    }

    /// Hears of the end of each run, once: after its report, whatever came of that. Called by the run itself: it should be
    /// quick, and must not panic.
    pub fn on_end(mut self, hear: impl Fn(RunEnd) + Send + Sync + 'static) -> WorkerBuilder {
        self.on_end = Some(Arc::new(hear));
        self
    }

    /// What people are to find this process by: a host's name and a process id there. Identifies nothing (A2). By default
    /// `$HOSTNAME`, or else what Linux calls the machine, and the process's own id.
    pub fn process(mut self, host: impl Into<String>, pid: u32) -> WorkerBuilder {
        self.process = Some((host.into(), pid));
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// [`Error::BadInput`] with the accepted values.
    pub fn build(self) -> Result<Worker, Error> {
        let refuse = |what, why: &str| Err(Error::BadInput { what, why: why.into() });
        if !(1..=MOST_SLOTS).contains(&self.slots) {
            return refuse("slots", "accepted: 1 to 10000");
        }
        if self.poll.is_zero() {
            return refuse("poll", "must be longer than 0");
        }
        if self.boot_id.as_deref().is_some_and(|id| id.trim().is_empty()) {
            return refuse("boot_id", "must not be empty; leave it out to get a random one");
        }
        // As from a variable that is not set: workers of nothing in common would take each other's tasks.
        if self.slot_name.as_deref().is_some_and(|name| name.trim().is_empty()) {
            return refuse("slot_name", "must not be empty; leave it out for a worker without a slot");
        }
        let boot_id = match self.boot_id {
            Some(id) => id,
            None => random_id()?,
        };
        let (host, pid) = self.process.unwrap_or_else(|| (host(), std::process::id()));
        let registration =
            Registration { boot_id: boot_id.clone(), slot_name: self.slot_name, host, pid, nonce: random_id()? };
        let shared = Shared {
            store: self.queue.store().clone(),
            boot_id,
            handlers: self.handlers,
            queries: self.queries,
            on_end: self.on_end,
        };
        Ok(Worker {
            shared: Arc::new(shared),
            registration,
            slots: self.slots,
            poll: self.poll,
            grace: self.grace,
            heartbeat: self.heartbeat,
            sweeper: self.sweeper,
        })
    }
}

impl Worker {
    /// A worker on this queue, to be set up.
    pub fn builder(queue: Queue) -> WorkerBuilder {
        WorkerBuilder {
            queue,
            boot_id: None,
            slot_name: None,
            process: None,
            slots: 4,
            poll: Duration::from_secs(1),
            grace: Duration::from_secs(30),
            heartbeat: HeartbeatMode::default(),
            handlers: Handlers::new(),
            queries: StatusQueries::new(),
            sweeper: None,
            on_end: None,
        }
    }

    /// The identity under which it claims.
    pub fn boot_id(&self) -> &str {
        &self.shared.boot_id
    }

    /// Works until `shutdown` comes true, then claims nothing more, lets handlers finish within the grace period, with
    /// their heartbeats going on, and puts back what is left. A database that is away for a while is waited for.
    ///
    /// A later start of its slot ends it at once: its handlers are cancelled as when their leases are lost, without grace
    /// and without a report, since their tasks are not its own any more. The same happens to them if the future is dropped
    /// before it has ended; then their leases end, and the sweeper decides.
    ///
    /// # Errors
    /// What waiting does not cure: tables that do not fit, a boot id that is taken, a slot that a later start has taken, no
    /// thread for the heartbeat.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        let mut shutdown = pin!(shutdown);
        let leases = Arc::new(Leases::default());
        // Before this start takes over its slot: without a heartbeat it would do nothing with it.
        heartbeat::start(self.heartbeat, self.shared.store.clone(), leases.clone())?;
        let stopped = StopOnDrop(leases.clone());
        loop {
            let started = tokio::select! {
                biased;
                () = &mut shutdown => return Ok(()),
                started = self.start() => started,
            };
            match started {
                Err(error) if error.is_transient() => {
                    tracing::warn!(%error, "the worker can not start yet");
                    tokio::select! {
                        biased;
                        () = &mut shutdown => return Ok(()),
                        () = tokio::time::sleep(self.poll) => {}
                    }
                }
                other => break other?,
            }
        }
        let slots = Arc::new(Semaphore::new(self.slots as usize));
        let (put_back, release) = watch::channel(false);
        let (end_sweeps, sweeps_end) = watch::channel(false);
        let mut sweeping = pin!(sweep(self.sweeper.take(), sweeps_end));
        let mut sweeps = true;
        let result = tokio::select! {
            biased;
            ended = self.claim_until(&mut shutdown, &leases, &slots, &release) => ended,
            unfit = self.unfit() => Err(unfit),
            // Not told to, it ends by an error only.
            ended = &mut sweeping => {
                sweeps = false;
                ended
            }
        };
        if matches!(result, Err(Error::Superseded { .. })) {
            leases.lose();
        }
        end_sweeps.send_replace(true);
        let drained = drain(&slots, self.slots, self.grace, &put_back);
        let swept = match sweeps {
            true => tokio::join!(drained, sweeping).1,
            false => {
                drained.await;
                Ok(())
            }
        };
        drop(stopped);
        result.and(swept)
    }

    async fn start(&self) -> Result<(), Error> {
        self.shared.store.check_schema().await?;
        let gone = self.shared.store.register(&self.registration).await?;
        tracing::info!(boot_id = self.boot_id(), superseded = gone.len(), "worker starts");
        Ok(())
    }

    async fn claim_until(
        &self,
        mut shutdown: &mut Pin<&mut impl Future<Output = ()>>,
        leases: &Arc<Leases>,
        slots: &Arc<Semaphore>,
        release: &watch::Receiver<bool>,
    ) -> Result<(), Error> {
        loop {
            // All busy: wait for one to come free.
            let free = tokio::select! {
                biased;
                () = &mut shutdown => return Ok(()),
                free = slots.clone().acquire_owned() => free,
            };
            let Ok(first) = free else { return Ok(()) };
            let mut permits = vec![first];
            while let Ok(permit) = slots.clone().try_acquire_owned() {
                permits.push(permit);
            }
            let wanted = permits.len();
            let sent = Instant::now();
            match self.shared.store.claim(self.boot_id(), wanted as u32).await {
                Ok(tasks) => {
                    let full = tasks.len() == wanted;
                    for (task, permit) in tasks.into_iter().zip(permits) {
                        // A policy that can not be read has no lease of ours to renew; its run gives up at once.
                        let policy = task.policy.clone().unwrap_or_default();
                        let lease = leases.hold((task.id, task.epoch), &policy, sent);
                        let (shared, release) = (self.shared.clone(), release.clone());
                        tokio::spawn(async move {
                            run::run(shared, task, lease, release).await;
                            drop(permit);
                        });
                    }
                    if full {
                        continue;
                    }
                }
                Err(error) if error.needs_an_operator() => return Err(error),
                // After an unknown outcome tasks may be ours without our knowing; nobody runs them and their leases end.
                Err(error) => tracing::warn!(%error, "claim"),
            }
            tokio::select! {
                biased;
                () = &mut shutdown => return Ok(()),
                () = tokio::time::sleep(self.poll) => {}
            }
        }
    }
}

impl Worker {
    /// Waits until this start must not go on: the tables are not this build's any more, or a later start has taken its slot.
    /// To a start that is superseded the queue looks empty, and what it runs is run again by others: so it looks also while
    /// all its slots are busy.
    async fn unfit(&self) -> Error {
        loop {
            tokio::time::sleep(self.poll.saturating_mul(FIT_CHECK)).await;
            match self.shared.store.check_schema().await {
                Err(error) if error.needs_an_operator() => return error,
                Err(error) => tracing::warn!(%error, "schema"),
                Ok(()) => {}
            }
            if self.registration.slot_name.is_none() {
                continue;
            }
            match self.shared.store.instance(self.boot_id()).await {
                Ok(Some(Instance { boot_id, superseded_by: Some(by), .. })) => {
                    return Error::Superseded { boot_id, by };
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "slot"),
            }
        }
    }
}

/// Sweeps until told to end; without a sweeper it only waits for that.
async fn sweep(sweeper: Option<Sweeper>, mut end: watch::Receiver<bool>) -> Result<(), Error> {
    let end = async move {
        // An error means that the worker is gone.
        let _ = end.wait_for(|end| *end).await;
    };
    match sweeper {
        Some(sweeper) => sweeper.run(end).await,
        None => {
            end.await;
            Ok(())
        }
    }
}

/// The heartbeat ends with the worker, also when its future is dropped.
struct StopOnDrop(Arc<Leases>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Waits for the runs to end, at first by themselves, after the grace period by putting their tasks back.
async fn drain(slots: &Semaphore, all: u32, grace: Duration, put_back: &watch::Sender<bool>) {
    if tokio::time::timeout(grace, slots.acquire_many(all)).await.is_err() {
        put_back.send_replace(true);
        let _ = slots.acquire_many(all).await;
    }
}
