//! Examines a declaration: its classes, what is safe in each, and why a person is needed where one is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use leaseproof_rules::{Decision, Observation, OnPartial, Reason, Signal};

use super::class::{candidates, class_of, decided_on, is_automatic, unanswered};
use super::combinations::{Declaration, Examined, declaration_text, declarations, worlds};
use super::judge::{ALL, Finding, From, NEAR, judge, judge_with, run_text, settles};
use super::strategy::DecideFn;
use crate::check::ModelError;
use crate::free::LeaseModel;
use crate::graph::Graph;
use crate::packed::Packed;
use crate::person;
use crate::state::{MAX_PARTS, Phase, Run, State};
use crate::world::Setup;

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
    for mut examined in worlds(declaration).map_err(named)? {
        examined.world.setup.strategy.base = decide;
        examined.world.validate().map_err(named)?;
        found.policy = examined.world.setup.policy.clone();
        examine_world(&examined, &mut found)?;
    }
    Ok(found)
}

/// Examines the declaration with the words `only` or, where there is none, those whose words contain it, on as many threads as there are cores. The order is that of
/// [`declarations`], the answer the same in every run.
///
/// # Errors
/// As [`examine`].
pub fn examine_all(only: &str, decide: DecideFn) -> Result<Vec<Combination>, ModelError> {
    let all = declarations();
    let exactly = all.iter().any(|declaration| declaration_text(*declaration) == only);
    let is_chosen = |text: String| if exactly { text == only } else { text.contains(only) };
    let chosen: Vec<Declaration> =
        all.into_iter().filter(|declaration| is_chosen(declaration_text(*declaration))).collect();
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

/// The states of a class.
#[derive(Default)]
struct Sightings {
    /// One of each kind.
    kinds: Vec<Sighting>,
    /// All in which somebody decides on this observation, or may, even if what is decided is of no use any more.
    decisive: Vec<Packed>,
}

type Classes = BTreeMap<Observation, Sightings>;

fn examine_world(examined: &Examined, found: &mut Combination) -> Result<(), ModelError> {
    let Examined { world, task, .. } = examined;
    let mut classes = Ok(Classes::new());
    let finding = judge_with(&From::beginning(world.clone()), &ALL, |graph| classes = sight(graph, examined))?;
    found.rules.push((world.name.clone(), finding.clone()));
    let mut classes = classes?;
    // Who asks decides at once on an answer that does not come.
    let asks = |(class, _): &(&Observation, &Sightings)| world.setup.decide(*task, class) == Decision::Ask;
    let asked: Vec<(Observation, Vec<Packed>)> =
        classes.iter().filter(asks).map(|(class, states)| (unanswered(class), states.decisive.clone())).collect();
    for (class, decisive) in asked {
        classes.entry(class).or_default().decisive.extend(decisive);
    }
    if finding.is_safe() {
        for (class, states) in &classes {
            found.classes.push(examine_class(examined, &finding, class, states)?);
        }
    }
    Ok(())
}

/// What the sweeper can not see, and what makes the difference: which parts of the effect have happened, whether a call is
/// still to come, whether the owner lives, whether faults are over.
fn kind(setup: &Setup, state: &State, index: usize) -> ([bool; MAX_PARTS], [bool; 3]) {
    let happened = state.tasks[index].ledger.map(|times| times > 0);
    (happened, [person::call_is_pending(setup, state, index), state.is_renewed(index), state.calm])
}

fn sight(graph: &Graph<'_, From>, examined: &Examined) -> Result<Classes, ModelError> {
    let model = &graph.model().model;
    let setup = &model.world.setup;
    let mut seen = BTreeSet::new();
    let mut all = Classes::new();
    for id in graph.ids() {
        let state = graph.state(id).unpack();
        let class = class_of(setup, &state, examined.task).filter(|class| class.signal == examined.signal);
        if let Some(class) = class
            && seen.insert((class, kind(setup, &state, examined.task)))
        {
            let run = run_text(model, &graph.trace_to(id)?);
            all.entry(class).or_default().kinds.push(Sighting { state: *graph.state(id), run });
        }
        for class in decided_on(setup, &state, examined.task).filter(|class| class.signal == examined.signal) {
            all.entry(class).or_default().decisive.push(*graph.state(id));
        }
    }
    // Whatever has been overtaken is no class of its own.
    all.retain(|_, states| !states.kinds.is_empty());
    Ok(all)
}

fn with(examined: &Examined, class: &Observation, decision: Decision, starts: &[Packed]) -> From {
    let mut world = examined.world.clone();
    world.setup.strategy = world.setup.strategy.deviating(examined.task, *class, decision);
    From { model: LeaseModel::new(world), starts: starts.to_vec() }
}

/// What is found of a decision in a class: of runs from the beginning.
///
/// A run that never comes to a state in which somebody decides on the class is a run of the rules, which are sound. So
/// it is enough to look at what follows from there; where that breaks something, the whole run is looked for.
fn try_everywhere(
    examined: &Examined,
    class: &Observation,
    decision: Decision,
    states: &Sightings,
) -> Result<Candidate, ModelError> {
    let whole = with(examined, class, decision, &[]);
    let near = judge_with(&whole, &NEAR, |_| ())?;
    if matches!(near, Finding::Refuted(_)) {
        return Ok(Candidate { decision, finding: near, settles: None });
    }
    let tried = try_out(examined, class, decision, &states.decisive)?;
    match tried.finding {
        Finding::Refuted(_) => Ok(Candidate { decision, finding: judge(&whole)?, settles: None }),
        _ => Ok(tried),
    }
}

/// What is found of a decision in a class, from some states on, and whether it settles the class from there.
fn try_out(
    examined: &Examined,
    class: &Observation,
    decision: Decision,
    starts: &[Packed],
) -> Result<Candidate, ModelError> {
    let (world, task) = (&examined.world, examined.task);
    let in_class = |state: &State| {
        class_of(&world.setup, state, task).as_ref() == Some(class) && !owner_has_failed(&world.setup, state, task)
    };
    let mut settled = false;
    let finding =
        judge_with(&with(examined, class, decision, starts), &ALL, |graph| settled = settles(graph, in_class))?;
    let settles = match (finding.is_safe(), settled) {
        (false, _) => None,
        (true, true) => Some(Settles::Yes),
        (true, false) if world.ends.hang => {
            let mut lucky = examined.clone();
            lucky.world.ends.hang = false;
            judge_with(&with(&lucky, class, decision, starts), &ALL, |graph| settled = settles(graph, in_class))?;
            Some(if settled { Settles::IfHandlersEnd } else { Settles::No })
        }
        (true, false) => Some(Settles::No),
    };
    Ok(Candidate { decision, finding, settles })
}

/// The owner has met an error and is about to say what follows (A3), or waits for a reply that will not come: what
/// becomes of the task is its decision, whatever a sweeper does that finds its lease live.
fn owner_has_failed(setup: &Setup, state: &State, index: usize) -> bool {
    let task = &state.tasks[index];
    let owns = |run: &&Run| usize::from(run.task) == index && run.epoch == task.epoch;
    state.runs.iter().filter(owns).any(|run| match run.phase {
        Phase::Retracting | Phase::Failing | Phase::FailingBad | Phase::Unsure => true,
        Phase::Waiting => !setup.shape.calls(task.calls).any(|(token, _)| token == run.epoch),
        _ => false,
    })
}

/// Why a person is asked where the system could safely go on and would come to an end, as far as `settles` says.
fn declined(class: &Observation, decided: Decision, settles: Settles) -> Option<&'static str> {
    match (class.signal, settles) {
        (Signal::Beating, Settles::IfHandlersEnd) => Some("M1: over its expected time, and it may never end"),
        _ => {
            let asks = class.progress.is_some_and(|progress| progress.on_partial == OnPartial::Escalate);
            (asks && decided == Decision::Escalate(Reason::PartlyDone))
                .then_some("M4: it is done in part, and whether to go on is not the system's to say")
        }
    }
}

