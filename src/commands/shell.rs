//! Tasks of kind `shell`: a command in a process group of its own, which never outlives its run.

use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use leaseproof_queue::{Ctx, TaskError};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use super::group::{GRACE, Group};

/// The kind of task.
pub const KIND: &str = "shell";

/// What its payload looks like.
const PAYLOAD: &str = r#"{"command": "…", "timeout_ms": 60000}, the timeout may be left out"#;

/// The payload.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellPayload {
    /// Runs under `sh -c`.
    pub command: String,
    /// Killed after this long, in ms on the worker's monotonic clock.
    pub timeout_ms: Option<u64>,
}

/// What an argument of a program can have on Linux, its end not counted (`MAX_ARG_STRLEN`).
const LONGEST_COMMAND: usize = 131_071;

impl ShellPayload {
    /// Reads a payload, for a task that is put in as for one that is to run: what no run could do is refused at both.
    pub fn read(payload: &[u8]) -> Result<ShellPayload, String> {
        let payload: ShellPayload = serde_json::from_slice(payload)
            .map_err(|error| format!("{error}; a task of kind {KIND} takes {PAYLOAD}"))?;
        if payload.command.contains('\0') {
            return Err("command: has a NUL character, which no program can be given; leave it out".to_owned());
        }
        let length = payload.command.len();
        if length > LONGEST_COMMAND {
            return Err(format!(
                "command: has {length} bytes, and a program can be given {LONGEST_COMMAND}; put what is long into a file"
            ));
        }
        if payload.timeout_ms == Some(0) {
            return Err("timeout_ms: must be longer than 0; leave it out for none".to_owned());
        }
        Ok(payload)
    }
}

/// The result of a run that went well.
#[derive(Serialize)]
struct Output {
    exit: i32,
    stdout: String,
    truncated: bool,
}

/// Bytes of standard output that are kept: the first ones.
const STDOUT_KEPT: usize = 64 * 1024;

/// Bytes of standard error that are told of a failure: the last ones.
const STDERR_KEPT: usize = 2 * 1024;

/// `EX_DATAERR` of sysexits.h: the input is wrong, and will be wrong again.
const EX_DATAERR: i32 = 65;

/// How long a pipe that a background process keeps open is read on after the command has ended.
const LINGER: Duration = Duration::from_millis(500);

/// How long a command whose lease is lost has to end by itself: it is dead before its lease ends.
fn grace(ctx: &Ctx) -> Duration {
    let margin_ms = ctx.task().policy.as_ref().map_or(0, |policy| policy.fence_margin_ms);
    GRACE.min(Duration::from_millis(margin_ms / 2))
}

/// Runs a task. Dropping the future ends the command and its children, and so does the end of the command for what it has
/// left in the background.
pub async fn run(ctx: Ctx) -> Result<String, TaskError> {
    let payload =
        ShellPayload::read(&ctx.task().payload).map_err(|why| TaskError::BadInput(format!("payload: {why}")))?;
    let task = ctx.task();
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(&payload.command)
        .env("LEASEPROOF_TASK_ID", task.id.to_string())
        .env("LEASEPROOF_EPOCH", task.epoch.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut group = Group::start(&mut command, grace(&ctx)).map_err(unstarted)?;
    let limit = payload.timeout_ms.map_or(Duration::MAX, Duration::from_millis);
    let (mut stdout, mut stderr) = (Kept::first(STDOUT_KEPT), Kept::last(STDERR_KEPT));
    let status = {
        let (pipe_out, pipe_err) = (group.command.stdout.take(), group.command.stderr.take());
        let mut reading = pin!(async { tokio::join!(stdout.read(pipe_out), stderr.read(pipe_err)) });
        let mut waiting = pin!(tokio::time::timeout(limit, group.wait()));
        let mut open = true;
        let status = loop {
            tokio::select! {
                status = &mut waiting => break status,
                _ = &mut reading, if open => open = false,
            }
        };
        if open && status.is_ok() {
            let _ = tokio::time::timeout(LINGER, reading).await;
        }
        status
    };
    drop(group);
    let told = stderr.text();
    let status = match status {
        Ok(Ok(status)) => status,
        Ok(Err(error)) => return Err(TaskError::Retryable(format!("can not be waited for: {error}"))),
        Err(_) => return Err(coded("timeout", &format!("no end within {} ms", limit.as_millis()), &told)),
    };
    match status.code() {
        Some(0) => serde_json::to_string(&Output { exit: 0, stdout: stdout.text(), truncated: stdout.cut })
            .map_err(|error| TaskError::Retryable(error.to_string())),
        Some(EX_DATAERR) => Err(TaskError::BadInput(told_of(&format!("exit-{EX_DATAERR}"), &told))),
        Some(code) => Err(coded(&format!("exit-{code}"), "", &told)),
        None => {
            let signal = status.signal().unwrap_or_default();
            Err(coded(&format!("signal-{signal}"), "", &told))
        }
    }
}

/// What the system says is too long, or is no argument, it says again.
fn unstarted(error: io::Error) -> TaskError {
    let why = format!("sh can not be started: {error}");
    match error.kind() {
        ErrorKind::ArgumentListTooLong | ErrorKind::InvalidInput => TaskError::BadInput(why),
        _ => TaskError::Retryable(why),
    }
}

/// An error that the task's policy may exclude from being retried.
fn coded(code: &str, what: &str, stderr: &str) -> TaskError {
    TaskError::Coded { code: code.to_owned(), why: told_of(what, stderr) }
}

fn told_of(what: &str, stderr: &str) -> String {
    match (what, stderr.trim()) {
        (what, "") => what.to_owned(),
        ("", told) => told.to_owned(),
        (what, told) => format!("{what}: {told}"),
    }
}

/// A bounded part of what a command says.
struct Kept {
    bytes: Vec<u8>,
    most: usize,
    last: bool,
    cut: bool,
}

impl Kept {
    fn first(most: usize) -> Kept {
        Kept { bytes: Vec::new(), most, last: false, cut: false }
    }

    fn last(most: usize) -> Kept {
        Kept { last: true, ..Kept::first(most) }
    }

    /// Reads to the end, so that the command never waits for a full pipe.
    async fn read(&mut self, pipe: Option<impl AsyncRead + Unpin>) {
        let Some(mut pipe) = pipe else { return };
        let mut buffer = [0; 8 * 1024];
        while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
            self.take(&buffer[..count]);
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        if self.last {
            self.bytes.extend_from_slice(bytes);
            let over = self.bytes.len().saturating_sub(self.most);
            self.bytes.drain(..over);
            self.cut |= over > 0;
        } else {
            let room = self.most.saturating_sub(self.bytes.len()).min(bytes.len());
            self.bytes.extend_from_slice(&bytes[..room]);
            self.cut |= room < bytes.len();
        }
    }

    /// As text. PostgreSQL has no room for a NUL in one.
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).replace('\0', "\u{fffd}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_or_the_last_bytes_are_kept() {
        let (mut first, mut last) = (Kept::first(4), Kept::last(4));
        for kept in [&mut first, &mut last] {
            kept.take(b"abc");
            assert!(!kept.cut);
            kept.take(b"def\0");
        }
        assert_eq!((first.text().as_str(), first.cut), ("abcd", true));
        assert_eq!((last.text().as_str(), last.cut), ("def\u{fffd}", true));
    }
}
