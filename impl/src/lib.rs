//! A task queue on leases, in PostgreSQL, MySQL, MariaDB or SQLite.
//!
//! Three things set it apart. Every write by a worker, heartbeats included, carries the epoch of its claim, so a worker
//! that lost its task changes nothing. A statement whose answer never came counts as *unknown*, not as failed. And what
//! happens to a task whose worker is gone is decided by [`rules::decide`], the function that the model of this project
//! checks: run again, ask the third party, or hand it to a person.
//!
//! # API
//!
//! - [`Queue`]: connect, migrate, enqueue; list, show and resolve what waits for a person;
//! - [`Worker`], [`Ctx`]: handlers, and [`Ctx::effect`], their one way to the outside;
//! - [`Sweeper`]: what becomes of tasks whose worker is lost; [`StatusQueries`]: asking third parties;
//! - [`NewTask`], [`Task`], [`Event`], [`EffectEntry`]: what goes in and what a person reads;
//! - [`Store`]: the statements one by one, each answering with a [`rules::Judgement`];
//! - [`Error`]: tells "surely not applied" from "may have been applied";
//! - [`tags`]: the comment that every statement begins with;
//! - [`sqlite_schema`]: the tables as SQL text with a clock of your own, for whoever executes the statements elsewhere.
//!
//! # Tables
//!
//! | Table | One row is | Written by |
//! |---|---|---|
//! | `tasks` | a task: status, epoch, owner, lease, budgets, policy | the conditional statements of [`Store`] |
//! | `task_events` | an entry of the execution record; append-only | triggers on `tasks`, and `late_result` |
//! | `effects` | what is known of one outside effect of one task | triggers on `tasks` |
//! | `instances` | a process: boot id, slot, who superseded it | `register`, `supersede` |
//! | `leaseproof_schema` | a version that was reached | `migrate` |
//!
//! The one exception to "every change of a task leaves a record entry" is the heartbeat; the largest gap between two
//! beats is kept in the row and copied into the next entry.
//!
//! # Invariants
//!
//! - No operation holds a transaction or a lock over a round trip: each is one conditional statement. (On MySQL, which has
//!   no `RETURNING`, a claim, a heartbeat and a registration read back in a second statement what the first has changed,
//!   and a completion that did not apply tries the adoption in a second one.)
//! - A row that another program has written, and that can not be read or written as it is, stops nothing but itself. The
//!   tables' checks refuse most of them; what gets past is skipped, told by its id, and handed to a person where it can be.
//! - What is stored fits every database: payloads, results and outcomes up to 1 MiB, texts up to 64 KiB, no NUL. What
//!   somebody gives is refused beyond that, before anything is written; an error of a handler is cut.
//! - All times are ms on the database's clock; a process's own monotonic clock only ever makes it stop earlier.
//! - Retention is absent on purpose: the record outlives the work, until a later version says how long.
//! - Epochs must survive: with asynchronous replication, with `synchronous_commit = off`, or with MySQL's
//!   `innodb_flush_log_at_trx_commit` other than 1, a crash or a failover can hand out an epoch
//!   twice, and then no fence holds.

#![deny(missing_docs)]
#![warn(clippy::unwrap_used)]

mod bounds;
mod ctx;
mod desk;
mod effects;
mod error;
mod queries;
mod queue;
pub mod store;
mod sweeper;
pub mod tags;
mod task;
mod worker;

pub use bounds::{MOST_JSON_BYTES, MOST_TEXT_BYTES};
pub use ctx::{Call, CallError, Ctx, Effect, TaskError};
pub use desk::{Resolution, Shown, Signed};

pub use error::{Cause, Error};
pub use leaseproof_rules as rules;
pub use queries::{Question, StatusQueries};
pub use queue::{ABLATION, ACCEPTED_URLS, MYSQL_NOW_MS, Queue, SQLITE_NOW_MS};
pub use store::{SCHEMA_VERSION, Store, sqlite_schema};
pub use sweeper::{SweepReport, Sweeper};
pub use task::{BadTask, Claimed, EffectEntry, Enqueued, Event, LONGEST_MS, Listed, NewTask, Task};
pub use worker::{HeartbeatMode, MOST_SLOTS, RunEnd, Worker, WorkerBuilder};

/// The program in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
