//! Examines a declaration: its classes, what is safe in each, and why a person is needed where one is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use leaseproof_rules::{Decision, Observation, Signal};

use super::class::{candidates, classes_of, is_automatic, is_in, unanswered};
use super::combinations::{Declaration, declaration_text, declarations, worlds};
use super::judge::{Finding, From, judge, judge_with, run_text, settles};
use super::strategy::DecideFn;
use crate::check::ModelError;
use crate::free::LeaseModel;
use crate::graph::Graph;
use crate::packed::Packed;
use crate::person;
use crate::state::{Phase, State};
use crate::world::{Setup, World};

/// A decision that could be taken in a class, and what is found of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The decision.
    pub decision: Decision,
    /// Whether the properties hold with it.
    pub finding: Finding,
    /// Whether it also settles the class. Asked only where the rules want a person and the system could safely act.
    pub settles: Option<Settles>,
}

/// Whether a task can come to an end without a person from wherever a decision is taken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Settles {
    /// No: from some state all that can follow by itself is a person. The decision only postpones.
    No,
    /// Only if handlers that may hang do not.
    IfHandlersEnd,
    /// Yes.
    Yes,
}

/// One of two situations that look the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Side {
    /// A shortest run to it, in words.
    pub run: Vec<String>,
    /// What is true there.
    pub state: String,
    /// What would be right if one knew: safe from here on, and settles it.
    pub right: Vec<Decision>,
}

/// Two situations that look the same and in which nothing is right in both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pair {
    /// The one that is reached in fewer steps.
    pub first: Side,
    /// The other.
    pub second: Side,
}

/// On which side of the line a class is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The system goes on by itself.
    Automatic,
    /// A person is needed: whatever the system could do is unsafe, or only postpones it.
    Person,
    /// The rules ask for a person although this would be safe and, with luck, settle it: a matter of policy.
    Declined {
        /// What could be done.
        decision: Decision,
        /// Why it is not.
        why: &'static str,
    },
    /// The rules ask for a person although this would be safe and settle it.
    CouldBeAutomatic(Decision),
    /// A search was too large: no answer.
    Unknown,
}

/// One class of one world.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClassRow {
    /// What is seen.
    pub class: Observation,
    /// What the rules decide.
    pub decided: Decision,
    /// Everything that could be decided.
    pub candidates: Vec<Candidate>,
    /// On which side of the line it is.
    pub verdict: Verdict,
    /// If a person is needed because two situations look the same: these two.
    pub pair: Option<Pair>,
}

/// What is found of one declaration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Combination {
    /// The declaration.
    pub declaration: Declaration,
    /// The policy in its worlds, for texts.
    pub policy: leaseproof_rules::Policy,
    /// By world: its name, and whether the rules as they stand keep every property.
    pub rules: Vec<(String, Finding)>,
    /// The classes, of a world in which the rules hold.
    pub classes: Vec<ClassRow>,
}

impl Combination {
    /// The rules as they stand keep every property.
    pub fn is_sound(&self) -> bool {
        self.rules.iter().all(|(_, finding)| finding.is_safe())
    }

    /// No class that the rules hand to a person could be settled by the system.
    pub fn is_maximal(&self) -> bool {
        self.classes
            .iter()
            .all(|row| matches!(row.verdict, Verdict::Automatic | Verdict::Person | Verdict::Declined { .. }))
    }
}

/// Examines one declaration, with `decide` in the place of the rules.
///
/// # Errors
/// A world that can not be built.
pub fn examine(declaration: Declaration, decide: DecideFn) -> Result<Combination, ModelError> {
    let named = |error| ModelError::World { world: "knowledge".to_owned(), error };
    let mut found = Combination { declaration, policy: Default::default(), rules: Vec::new(), classes: Vec::new() };
    for (mut world, signal) in worlds(declaration).map_err(named)? {
        world.setup.strategy.base = decide;
        world.validate().map_err(named)?;
        found.policy = world.setup.policy.clone();
        examine_world(&world, signal, &mut found)?;
    }
    Ok(found)
}

/// Examines the declarations whose words contain `only`, on as many threads as there are cores. The order is that of
/// [`declarations`], the answer the same in every run.
///
/// # Errors
/// As [`examine`].
pub fn examine_all(only: &str, decide: DecideFn) -> Result<Vec<Combination>, ModelError> {
    let chosen: Vec<Declaration> =
        declarations().into_iter().filter(|declaration| declaration_text(*declaration).contains(only)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(&declaration) = chosen.get(place) else { return done };
            done.push((place, examine(declaration, decide)));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(chosen.len().max(1));
    let mut all: Vec<(usize, Result<Combination, ModelError>)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, found)| found).collect()
}

/// A state of a class, the first of its kind.
struct Sighting {
    state: Packed,
    run: Vec<String>,
}

type Sightings = BTreeMap<Observation, Vec<Sighting>>;

fn examine_world(world: &World, signal: Signal, found: &mut Combination) -> Result<(), ModelError> {
    let mut sightings = Ok(Sightings::new());
    let whole = From { model: LeaseModel::new(world.clone()), start: None };
    let finding = judge_with(&whole, |graph| sightings = sight(graph, signal))?;
    let sound = finding.is_safe();
    found.rules.push((world.name.clone(), finding));
    let mut sightings = sightings?;
    let asked: Vec<Observation> =
        sightings.keys().filter(|class| world.setup.decide(class) == Decision::Ask).map(unanswered).collect();
    for class in asked {
        sightings.entry(class).or_default();
    }
    if sound {
        for (class, sightings) in &sightings {
            found.classes.push(examine_class(world, class, sightings)?);
        }
    }
    Ok(())
}

