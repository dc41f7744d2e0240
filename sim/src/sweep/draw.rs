//! Draws from a seed: the one source of chance of a sweep.

use std::ops::RangeInclusive;

use madsim::rand::seq::SliceRandom;
use madsim::rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of draws.
pub(super) struct Draw {
    rng: Xoshiro256PlusPlus,
}

impl Draw {
    /// The stream of a seed for one purpose; streams of different purposes have nothing to do with each other.
    pub fn new(seed: u64, purpose: u64) -> Draw {
        // Every bit of both counts: the seed only after the purpose has been mixed.
        let mut mixer = Xoshiro256PlusPlus::seed_from_u64(purpose);
        Draw { rng: Xoshiro256PlusPlus::seed_from_u64(mixer.r#gen::<u64>() ^ seed) }
    }

    pub fn chance(&mut self, percent: u32) -> bool {
        self.rng.gen_range(0..100) < percent
    }

    pub fn number(&mut self, range: RangeInclusive<u64>) -> u64 {
        self.rng.gen_range(range)
    }

    pub fn count(&mut self, range: RangeInclusive<u32>) -> u32 {
        self.rng.gen_range(range)
    }

    pub fn index(&mut self, length: usize) -> usize {
        self.rng.gen_range(0..length.max(1))
    }

    /// One of a list that is not empty. Listed twice, it is drawn twice as often.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.index(of.len())]
    }

    /// So many of a list, or all, in any order.
    pub fn some<T: Copy>(&mut self, mut of: Vec<T>, count: usize) -> Vec<T> {
        of.shuffle(&mut self.rng);
        of.truncate(count);
        of
    }
}
