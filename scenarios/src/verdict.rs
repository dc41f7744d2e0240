//! The one word (or two) that a story ends with, on whichever rung it is told.

use std::fmt;
use std::str::FromStr;

use leaseproof_rules::{Property, Reason};

/// How a story ended. Ordered from best to worst, so the verdict of a story is the worst of its tasks'.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Verdict {
    /// Every task reached SUCCESS or FAIL and no person was needed.
    AutoRecovered,
    /// A task went to WAIT_MANUAL, for this reason, whatever a person then made of it.
    Escalated(Reason),
    /// A task was never resolved: [`Property::EventuallyResolved`] fails.
    Stuck,
    /// A safety property failed.
    Violated(Property),
}

impl Verdict {
    /// The property that this verdict shows broken, if any.
    pub const fn broken(self) -> Option<Property> {
        match self {
            Verdict::AutoRecovered | Verdict::Escalated(_) => None,
            Verdict::Stuck => Some(Property::EventuallyResolved),
            Verdict::Violated(property) => Some(property),
        }
    }

    /// Every verdict there is, in order.
    pub fn all() -> Vec<Verdict> {
        let mut all = vec![Verdict::AutoRecovered];
        all.extend(Reason::ALL.map(Verdict::Escalated));
        all.push(Verdict::Stuck);
        all.extend(Property::ALL.into_iter().filter(|p| *p != Property::EventuallyResolved).map(Verdict::Violated));
        all
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::AutoRecovered => f.pad("auto-recovered"),
            Verdict::Escalated(reason) => f.pad(&format!("escalated({reason})")),
            Verdict::Stuck => f.pad("stuck"),
            Verdict::Violated(property) => f.pad(&format!("violated({property})")),
        }
    }
}

/// The text is no verdict.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown verdict {0:?}; accepted: {list}", list = Verdict::all().iter().map(|v| v.to_string()).collect::<Vec<_>>().join(", "))]
pub struct UnknownVerdict(pub String);

impl FromStr for Verdict {
    type Err = UnknownVerdict;

    fn from_str(text: &str) -> Result<Verdict, UnknownVerdict> {
        Verdict::all().into_iter().find(|v| v.to_string() == text).ok_or_else(|| UnknownVerdict(text.to_owned()))
    }
}