/// What the sweeper can not see, and what makes the difference: whether the effect has happened, whether a call is still
/// to come, whether the owner lives, whether faults are over.
fn kind(setup: &Setup, state: &State) -> [bool; 4] {
    let task = &state.tasks[0];
    [
        task.ledger.iter().any(|done| *done > 0),
        person::call_is_pending(setup, state, 0),
        state.is_renewed(0),
        state.calm,
    ]
}

fn sight(graph: &Graph<'_, From>, signal: Signal) -> Result<Sightings, ModelError> {
    let model = &graph.model().model;
    let setup = &model.world.setup;
    let mut seen = BTreeSet::new();
    let mut all = Sightings::new();
    for id in graph.ids() {
        let state = graph.state(id).unpack();
        for class in classes_of(setup, &state).into_iter().filter(|class| class.signal == signal) {
            if seen.insert((class, kind(setup, &state))) {
                let run = run_text(model, &graph.trace_to(id)?);
                all.entry(class).or_default().push(Sighting { state: *graph.state(id), run });
            }
        }
    }
    Ok(all)
}

fn with(world: &World, class: &Observation, decision: Decision, start: Option<Packed>) -> From {
    let mut world = world.clone();
    world.setup.strategy = world.setup.strategy.deviating(*class, decision);
    From { model: LeaseModel::new(world), start }
}

/// What is found of a decision in a class, from some state on, and whether it settles the class from there.
fn try_out(
    world: &World,
    class: &Observation,
    decision: Decision,
    start: Option<Packed>,
) -> Result<Candidate, ModelError> {
    let in_class = |state: &State| is_in(&world.setup, state, class) && !owner_has_failed(state);
    let mut settled = false;
    let finding = judge_with(&with(world, class, decision, start), |graph| settled = settles(graph, in_class))?;
    let settles = match (finding.is_safe(), settled) {
        (false, _) => None,
        (true, true) => Some(Settles::Yes),
        (true, false) if world.ends.hang => {
            let mut lucky = world.clone();
            lucky.ends.hang = false;
            judge_with(&with(&lucky, class, decision, start), |graph| settled = settles(graph, in_class))?;
            Some(if settled { Settles::IfHandlersEnd } else { Settles::No })
        }
        (true, false) => Some(Settles::No),
    };
    Ok(Candidate { decision, finding, settles })
}

/// The owner has met an error and is about to say what follows (A3), or waits for a reply that will not come: what
/// becomes of the task is its decision, whatever a sweeper does that finds its lease live.
fn owner_has_failed(state: &State) -> bool {
    let task = &state.tasks[0];
    state.runs.iter().filter(|run| run.epoch == task.epoch).any(|run| match run.phase {
        Phase::Retracting | Phase::Failing | Phase::FailingBad | Phase::Unsure => true,
        Phase::Waiting => task.calls & (1 << run.epoch) == 0,
        _ => false,
    })
}

/// Why a person is asked where the system could safely go on and, with luck, would come to an end.
fn declined(class: &Observation) -> Option<&'static str> {
    match class.signal {
        Signal::Beating => Some("M1: over its expected time, and it may never end"),
        _ => None,
    }
}

fn verdict(class: &Observation, decided: Decision, tried: &[Candidate]) -> Verdict {
    if is_automatic(decided) {
        return Verdict::Automatic;
    }
    let best = tried.iter().filter(|c| c.settles > Some(Settles::No)).max_by_key(|c| c.settles);
    match (best, declined(class)) {
        (Some(Candidate { decision, settles: Some(Settles::IfHandlersEnd), .. }), Some(why)) => {
            Verdict::Declined { decision: *decision, why }
        }
        (Some(candidate), _) => Verdict::CouldBeAutomatic(candidate.decision),
        (None, _) if tried.iter().any(|c| c.finding == Finding::Skipped) => Verdict::Unknown,
        (None, _) => Verdict::Person,
    }
}

fn examine_class(world: &World, class: &Observation, sightings: &[Sighting]) -> Result<ClassRow, ModelError> {
    let decided = world.setup.decide(class);
    let mut tried = Vec::new();
    for decision in candidates(class, decided) {
        tried.push(match is_automatic(decision) && !is_automatic(decided) {
            true => try_out(world, class, decision, None)?,
            false => {
                let finding = judge(&with(world, class, decision, None))?;
                Candidate { decision, finding, settles: None }
            }
        });
    }
    let verdict = verdict(class, decided, &tried);
    let pair = match verdict {
        // Where handlers may hang, two cases differ by what will be, not by what is: no state shows it, a lasso does.
        Verdict::Person if !world.ends.hang => find_pair(world, class, sightings)?,
        _ => None,
    };
    Ok(ClassRow { class: *class, decided, candidates: tried, verdict, pair })
}

/// The first two situations, by the length of the longer run, in each of which something is right, and in both nothing.
fn find_pair(world: &World, class: &Observation, sightings: &[Sighting]) -> Result<Option<Pair>, ModelError> {
    let automatic: Vec<Decision> =
        candidates(class, world.setup.decide(class)).into_iter().filter(|d| is_automatic(*d)).collect();
    let mut sides: Vec<Side> = Vec::new();
    for sighting in sightings {
        let mut right = Vec::new();
        for &decision in &automatic {
            let tried = try_out(world, class, decision, Some(sighting.state))?;
            if tried.settles == Some(Settles::Yes) {
                right.push(decision);
            }
        }
        if right.is_empty() {
            continue;
        }
        let second = Side { run: sighting.run.clone(), state: format!("{:?}", sighting.state), right };
        let opposite = |first: &&Side| first.right.iter().all(|decision| !second.right.contains(decision));
        if let Some(first) = sides.iter().find(opposite) {
            return Ok(Some(Pair { first: first.clone(), second }));
        }
        sides.push(second);
    }
    Ok(None)
}
