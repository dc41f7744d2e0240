//! What a sweep has reached: which faults struck at which points, and which steps followed.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use leaseproof_rules::TRANSITIONS;
use leaseproof_scenarios::{Act, Fault, Node, Op, Point, Story, Trigger};
use serde::{Deserialize, Serialize};

use crate::run::Run;
use crate::trace::Line;

/// What a fault does, as far as coverage tells them apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Blow {
    /// A message is lost.
    Lose,
    /// A process dies.
    Crash,
    /// A process stands still.
    Pause,
    /// A link to or from the database is cut.
    CutDatabase,
    /// A link to or from the third party is cut.
    CutThirdParty,
}

impl Blow {
    /// Every one, in the order of the columns.
    pub const ALL: [Blow; 5] = [Blow::Lose, Blow::Crash, Blow::Pause, Blow::CutDatabase, Blow::CutThirdParty];

    /// The name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Blow::Lose => "lose",
            Blow::Crash => "crash",
            Blow::Pause => "pause",
            Blow::CutDatabase => "cut database",
            Blow::CutThirdParty => "cut third party",
        }
    }

    fn of(fault: &Fault) -> Blow {
        match fault.act {
            Act::Lose { .. } => Blow::Lose,
            Act::Crash { .. } => Blow::Crash,
            Act::Pause { .. } => Blow::Pause,
            Act::Cut { peer, .. } if peer == Node::ThirdParty || fault.on == Node::ThirdParty => Blow::CutThirdParty,
            Act::Cut { .. } => Blow::CutDatabase,
        }
    }
}

/// A kind of node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Role {
    /// An executor.
    Executor,
    /// The sweeper.
    Sweeper,
    /// The database.
    Database,
    /// The third party.
    ThirdParty,
}

impl Role {
    const ALL: [Role; 4] = [Role::Executor, Role::Sweeper, Role::Database, Role::ThirdParty];

    const fn name(self) -> &'static str {
        match self {
            Role::Executor => "executor",
            Role::Sweeper => "sweeper",
            Role::Database => "database",
            Role::ThirdParty => "third_party",
        }
    }

    const fn of(node: Node) -> Role {
        match node {
            Node::Executor(_) => Role::Executor,
            Node::Sweeper => Role::Sweeper,
            Node::Database => Role::Database,
            Node::ThirdParty => Role::ThirdParty,
        }
    }
}

/// Where a fault strikes: a point at a kind of node, or some time. Written `executor claim.reply`, `sweeper at a time`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Place {
    /// At which kind of node.
    pub role: Role,
    /// At which point. `None`: at a time.
    pub point: Option<Point>,
}

impl Place {
    /// Every place at which something can strike.
    pub fn all() -> Vec<Place> {
        let mut all = Vec::new();
        for role in [Role::Executor, Role::Sweeper] {
            let comes_to = |op: Op| match role {
                Role::Executor => !op.is_sweepers(),
                _ => op.is_sweepers() || op == Op::Query,
            };
            all.extend(Point::all().filter(|point| comes_to(point.op)).map(|point| Place { role, point: Some(point) }));
        }
        all.extend(Role::ALL.map(|role| Place { role, point: None }));
        all
    }

    /// Whether a fault of this kind can strike there.
    pub fn can(self, blow: Blow) -> bool {
        !matches!(
            (self.point, blow, self.role),
            (None, Blow::Lose, _)
                | (None, Blow::CutDatabase, Role::ThirdParty)
                | (None, Blow::CutThirdParty, Role::Database)
        )
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let point = self.point.map_or_else(|| "at a time".to_owned(), Point::name);
        f.pad(&format!("{} {point}", self.role.name()))
    }
}

impl From<Place> for String {
    fn from(place: Place) -> String {
        place.to_string()
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        let found = Place::all().into_iter().find(|place| place.to_string() == text);
        found.ok_or_else(|| format!("{text:?} is no place of a fault"))
    }
}

impl TryFrom<String> for Place {
    type Error = String;

    fn try_from(text: String) -> Result<Place, String> {
        text.parse()
    }
}

/// A fault that struck.
pub type Cell = (Place, Blow);

/// What one run has reached.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Reached {
    cells: Vec<Cell>,
    steps: Vec<String>,
    /// What a sweep looks for besides: which two faults met, and what a fault led to.
    further: Vec<u64>,
}

