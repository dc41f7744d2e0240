//! States by number, and the table that finds their numbers.

use std::hash::Hash;

use super::fixed_hash::hash_of;
use super::store::{NONE, StateId};

/// A state on its way into the table.
pub(super) struct Successor<S> {
    pub(super) hash: u64,
    pub(super) state: S,
    pub(super) class: Option<u8>,
}

impl<S: Hash> Successor<S> {
    #[inline]
    pub(super) fn new(class: Option<u8>, state: S) -> Self {
        Successor { hash: hash_of(&state), state, class }
    }
}

pub(super) enum Interned {
    Known(StateId),
    New(StateId),
    Full,
}

/// A free slot; a used one holds a number plus one.
const FREE: u64 = 0;
const MIN_BITS: u32 = 10;
/// The place of a state comes from the upper half of its hash, which the slot keeps.
const MAX_BITS: u32 = 32;

/// Numbers states in the order of their arrival.
///
/// Open addressing with linear probing. A slot holds the upper half of a hash and a number; a hit is confirmed by
/// comparing the states themselves. The place of a slot follows from that upper half, so the table grows without
/// looking at a state.
pub(super) struct Interner<S> {
    slots: Vec<u64>,
    bits: u32,
    pub(super) states: Vec<S>,
    max_states: usize,
}

impl<S: Eq + Hash> Interner<S> {
    pub(super) fn new(max_states: usize) -> Self {
        Interner { slots: vec![FREE; 1 << MIN_BITS], bits: MIN_BITS, states: Vec::new(), max_states }
    }

    pub(super) fn table_bytes(&self) -> usize {
        8 * self.slots.capacity()
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        (hash >> (64 - self.bits)) as usize
    }

    #[inline]
    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.slots.len() - 1)
    }

    /// The number in a slot that may hold a state of this hash.
    #[inline]
    fn candidate(slot: u64, hash: u64) -> Option<StateId> {
        (slot != FREE && slot >> 32 == hash >> 32).then(|| (slot as u32) - 1)
    }

    /// The number of a state, which may be new.
    #[inline]
    pub(super) fn intern(&mut self, hash: u64, state: S) -> Interned {
        let mut place = self.home(hash);
        loop {
            let slot = self.slots[place];
            if slot == FREE {
                break;
            }
            if let Some(id) = Self::candidate(slot, hash)
                && self.states[id as usize] == state
            {
                return Interned::Known(id);
            }
            place = self.after(place);
        }
        let id = self.states.len();
        if id >= self.max_states || (self.is_crowded() && !self.grow()) {
            return Interned::Full;
        }
        self.place_free(hash >> 32 << 32 | (id as u64 + 1));
        self.states.push(state);
        Interned::New(id as StateId)
    }

    /// Looks up many successors side by side, so that their cache misses overlap: first all slots, then all states.
    /// `known` gets the number of each that is found on the first try, and [`NONE`] for the others. Those, new or not,
    /// must go through [`Interner::intern`], in order.
    pub(super) fn look_up(&self, successors: &[Successor<S>], known: &mut Vec<StateId>) {
        known.clear();
        known.extend(
            successors.iter().map(|successor| {
                Self::candidate(self.slots[self.home(successor.hash)], successor.hash).unwrap_or(NONE)
            }),
        );
        for (known, successor) in known.iter_mut().zip(successors) {
            if self.states.get(*known as usize) != Some(&successor.state) {
                *known = NONE;
            }
        }
    }

    /// The states by number. The table is freed.
    pub(super) fn into_states(self) -> Vec<S> {
        self.states
    }

    /// Three quarters are used: beyond that, probing gets slow.
    fn is_crowded(&self) -> bool {
        self.states.len() >= self.slots.len() / 4 * 3
    }

    fn grow(&mut self) -> bool {
        if self.bits >= MAX_BITS {
            return false;
        }
        self.bits += 1;
        let old = std::mem::replace(&mut self.slots, vec![FREE; 1 << self.bits]);
        for slot in old.into_iter().filter(|&slot| slot != FREE) {
            self.place_free(slot);
        }
        true
    }

    /// Puts a slot in the first free place of its own. The upper half of a slot is that of its hash.
    #[inline]
    fn place_free(&mut self, slot: u64) {
        let mut place = self.home(slot);
        while self.slots[place] != FREE {
            place = self.after(place);
        }
        self.slots[place] = slot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_through_growth_and_equal_hashes_stay_apart() {
        let mut table = Interner::new(usize::MAX);
        // A third of all states share a hash: they are told apart by comparison.
        let hash = |state: u64| if state.is_multiple_of(3) { 7 } else { hash_of(&state) };
        for state in 0..6_000_u64 {
            assert!(matches!(table.intern(hash(state), state), Interned::New(id) if u64::from(id) == state));
        }
        for state in (0..6_000_u64).rev() {
            assert!(matches!(table.intern(hash(state), state), Interned::Known(id) if u64::from(id) == state));
        }
        assert_eq!(table.states.len(), 6_000);
    }

    #[test]
    fn what_is_looked_up_ahead_is_what_was_there() {
        let mut table = Interner::new(2);
        let successors: Vec<_> = [5_u64, 6, 5].map(|state| Successor::new(None, state)).into();
        let mut known = vec![0; 9];
        table.look_up(&successors, &mut known);
        assert_eq!(known, [NONE; 3]);
        assert!(matches!(table.intern(successors[0].hash, 5), Interned::New(0)));
        table.look_up(&successors, &mut known);
        assert_eq!(known, [0, NONE, 0]);
        assert!(matches!(table.intern(successors[1].hash, 6), Interned::New(1)));
        assert!(matches!(table.intern(hash_of(&7_u64), 7), Interned::Full));
        assert!(matches!(table.intern(successors[2].hash, 5), Interned::Known(0)), "what is there needs no room");
        // A state of the same hash that is another one.
        let alike = [Successor { hash: successors[0].hash, state: 8, class: None }];
        table.look_up(&alike, &mut known);
        assert_eq!(known, [NONE]);
    }
}
