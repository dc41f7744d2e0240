//! The older designs checked: rows like the lease's, so that the three stand in one table.

use std::fmt;
use std::time::Instant;

use leaseproof_rules::{Kind, Property};

use super::{CommitRunning, Find, Older, SingleTransaction, Witness};
use crate::check::{CheckRow, Holds, ModelError, RowKind, Selection, check};
use crate::evidence::{evidence, lines};
use crate::graph::{Graph, Limits, Outcome, StateId, Step, Trigger, explore};
use crate::properties::bit;

/// A design.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Design {
    /// RUNNING is committed, and nothing takes it back (S1).
    CommitRunning,
    /// One transaction spans the run (S2).
    SingleTransaction,
    /// The one to use (S3).
    Lease,
}

impl Design {
    /// Every design, in the order of the requirements.
    pub const ALL: [Design; 3] = [Design::CommitRunning, Design::SingleTransaction, Design::Lease];

    /// The name on the command line and in reports, e.g. `commit-running`.
    pub const fn name(self) -> &'static str {
        match self {
            Design::CommitRunning => "commit-running",
            Design::SingleTransaction => "single-transaction",
            Design::Lease => "lease",
        }
    }
}

impl fmt::Display for Design {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Checks a design as it is meant and, of the older ones, also the worlds that show what the answers depend on.
///
/// The rows of an older design begin with one for each property that applies to it, under every fault; rows of the
/// contrasts follow, told apart by their `worlds`; what must be reachable comes last.
///
/// # Errors
/// As [`check`].
pub fn check_design(design: Design) -> Result<Vec<CheckRow>, ModelError> {
    let limits = Limits { max_states: Selection::default().max_states };
    match design {
        Design::CommitRunning => check_older::<CommitRunning>(limits),
        Design::SingleTransaction => check_older::<SingleTransaction>(limits),
        Design::Lease => check(Selection::default()),
    }
}

/// [`check_design`] of one of the older two.
///
/// # Errors
/// A search that can not begin, or evidence that can not be rebuilt.
pub fn check_older<M: Older>(limits: Limits) -> Result<Vec<CheckRow>, ModelError> {
    let mut answers = Vec::new();
    let mut seen = Vec::new();
    for case in M::cases() {
        let witnesses = if case.as_meant { M::witnesses() } else { Vec::new() };
        let names: Vec<String> = case.worlds.iter().map(|world| world.name().to_owned()).collect();
        let row = |property: &str, kind, holds| CheckRow {
            design: M::DESIGN.name(),
            without: None,
            property: property.to_owned(),
            kind,
            holds,
            worlds: names.clone(),
            shown_in: None,
            states: 0,
            trace_len: 0,
            trace: Vec::new(),
            seconds: 0.0,
        };
        let mut of_properties: Vec<CheckRow> =
            case.properties.iter().map(|p| row(p.name(), p.kind().into(), Holds::Holds)).collect();
        // Not seen in any world yet.
        let mut of_witnesses: Vec<CheckRow> =
            witnesses.iter().map(|w| row(&w.name, RowKind::Sometimes, Holds::Violated)).collect();
        for world in &case.worlds {
            let graph = explore(world, limits)?;
            let share = graph.stats().seconds / (of_properties.len() + of_witnesses.len()) as f64;
            for (property, row) in case.properties.iter().zip(&mut of_properties) {
                let started = Instant::now();
                ask(&graph, *property, row)?;
                row.seconds += share + started.elapsed().as_secs_f64();
            }
            for (witness, row) in witnesses.iter().zip(&mut of_witnesses) {
                let started = Instant::now();
                look_for(&graph, witness, row)?;
                row.seconds += share + started.elapsed().as_secs_f64();
            }
        }
        answers.extend(of_properties);
        seen.extend(of_witnesses);
    }
    answers.extend(seen);
    Ok(answers)
}

fn ask<M: Older>(graph: &Graph<'_, M>, property: Property, row: &mut CheckRow) -> Result<(), ModelError> {
    row.states += graph.stats().states;
    let report = match property.kind() {
        Kind::Always => graph.check_always(property.name(), |state| M::bad(state) & bit(property) == 0)?,
        Kind::Eventually => {
            graph.check_leads_to(property.name(), Trigger::Anywhere, |state| M::status(state).is_resolved())?
        }
    };
    match &report.outcome {
        Outcome::Holds => {}
        Outcome::Cut { .. } => row.holds = row.holds.max(Holds::Cut),
        Outcome::Violated(counterexample) => {
            row.holds = Holds::Violated;
            if row.shown_in.is_none() || counterexample.len() < row.trace_len {
                row.shown_in = Some(graph.model().name().to_owned());
                row.trace_len = counterexample.len();
                row.trace = evidence(graph.model(), counterexample);
            }
        }
    }
    Ok(())
}

fn look_for<M: Older>(graph: &Graph<'_, M>, witness: &Witness<M>, row: &mut CheckRow) -> Result<(), ModelError> {
    row.states += graph.stats().states;
    if row.holds == Holds::Holds {
        return Ok(());
    }
    let model = graph.model();
    let Some((id, action)) = first(graph, witness) else {
        if graph.stats().cut {
            row.holds = Holds::Cut;
        }
        return Ok(());
    };
    let mut run = graph.trace_to(id)?;
    if let Some(action) = action {
        let state = model.next_state(run.last(), action.clone());
        run.steps.extend(state.map(|state| Step { action, state }));
    }
    row.holds = Holds::Holds;
    row.shown_in = Some(model.name().to_owned());
    row.trace_len = run.len();
    row.trace = lines(model, &run.initial, &run.steps);
    Ok(())
}

/// The nearest state that shows it or, of a step, that it starts from.
fn first<M: Older>(graph: &Graph<'_, M>, witness: &Witness<M>) -> Option<(StateId, Option<M::Action>)> {
    let mut states = (0..).zip(graph.states());
    match &witness.find {
        Find::State(seen) => states.find(|(_, state)| seen(state)).map(|(id, _)| (id, None)),
        Find::Step(seen) => {
            let mut actions = Vec::new();
            states.find_map(|(id, state)| {
                actions.clear();
                graph.model().actions(state, &mut actions);
                let action = actions.iter().find(|action| seen(state, action))?;
                Some((id, Some(action.clone())))
            })
        }
    }
}
