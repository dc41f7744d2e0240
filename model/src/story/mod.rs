//! Stories on the model: the same transition function with a clock beside it, all interleavings.

mod act;
mod act_slot;
mod act_sweeper;
mod faults;
mod live;
mod outcome;
mod play;
mod script;
mod servers;

pub use outcome::{StoryModelError, StoryOutcome, run_story, run_story_under};
