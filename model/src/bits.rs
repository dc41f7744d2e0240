//! States as bits: one description of the fields serves packing and unpacking.

use leaseproof_rules::{Answer, Entry, Reason, Status};

use crate::state::Shape;

/// Pieces of a state: tasks, runs, what the first sweeper remembers by task, persons. All else is no piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pieces(u32);

impl Pieces {
    pub(crate) const NONE: Pieces = Pieces(0);
    pub(crate) const ALL: Pieces = Pieces(!0);
    pub(crate) const RUNS: Pieces = Pieces(0xFFFF << 4);

    pub(crate) const fn task(index: usize) -> Pieces {
        Pieces(1 << index)
    }

    pub(crate) const fn run(slot: usize) -> Pieces {
        Pieces(1 << (4 + slot))
    }

    pub(crate) const fn seen(task: usize) -> Pieces {
        Pieces(1 << (20 + task))
    }

    pub(crate) const fn desk(person: usize) -> Pieces {
        Pieces(1 << (24 + person))
    }

    pub(crate) const fn and(self, other: Pieces) -> Pieces {
        Pieces(self.0 | other.0)
    }
}

/// A piece of a state. To be inlined wherever it is coded.
pub(crate) trait Piece {
    fn code(&mut self, shape: Shape, c: &mut impl Coder);
}

/// Goes over the fields of a state in a fixed order, and writes them to bits or reads them from bits.
pub(crate) trait Coder {
    /// The next field: `width` bits of `value`.
    fn bits(&mut self, value: &mut u32, width: u32);

    /// The fields of a piece, which always take the same number of bits.
    #[inline(always)]
    fn piece(&mut self, _which: Pieces, piece: &mut impl Piece, shape: Shape)
    where
        Self: Sized,
    {
        piece.code(shape, self);
    }

    /// The next field, of a type that knows its width.
    #[inline(always)]
    fn field<F: Field>(&mut self, value: &mut F) {
        let mut bits = value.to_bits();
        self.bits(&mut bits, F::WIDTH);
        *value = F::from_bits(bits);
    }

    /// The next field: a small number.
    #[inline(always)]
    fn small(&mut self, value: &mut u8, width: u32) {
        let mut bits = u32::from(*value);
        self.bits(&mut bits, width);
        *value = bits as u8;
    }
}

/// What a writer goes over stays as it is, so nothing is read back into it.
macro_rules! fields_are_only_written {
    () => {
        #[inline(always)]
        fn field<F: Field>(&mut self, value: &mut F) {
            self.bits(&mut value.to_bits(), F::WIDTH);
        }
        #[inline(always)]
        fn small(&mut self, value: &mut u8, width: u32) {
            self.bits(&mut u32::from(*value), width);
        }
    };
}

/// Packs. Numbers that do not fit their width would make two states one, so that is a panic: a fault of the model.
pub(crate) struct Writer<'a> {
    words: &'a mut Vec<u64>,
    word: u64,
    used: u32,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(words: &'a mut Vec<u64>) -> Self {
        words.clear();
        Writer { words, word: 0, used: 0 }
    }

    pub(crate) fn finish(self) {
        self.words.push(self.word);
    }
}

impl Coder for Writer<'_> {
    fields_are_only_written!();

    #[inline]
    fn bits(&mut self, value: &mut u32, width: u32) {
        let value = u64::from(*value);
        assert!(value >> width == 0, "a field of {width} bits can not hold {value}");
        self.word |= value << self.used;
        self.used += width;
        if self.used >= 64 {
            self.words.push(self.word);
            self.used -= 64;
            self.word = if self.used == 0 { 0 } else { value >> (width - self.used) };
        }
    }
}

/// Packs into a fixed number of words.
pub(crate) struct ArrayWriter<const WORDS: usize> {
    pub(crate) words: [u64; WORDS],
    at: u32,
}

impl<const WORDS: usize> ArrayWriter<WORDS> {
    pub(crate) fn new() -> Self {
        ArrayWriter { words: [0; WORDS], at: 0 }
    }
}

// Inlined in any case: with a constant shape the position is a constant too, and a field is two instructions.
impl<const WORDS: usize> Coder for ArrayWriter<WORDS> {
    fields_are_only_written!();

    #[inline(always)]
    fn bits(&mut self, value: &mut u32, width: u32) {
        let value = u64::from(*value);
        assert!(value >> width == 0, "a field of {width} bits can not hold {value}");
        let (word, shift) = ((self.at / 64) as usize, self.at % 64);
        self.words[word] |= value << shift;
        if shift + width > 64 {
            self.words[word + 1] = value >> (64 - shift);
        }
        self.at += width;
    }
}

/// Packs anew those pieces of packed words that have changed.
pub(crate) struct Patch<const WORDS: usize> {
    pub(crate) words: [u64; WORDS],
    at: u32,
    pieces: Pieces,
    /// Within a piece that stays as it is.
    skips: bool,
    /// Bits of numbers that do not fit their field. Looked at once, in the end: a test for every field is felt.
    too_large: u64,
}

impl<const WORDS: usize> Patch<WORDS> {
    pub(crate) fn new(words: [u64; WORDS], pieces: Pieces) -> Self {
        Patch { words, at: 0, pieces, skips: false, too_large: 0 }
    }