impl Reached {
    /// What a run has reached.
    pub fn of(story: &Story, run: &Run) -> Reached {
        let faults = story.faults.iter().enumerate().filter(|(index, _)| run.struck.contains(index));
        let mut cells: Vec<Cell> = faults
            .map(|(_, fault)| {
                let point = match fault.trigger {
                    Trigger::At { point, .. } => Some(point),
                    Trigger::After { .. } => None,
                };
                (Place { role: Role::of(fault.on), point }, Blow::of(fault))
            })
            .collect();
        cells.sort_unstable();
        let mut steps: Vec<String> = run.lines.iter().filter_map(step).collect();
        steps.sort_unstable();
        steps.dedup();
        let mut further = Vec::new();
        let verdict = run.verdict.to_string();
        for (index, (place, blow)) in cells.iter().enumerate() {
            let one = format!("{place} {}", blow.name());
            further.push(hash(&[&one, &verdict]));
            for (other, second) in &cells[index + 1..] {
                further.push(hash(&[&one, &format!("{other} {}", second.name())]));
            }
        }
        further.sort_unstable();
        further.dedup();
        Reached { cells, steps, further }
    }
}

/// The steps that coverage counts: writes by verb and edge, refusals by verb and status, and what the third party did.
fn step(line: &Line) -> Option<String> {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    Some(match line.event.as_str() {
        "refuse" | "already" => format!("{} {} in {}", line.event, text(&line.verb), text(&line.from)),
        "learn" | "ask" => format!("{} {}", line.event, text(&line.entry)),
        "late_result" | "effect" | "repeat" | "refuse_call" | "call_unknown" | "horizon" => line.event.clone(),
        _ => match (&line.from, &line.to, &line.reason) {
            (Some(from), Some(to), None) => format!("{} {from} to {to}", line.event),
            (Some(from), Some(to), Some(reason)) => format!("{} {from} to {to}, {reason}", line.event),
            _ => return None,
        },
    })
}

/// A number for a few words, the same on every machine (FNV-1a).
fn hash(words: &[&str]) -> u64 {
    words
        .iter()
        .flat_map(|word| word.bytes().chain([0]))
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What all runs of a sweep have reached, and how many runs did.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coverage {
    /// By place and kind of fault.
    pub cells: BTreeMap<Place, BTreeMap<String, u64>>,
    /// By step.
    pub steps: BTreeMap<String, u64>,
    further: std::collections::BTreeSet<u64>,
}

impl Coverage {
    /// Takes a run in. True: it has reached something that none had before.
    pub fn add(&mut self, reached: &Reached) -> bool {
        let mut is_new = false;
        for (place, blow) in &reached.cells {
            let count = self.cells.entry(*place).or_default().entry(blow.name().to_owned()).or_default();
            is_new |= *count == 0;
            *count += 1;
        }
        for step in &reached.steps {
            let count = self.steps.entry(step.clone()).or_default();
            is_new |= *count == 0;
            *count += 1;
        }
        for one in &reached.further {
            is_new |= self.further.insert(*one);
        }
        is_new
    }

    /// How often a fault of this kind struck there.
    pub fn count(&self, place: Place, blow: Blow) -> u64 {
        self.cells.get(&place).and_then(|row| row.get(blow.name())).copied().unwrap_or_default()
    }

    /// How many pairs of place and kind were reached, and how many there are.
    pub fn share(&self) -> (usize, usize) {
        let all = Place::all().into_iter().flat_map(|place| Blow::ALL.map(|blow| (place, blow)));
        let possible: Vec<Cell> = all.filter(|(place, blow)| place.can(*blow)).collect();
        (possible.iter().filter(|(place, blow)| self.count(*place, *blow) > 0).count(), possible.len())
    }

    /// Edges of the transition table that no run has taken.
    pub fn missing_edges(&self) -> Vec<String> {
        let edges = TRANSITIONS.iter().map(|edge| format!("{} {} to {}", edge.verb.name(), edge.from, edge.to));
        edges.filter(|edge| !self.steps.keys().any(|step| step.split(',').next() == Some(edge))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_back_as_it_is_written() {
        let all = Place::all();
        // nine exchanges of executors and four of the sweeper, two points each, and a time at each kind of node
        assert_eq!(all.len(), 2 * (9 + 4) + 4);
        assert!(all.iter().all(|place| place.to_string().parse() == Ok(*place)));
        assert!("executor sweep.reply".parse::<Place>().is_err());
    }

    #[test]
    fn only_what_was_not_reached_before_is_new() {
        let mut coverage = Coverage::default();
        let place = Place { role: Role::Sweeper, point: None };
        let one = Reached { cells: vec![(place, Blow::Crash)], ..Reached::default() };
        let step = Reached { steps: vec!["claim PENDING to RUNNING".to_owned()], ..one.clone() };
        assert!(coverage.add(&one) && !coverage.add(&one));
        assert!(coverage.add(&step) && !coverage.add(&step));
        assert_eq!((coverage.count(place, Blow::Crash), coverage.share().0), (4, 1));
        assert_eq!(coverage.missing_edges().len(), TRANSITIONS.len() - 1);
    }
}
