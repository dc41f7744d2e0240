//! Whether a trace is a path of the rules: every line a step that the rules allow from where the lines before it have led.
//!
//! The validator knows the story and reads the trace as it is written, a line at a time, and nothing else: not the
//! observer's rows, not the queue's record. So it can judge a trace from a file as well. What it holds is bounded by the
//! story, not by the length of the trace.
//!
//! Writes are judged by [`judge`](leaseproof_rules::judge), budgets by [`Counts`](leaseproof_rules::Counts), what puts a task back or hands it over by
//! [`decide`](leaseproof_rules::decide), the journal by [`entry_after`](leaseproof_rules::entry_after), all under the guards of the story. Not in a trace is what a
//! sweeper has read before it writes, so a refusal of its write is taken as it is.

mod decided;
mod outside;
mod process;
mod rows;

use std::collections::BTreeMap;
use std::fmt;
use std::io::BufRead;

use leaseproof_rules::{Guards, Verb};
use leaseproof_scenarios::Story;

use crate::trace::{self, Header, Line, TraceError};
use outside::Account;
use process::Process;
use rows::Task;

/// A line that is no step from where the lines before it have led.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// The line of the file, from 1; the header is the first. One past the last, if the trace ends too early.
    pub line: usize,
    /// The event.
    pub event: String,
    /// What is wrong with it.
    pub why: String,
    /// Where the lines before have led, as far as the event is about it.
    pub state: String,
    /// The steps that are allowed there.
    pub allowed: Vec<String>,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Divergence { line, event, why, state, allowed } = self;
        write!(
            f,
            "line {line} is no step of the rules: {event}: {why}; state: {state}; allowed: {}",
            allowed.join(", ")
        )
    }
}

/// What is wrong with a step, before it is known which line it is.
struct Wrong {
    why: String,
    state: String,
    allowed: Vec<String>,
}

impl Wrong {
    fn new(why: impl Into<String>, state: impl Into<String>, allowed: &[&str]) -> Wrong {
        let allowed = allowed.iter().map(|step| (*step).to_owned()).collect();
        Wrong { why: why.into(), state: state.into(), allowed }
    }
}

type Step = Result<(), Wrong>;

/// Reads a trace, a line at a time.
pub struct Validator<'a> {
    story: &'a Story,
    guards: Guards,
    line: usize,
    t_ns: u64,
    tasks: Vec<Task>,
    accounts: Vec<Account>,
    processes: BTreeMap<String, Process>,
    /// Every task is resolved, and it was said.
    resolved: bool,
    over: bool,
}

/// The line that a step is about, and where it stands.
struct At<'a> {
    line: &'a Line,
    task: usize,
}

