//! How a command ends when it does not end well, and the exit code that says so.

use std::fmt;
use std::process::ExitCode;

use leaseproof_queue::Error;

/// Why a command did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// Something that should hold does not. Its details are printed already.
    Violated,
    /// The caller gave something that can not be used; nothing was changed.
    BadInput(String),
    /// The database can not be reached or does not answer.
    Database(String),
    /// Our fault, or the machine's.
    Internal(String),
}

impl Failure {
    /// 1 violated, 2 bad input, 3 everything else.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Violated => 1,
            Failure::BadInput(_) => 2,
            Failure::Database(_) | Failure::Internal(_) => 3,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Violated => f.write_str("a property does not hold"),
            Failure::BadInput(why) | Failure::Database(why) => f.write_str(why),
            Failure::Internal(why) => write!(f, "internal error: {why}"),
        }
    }
}

impl From<leaseproof_scenarios::StoryError> for Failure {
    fn from(error: leaseproof_scenarios::StoryError) -> Failure {
        Failure::BadInput(error.to_string())
    }
}

impl From<leaseproof_model::story::StoryModelError> for Failure {
    /// A story that does not fit into the model can be made smaller; the rest is ours.
    fn from(error: leaseproof_model::story::StoryModelError) -> Failure {
        use leaseproof_model::story::StoryModelError::{TooFine, TooMany};
        match error {
            TooFine { .. } | TooMany { .. } => Failure::BadInput(error.to_string()),
            other => Failure::Internal(other.to_string()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Unavailable { .. } | Error::Unknown { .. } => {
                Failure::Database(format!("{error}. Is the server up, and is --url (or LEASEPROOF_URL) the right one?"))
            }
            Error::BadRow { .. } | Error::NoThread { .. } => Failure::Internal(error.to_string()),
            Error::FileChanged { .. } => Failure::Database(error.to_string()),
            _ => Failure::BadInput(error.to_string()),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::Internal(error.to_string())
    }
}
