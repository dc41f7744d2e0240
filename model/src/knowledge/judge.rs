//! Judges a strategy: does the world keep every property under it, and if not, what is the shortest run against it?

use leaseproof_rules::Property;
use stateright::Model;

use crate::check::ModelError;
use crate::describe::describe;
use crate::free::{Action, LeaseModel};
use crate::graph::{Counterexample, Fair, Graph, Lasso, Limits, Step, Trace, Trigger, explore};
use crate::packed::Packed;
use crate::properties;
use crate::state::State;
use crate::world::World;

/// A world with more states than this is not judged.
pub const MAX_STATES: usize = 2_000_000;

/// Most violations are near: a strategy is first judged on few states, and only what survives on all.
pub(super) const NEAR: [usize; 2] = [1_000, 10_000];
pub(super) const ALL: [usize; 3] = [10_000, 100_000, MAX_STATES];

/// A free world from some states on.
#[derive(Clone, Debug)]
pub struct From {
    /// The world, with the strategy in its setup.
    pub model: LeaseModel,
    /// The states. None: from its beginning.
    pub starts: Vec<Packed>,
}

impl From {
    /// From its beginning.
    pub fn beginning(world: World) -> From {
        From { model: LeaseModel::new(world), starts: Vec::new() }
    }
}

impl Model for From {
    type State = Packed;
    type Action = Action;

    fn init_states(&self) -> Vec<Packed> {
        if self.starts.is_empty() { self.model.init_states() } else { self.starts.clone() }
    }

    fn actions(&self, state: &Packed, out: &mut Vec<Action>) {
        self.model.actions(state, out);
    }

    fn next_state(&self, state: &Packed, action: Action) -> Option<Packed> {
        self.model.next_state(state, action)
    }
}

impl Fair for From {
    fn fair_class(&self, state: &Packed, action: &Action) -> Option<u8> {
        self.model.fair_class(state, action)
    }

    fn successors(&self, state: &Packed, scratch: &mut Vec<Action>, each: impl FnMut(Option<u8>, Packed)) {
        self.model.successors(state, scratch, each);
    }
}

/// A shortest run against a strategy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refutation {
    /// What breaks.
    pub property: Property,
    /// The run in words, a step each.
    pub steps: Vec<String>,
}

/// What is found of a strategy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finding {
    /// Every property holds.
    Safe {
        /// In this many states.
        states: usize,
    },
    /// One does not.
    Refuted(Refutation),
    /// More states than were asked for, at most [`MAX_STATES`], and nothing found so far: no answer.
    Skipped,
}

impl Finding {
    /// Whether every property is proven.
    pub const fn is_safe(&self) -> bool {
        matches!(self, Finding::Safe { .. })
    }
}

/// Judges on ever more states, and hands a graph without violations to `then`.
///
/// # Errors
/// None, unless the model does not repeat itself.
pub fn judge_with(world: &From, limits: &[usize], then: impl FnOnce(&Graph<'_, From>)) -> Result<Finding, ModelError> {
    let setup = &world.model.world.setup;
    for &max_states in limits {
        let graph = explore(world, Limits { max_states })?;
        let broken = graph.ids().find(|&id| graph.state(id).unpack().bad != 0);
        if let Some(id) = broken
            && let Some(property) = properties::broken(&graph.state(id).unpack())
        {
            let run = graph.trace_to(id)?;
            return Ok(Finding::Refuted(Refutation { property, steps: run_text(&world.model, &run) }));
        }
        let resolved = |state: &Packed| properties::all_resolved(setup, &state.unpack());
        let name = Property::EventuallyResolved.name();
        let report = graph.check_leads_to(name, Trigger::Anywhere, resolved)?;
        if let Some(Counterexample::Lasso(lasso)) = report.outcome.counterexample() {
            let steps = lasso_text(&world.model, lasso);
            return Ok(Finding::Refuted(Refutation { property: Property::EventuallyResolved, steps }));
        }
        if report.outcome.holds() {
            then(&graph);
            return Ok(Finding::Safe { states: graph.stats().states });
        }
    }
    Ok(Finding::Skipped)
}

/// Judges.
///
/// # Errors
/// As [`judge_with`].
pub fn judge(world: &From) -> Result<Finding, ModelError> {
    let limits: Vec<usize> = NEAR.into_iter().chain(ALL).collect();
    judge_with(world, &limits, |_| ())
}

/// The steps of a run in words.
pub fn run_text(model: &LeaseModel, run: &Trace<Packed, Action>) -> Vec<String> {
    steps_text(model, &run.initial, &run.steps)
}

fn steps_text(model: &LeaseModel, before: &Packed, steps: &[Step<Packed, Action>]) -> Vec<String> {
    let befores = std::iter::once(before).chain(steps.iter().map(|step| &step.state));
    befores.zip(steps).map(|(before, step)| describe(model, &before.unpack(), &step.action)).collect()
}

fn lasso_text(model: &LeaseModel, lasso: &Lasso<Packed, Action>) -> Vec<String> {
    let mut all = run_text(model, &lasso.stem);
    if lasso.stutters() {
        all.push("from here on nothing that must happen can happen".to_owned());
    } else {
        all.push("from here on, for ever:".to_owned());
        all.extend(steps_text(model, lasso.stem.last(), &lasso.cycle));
    }
    all
}

/// Whether from every state of `graph` that `is_asked` picks a final state can be reached by steps that must happen some
/// day, that is without the help of a fault, of a handler that may hang or of a person.
///
/// Waiting, asking again and running up to the call and no further are safe where they lead to a person all the same:
/// they settle nothing.
pub fn settles(graph: &Graph<'_, From>, is_asked: impl Fn(&State) -> bool) -> bool {
    let setup = &graph.model().model.world.setup;
    let count = graph.states().len();
    let mut before: Vec<Vec<u32>> = vec![Vec::new(); count];
    for id in graph.ids() {
        for edge in graph.edges_of(id).filter(|edge| edge.class.is_some()) {
            before[edge.to as usize].push(id);
        }
    }
    let is_final = |state: &State| state.tasks[..setup.shape.tasks].iter().all(|task| task.status.is_final());
    let mut reached: Vec<bool> = graph.states().iter().map(|state| is_final(&state.unpack())).collect();
    let mut open: Vec<u32> = graph.ids().filter(|&id| reached[id as usize]).collect();
    while let Some(id) = open.pop() {
        for &from in &before[id as usize] {
            if !std::mem::replace(&mut reached[from as usize], true) {
                open.push(from);
            }
        }
    }
    graph.ids().all(|id| reached[id as usize] || !is_asked(&graph.state(id).unpack()))
}
