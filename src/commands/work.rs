//! `leaseproof queue work`: a worker for shell commands and a sweeper beside it.

use std::future::Future;
use std::time::{Duration, Instant};

use leaseproof_queue::rules::Status;
use leaseproof_queue::{Ctx, Error, Queue, Sweeper, TaskError, Worker};
use serde::Serialize;
use tokio::sync::watch;

use super::shell;
use super::signals::Orders;
use crate::cli::WorkArgs;
use crate::failure::Failure;
use crate::style::{Tone, paint, print};

/// How often `--until-empty` looks whether there is anything left.
const LOOK: Duration = Duration::from_millis(200);

/// Works until a signal comes or, if asked to, until every task is resolved.
pub async fn work(queue: &Queue, args: WorkArgs, json: bool) -> Result<(), Failure> {
    log_to_stderr();
    let mut builder = Worker::builder(queue.clone())
        .slots(args.slots)
        .poll(Duration::from_millis(args.poll.0))
        .grace(Duration::from_millis(args.grace.0))
        .handler(shell::KIND, move |ctx| told(ctx, json));
    if let Some(boot_id) = &args.boot_id {
        builder = builder.boot_id(boot_id);
        // Known to be wrong before anything begins, the sweeper included.
        if let Some(there) = queue.store().instance(boot_id).await? {
            let leaseproof_queue::store::Instance { boot_id, host, pid, .. } = there;
            return Err(Error::DuplicateBootId { boot_id, host, pid }.into());
        }
    }
    if let Some(name) = &args.slot_name {
        builder = builder.slot_name(name);
    }
    if args.sweep.0 == 0 {
        return Err(Failure::BadInput("--sweep 0s: must be longer than 0".to_owned()));
    }
    let sweeper = Sweeper::new(queue.clone(), Duration::from_millis(args.sweep.0));
    let worker = builder.sweeper(sweeper).build()?;

    let (stop, stopped) = watch::channel(false);
    let mut signals = Orders::listen()?;
    let empty = until_empty(queue, args.until_empty);
    let orders = async {
        tokio::select! {
            () = signals.stop() => {
                tracing::info!("stopping: no new tasks, running commands may finish; a second signal kills them");
            }
            () = empty => {}
        }
        stop.send_replace(true);
        signals.at_once().await;
    };
    tokio::select! {
        done = worker.run(told_to_stop(stopped)) => done.map_err(Failure::from),
        // The second signal: leases run out by themselves.
        () = orders => Ok(()),
    }
}

fn log_to_stderr() {
    use tracing_subscriber::filter::{LevelFilter, Targets};
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::util::SubscriberInitExt;
    let wanted = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("leaseproof", LevelFilter::INFO)
        .with_target("leaseproof_queue", LevelFilter::INFO);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_target(false);
    tracing_subscriber::registry().with(lines).with(wanted).init();
}

async fn told_to_stop(mut stopped: watch::Receiver<bool>) {
    // An error means that the sender is gone, and with it whatever could want us to go on.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// Returns when no task waits or runs; never, unless it is wanted.
fn until_empty(queue: &Queue, wanted: bool) -> impl Future<Output = ()> + use<> {
    let queue = queue.clone();
    async move {
        if !wanted {
            std::future::pending::<()>().await;
        }
        loop {
            match is_empty(&queue).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "list"),
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

async fn is_empty(queue: &Queue) -> Result<bool, Error> {
    // A task moves from one of these to another while we look: against the usual direction, so as not to miss it.
    for status in [Status::Running, Status::RetryWait, Status::Pending, Status::Running] {
        if !queue.list(Some(status), None, 0, 1).await?.tasks.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A line of `queue work --json`: a run of this process has ended, whatever the database then says of its report.
#[derive(Serialize)]
struct Ran<'a> {
    task: i64,
    epoch: u64,
    outcome: &'a str,
    seconds: f64,
    error: Option<String>,
}

/// Runs the command and tells how it ended; a run that is dropped was cancelled.
async fn told(ctx: Ctx, json: bool) -> Result<String, TaskError> {
    let mut teller = Teller { task: ctx.task().id, epoch: ctx.task().epoch, began: Instant::now(), json, done: false };
    let result = shell::run(ctx).await;
    match &result {
        Ok(_) => teller.tell("ok", None),
        Err(TaskError::BadInput(why)) => teller.tell("bad_input", Some(why.clone())),
        Err(error) => teller.tell("error", Some(error.to_string())),
    }
    result
}

struct Teller {
    task: i64,
    epoch: u64,
    began: Instant,
    json: bool,
    done: bool,
}

impl Teller {
    fn tell(&mut self, outcome: &str, error: Option<String>) {
        self.done = true;
        let seconds = (self.began.elapsed().as_secs_f64() * 1e3).round() / 1e3;
        let (task, epoch) = (self.task, self.epoch);
        let line = if self.json {
            serde_json::to_string(&Ran { task, epoch, outcome, seconds, error }).unwrap_or_default()
        } else {
            let tone = if outcome == "ok" { Tone::Good } else { Tone::Bad };
            let why = error.map(|error| format!(": {error}")).unwrap_or_default();
            format!("task {task}  epoch {epoch}  {}  {seconds:.3} s{why}", paint(tone, outcome))
        };
        if let Err(failure) = print(&format!("{line}\n")) {
            tracing::warn!(%failure, "not told");
        }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        if !self.done {
            self.tell("cancelled", None);
        }
    }
}
