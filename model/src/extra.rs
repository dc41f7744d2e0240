//! What only some worlds have: starts of processes told apart, a second sweeper, a budget of releases, a write that is
//! delivered twice, the row as it was before the last commit.
//!
//! The packed state has little room; so each of these is coded only where a world asks for it.

use crate::bits::{Coder, Field, Piece};
use crate::copies::Sent;
use crate::state::{MAX_TASKS, Seen, Shape, State, Task};

/// Which of the extras a world has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Extras {
    /// Starts of one executor are told apart (A2), see [`crate::boots`].
    pub boots: bool,
    /// There is a second sweeper.
    pub second_sweeper: bool,
    /// Executors put tasks back unharmed.
    pub releases: bool,
    /// A write may be delivered twice, see [`crate::copies`].
    pub copies: bool,
    /// The database may lose its last commit, see [`crate::fail_over`].
    pub past: bool,
    /// Steps may be undone, see [`crate::saga`].
    pub saga: bool,
}

impl Extras {
    /// None of them: most worlds, and all stories.
    pub const NONE: Extras =
        Extras { boots: false, second_sweeper: false, releases: false, copies: false, past: false, saga: false };

    /// How many sweepers there are, each with a memory of its own.
    pub const fn sweepers(self) -> u8 {
        1 + self.second_sweeper as u8
    }

    /// One bit where there are none.
    #[inline]
    pub(crate) fn code(&mut self, c: &mut impl Coder) {
        let mut any = *self != Extras::NONE;
        c.field(&mut any);
        if any {
            c.field(&mut self.boots);
            c.field(&mut self.second_sweeper);
            c.field(&mut self.releases);
            c.field(&mut self.copies);
            c.field(&mut self.past);
            c.field(&mut self.saga);
        }
    }
}

/// What the database knows of the start at a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Boot {
    /// Nothing has been started there yet.
    Unborn = 0,
    /// The newest start of its executor.
    Current = 1,
    /// A later start has taken over.
    Superseded = 2,
}

impl Field for Boot {
    const WIDTH: u32 = 2;
    #[inline]
    fn to_bits(self) -> u32 {
        self as u32
    }
    #[inline]
    fn from_bits(bits: u32) -> Boot {
        [Boot::Unborn, Boot::Current, Boot::Superseded][bits as usize]
    }
}

/// See [`Extras`]; what a world does not have stays as in [`Extra::NONE`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Extra {
    /// At the two places where one executor is started.
    pub boots: [Boot; 2],
    /// By task: what the second sweeper remembers.
    pub seen: [Seen; MAX_TASKS],
    /// Ghost: how often an executor has put a task back unharmed.
    pub releases: u8,
    /// A second copy of a write, under way.
    pub copy: Option<Sent>,
    /// The row of the task before the last commit, if there was one.
    pub past: Option<Task>,
    /// Ghost: the last commit has been lost. That happens once.
    pub failed_over: bool,
}

impl Extra {
    /// As every world begins.
    pub const NONE: Extra = Extra {
        boots: [Boot::Current, Boot::Unborn],
        seen: [Seen::NOTHING; MAX_TASKS],
        releases: 0,
        copy: None,
        past: None,
        failed_over: false,
    };

    #[inline(always)]
    pub(crate) fn code(&mut self, shape: Shape, c: &mut impl Coder) {
        if shape.extras == Extras::NONE {
            return;
        }
        if shape.extras.boots {
            for boot in &mut self.boots {
                c.field(boot);
            }
        }
        if shape.extras.second_sweeper {
            for seen in &mut self.seen[..shape.tasks] {
                seen.code(shape, c);
            }
        }
        if shape.extras.releases {
            c.small(&mut self.releases, 2);
        }
        if shape.extras.copies {
            Sent::code(&mut self.copy, c);
        }
        if shape.extras.past {
            c.field(&mut self.failed_over);
            let mut present = self.past.is_some();
            c.field(&mut present);
            if present {
                self.past.get_or_insert(Task::NEW).code_row(shape, c);
            }
        }
    }
}

impl State {
    /// What a sweeper remembers of a task.
    pub fn memory(&self, sweeper: u8, task: usize) -> &Seen {
        if sweeper == 0 { &self.seen[task] } else { &self.extra.seen[task] }
    }

    /// As [`State::memory`], to be changed.
    pub fn memory_mut(&mut self, sweeper: u8, task: usize) -> &mut Seen {
        if sweeper == 0 { &mut self.seen[task] } else { &mut self.extra.seen[task] }
    }
}
