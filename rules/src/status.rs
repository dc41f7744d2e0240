//! The states of a task (requirement T1).

use std::fmt;

/// Where a task stands. Six values, no more (T1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Status {
    /// Waits to be claimed.
    Pending = 0,
    /// Claimed; somebody holds, or held, the lease.
    Running = 1,
    /// Waits until its delay has passed, then can be claimed like [`Status::Pending`].
    RetryWait = 2,
    /// Final: the work is done.
    Success = 3,
    /// Final: the work is given up.
    Fail = 4,
    /// Only a person may move it on.
    WaitManual = 5,
}

impl Status {
    /// Every status, in the order of the discriminants.
    pub const ALL: [Status; 6] =
        [Status::Pending, Status::Running, Status::RetryWait, Status::Success, Status::Fail, Status::WaitManual];

    /// The name stored in the database and shown to people, e.g. `RETRY_WAIT`.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Pending => "PENDING",
            Status::Running => "RUNNING",
            Status::RetryWait => "RETRY_WAIT",
            Status::Success => "SUCCESS",
            Status::Fail => "FAIL",
            Status::WaitManual => "WAIT_MANUAL",
        }
    }

    /// The status with this stored name; `None` for any other text.
    pub fn from_name(name: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.name() == name)
    }

    /// SUCCESS and FAIL: nothing leaves them (T1).
    pub const fn is_final(self) -> bool {
        matches!(self, Status::Success | Status::Fail)
    }

    /// Final, or in the hands of a person: what "eventually resolved" asks for.
    pub const fn is_resolved(self) -> bool {
        self.is_final() || matches!(self, Status::WaitManual)
    }

    /// Can be claimed as soon as it is due.
    pub const fn is_claimable(self) -> bool {
        matches!(self, Status::Pending | Status::RetryWait)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