impl<'a> Validator<'a> {
    /// At the beginning of a trace of this story.
    pub fn new(story: &'a Story) -> Validator<'a> {
        let processes = trace::header(story, 0).nodes.into_iter().map(|node| (node, Process::default())).collect();
        Validator {
            story,
            guards: story.without.map_or(Guards::ALL, Guards::without),
            line: 1,
            t_ns: 0,
            tasks: story.tasks.iter().map(|_| Task::default()).collect(),
            accounts: story.tasks.iter().map(|_| Account::default()).collect(),
            processes,
            resolved: false,
            over: false,
        }
    }

    /// The next line.
    ///
    /// # Errors
    /// The line is no step from here.
    pub fn step(&mut self, line: &Line) -> Result<(), Divergence> {
        self.line += 1;
        let number = self.line;
        self.check(line).map_err(|Wrong { why, state, allowed }| Divergence {
            line: number,
            event: trace::text(line),
            why,
            state,
            allowed,
        })
    }

    /// The trace is over.
    ///
    /// # Errors
    /// It must not end here.
    pub fn end(self) -> Result<(), Divergence> {
        let open: Vec<&str> = (self.tasks.iter().zip(&self.story.tasks))
            .filter(|(task, _)| !task.is_resolved())
            .map(|(_, task)| task.name.as_str())
            .collect();
        let (why, allowed) = match (open.is_empty(), self.resolved, self.over) {
            (true, true, _) | (false, _, true) => return Ok(()),
            (true, false, _) => ("every task is resolved, and the trace ends without saying so".to_owned(), "resolved"),
            (false, _, false) => {
                (format!("the trace ends, and these are not resolved: {}", open.join(", ")), "horizon")
            }
        };
        let event = "the end of the trace".to_owned();
        let state = self.tasks.iter().map(Task::to_string).collect::<Vec<_>>().join("; ");
        Err(Divergence { line: self.line + 1, event, why, state, allowed: vec![allowed.to_owned()] })
    }

    fn check(&mut self, line: &Line) -> Step {
        let all_resolved = !self.tasks.is_empty() && self.tasks.iter().all(Task::is_resolved);
        let verb = Verb::ALL
            .into_iter()
            .find(|verb| verb.name() == line.event || line.event == "adopt" && *verb == Verb::Complete);
        let with_a_commit = verb.is_some() || matches!(line.event.as_str(), "refuse" | "already" | "late_result");
        let begun = format!("at {} ns", self.t_ns);
        if line.t_ns < self.t_ns {
            return Err(Wrong::new("time goes backwards", begun, &["anything later"]));
        }
        if self.over {
            return Err(Wrong::new("the story is over", begun, &["nothing"]));
        }
        if all_resolved && !self.resolved && !with_a_commit && line.event != "resolved" {
            return Err(Wrong::new("every task is resolved, and it is not said", begun, &["resolved"]));
        }
        if !all_resolved {
            self.resolved = false;
        }
        self.t_ns = line.t_ns;
        if !self.processes.contains_key(&line.node) {
            let nodes: Vec<&str> = self.processes.keys().map(String::as_str).collect();
            return Err(Wrong::new(format!("{:?} is no node of the story", line.node), begun, &nodes));
        }
        if let Some(verb) = verb {
            return self.write(&self.about(line)?, verb);
        }
        match line.event.as_str() {
            "start" | "crash" | "pause" | "resume" | "cut" | "heal" | "lose" | "hold" => self.process(line),
            "enqueue" => self.enqueue(&self.about(line)?),
            "refuse" | "already" => self.refusal(&self.about(line)?),
            "late_result" => self.late_result(&self.about(line)?),
            "learn" => self.learn(&self.about(line)?),
            "sweep" => self.by(line, "sweeper"),
            "run_begin" | "run_end" | "call" | "call_unknown" => self.run(&self.about(line)?),
            "effect" | "repeat" | "refuse_call" | "ask" => self.third_party(&self.about(line)?),
            "resolved" if all_resolved && !self.resolved => {
                self.resolved = true;
                self.by(line, "database")
            }
            "horizon" if !all_resolved => {
                self.over = true;
                self.by(line, "database")
            }
            "resolved" | "horizon" => {
                let state = self.tasks.iter().map(Task::to_string).collect::<Vec<_>>().join("; ");
                let why = if all_resolved { "every task is resolved already" } else { "not every task is resolved" };
                Err(Wrong::new(why, state, &[if all_resolved { "anything else" } else { "horizon" }]))
            }
            other => {
                let known: Vec<&str> =
                    trace::EVENTS.iter().map(|(name, _)| *name).chain(Verb::ALL.map(Verb::name)).collect();
                Err(Wrong::new(format!("{other:?} is no event"), begun, &known))
            }
        }
    }

    /// The task that a line is about.
    fn about<'l>(&self, line: &'l Line) -> Result<At<'l>, Wrong> {
        let named = self.story.tasks.iter().position(|task| Some(&task.name) == line.task.as_ref());
        named.map(|task| At { line, task }).ok_or_else(|| {
            let names: Vec<&str> = self.story.tasks.iter().map(|task| task.name.as_str()).collect();
            Wrong::new(format!("{:?} is no task of the story", line.task.as_deref().unwrap_or("")), "", &names)
        })
    }

    /// The event belongs to this node.
    fn by(&self, line: &Line, node: &str) -> Step {
        match line.node == node {
            true => Ok(()),
            false => Err(Wrong::new(format!("this is never of {}", line.node), "", &[&format!("by {node}")])),
        }
    }
}

/// Holds a trace that was made in memory against its story.
///
/// # Errors
/// The first line that is no step.
pub fn validate(story: &Story, lines: &[Line]) -> Result<(), Divergence> {
    let mut validator = Validator::new(story);
    for line in lines {
        validator.step(line)?;
    }
    validator.end()
}

/// Why a trace from a file is not good.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It is no trace of this version.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// It is the trace of another story.
    #[error("it is a trace of {found}, not of {story}")]
    OtherStory {
        /// What the header says.
        found: String,
        /// The story it is held against.
        story: String,
    },
    /// A line is no step.
    #[error("{0}")]
    Divergence(Divergence),
}

/// Holds a trace from a file against its story, a line at a time. Returns how many events it has.
///
/// # Errors
/// See [`FileError`].
pub fn validate_file(story: &Story, file: impl BufRead) -> Result<usize, FileError> {
    let mut reader = trace::Reader::new(file)?;
    let expected = trace::header(story, reader.header().seed);
    if *reader.header() != expected {
        let name = |header: &Header| {
            let without = header.without.as_ref().map(|guard| format!(" without {guard}")).unwrap_or_default();
            format!("{}{without} ({}; {})", header.scenario, header.nodes.join(", "), header.tasks.join(", "))
        };
        return Err(FileError::OtherStory { found: name(reader.header()), story: name(&expected) });
    }
    let mut validator = Validator::new(story);
    let mut count = 0;
    while let Some(line) = reader.next_line()? {
        validator.step(&line).map_err(FileError::Divergence)?;
        count += 1;
    }
    validator.end().map_err(FileError::Divergence)?;
    Ok(count)
}
