//! How a command ends when it does not end well, and the exit code that says so.

use std::fmt;
use std::process::ExitCode;

/// Why a command did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// Something that should hold does not. Its details are printed already.
    Violated,
    /// The caller gave something that can not be used; nothing was changed.
    BadInput(String),
    /// Our fault, or the machine's.
    Internal(String),
}

impl Failure {
    /// 1 violated, 2 bad input, 3 internal.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Violated => 1,
            Failure::BadInput(_) => 2,
            Failure::Internal(_) => 3,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Violated => f.write_str("a property does not hold"),
            Failure::BadInput(why) => write!(f, "{why}"),
            Failure::Internal(why) => write!(f, "internal error: {why}"),
        }
    }
}

impl From<leaseproof_scenarios::StoryError> for Failure {
    fn from(error: leaseproof_scenarios::StoryError) -> Failure {
        Failure::BadInput(error.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::Internal(error.to_string())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::Internal(error.to_string())
    }
}
