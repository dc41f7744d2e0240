//! Sweeps: stories drawn from seeds, run on the real code, watched by every checker.
//!
//! A run is named by its [`Pick`]; story and simulation follow from that alone, so one number brings it back. Runs go in
//! rounds: what a round does is decided before it begins, from the rounds before it, so a sweep is the same on any number
//! of threads. A part of each round goes to variations of stories that have reached something new.

mod coverage;
mod draw;
mod driver;
mod generate;
mod pick;
mod schedule;
mod shrink;
mod vary;

pub use coverage::{Blow, Coverage, Place, Reached, Role};
pub use driver::{Outcome, Plan, State, StateError, Totals, Violation, run_one};
pub use generate::story;
pub use pick::{Pick, UnknownPick};
pub use shrink::{Shrunk, Symptom, shrink};
