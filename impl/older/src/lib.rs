//! The two designs that came before leases, small and complete, **to be compared with and not to be used**.
//!
//! | Design | How it claims | What becomes of a task whose executor died |
//! |---|---|---|
//! | [`CommitRunning`] (S1) | transaction 2, opened and awaited inside transaction 1, commits RUNNING by compare-and-set | RUNNING for ever |
//! | [`SingleTransaction`] (S2) | one transaction spans the run; RUNNING is never committed | rolled back when the *server* ends the session: at once after a clean death, hours later after a silent one |
//!
//! Use `leaseproof-queue` instead. What the three measure beside each other is printed by `leaseproof compare` and kept in
//! `docs/designs.md`; what a model proves of them is in `docs/model.md`.
//!
//! The [`Table`] is the bare one that people start with: id, kind, payload, status. It has no owner and no lease, so nothing
//! could take a RUNNING row back. Statuses and legal steps are those of `leaseproof_rules`; no rule is written here.
//!
//! No runtime is named: the same compiled crate runs on tokio against real servers and in the simulation.

#![deny(missing_docs)]
#![warn(clippy::unwrap_used)]

mod claim;
mod commit_running;
mod error;
mod single_transaction;
mod sql;
mod table;

pub use claim::{Claim, Outcome, Ran};
pub use commit_running::{CommitRunning, MainTransaction, Read};
pub use error::Error;
pub use single_transaction::{LockWait, SingleTransaction};
pub use sql::sqlite_schema;
pub use table::{Table, Task};
