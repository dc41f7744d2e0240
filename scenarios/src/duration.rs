//! Durations as people write them: a whole number and a unit.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};

/// A duration in whole milliseconds, written `"250ms"`, `"30s"`, `"5m"` or `"2h"`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Millis(pub u64);

impl Millis {
    /// Parses the written form.
    ///
    /// # Errors
    /// What is wrong, and which forms are accepted.
    pub fn parse(text: &str) -> Result<Millis, String> {
        let wrong = || {
            format!(
                "{text:?} is not a duration; write a whole number, not negative, and a unit: \"250ms\", \"30s\", \
                 \"5m\" or \"2h\""
            )
        };
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let number: u64 = text[..digits].parse().map_err(|_| wrong())?;
        let unit = match &text[digits..] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(wrong()),
        };
        number.checked_mul(unit).map(Millis).ok_or_else(wrong)
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            0 => "0s".to_owned(),
            ms if ms % 3_600_000 == 0 => format!("{}h", ms / 3_600_000),
            ms if ms % 60_000 == 0 => format!("{}m", ms / 60_000),
            ms if ms % 1_000 == 0 => format!("{}s", ms / 1_000),
            ms => format!("{ms}ms"),
        };
        f.pad(&text)
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Millis, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Millis;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration in quotes: \"250ms\", \"30s\", \"5m\" or \"2h\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Millis, E> {
                Millis::parse(text).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}
