//! Which run of a sweep: a number, or a variation of the story of that number.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Names one run of a sweep for good: the story and the simulation follow from it alone. Written `17`, or `17.3` for the
/// third variation of the story of seed 17.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Pick {
    /// The seed of story and simulation.
    pub seed: u64,
    /// 0: the story as it is drawn.
    pub variation: u32,
}

impl Pick {
    /// The last seed there is: what a story file can hold.
    pub const LAST_SEED: u64 = i64::MAX as u64;

    /// The story of a seed as it is drawn.
    pub const fn fresh(seed: u64) -> Pick {
        Pick { seed, variation: 0 }
    }
}

impl fmt::Display for Pick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.variation {
            0 => write!(f, "{}", self.seed),
            variation => write!(f, "{}.{variation}", self.seed),
        }
    }
}

impl From<Pick> for String {
    fn from(pick: Pick) -> String {
        pick.to_string()
    }
}

/// The text names no run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} names no run of a sweep; write a seed, e.g. 17, or a variation of one, e.g. 17.3")]
pub struct UnknownPick(String);

impl FromStr for Pick {
    type Err = UnknownPick;

    fn from_str(text: &str) -> Result<Pick, UnknownPick> {
        let wrong = || UnknownPick(text.to_owned());
        let (seed, variation) = text.split_once('.').unwrap_or((text, "0"));
        let seed = seed.parse().ok().filter(|seed| *seed <= Pick::LAST_SEED).ok_or_else(wrong)?;
        let pick = Pick { seed, variation: variation.parse().map_err(|_| wrong())? };
        // One name for one run: no signs, no leading zeros, no ".0".
        if pick.to_string() == text { Ok(pick) } else { Err(wrong()) }
    }
}

impl TryFrom<String> for Pick {
    type Error = UnknownPick;

    fn try_from(text: String) -> Result<Pick, UnknownPick> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_one_name() {
        for (text, seed, variation) in [("0", 0, 0), ("17", 17, 0), ("17.3", 17, 3)] {
            assert_eq!(text.parse(), Ok(Pick { seed, variation }));
            assert_eq!(Pick { seed, variation }.to_string(), text);
        }
        for text in ["", ".", "17.", "17.0", ".3", "-1", "+1", "017", "1.2.3", "9223372036854775808", "1.4294967296"] {
            assert!(text.parse::<Pick>().is_err(), "{text}");
        }
    }
}
