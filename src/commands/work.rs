//! `leaseproof queue work`: a worker for shell commands and a sweeper beside it.

use std::cell::Cell;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use leaseproof_queue::{Ctx, Error, Queue, Sweeper, TaskError, Worker};
use tokio::sync::watch;

use super::shell;
use super::signals::Orders;
use super::tally::Tally;
use crate::cli::WorkArgs;
use crate::failure::Failure;
use crate::style::Log;

/// How often `--until-empty` looks whether there is anything left.
const LOOK: Duration = Duration::from_millis(200);

/// Why it ended.
#[derive(Clone, Copy)]
enum End {
    /// Every task is resolved.
    Empty,
    /// A signal, and the commands could finish or were given back.
    Stopped,
    /// A second signal: the commands were ended, and nothing was reported.
    AtOnce,
}

/// Works until a signal comes or, if asked to, until every task is resolved.
pub async fn work(queue: &Queue, args: WorkArgs, json: bool) -> Result<(), Failure> {
    log_to_stderr();
    let tally = Tally::new(json, args.until_empty);
    let (runs, ends) = (tally.clone(), tally.clone());
    let mut builder = Worker::builder(queue.clone())
        .slots(args.slots)
        .poll(Duration::from_millis(args.poll.0))
        .grace(Duration::from_millis(args.grace.0))
        .on_end(move |end| ends.end(end))
        .handler(shell::KIND, move |ctx| told(ctx, runs.clone()));
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
    let reason = Cell::new(End::Stopped);
    let orders = async {
        tokio::select! {
            () = signals.stop() => {
                tracing::info!("stopping: no new tasks, running commands may finish; a second signal kills them");
            }
            () = empty => reason.set(End::Empty),
        }
        stop.send_replace(true);
        signals.at_once().await;
    };
    let end = tokio::select! {
        done = worker.run(told_to_stop(stopped)) => done.map(|()| reason.get())?,
        () = orders => End::AtOnce,
    };
    let result = match end {
        End::Empty => tally.close(queue).await,
        // Some tasks are not resolved, and that was the task.
        End::Stopped if args.until_empty => Err(Failure::Violated),
        End::Stopped => Ok(()),
        // Leases run out by themselves.
        End::AtOnce => Err(Failure::Violated),
    };
    tally.all_told().and(result)
}

fn log_to_stderr() {
    use tracing_subscriber::filter::{LevelFilter, Targets};
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::util::SubscriberInitExt;
    let wanted = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("leaseproof", LevelFilter::INFO)
        .with_target("leaseproof_queue", LevelFilter::INFO);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(|| Log)
        .log_internal_errors(false)
        .with_ansi(false)
        .with_target(false);
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
            match queue.any_open().await {
                Ok(false) => return,
                Ok(true) => {}
                Err(error) => tracing::warn!(%error, "open"),
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Runs the command; a run that is dropped was cancelled.
async fn told(ctx: Ctx, tally: Arc<Tally>) -> Result<String, TaskError> {
    let running = tally.begin(ctx.task());
    let result = shell::run(ctx).await;
    running.ended(&result);
    result
}
