//! `leaseproof queue …`: the queue as people use it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::time::Duration;

use leaseproof_queue::rules::{Backoff, Entry, OnExhausted, Policy};
use leaseproof_queue::{Error, NewTask, Queue, Resolution, Signed, Sweeper};
use serde::Serialize;

use super::shell::{self, ShellPayload};
use super::{records, work};
use crate::cli::{EnqueueArgs, Exhausted, ListArgs, QueueArgs, QueueCommand, ResolveArgs};
use crate::failure::Failure;
use crate::style::{print, print_json};

/// Runs the command on a runtime of its own: the simulation must never find one on its thread.
pub fn run(args: QueueArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Internal(format!("no runtime: {error}")))?;
    let result = runtime.block_on(command(args));
    // Handlers that are still running are dropped here, and their commands killed with them.
    runtime.shutdown_timeout(Duration::from_secs(2));
    result
}

async fn command(args: QueueArgs) -> Result<(), Failure> {
    let queue = open(&args.url).await?;
    let result = match args.command {
        QueueCommand::Migrate => migrate(&queue, &args.url, args.json).await,
        other => match ready(&queue, &args.url).await {
            Err(failure) => Err(failure),
            Ok(()) => match other {
                QueueCommand::Migrate => Ok(()),
                QueueCommand::Enqueue(enqueue_args) => enqueue(&queue, enqueue_args, args.json).await,
                QueueCommand::Work(work_args) => work::work(&queue, work_args, args.json).await,
                QueueCommand::Sweep => sweep(&queue, args.json).await,
                QueueCommand::List(list_args) => list(&queue, &list_args, args.json).await,
                QueueCommand::Show { id } => show(&queue, id, args.json).await,
                QueueCommand::Resolve(resolve_args) => resolve(&queue, &resolve_args, args.json).await,
            },
        },
    };
    queue.close().await;
    result
}

async fn open(url: &str) -> Result<Queue, Failure> {
    // SQLite takes an empty name for a database that is gone with its connection.
    let path = url.strip_prefix("sqlite:").map(|rest| rest.trim_start_matches('/'));
    if path.is_some_and(|path| path.split('?').next().unwrap_or_default().is_empty()) {
        return Err(Failure::BadInput(format!("database URL {url:?} names no file; write e.g. sqlite:leaseproof.db")));
    }
    Ok(Queue::connect(url).await?)
}

/// Every command but `migrate` needs the tables, and changes nothing where they are missing.
async fn ready(queue: &Queue, url: &str) -> Result<(), Failure> {
    queue.check_schema().await.map_err(|error| placed(error, url))
}

/// An error with the database it is about. A file that can not be opened is the caller's, not a server's that is away.
fn placed(error: Error, url: &str) -> Failure {
    let sqlite = url.starts_with("sqlite:");
    // A URL of a server may hold a password.
    let place = if sqlite { url } else { "the database of --url" };
    match error {
        Error::Unavailable { ref cause, .. } if sqlite && !cause.to_string().contains("locked") => Failure::BadInput(
            format!("{place}: {cause}. Name a SQLite file that you may write, in a folder that exists"),
        ),
        Error::NotMigrated { .. } if sqlite => Failure::BadInput(format!(
            "{place}: there are no leaseproof tables yet; create them with `leaseproof queue --url {url} migrate`"
        )),
        other => match other.into() {
            Failure::BadInput(why) => Failure::BadInput(format!("{place}: {why}")),
            Failure::Database(why) => Failure::Database(format!("{place}: {why}")),
            failure => failure,
        },
    }
}

#[derive(Serialize)]
struct Migrated {
    from: i64,
    to: i64,
}

async fn migrate(queue: &Queue, url: &str, json: bool) -> Result<(), Failure> {
    let from = queue.migrate().await.map_err(|error| placed(error, url))?;
    let to = leaseproof_queue::SCHEMA_VERSION;
    if json {
        return print_json(&Migrated { from, to });
    }
    print(&match from {
        0 => format!("tables created, version {to}\n"),
        from if from == to => format!("nothing to do: the tables have version {to}\n"),
        from => format!("tables brought from version {from} to {to}\n"),
    })
}

#[derive(Serialize)]
struct Put {
    id: i64,
    new: bool,
}

async fn enqueue(queue: &Queue, args: EnqueueArgs, json: bool) -> Result<(), Failure> {
    let payload = payload(&args)?;
    let mut task = NewTask::new(args.kind.clone(), payload).policy(policy(&args)).delay_ms(args.delay.0);
    task.unique_key = args.unique_key;
    let put = queue.enqueue(task).await?;
    if json {
        return print_json(&Put { id: put.id, new: put.new });
    }
    print(&match put.new {
        true => format!("task {} is in the queue\n", put.id),
        false => format!("task {} is in the queue already: it has this unique key\n", put.id),
    })
}

/// More is not read: nobody means it, and a device never ends.
const LONGEST_PAYLOAD: u64 = 16 << 20;

fn payload(args: &EnqueueArgs) -> Result<Vec<u8>, Failure> {
    let payload = match args.payload.as_str() {
        "-" => bounded("--payload -", Ok(std::io::stdin().lock()))?,
        text => text.as_bytes().to_vec(),
    };
    fits(&args.kind, &payload).map_err(|why| Failure::BadInput(format!("--payload: {why}")))?;
    Ok(payload)
}

