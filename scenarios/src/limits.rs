//! How large the numbers of a story may be, and what its names hold. One bound for durations and moments, one for counts:
//! what is within them, the model's packed state and the simulation's clock can hold.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};

use crate::duration::Millis;

/// The longest duration and the latest moment of a story.
pub(crate) const LONGEST: Millis = Millis(24 * 3_600_000);
/// The largest count of a story.
pub(crate) const MOST: u32 = 100;

/// The names that are accepted.
pub(crate) const NAMES: &str = "1 to 40 letters a-z and A-Z, digits, '-', '_' and '.'";

pub(crate) fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=40).contains(&text.len()) && text.chars().all(is_plain)
}

/// A duration or a moment of a story, in ms: at most [`LONGEST`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Length(pub u64);

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Millis(self.0).fmt(f)
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Length, D::Error> {
        let read = Millis::deserialize(deserializer)?;
        match read <= LONGEST {
            true => Ok(Length(read.0)),
            false => Err(de::Error::custom(format!("{read} is too long for a story; accepted: 0s to {LONGEST}"))),
        }
    }
}

/// A count of a story: at most [`MOST`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Count(pub u32);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Count, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Count;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from 0 to {MOST}")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Count, E> {
                let fits = u32::try_from(number).ok().filter(|number| *number <= MOST);
                fits.map(Count).ok_or_else(|| E::custom(format!("{number} is out of range; accepted: 0 to {MOST}")))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Count, E> {
                self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
            }
        }
        deserializer.deserialize_u32(Number)
    }
}
