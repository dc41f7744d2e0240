//! What happened, for people: one line an event, to be drawn as lanes.

use std::fmt;

/// One thing that happened at one node.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Event {
    /// Story time, in ms. 0 throughout in the free worlds, which have no clock.
    pub time_ms: u64,
    /// The lane: an executor's name, `sweeper`, `database`, `third_party` or `person`.
    pub node: String,
    /// What happened, in a few words.
    pub what: String,
    /// The task, by name, if it concerns one.
    pub task: Option<String>,
    /// The epoch that was presented or reached, if one matters.
    pub epoch: Option<u64>,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.time_ms as f64 / 1000.0;
        write!(f, "{seconds:>8.3}s  {:<12} {}", self.node, self.what)?;
        if let Some(task) = &self.task {
            write!(f, " [{task}")?;
            if let Some(epoch) = self.epoch {
                write!(f, " epoch {epoch}")?;
            }
            f.write_str("]")?;
        }
        Ok(())
    }
}

/// A run as a list of events, in order. Equal for equal input.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Trace {
    /// In order of time.
    pub events: Vec<Event>,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for event in &self.events {
            writeln!(f, "{event}")?;
        }
        Ok(())
    }
}
