//! A fixed hash: the same state hashes alike in every run, so that a search is repeatable down to its memory layout.
//! States are not hostile input, so a seed would buy nothing.

use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Builds [`FixedHasher`]s, all alike.
pub(super) type FixedState = BuildHasherDefault<FixedHasher>;

/// Folds each word in by one 64×64→128 bit multiplication. The high half is needed: the low bits of a product depend
/// only on the low bits of its factors, and a packed state often differs from its neighbour only in high ones.
#[derive(Default)]
pub(super) struct FixedHasher(u64);

/// 2^64 / golden ratio, odd: the usual multiplier of Fibonacci hashing.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
/// Keeps the all-zero state away from the fixed point 0 of a multiplication.
const OFFSET: u64 = 0x2545_F491_4F6C_DD1D;

/// The hash of one state.
#[inline]
pub(super) fn hash_of<T: Hash>(value: &T) -> u64 {
    let mut hasher = FixedHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}

impl FixedHasher {
    #[inline]
    fn fold(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ OFFSET) * u128::from(MULTIPLIER);
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }
}

impl Hasher for FixedHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.fold(u64::from_le_bytes(word));
        }
    }
    #[inline]
    fn write_u8(&mut self, word: u8) {
        self.fold(u64::from(word));
    }
    #[inline]
    fn write_u16(&mut self, word: u16) {
        self.fold(u64::from(word));
    }
    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.fold(u64::from(word));
    }
    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.fold(word);
    }
    #[inline]
    fn write_u128(&mut self, word: u128) {
        self.fold(word as u64);
        self.fold((word >> 64) as u64);
    }
    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.fold(word as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::hash_of;
    use std::collections::BTreeSet;

    /// hashbrown takes the bucket from the low bits and a tag from the high seven. States that differ only in high bits
    /// must still spread over both.
    #[test]
    fn neighbours_in_any_bit_range_spread_over_buckets_and_tags() {
        for shift in [0, 17, 33, 52] {
            let hashes: Vec<u64> = (0..4096_u64).map(|i| hash_of(&(i << shift))).collect();
            let buckets: BTreeSet<u64> = hashes.iter().map(|h| h & 0xFFFF).collect();
            let tags: BTreeSet<u64> = hashes.iter().map(|h| h >> 57).collect();
            assert!(buckets.len() > 3700, "shift {shift}: {} buckets", buckets.len());
            assert_eq!(tags.len(), 128, "shift {shift}");
        }
    }

    #[test]
    fn the_hash_never_changes_between_runs() {
        assert_eq!(hash_of(&1_u64), hash_of(&1_u64));
        assert_eq!(hash_of(&0_u64), 0xEC0D_A830_C086_1664);
        assert_ne!(hash_of(&"ab"), hash_of(&"ba"));
    }
}