    #[inline(always)]
    pub(crate) fn finish(self) -> [u64; WORDS] {
        assert!(self.too_large == 0, "a field can not hold its number");
        self.words
    }
}

// As with the array: where everything is inlined and the shape is constant, a piece left out costs one test.
impl<const WORDS: usize> Coder for Patch<WORDS> {
    fields_are_only_written!();

    #[inline(always)]
    fn bits(&mut self, value: &mut u32, width: u32) {
        if !self.skips {
            let (value, mask) = (u64::from(*value), (1 << width) - 1);
            self.too_large |= value & !mask;
            let (word, shift) = ((self.at / 64) as usize, self.at % 64);
            self.words[word] = self.words[word] & !(mask << shift) | value << shift;
            if shift + width > 64 {
                let shift = 64 - shift;
                self.words[word + 1] = self.words[word + 1] & !(mask >> shift) | value >> shift;
            }
        }
        self.at += width;
    }

    #[inline(always)]
    fn piece(&mut self, which: Pieces, piece: &mut impl Piece, shape: Shape) {
        if self.pieces.0 & which.0 == 0 {
            self.skips = true;
            piece.code(shape, self);
            self.skips = false;
        } else {
            piece.code(shape, self);
        }
    }
}

/// Unpacks.
pub(crate) struct Reader<'a> {
    words: &'a [u64],
    at: u32,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(words: &'a [u64]) -> Self {
        Reader { words, at: 0 }
    }
}

impl Coder for Reader<'_> {
    #[inline(always)]
    fn bits(&mut self, value: &mut u32, width: u32) {
        let (word, shift) = ((self.at / 64) as usize, self.at % 64);
        let mut bits = self.words[word] >> shift;
        if shift + width > 64 {
            bits |= self.words[word + 1] << (64 - shift);
        }
        *value = (bits & ((1 << width) - 1)) as u32;
        self.at += width;
    }
}

/// A value of few bits.
pub(crate) trait Field: Copy {
    const WIDTH: u32;
    fn to_bits(self) -> u32;
    /// Only ever given what `to_bits` gave.
    fn from_bits(bits: u32) -> Self;
}

impl Field for Option<bool> {
    const WIDTH: u32 = 2;
    #[inline]
    fn to_bits(self) -> u32 {
        self.map_or(0, |value| 1 + u32::from(value))
    }
    #[inline]
    fn from_bits(bits: u32) -> Option<bool> {
        [None, Some(false), Some(true)][bits as usize]
    }
}

impl Field for bool {
    const WIDTH: u32 = 1;
    #[inline]
    fn to_bits(self) -> u32 {
        u32::from(self)
    }
    #[inline]
    fn from_bits(bits: u32) -> bool {
        bits != 0
    }
}

impl Field for Status {
    const WIDTH: u32 = 3;
    #[inline]
    fn to_bits(self) -> u32 {
        self as u32
    }
    #[inline]
    fn from_bits(bits: u32) -> Status {
        Status::ALL[bits as usize]
    }
}

/// 0 for `None`, else one more than the place in `all`.
macro_rules! optional {
    ($type:ty, $width:expr, $all:expr) => {
        impl Field for Option<$type> {
            const WIDTH: u32 = $width;
            #[inline]
            fn to_bits(self) -> u32 {
                self.map_or(0, |value| value as u32 + 1)
            }
            #[inline]
            fn from_bits(bits: u32) -> Option<$type> {
                (bits > 0).then(|| $all[bits as usize - 1])
            }
        }
    };
}

optional!(Entry, 2, Entry::ALL);
optional!(Reason, 3, Reason::ALL);
optional!(Answer, 3, [Answer::Done, Answer::NotDone, Answer::Partial, Answer::Unavailable]);

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Vec<(u32, u32)> {
        (0..40).map(|i| (i * 7 % 32, 5 + i % 9)).chain([(0xFFFF_FFFF >> 8, 24), (1, 1), (0, 3)]).collect()
    }

    #[test]
    fn what_is_written_is_read_back_across_word_borders() {
        let mut words = Vec::new();
        let mut writer = Writer::new(&mut words);
        let mut array = ArrayWriter::<8>::new();
        for (mut value, width) in values() {
            writer.bits(&mut value, width);
            array.bits(&mut value, width);
        }
        writer.finish();
        assert_eq!(words[..], array.words[..words.len()]);
        let mut reader = Reader::new(&words);
        for (expected, width) in values() {
            let mut value = 0;
            reader.bits(&mut value, width);
            assert_eq!(value, expected);
        }
    }

    #[test]
    #[should_panic(expected = "a field can not hold its number")]
    fn nor_where_only_a_piece_is_packed_anew() {
        let mut patch = Patch::new([0; 1], Pieces::ALL);
        patch.bits(&mut 8, 3);
        patch.finish();
    }

    #[test]
    #[should_panic(expected = "a field of 3 bits can not hold 8")]
    fn a_number_too_large_for_its_field_is_not_cut_silently() {
        ArrayWriter::<1>::new().bits(&mut 8, 3);
    }
}
