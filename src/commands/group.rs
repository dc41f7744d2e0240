//! A command in a process group that does not outlive its run, nor this process.
//!
//! The group's leader is not the command but a guard: a shell that waits for the end of a pipe from this process. If this
//! process is killed, the pipe ends, and the guard ends the group. As long as the guard has not been waited for, no other
//! group can have this number, so a signal to the group never reaches a stranger.
//!
//! A process that leaves its group on purpose (`setsid`) is out of reach.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child as Guard, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

/// How long a command has between TERM and KILL, at most.
pub const GRACE: Duration = Duration::from_secs(1);

/// It waits for the pipe to end, and is deaf to what ends the others.
const GUARD: &str = "trap '' HUP INT QUIT TERM; read -r end; kill -TERM 0; sleep \"$1\"; kill -KILL 0";

/// How often it is looked whether a command that was told to end has ended.
const LOOK: Duration = Duration::from_millis(5);

/// How long a command that was killed may still take: one that waits for a disk does not die before the disk answers.
const DYING: Duration = Duration::from_secs(5);

/// The command, its children, and the guard.
pub struct Group {
    guard: Guard,
    pub command: Child,
    grace: Duration,
    ended: bool,
}

impl Group {
    /// Starts the command with a guard beside it. `grace`: between TERM and KILL.
    pub fn start(command: &mut Command, grace: Duration) -> io::Result<Group> {
        let mut guard = std::process::Command::new("sh");
        guard.args(["-c", GUARD, "sh", &grace.as_secs_f64().to_string()]).stdin(Stdio::piped());
        let mut guard = guard.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn()?;
        let number = i32::try_from(guard.id()).unwrap_or_default();
        match command.process_group(number).kill_on_drop(true).spawn() {
            Ok(command) => Ok(Group { guard, command, grace, ended: false }),
            Err(error) => {
                put_down(&mut guard);
                Err(error)
            }
        }
    }

    /// Waits for the command. What it has left in the background is not waited for.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.command.wait().await;
        self.ended |= status.is_ok();
        status
    }

    fn over(&mut self) -> bool {
        self.ended = self.ended || matches!(self.command.try_wait(), Ok(Some(_)));
        self.ended
    }

    fn wait_at_most(&mut self, limit: Duration) {
        let begun = Instant::now();
        while !self.over() && begun.elapsed() < limit {
            std::thread::sleep(LOOK);
        }
    }

    /// Ends the command, and then whatever is left of the group: TERM, the grace, KILL.
    fn end(&mut self) {
        if !self.over() {
            signal(&self.guard, Signal::TERM);
            self.wait_at_most(self.grace);
        }
        put_down(&mut self.guard);
        self.wait_at_most(DYING);
    }
}

impl Drop for Group {
    /// Returns when the command is dead: its task may be handed to another worker after that.
    fn drop(&mut self) {
        tokio::task::block_in_place(|| self.end());
    }
}

/// To all of the group. An error says that nobody is left.
fn signal(guard: &Guard, signal: Signal) {
    if let Some(group) = i32::try_from(guard.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, signal);
    }
}

/// Kills the whole group, its guard included.
fn put_down(guard: &mut Guard) {
    signal(guard, Signal::KILL);
    let _ = guard.wait();
}
