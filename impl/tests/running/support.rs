//! Workers in the background, and waiting for what they do.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use leaseproof_queue::rules::{Backoff, EffectRule, Instruments, OnPartial, OnUnknown, Policy, Status};
use leaseproof_queue::{Error, NewTask, Queue, Shown, Sweeper, TaskError, Worker, WorkerBuilder};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::common::{Db, HOUR_MS};

/// Longer than anything here takes unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long something is watched that must *not* happen: many times the poll interval.
pub const A_WHILE: Duration = Duration::from_millis(150);

/// A lease that ends within a test.
pub fn short_lease() -> Policy {
    Policy { lease_ms: 900, heartbeat_ms: 150, fence_margin_ms: 200, ..at_once() }
}

/// A long lease, and re-runs without a delay.
pub fn at_once() -> Policy {
    Policy { backoff: Backoff { base_ms: 0, factor: 1, max_ms: 0 }, ..Policy::default() }
}

/// A retry that does not come by itself.
pub fn in_an_hour() -> Policy {
    let hour = HOUR_MS as u64;
    Policy { backoff: Backoff { base_ms: hour, factor: 2, max_ms: 10 * hour }, ..Policy::default() }
}

/// No instrument, and a person decides.
pub const NO_INSTRUMENT: EffectRule = rule(false, false, false, OnUnknown::Escalate);

/// A declaration: idempotency key, status query, execution token.
pub const fn rule(
    idempotency_key: bool,
    status_query: bool,
    execution_token: bool,
    on_unknown: OnUnknown,
) -> EffectRule {
    let instruments = Instruments { idempotency_key, status_query, execution_token, ..Instruments::NONE };
    EffectRule { instruments, on_unknown, on_partial: OnPartial::Resume }
}

/// A worker in the background. Dropped without [`stop`](Background::stop), it is left alone with the runtime's end.
pub struct Background {
    pub boot_id: String,
    stop: oneshot::Sender<()>,
    done: JoinHandle<Result<(), Error>>,
}

impl Background {
    /// Says "stop" and does not wait.
    pub fn say_stop(self) -> JoinHandle<Result<(), Error>> {
        self.stop.send(()).ok();
        self.done
    }

    /// Waits for it to end by itself.
    pub fn ended(self) -> JoinHandle<Result<(), Error>> {
        let Background { stop, done, .. } = self;
        // The worker must not take a closed channel for "stop".
        std::mem::forget(stop);
        done
    }

    /// Says "stop" and waits.
    pub async fn stop(self) {
        within(self.say_stop()).await.unwrap().unwrap();
    }
}

/// A worker that looks often, with a handler for the kind `kind`.
pub async fn worker<F, Fut>(db: &Db, handler: F) -> WorkerBuilder
where
    F: Fn(leaseproof_queue::Ctx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, TaskError>> + Send + 'static,
{
    Worker::builder(db.queue().await).poll(Duration::from_millis(10)).handler("kind", handler)
}

/// Starts a worker.
pub fn start(worker: WorkerBuilder) -> Background {
    let worker = worker.build().unwrap();
    let boot_id = worker.boot_id().to_string();
    let (stop, stopped) = oneshot::channel();
    let done = tokio::spawn(worker.run(async {
        stopped.await.ok();
    }));
    Background { boot_id, stop, done }
}

/// A sweeper that looks often, until the runtime ends.
pub async fn sweeping(db: &Db) {
    let sweeper = Sweeper::new(db.queue().await, Duration::from_millis(10));
    tokio::spawn(sweeper.run(std::future::pending()));
}

/// Puts in a task of the kind `kind`.
pub async fn put(queue: &Queue, policy: Policy) -> i64 {
    queue.enqueue(NewTask::new("kind", "{}").policy(policy)).await.unwrap().id
}

/// Waits for what must happen.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("did not happen within {PATIENCE:?}"))
}

/// Waits until a task looks as wanted.
pub async fn until(queue: &Queue, id: i64, wanted: impl Fn(&Shown) -> bool) -> Shown {
    let begun = Instant::now();
    loop {
        let shown = queue.show(id).await.unwrap();
        if wanted(&shown) {
            return shown;
        }
        assert!(begun.elapsed() < PATIENCE, "still not as wanted: {shown:#?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until a task has this status.
pub async fn until_status(queue: &Queue, id: i64, status: Status) -> Shown {
    until(queue, id, |shown| shown.task.status == status).await
}

/// The record's verbs, oldest first.
pub fn verbs(shown: &Shown) -> Vec<&str> {
    shown.record.iter().map(|entry| entry.verb.as_str()).collect()
}

/// Somebody else has taken the task over, with an epoch that the sweeper's requeue and a new claim would have given.
pub async fn take_over(db: &Db, id: i64) {
    db.execute(&format!(
        "UPDATE tasks SET epoch = epoch + 2, owner = 'somebody else', lease_until_ms = {} + {HOUR_MS} WHERE id = {id}",
        db.clock()
    ))
    .await;
}

/// Counts.
#[derive(Clone, Default)]
pub struct Count(Arc<AtomicU32>);

impl Count {
    /// One more; returns how many it were before.
    pub fn up(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    pub fn down(&self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }

    pub fn get(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A place where a handler says that it has come, and waits to be let on.
#[derive(Clone)]
pub struct Gate {
    came: mpsc::UnboundedSender<()>,
    open: Arc<Notify>,
}

/// The test's side of a [`Gate`].
pub struct GateKeeper {
    came: mpsc::UnboundedReceiver<()>,
    open: Arc<Notify>,
}

pub fn gate() -> (Gate, GateKeeper) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let open = Arc::new(Notify::new());
    (Gate { came: sender, open: open.clone() }, GateKeeper { came: receiver, open })
}

impl Gate {
    pub async fn pass(&self) {
        self.came.send(()).ok();
        self.open.notified().await;
    }

    /// Says that it has come, and does not wait.
    pub fn tell(&self) {
        self.came.send(()).ok();
    }
}

impl GateKeeper {
    /// Waits until one has come.
    pub async fn arrival(&mut self) {
        within(self.came.recv()).await.unwrap();
    }

    /// Whether one has come that nobody has waited for.
    pub fn more(&mut self) -> bool {
        self.came.try_recv().is_ok()
    }

    /// Lets one on.
    pub fn open(&self) {
        self.open.notify_one();
    }
}

/// Says when it is dropped: what a cancelled handler does last.
pub struct Ends(Option<oneshot::Sender<()>>);

/// What a handler holds to its end, and who hears of the end. The first that is made says it.
pub fn ending() -> (impl Fn() -> Ends + Clone + Send + Sync + 'static, oneshot::Receiver<()>) {
    let (ends, ended) = oneshot::channel();
    let ends = Arc::new(Mutex::new(Some(ends)));
    (move || Ends(ends.lock().unwrap().take()), ended)
}

impl Drop for Ends {
    fn drop(&mut self) {
        if let Some(ended) = self.0.take() {
            ended.send(()).ok();
        }
    }
}
