//! Fault stories as data: one TOML file a story, executed alike by the model and the simulator.
//!
//! `stories/` has the stories of the matrix, `ablations/` those that run with one guard switched off, `recorded/` what sweeps
//! have found, `designs/` those by which the three designs are compared. The format is described in `scenarios/README.md`;
//! [`Story`] is a checked file, [`Verdict`] how it ends.

#![deny(missing_docs)]
#![warn(clippy::unwrap_used)]

mod check;
mod duration;
mod error;
mod file;
mod library;
mod limits;
mod met;
mod path;
mod story;
mod verdict;
mod write;

pub use check::REQUIREMENTS;
pub use duration::Millis;
pub use error::StoryError;
pub use library::{ablations, designs, load, parse, recorded, stories};
pub use met::Met;
pub use story::{
    Act, Effect, Executor, Expect, Fault, Node, Op, PersonAct, PersonDecision, Phase, Point, RunEnd, Story, Task,
    Timing, Trigger, Way,
};
pub use verdict::{UnknownVerdict, Verdict};