fn verdict(class: &Observation, decided: Decision, tried: &[Candidate]) -> Verdict {
    if is_automatic(decided) {
        return Verdict::Automatic;
    }
    let best = tried.iter().filter(|c| c.settles > Some(Settles::No)).max_by_key(|c| c.settles);
    let why = best.and_then(|best| declined(class, decided, best.settles?));
    match (best, why) {
        (Some(candidate), Some(why)) => Verdict::Declined { decision: candidate.decision, why },
        (Some(candidate), None) => Verdict::CouldBeAutomatic(candidate.decision),
        (None, _) if tried.iter().any(|c| c.finding == Finding::Skipped) => Verdict::Unknown,
        (None, _) => Verdict::Person,
    }
}

fn examine_class(
    examined: &Examined,
    rules: &Finding,
    class: &Observation,
    states: &Sightings,
) -> Result<ClassRow, ModelError> {
    let decided = examined.world.setup.decide(examined.task, class);
    let mut tried = Vec::new();
    for decision in candidates(class, decided) {
        let mut candidate = match decision == decided {
            true => Candidate { decision, finding: rules.clone(), settles: None },
            false => try_everywhere(examined, class, decision, states)?,
        };
        if !is_automatic(decision) || is_automatic(decided) {
            candidate.settles = None;
        }
        tried.push(candidate);
    }
    let verdict = verdict(class, decided, &tried);
    let pair = match verdict {
        // Where handlers may hang, two cases differ by what will be, not by what is: no state shows it, a lasso does.
        Verdict::Person if !examined.world.ends.hang => find_pair(examined, class, &states.kinds)?,
        _ => None,
    };
    Ok(ClassRow { class: *class, decided, candidates: tried, verdict, pair })
}

/// The first two situations, by the length of the longer run, in each of which something is right, and in both nothing.
fn find_pair(examined: &Examined, class: &Observation, sightings: &[Sighting]) -> Result<Option<Pair>, ModelError> {
    let decided = examined.world.setup.decide(examined.task, class);
    let automatic: Vec<Decision> = candidates(class, decided).into_iter().filter(|d| is_automatic(*d)).collect();
    let mut sides: Vec<Side> = Vec::new();
    for sighting in sightings {
        let mut right = Vec::new();
        for &decision in &automatic {
            let tried = try_out(examined, class, decision, &[sighting.state])?;
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
