//! Which steps the checks have really seen: every kind of step, in every design, counted over the worlds in which the
//! design is checked. What never happens there is not checked, however many properties hold.

mod kind;
mod kind_of;

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

pub use kind::Kind;

use crate::check::{ModelError, Selection, default_worlds};
use crate::designs::{CommitRunning, Design, Older, SingleTransaction};
use crate::free::LeaseModel;
use crate::graph::{ExploreError, Fair, Limits, explore_states};
use crate::world::World;

/// How often steps of one kind can be taken in a design.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    /// The kind of step.
    pub kind: Kind,
    /// Steps of this kind, over all states of all worlds.
    pub steps: u64,
    /// Why there can be none in this design; `None`: there must be some.
    pub absent: Option<&'static str>,
}

impl Cell {
    /// Whether it is as it must be: it happens, or is said why it can not.
    pub const fn is_as_said(&self) -> bool {
        (self.steps > 0) != self.absent.is_some()
    }
}

/// What happens in the worlds of one design.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coverage {
    /// Which design.
    pub design: Design,
    /// One for each kind, in the order of [`Kind::ALL`].
    pub cells: Vec<Cell>,
    /// How many worlds.
    pub worlds: usize,
    /// States of all worlds together.
    pub states: usize,
}

/// A model whose steps are told apart by kind.
pub(crate) trait Kinds: Fair {
    /// The kind of a step from this state.
    fn kind(&self, state: &Self::State, action: &Self::Action) -> Kind;

    /// Tells `each` the kind of every step from `state`. To be overridden only for speed.
    fn kinds(&self, state: &Self::State, scratch: &mut Vec<Self::Action>, mut each: impl FnMut(Kind)) {
        self.actions(state, scratch);
        for action in scratch.drain(..) {
            each(self.kind(state, &action));
        }
    }
}

/// Counts the steps of a design in the worlds in which it is checked.
///
/// # Errors
/// A world that can not be built, or a search that can not begin.
pub fn coverage(design: Design) -> Result<Coverage, ModelError> {
    match design {
        Design::CommitRunning => of_older::<CommitRunning>(),
        Design::SingleTransaction => of_older::<SingleTransaction>(),
        Design::Lease => {
            let named = |error| ModelError::World { world: "default".to_owned(), error };
            coverage_of_worlds(default_worlds().map_err(named)?)
        }
    }
}

/// [`coverage`] of the lease design in worlds of the caller's choice.
///
/// # Errors
/// As [`coverage`].
pub fn coverage_of_worlds(worlds: Vec<World>) -> Result<Coverage, ModelError> {
    for world in &worlds {
        world.validate().map_err(|error| ModelError::World { world: world.name.clone(), error })?;
    }
    let models: Vec<LeaseModel> = worlds.into_iter().map(LeaseModel::new).collect();
    Ok(count(Design::Lease, &models)?)
}

fn of_older<M>() -> Result<Coverage, ModelError>
where
    M: Older + Kinds + Sync,
{
    let models: Vec<M> = M::cases().into_iter().flat_map(|case| case.worlds).collect();
    Ok(count(M::DESIGN, &models)?)
}

/// Steps by kind, and how many states were looked at.
type Counts = ([u64; Kind::ALL.len()], usize);

/// The worlds one after the other, as many at once as there are threads: sums do not depend on who adds.
fn count<M: Kinds + Sync>(design: Design, models: &[M]) -> Result<Coverage, ExploreError> {
    let next = AtomicUsize::new(0);
    let total = Mutex::new(Ok(([0; Kind::ALL.len()], 0)));
    let work = || {
        while let Some(model) = models.get(next.fetch_add(1, Ordering::Relaxed)) {
            let counted = count_in(model);
            let mut total = total.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            match (&mut *total, counted) {
                (Ok((steps, states)), Ok((more, of_world))) => {
                    steps.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
                    *states += of_world;
                }
                (Ok(_), Err(error)) => *total = Err(error),
                (Err(_), _) => return,
            }
        }
    };
    let threads = available_parallelism().map_or(1, NonZeroUsize::get).min(models.len());
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    let (steps, states) = total.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())?;
    let cells = Kind::ALL.iter().zip(steps);
    let cells = cells.map(|(&kind, steps)| Cell { kind, steps, absent: kind.absent(design) }).collect();
    Ok(Coverage { design, cells, worlds: models.len(), states })
}

fn count_in<M: Kinds>(model: &M) -> Result<Counts, ExploreError> {
    let graph = explore_states(model, Limits { max_states: Selection::default().max_states })?;
    let mut steps = [0; Kind::ALL.len()];
    let mut scratch = Vec::new();
    for state in graph.states() {
        model.kinds(state, &mut scratch, |kind| steps[kind as usize] += 1);
    }
    Ok((steps, graph.states().len()))
}
