//! The bounds of a story file, held against what a rung found.

use crate::{Expect, Millis};

/// The bounds of a story file as one rung met them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Met {
    /// Until every task was resolved, in ms, at worst. `None`: some were not.
    pub recovered_ms: Option<u64>,
    /// How often an effect happened, for each task at most.
    pub effects_max: u32,
    /// At least.
    pub effects_min: u32,
    /// Late results kept, at least.
    pub late_results: u32,
    /// Claims of a task, at most.
    pub runs_max: u32,
}

impl Met {
    /// Each bound that was not met, in words.
    pub fn complaints(&self, expect: &Expect) -> Vec<String> {
        let mut wrong = Vec::new();
        if let Some(bound) = expect.recovers_within_ms {
            match self.recovered_ms {
                Some(ms) if ms <= bound => {}
                Some(ms) => wrong.push(format!("resolved after {}, expected within {}", Millis(ms), Millis(bound))),
                None => wrong.push(format!("not resolved, expected within {}", Millis(bound))),
            }
        }
        let mut check = |holds: bool, what: String| {
            if !holds {
                wrong.push(what);
            }
        };
        let (max, min) = (expect.effects_max, expect.effects_min);
        let times = |n: Option<u32>| n.unwrap_or_default();
        check(
            max.is_none_or(|max| self.effects_max <= max),
            format!("an effect happened {}×, expected at most {}×", self.effects_max, times(max)),
        );
        check(
            min.is_none_or(|min| self.effects_min >= min),
            format!("an effect happened {}×, expected at least {}×", self.effects_min, times(min)),
        );
        let late = expect.late_results_min;
        check(
            late.is_none_or(|min| self.late_results >= min),
            format!("{} late results kept, expected at least {}", self.late_results, times(late)),
        );
        let runs = expect.runs_max;
        check(
            runs.is_none_or(|max| self.runs_max <= max),
            format!("a task was claimed {}×, expected at most {}×", self.runs_max, times(runs)),
        );
        wrong
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Verdict;

    const GOOD: Met = Met { recovered_ms: Some(50_000), effects_max: 1, effects_min: 1, late_results: 1, runs_max: 2 };

    fn expect() -> Expect {
        Expect {
            verdicts: BTreeSet::from([Verdict::AutoRecovered]),
            recovers_within_ms: Some(60_000),
            effects_max: Some(1),
            effects_min: Some(1),
            late_results_min: Some(1),
            runs_max: Some(2),
        }
    }

    #[test]
    fn a_bound_that_is_met_is_no_complaint() {
        assert_eq!(GOOD.complaints(&expect()), [""; 0]);
    }

    #[test]
    fn each_bound_can_be_missed() {
        let cases = [
            (Met { recovered_ms: Some(60_001), ..GOOD }, "resolved after 60001ms, expected within 1m"),
            (Met { recovered_ms: None, ..GOOD }, "not resolved, expected within 1m"),
            (Met { effects_max: 2, ..GOOD }, "an effect happened 2×, expected at most 1×"),
            (Met { effects_min: 0, ..GOOD }, "an effect happened 0×, expected at least 1×"),
            (Met { late_results: 0, ..GOOD }, "0 late results kept, expected at least 1"),
            (Met { runs_max: 3, ..GOOD }, "a task was claimed 3×, expected at most 2×"),
        ];
        for (met, complaint) in cases {
            assert_eq!(met.complaints(&expect()), [complaint]);
        }
    }
}
