//! The real queue and the real sqlx driver in a deterministic world.
//!
//! The queue's own source, compiled against simulated tokio, runs on simulated machines. It talks through the unforked
//! sqlx PostgreSQL driver over a simulated TCP to a [database node](db), and calls a [third party](outside) that keeps a
//! ledger. [Faults](faults) strike where a story says; an [observer](observer) outside the world sees every committed
//! row, every effect and every fault; checkers judge what it saw, and the [trace] is its written form.

#![deny(missing_docs)]
#![warn(clippy::unwrap_used)]

#[cfg(not(madsim))]
compile_error!(
    "leaseproof-sim needs `--cfg madsim` for the whole build. The workspace's .cargo/config.toml sets it; an \
     environment variable RUSTFLAGS, or building from outside the workspace, replaces it. Unset RUSTFLAGS, or add \
     `--cfg madsim` to it."
);

pub mod check;
pub mod db;
pub mod event;
pub mod export;
pub mod faults;
pub mod net;
pub mod observer;
pub mod older;
pub mod outside;
pub mod process;
pub mod room;
pub mod run;
pub mod sweep;
pub mod trace;
pub mod validate;
pub mod world;
