//! A model of the lease design over `leaseproof-rules`, of the two older designs beside it, and an exact checker.

#![warn(clippy::unwrap_used)]

mod adverse;
mod bits;
pub mod boots;
pub mod check;
pub mod copies;
pub mod coverage;
pub mod database;
pub mod describe;
pub mod designs;
pub mod evidence;
pub mod executor;
pub mod explorer;
pub mod extra;
pub mod fail_over;
mod fairness;
pub mod free;
pub mod graph;
pub mod knowledge;
pub mod outside;
pub mod packed;
pub mod person;
pub mod properties;
mod saga;
pub mod state;
pub mod story;
pub mod sweeper;
mod take;
pub mod trace;
pub mod witness;
pub mod world;
pub mod worlds;
