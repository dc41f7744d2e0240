//! The rounds of a sweep.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use leaseproof_rules::Guard;
use serde::{Deserialize, Serialize};

use super::coverage::{Coverage, Reached};
use super::generate::story;
use super::pick::Pick;
use crate::run::{Run, RunError, run_story};

/// Runs of a round.
const ROUND: u64 = 128;
/// Of these, variations of what has reached something new, at most.
const VARIED: u64 = 48;
/// Variations of a story that has reached something new.
const VARIATIONS: u32 = 4;
/// Stories that wait to be varied. Beyond, the oldest give way.
const WAITING: usize = 512;

/// The version of the state's file.
const VERSION: u32 = 1;

/// What one run came to, without the run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Which run.
    pub pick: Pick,
    /// What is wrong with it. Empty: nothing.
    pub complaints: Vec<String>,
    /// It did not come to its end: a panic, or the machine.
    pub error: Option<RunError>,
    reached: Reached,
    statements: u64,
    virtual_ms: u64,
    faults: u64,
}

impl Outcome {
    fn of(pick: Pick, without: Option<Guard>) -> Outcome {
        let story = story(pick, without);
        let none = |error| Outcome {
            pick,
            complaints: Vec::new(),
            error: Some(error),
            reached: Reached::default(),
            statements: 0,
            virtual_ms: 0,
            faults: 0,
        };
        match run_one(pick, without) {
            Err(error) => none(error),
            Ok(run) => Outcome {
                pick,
                complaints: run.complaints(&story),
                error: None,
                reached: Reached::of(&story, &run),
                statements: run.statements,
                virtual_ms: run.virtual_ms,
                faults: run.struck.len() as u64,
            },
        }
    }
}

/// Runs one story of a sweep by itself.
///
/// # Errors
/// See [`RunError`].
pub fn run_one(pick: Pick, without: Option<Guard>) -> Result<Run, RunError> {
    run_story(&story(pick, without), pick.seed)
}

/// What a sweep is to do.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Threads. What comes out does not depend on it.
    pub jobs: usize,
    /// Runs in all, those of an earlier part of the sweep included.
    pub runs: u64,
}

/// A run that broke something.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Violation {
    /// Which run.
    pub run: Pick,
    /// What is wrong, the first thing first.
    pub complaints: Vec<String>,
}

/// Sums over all runs.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Runs.
    pub runs: u64,
    /// Of these, variations.
    pub variations: u64,
    /// Statements that the databases executed.
    pub statements: u64,
    /// Simulated time, in ms.
    pub virtual_ms: u64,
    /// Faults that struck.
    pub faults: u64,
    /// Runs that reached something new.
    pub new: u64,
}

/// A story that is worth varying.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Waiting {
    seed: u64,
    /// The next variation.
    next: u32,
    /// How many are left.
    left: u32,
}

/// How far a sweep is: all that the next round depends on. Its size is bounded.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    leaseproof_sweep: u32,
    /// The guard that is off, by name.
    pub without: Option<String>,
    /// The next seed that was not tried.
    pub next_seed: u64,
    /// Sums so far.
    pub totals: Totals,
    /// What was reached so far.
    pub coverage: Coverage,
    waiting: VecDeque<Waiting>,
}

/// A state that can not be gone on from.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Not what a sweep has written.
    #[error("not the state of a sweep: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// Of another version of this program.
    #[error("version {0} of the state of a sweep is not known; this program reads version {VERSION}")]
    Version(u32),
}

impl State {
    /// Nothing was run; the first seed is this one.
    pub fn new(from: u64, without: Option<Guard>) -> State {
        State {
            leaseproof_sweep: VERSION,
            without: without.map(|guard| guard.name().to_owned()),
            next_seed: from,
            totals: Totals::default(),
            coverage: Coverage::default(),
            waiting: VecDeque::new(),
        }
    }

    /// The state that an earlier sweep has written.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn from_json(text: &str) -> Result<State, StateError> {
        #[derive(Deserialize)]
        struct Version {
            leaseproof_sweep: u32,
        }
        let version: Version = serde_json::from_str(text)?;
        if version.leaseproof_sweep != VERSION {
            return Err(StateError::Version(version.leaseproof_sweep));
        }
        Ok(serde_json::from_str(text)?)
    }

    /// The state as it is written.
    pub fn to_json(&self) -> String {
        // Maps with keys of text, lists and numbers: nothing that JSON lacks.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The runs of the next round: at most so many.
    fn next_round(&mut self, most: u64) -> Vec<Pick> {
        let mut round = Vec::new();
        while (round.len() as u64) < VARIED.min(most) {
            let Some(mut one) = self.waiting.pop_front() else { break };
            round.push(Pick { seed: one.seed, variation: one.next });
            one.next += 1;
            one.left -= 1;
            if one.left > 0 {
                self.waiting.push_back(one);
            }
        }
        while (round.len() as u64) < ROUND.min(most) && self.next_seed <= Pick::LAST_SEED {
            round.push(Pick::fresh(self.next_seed));
            self.next_seed += 1;
        }
        round
    }

    fn take_in(&mut self, outcome: &Outcome) -> Option<Violation> {
        let Outcome { pick, complaints, reached, .. } = outcome;
        self.totals.runs += 1;
        self.totals.variations += u64::from(pick.variation > 0);
        self.totals.statements += outcome.statements;
        self.totals.virtual_ms += outcome.virtual_ms;
        self.totals.faults += outcome.faults;
        if self.coverage.add(reached) {
            self.totals.new += 1;
            // A variation that has brought something new is followed by the next ones of its seed.
            let next = pick.variation + 1;
            match self.waiting.iter_mut().find(|one| one.seed == pick.seed) {
                Some(one) => one.left = VARIATIONS,
                None if pick.variation < 64 => {
                    self.waiting.push_back(Waiting { seed: pick.seed, next, left: VARIATIONS })
                }
                None => {}
            }
            if self.waiting.len() > WAITING {
                self.waiting.pop_front();
            }
        }
        (!complaints.is_empty()).then(|| Violation { run: *pick, complaints: complaints.clone() })
    }

    /// One round: runs it, takes it in in the order of the picks, and returns what was violated. `each` is told of every
    /// run as it ends. `None`: nothing is left to do.
    ///
    /// # Errors
    /// The first run of the round that did not come to its end.
    pub fn round(
        &mut self,
        plan: Plan,
        without: Option<Guard>,
        each: &(dyn Fn() + Sync),
    ) -> Result<Option<Vec<Violation>>, (Pick, RunError)> {
        let picks = self.next_round(plan.runs.saturating_sub(self.totals.runs));
        if picks.is_empty() {
            return Ok(None);
        }
        let mut violations = Vec::new();
        for outcome in side_by_side(&picks, plan.jobs, &|pick| {
            let outcome = Outcome::of(*pick, without);
            each();
            outcome
        }) {
            if let Some(error) = outcome.error {
                return Err((outcome.pick, error));
            }
            violations.extend(self.take_in(&outcome));
        }
        Ok(Some(violations))
    }
}

/// Applies a function to each, on so many threads; the results in the order of the list.
pub(super) fn side_by_side<T: Sync, R: Send>(list: &[T], jobs: usize, act: &(dyn Fn(&T) -> R + Sync)) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<R>>> = Mutex::new(list.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(list.len()).max(1) {
            scope.spawn(|| {
                while let Some((index, one)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, list.get(i)?)))
                {
                    let result = act(one);
                    results.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(result);
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}