/// All of a file.
fn bounded(what: &str, opened: std::io::Result<impl Read>) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    opened
        .and_then(|file| file.take(LONGEST_PAYLOAD + 1).read_to_end(&mut bytes))
        .map_err(|error| Failure::BadInput(format!("{what}: can not be read: {error}")))?;
    if bytes.len() as u64 > LONGEST_PAYLOAD {
        return Err(Failure::BadInput(format!("{what}: is longer than {} MiB", LONGEST_PAYLOAD >> 20)));
    }
    Ok(bytes)
}

/// Whether a task of this kind can have this payload, as far as this command knows the kind.
fn fits(kind: &str, payload: &[u8]) -> Result<(), String> {
    serde_json::from_slice::<serde::de::IgnoredAny>(payload).map_err(|error| format!("is not JSON: {error}"))?;
    match kind {
        shell::KIND => ShellPayload::read(payload).map(drop),
        _ => Ok(()),
    }
}

fn policy(args: &EnqueueArgs) -> Policy {
    let default = Policy::default();
    Policy {
        lease_ms: args.lease.0,
        heartbeat_ms: args.heartbeat.0,
        fence_margin_ms: args.fence_margin.map_or(default.fence_margin_ms.min(args.lease.0 / 10), |margin| margin.0),
        max_attempts: args.max_attempts,
        max_interruptions: args.max_interruptions,
        backoff: Backoff {
            base_ms: args.retry_delay.0,
            max_ms: default.backoff.max_ms.max(args.retry_delay.0),
            ..default.backoff
        },
        expected_run_ms: args.expected_run.map(|run| run.0),
        on_exhausted: match args.on_exhausted {
            Exhausted::Escalate => OnExhausted::Escalate,
            Exhausted::Fail => OnExhausted::Fail,
        },
        never_retry: args.never_retry.clone(),
    }
}

#[derive(Serialize)]
struct Swept {
    seen: u64,
    requeued: u64,
    escalated: u64,
    cut: u64,
    waiting: u64,
    overtaken: u64,
    failed: u64,
}

async fn sweep(queue: &Queue, json: bool) -> Result<(), Failure> {
    let report = Sweeper::new(queue.clone(), Duration::from_secs(1)).sweep_once().await?;
    let leaseproof_queue::SweepReport { seen, requeued, escalated, cut, waiting, overtaken, failed } = report;
    if json {
        print_json(&Swept { seen, requeued, escalated, cut, waiting, overtaken, failed })?;
    } else {
        print(&format!(
            "{seen} looked at: {requeued} taken back, {escalated} handed to a person, {waiting} wait for the third \
             party, {overtaken} overtaken\n"
        ))?;
    }
    match failed {
        0 => Ok(()),
        some => {
            Err(Failure::Database(format!("{some} of {seen} tasks could not be decided; the next sweep tries again")))
        }
    }
}

async fn list(queue: &Queue, args: &ListArgs, json: bool) -> Result<(), Failure> {
    let listed = queue.list(args.status, args.kind.as_deref(), args.after, args.limit).await?;
    if json {
        return print_json(&records::listed(&listed));
    }
    print(&records::list(&listed, args.limit))
}

async fn show(queue: &Queue, id: i64, json: bool) -> Result<(), Failure> {
    let shown = queue.show(id).await?;
    if json {
        return print_json(&records::Shown::of(&shown));
    }
    print(&records::show(&shown))
}

async fn resolve(queue: &Queue, args: &ResolveArgs, json: bool) -> Result<(), Failure> {
    let resolution = match (args.rerun, args.fail) {
        (true, _) => Resolution::Rerun { input: input(queue, args).await?, effects: effects(args)? },
        (_, true) => Resolution::Fail,
        _ => Resolution::Succeed,
    };
    let task = queue.resolve(args.id, args.epoch, &resolution, Signed { by: &args.by, why: &args.why }).await?;
    if json {
        return print_json(&records::Task::of(&task));
    }
    print(&format!("task {} is {} now, epoch {}\n", task.id, task.status, task.epoch))
}

async fn input(queue: &Queue, args: &ResolveArgs) -> Result<Option<Vec<u8>>, Failure> {
    let Some(path) = &args.input else { return Ok(None) };
    let what = format!("--input {}", path.display());
    let input = bounded(&what, File::open(path))?;
    let kind = queue.store().task(args.id).await?.kind;
    fits(&kind, &input).map_err(|why| Failure::BadInput(format!("{what}: {why}")))?;
    Ok(Some(input))
}

fn effects(args: &ResolveArgs) -> Result<BTreeMap<String, Entry>, Failure> {
    let mut effects = BTreeMap::new();
    for text in &args.effects {
        let wrong = || Failure::BadInput(format!("--effect {text:?}: write KEY=done or KEY=not-done"));
        let (key, said) = text.rsplit_once('=').ok_or_else(wrong)?;
        let entry = match said {
            "done" => Entry::Done,
            "not-done" => Entry::NotDone,
            _ => return Err(wrong()),
        };
        if effects.insert(key.to_owned(), entry).is_some() {
            return Err(Failure::BadInput(format!("--effect {key:?} is given twice: say once whether it happened")));
        }
    }
    Ok(effects)
}
