//! What the outside of the database node gets to see and to decide: where faults strike and events are recorded.

use std::net::IpAddr;

use leaseproof_rules::Epoch;
use tokio::sync::oneshot;

use super::watch::{TaskChange, TaskRow};

/// A task and the epoch that a write presents for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Presented {
    /// The task's id.
    pub task: i64,
    /// The writer's epoch, where the statement carries one.
    pub epoch: Option<Epoch>,
}

/// A tagged statement at the database's door.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The machine that sent it.
    pub peer: IpAddr,
    /// The session, counted from 1 over the life of the simulation.
    pub session: u64,
    /// The tag's word, e.g. `complete`.
    pub op: String,
    /// What it presents; empty for a statement that names no task.
    pub presented: Vec<Presented>,
    /// The key of the effect it journals.
    pub effect: Option<String>,
    /// Whether it would change or return a row if it were executed now. `None` if the gate did not ask.
    pub does_something: Option<bool>,
}

impl Request {
    /// What it presented for a change that it made. A batch may name a task twice, for a run and for one before it: the
    /// row's own epoch is the one that has changed it, if it is there.
    pub fn behind(&self, change: &TaskChange) -> Option<Presented> {
        let epoch = change.before.as_ref().map(|row| row.epoch);
        let of_task = || self.presented.iter().filter(|one| one.task == change.task);
        of_task().find(|one| one.epoch == epoch).or_else(|| of_task().next()).copied()
    }
}

/// What becomes of a request.
#[derive(Debug)]
pub enum Arrival {
    /// It is executed.
    Execute,
    /// It is executed when the sender says so, and lost if the sender is dropped.
    Hold(oneshot::Receiver<()>),
    /// It never arrived: no execution, no answer.
    Lose,
}

/// A tagged statement as executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Executed {
    /// The statement.
    pub request: Request,
    /// How many rows it changed or returned.
    pub count: usize,
    /// What happened to task rows.
    pub changes: Vec<TaskChange>,
    /// The database's clock, in ms.
    pub now_ms: i64,
    /// Presented tasks whose rows it left alone, as they stand.
    pub unchanged: Vec<(Presented, TaskRow)>,
}

/// What has just been committed, in one transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Commit {
    /// The machine that sent it.
    pub peer: IpAddr,
    /// The session.
    pub session: u64,
    /// Its tagged statements.
    pub executed: Vec<Executed>,
    /// Changes of task rows by statements without a tag.
    pub untagged: Vec<TaskChange>,
}

/// What becomes of the answer to a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It is sent.
    Send,
    /// It never arrives.
    Lose,
}

/// The gate of a database node. Called on the node, between the request's arrival and its answer; must not block.
pub trait Gate: Send + Sync {
    /// Whether [`Request::does_something`] is wanted for requests of this kind.
    fn asks(&self, _peer: IpAddr, _op: &str) -> bool {
        false
    }

    /// A tagged statement is about to be executed. Asked once for each.
    fn arrived(&self, _request: &Request) -> Arrival {
        Arrival::Execute
    }

    /// A transaction (a single statement is one) has been committed and the answer has not left.
    fn committed(&self, _commit: &Commit) -> Answer {
        Answer::Send
    }

    /// The database has started, or started again.
    fn started(&self) {}
}

/// A gate that lets everything through.
#[derive(Clone, Copy, Debug, Default)]
pub struct Open;

impl Gate for Open {}

#[cfg(test)]
mod tests {
    use leaseproof_rules::Status;

    use super::*;

    #[test]
    fn of_two_claims_of_a_task_in_one_batch_the_row_s_own_is_behind_the_change() {
        let row = TaskRow {
            status: Status::Running,
            epoch: 4,
            owner: None,
            attempts: 0,
            interruptions: 0,
            due_at_ms: 0,
            lease_until_ms: None,
            overrun_at_ms: None,
            reason: None,
            effect: None,
            entry: None,
        };
        let change = TaskChange { task: 1, before: Some(row.clone()), after: Some(row) };
        let [zombie, own, other] = [(1, 1), (1, 4), (2, 4)].map(|(task, epoch)| Presented { task, epoch: Some(epoch) });
        let request = |presented: &[Presented]| Request {
            peer: IpAddr::from([10, 1, 0, 1]),
            session: 1,
            op: "heartbeat".to_owned(),
            presented: presented.to_vec(),
            effect: None,
            does_something: None,
        };
        assert_eq!(request(&[other, zombie, own]).behind(&change), Some(own));
        // Without the fence a stale one may be alone.
        assert_eq!(request(&[other, zombie]).behind(&change), Some(zombie));
        assert_eq!(request(&[other]).behind(&change), None);
    }
}
