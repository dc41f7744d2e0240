//! What is wrong with a story file, and where.

use std::fmt;

/// A story file that can not be used. Nothing was run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoryError {
    /// The file, as it was named by the caller.
    pub file: String,
    /// The line, from 1, if the fault has a place.
    pub line: Option<usize>,
    /// The field, e.g. `faults[0].on`; empty where the whole file is meant.
    pub field: String,
    /// What is wrong, and what is accepted.
    pub why: String,
}

impl fmt::Display for StoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.field.is_empty() {
            write!(f, ": {}", self.field)?;
        }
        write!(f, ": {}", self.why)
    }
}

impl std::error::Error for StoryError {}
