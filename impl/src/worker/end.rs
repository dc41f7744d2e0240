//! How a run has ended, told to whoever wants to know.

use std::sync::Arc;

use leaseproof_rules::{Epoch, Status};

/// How a run has ended, as far as its worker knows; see [`WorkerBuilder::on_end`](crate::WorkerBuilder::on_end).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RunEnd {
    /// The task.
    pub task: i64,
    /// The epoch of the run.
    pub epoch: Epoch,
    /// What its report has made of the task. `None`: nothing was reported, the report was refused, or its outcome is unknown;
    /// then the task is another's to decide about.
    pub status: Option<Status>,
    /// Why it is not SUCCESS, as the report says it.
    pub why: Option<String>,
}

pub(crate) type OnEnd = Arc<dyn Fn(RunEnd) + Send + Sync>;
