//! `check`: every property on every default world, and every guard's violation without it.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;
use std::time::Instant;

use leaseproof_rules::{Guard, Kind, Property};

use crate::describe::describe;
use crate::evidence::{Readable, evidence, lines};
use crate::free::{self, LeaseModel};
use crate::graph::{CheckError, ExploreError, Graph, Limits, Outcome, Trigger, explore_on, explore_states};
use crate::packed::Packed;
use crate::properties;
use crate::witness::{self, Witness};
use crate::world::{World, WorldError};
pub use crate::worlds::{ablation_world, beyond_worlds, default_worlds, protects};

/// Why a check could not be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ModelError {
    /// The world can not be built.
    #[error("world {world:?}: {error}")]
    World {
        /// Its name.
        world: String,
        /// What is wrong with it.
        error: WorldError,
    },
    /// The search could not begin.
    #[error(transparent)]
    Explore(#[from] ExploreError),
    /// A counterexample could not be rebuilt.
    #[error(transparent)]
    Check(#[from] CheckError),
}

/// Whether a property holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Holds {
    /// Proven of every state and fair run of the worlds.
    Holds,
    /// Nothing found, but a search was cut: nothing is proven.
    Cut,
    /// Refuted by a run.
    Violated,
}

/// What a property asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RowKind {
    /// True in every state.
    Always,
    /// True in some state of some world.
    Sometimes,
    /// Comes true, again and again, on every fair run.
    Eventually,
}

impl RowKind {
    /// `always`, `sometimes` or `eventually`.
    pub const fn name(self) -> &'static str {
        match self {
            RowKind::Always => "always",
            RowKind::Sometimes => "sometimes",
            RowKind::Eventually => "eventually",
        }
    }
}

impl From<Kind> for RowKind {
    fn from(kind: Kind) -> RowKind {
        match kind {
            Kind::Always => RowKind::Always,
            Kind::Eventually => RowKind::Eventually,
        }
    }
}

/// One line of the answer.
#[derive(Clone, PartialEq, Debug)]
pub struct CheckRow {
    /// The design: `lease`, `commit-running` or `single-transaction`.
    pub design: &'static str,
    /// The guard that is off.
    pub without: Option<Guard>,
    /// The property's name; of a `sometimes` row, what is reachable.
    pub property: String,
    /// What it asks for.
    pub kind: RowKind,
    /// The answer over all worlds.
    pub holds: Holds,
    /// The worlds, by name.
    pub worlds: Vec<String>,
    /// The world of the counterexample or, of a `sometimes` row, of the example.
    pub shown_in: Option<String>,
    /// States of all worlds together.
    pub states: usize,
    /// Steps of the shortest counterexample, stem and cycle of a lasso together; of a `sometimes` row, of the
    /// shortest example. 0 if there is none.
    pub trace_len: usize,
    /// Its steps and states, one line each, readable.
    pub trace: Vec<String>,
    /// Wall seconds, exploration included: each row bears an equal share of it.
    pub seconds: f64,
}

/// What to check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Selection {
    /// Check without this guard. `None`: the design as it is meant.
    pub without: Option<Guard>,
    /// Only this property; witnesses are then left out.
    pub property: Option<Property>,
    /// States of one world explored at most.
    pub max_states: usize,
}

impl Default for Selection {
    /// The whole design, up to 20 million states a world.
    fn default() -> Selection {
        Selection { without: None, property: None, max_states: 20_000_000 }
    }
}

/// Checks the design: every property over all default worlds and, if no guard is off, that what must be reachable is.
///
/// # Errors
/// None for the shipped worlds, unless memory numbers run out.
pub fn check(selection: Selection) -> Result<Vec<CheckRow>, ModelError> {
    let named = |error| ModelError::World { world: "default".to_owned(), error };
    let worlds = match selection.without {
        None => default_worlds().map_err(named)?,
        Some(guard) => vec![ablation_world(guard).map_err(named)?],
    };
    check_worlds(worlds, selection)
}

/// [`check`] without one guard, in its [`ablation_world`].
///
/// # Errors
/// As [`check`].
pub fn check_ablation(guard: Guard) -> Result<Vec<CheckRow>, ModelError> {
    check(Selection { without: Some(guard), ..Selection::default() })
}

/// Checks the properties in each of [`beyond_worlds`], one world after the other. They are expected to be violated: the
/// design does not promise to survive what happens there.
///
/// # Errors
/// As [`check`].
pub fn check_beyond() -> Result<Vec<CheckRow>, ModelError> {
    let named = |error| ModelError::World { world: "beyond".to_owned(), error };
    let mut rows = Vec::new();
    for world in beyond_worlds().map_err(named)? {
        let of_world = check_worlds(vec![world], Selection::default())?;
        rows.extend(of_world.into_iter().filter(|row| row.kind != RowKind::Sometimes));
    }
    Ok(rows)
}

