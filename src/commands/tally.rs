//! What a worker tells of its runs: a line each as they end, and at the end what became of the tasks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use leaseproof_queue::rules::Status;
use leaseproof_queue::{Claimed, Queue, RunEnd, TaskError};
use serde::Serialize;

use crate::failure::Failure;
use crate::style::{Tone, paint, plain, print, print_exactly};

/// A line of `queue work --json`: a run of this process has ended.
#[derive(Serialize)]
struct Ran<'a> {
    task: i64,
    epoch: u64,
    outcome: &'a str,
    seconds: f64,
    error: Option<String>,
    /// What the run's report has made of the task.
    status: Option<&'a str>,
}

/// How a command ended, until its run has been reported.
struct Command {
    outcome: &'static str,
    error: Option<String>,
    seconds: f64,
}

/// The runs of this process.
pub struct Tally {
    json: bool,
    /// Whether it is kept what became of each task. A worker without end keeps nothing.
    keep: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    commands: BTreeMap<(i64, u64), Command>,
    tasks: BTreeMap<i64, Option<Status>>,
    /// Why it could not be told.
    untold: Option<Failure>,
}

impl Tally {
    pub fn new(json: bool, keep: bool) -> Arc<Tally> {
        Arc::new(Tally { json, keep, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A command begins; what it brings is to be given to [`Running::ended`].
    pub fn begin(self: &Arc<Tally>, task: &Claimed) -> Running {
        Running { tally: self.clone(), run: (task.id, task.epoch), began: Instant::now(), ended: false }
    }

    /// A run has ended: told in one line.
    pub fn end(&self, end: RunEnd) {
        let RunEnd { task, epoch, status, why, .. } = end;
        let mut state = self.state();
        // Without a command there was no handler for it.
        let Command { outcome, error, seconds } =
            state.commands.remove(&(task, epoch)).unwrap_or(Command { outcome: "bad_input", error: why, seconds: 0.0 });
        if self.keep {
            state.tasks.insert(task, status);
        }
        let told = if self.json {
            serde_json::to_string(&Ran { task, epoch, outcome, seconds, error, status: status.map(Status::name) })
                .map_err(Failure::from)
                .and_then(|line| print_exactly(&(line + "\n")))
        } else {
            let why = error.map(|error| format!(": {}", plain(error.trim_end()))).unwrap_or_default();
            let outcome = paint(if outcome == "ok" { Tone::Good } else { Tone::Bad }, outcome);
            let status = status.map_or("not reported", Status::name);
            print(&format!("task {task}  epoch {epoch}  {outcome}  {seconds:.3} s  {status}{why}\n"))
        };
        if let Err(failure) = told {
            state.untold.get_or_insert(failure);
        }
    }

    /// After all work is done: says what became of the tasks that this process ran.
    ///
    /// # Errors
    /// [`Failure::Violated`] if not all are in SUCCESS.
    pub async fn close(&self, queue: &Queue) -> Result<(), Failure> {
        let mut tasks = std::mem::take(&mut self.state().tasks);
        // What this process did not end, another one has.
        for (task, status) in &mut tasks {
            if !matches!(status, Some(Status::Success | Status::Fail | Status::WaitManual)) {
                *status = Some(queue.store().task(*task).await?.status);
            }
        }
        let with =
            |wanted| tasks.iter().filter(move |(_, status)| **status == Some(wanted)).map(|(task, _)| task.to_string());
        if !self.json && !tasks.is_empty() {
            let mut parts = Vec::new();
            for status in Status::ALL {
                let mut named: Vec<String> = with(status).collect();
                let count = named.len();
                match status {
                    _ if count == 0 => {}
                    Status::Success => parts.push(format!("{count} {status}")),
                    _ => {
                        named.truncate(MOST_NAMED);
                        let more = if count > MOST_NAMED { ", …" } else { "" };
                        parts.push(format!("{count} {status} ({}{more})", named.join(", ")));
                    }
                }
            }
            let count = tasks.len();
            print(&format!("{count} {}: {}\n", if count == 1 { "task" } else { "tasks" }, parts.join(", ")))?;
        }
        match with(Status::Success).count() == tasks.len() {
            true => Ok(()),
            false => Err(Failure::Violated),
        }
    }

    /// Whether every line came through.
    pub fn all_told(&self) -> Result<(), Failure> {
        self.state().untold.take().map_or(Ok(()), Err)
    }
}

/// Ids that the last line names, of each status.
const MOST_NAMED: usize = 10;

/// A command that is running; dropped before its end, it was cancelled.
pub struct Running {
    tally: Arc<Tally>,
    run: (i64, u64),
    began: Instant,
    ended: bool,
}

impl Running {
    pub fn ended(mut self, result: &Result<String, TaskError>) {
        match result {
            Ok(_) => self.note("ok", None),
            Err(TaskError::BadInput(why)) => self.note("bad_input", Some(why.clone())),
            Err(error) => self.note("error", Some(error.to_string())),
        }
    }

    fn note(&mut self, outcome: &'static str, error: Option<String>) {
        self.ended = true;
        let seconds = (self.began.elapsed().as_secs_f64() * 1e3).round() / 1e3;
        self.tally.state().commands.insert(self.run, Command { outcome, error, seconds });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            self.note("cancelled", None);
        }
    }
}