/// [`check`] over worlds of the caller's choice. They are checked as they are: `selection.without` only labels the rows.
///
/// # Errors
/// A world that can not be built.
pub fn check_worlds(worlds: Vec<World>, selection: Selection) -> Result<Vec<CheckRow>, ModelError> {
    let wanted = |property: &Property| selection.property.is_none_or(|only| only == *property);
    let names: Vec<String> = worlds.iter().map(|world| world.name.clone()).collect();
    let row = |property: String, kind, holds| CheckRow {
        design: "lease",
        without: selection.without,
        property,
        kind,
        holds,
        worlds: names.clone(),
        shown_in: None,
        states: 0,
        trace_len: 0,
        trace: Vec::new(),
        seconds: 0.0,
    };
    let properties: Vec<Property> = Property::ALL.into_iter().filter(wanted).collect();
    let mut rows: Vec<CheckRow> = properties
        .iter()
        .map(|property| row(property.name().to_owned(), property.kind().into(), Holds::Holds))
        .collect();
    let witnesses = match selection {
        Selection { without: None, property: None, .. } => witness::witnesses(),
        _ => Vec::new(),
    };
    // Not seen in any world yet.
    rows.extend(witnesses.iter().map(|witness| row(witness.name.clone(), RowKind::Sometimes, Holds::Violated)));

    for world in worlds {
        world.validate().map_err(|error| ModelError::World { world: world.name.clone(), error })?;
        let model = LeaseModel::new(world);
        let limits = Limits { max_states: selection.max_states };
        let graph = match selection.property.map(Property::kind) {
            Some(Kind::Always) => explore_states(&model, limits)?,
            // As many threads as there are: they change nothing but the time.
            _ => explore_on(&model, limits, available_parallelism().unwrap_or(NonZeroUsize::MIN))?,
        };
        let share = graph.stats().seconds / rows.len().max(1) as f64;
        for row in &mut rows {
            row.seconds += share;
            row.states += graph.stats().states;
        }
        let (of_properties, of_witnesses) = rows.split_at_mut(properties.len());
        for (property, row) in properties.iter().zip(of_properties) {
            let started = Instant::now();
            check_property(&graph, *property, row)?;
            row.seconds += started.elapsed().as_secs_f64();
        }
        for (witness, row) in witnesses.iter().zip(of_witnesses) {
            let started = Instant::now();
            find_witness(&graph, witness, row)?;
            row.seconds += started.elapsed().as_secs_f64();
        }
    }
    Ok(rows)
}

fn check_property(graph: &Graph<'_, LeaseModel>, property: Property, row: &mut CheckRow) -> Result<(), ModelError> {
    let model = graph.model();
    let bit = properties::bit(property);
    let report = match property.kind() {
        Kind::Always => graph.check_always(property.name(), |state| state.unpack().bad & bit == 0)?,
        Kind::Eventually => {
            let goal = |state: &Packed| properties::all_resolved(&model.world.setup, &state.unpack());
            graph.check_leads_to(property.name(), Trigger::Anywhere, goal)?
        }
    };
    match &report.outcome {
        Outcome::Holds => {}
        Outcome::Cut { .. } => row.holds = row.holds.max(Holds::Cut),
        Outcome::Violated(counterexample) => {
            row.holds = Holds::Violated;
            if row.shown_in.is_none() || counterexample.len() < row.trace_len {
                row.shown_in = Some(model.world.name.clone());
                row.trace_len = counterexample.len();
                row.trace = evidence(model, counterexample);
            }
        }
    }
    Ok(())
}

fn find_witness(graph: &Graph<'_, LeaseModel>, witness: &Witness, row: &mut CheckRow) -> Result<(), ModelError> {
    let model = graph.model();
    if row.holds == Holds::Holds || !(witness.applies)(&model.world) {
        return Ok(());
    }
    let report = graph.check_sometimes(&row.property, |state| (witness.seen)(model, &state.unpack()))?;
    match report.outcome {
        Outcome::Holds => {
            row.holds = Holds::Holds;
            row.shown_in = Some(model.world.name.clone());
            if let Some(example) = report.example {
                row.trace_len = example.len();
                row.trace = lines(model, &example.initial, &example.steps);
            }
        }
        Outcome::Cut { .. } => row.holds = Holds::Cut,
        Outcome::Violated(_) => {}
    }
    Ok(())
}

impl Readable for LeaseModel {
    fn tell(&self, before: &Packed, action: &free::Action) -> String {
        describe(self, &before.unpack(), action)
    }
}
