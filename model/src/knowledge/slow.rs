//! Dead or slow: two runs that leave the same row and want opposite decisions (U1).
//!
//! Nothing in it speaks of a duration. In both runs the owner says its last word and then one thing happens: the lease
//! ends. Between the two lies whatever time the lease is long, for the dead owner, who says nothing in it, and for the
//! slow one, who stands still in it; since a pause may be of any length, such a slow owner exists for every lease
//! length. So no length makes the row tell them apart: a shorter one makes the second run likelier, a longer one makes
//! the first wait longer, and that is all it can do.

use leaseproof_rules::{Decision, Observation, Property, Signal, Verb};

use super::class::class_of;
use super::judge::{Finding, From, judge, run_text};
use crate::check::ModelError;
use crate::free::{Action, Fate, LeaseModel};
use crate::graph::{Graph, Limits, explore};
use crate::packed::Packed;
use crate::state::{Run, State};
use crate::sweeper;
use crate::world::{Faults, World};

/// One of the two.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    /// A shortest run to it, in words.
    pub run: Vec<String>,
    /// The same run.
    pub actions: Vec<Action>,
    /// Where it leads.
    pub state: State,
    /// What is found of waiting from here on.
    pub waiting: Finding,
    /// What is found of running again from here on.
    pub running_again: Finding,
}

impl Owner {
    /// Waiting is safe: the owner will bring the task to its end.
    pub fn will_finish(&self) -> bool {
        self.waiting.is_safe()
    }

    /// Waiting leaves the task unresolved for ever.
    pub fn never_finishes(&self) -> bool {
        matches!(&self.waiting, Finding::Refuted(against) if against.property == Property::EventuallyResolved)
    }
}

/// The two runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlowOrDead {
    /// What the sweeper sees in both.
    pub class: Observation,
    /// The owner is gone: only running again brings the task to an end.
    pub dead: Owner,
    /// The owner has done its work and stands still before it says so: running again takes its claim for nothing.
    pub slow: Owner,
}

const RUN_AGAIN: Decision = Decision::Requeue { delay_ms: 0, learnt: None };

/// Finds the two shortest runs in the small world without outside calls, for this lease length.
///
/// # Errors
/// None in a released build.
pub fn slow_or_dead(lease_ms: u64) -> Result<Option<SlowOrDead>, ModelError> {
    let named = |error| ModelError::World { world: "slow or dead".to_owned(), error };
    let mut world = World::lease(1, 1).map_err(named)?;
    // Lost messages would make shorter runs to a claim that nobody holds; the story is that of a death.
    world.faults = Faults { lost_request: false, lost_reply: false, ..world.faults };
    world.setup.policy.lease_ms = lease_ms;
    let class = Observation {
        signal: Signal::LeaseExpired,
        running_ms: 0,
        attempts: 0,
        interruptions: 0,
        unknown: None,
        progress: None,
    };
    let whole = From::beginning(world.clone());
    let graph = explore(&whole, Limits::default())?;
    // A slow owner finishes only if it is not struck afterwards: faults are over for both.
    let looks_so = |id: &u32| {
        let state = graph.state(*id).unpack();
        state.calm && class_of(&world.setup, &state, 0) == Some(class)
    };
    let (mut dead, mut slow) = (None, None);
    for id in graph.ids().filter(looks_so) {
        let lives = graph.state(id).unpack().is_renewed(0);
        if !lives && dead.is_none() {
            dead = Some(owner(&graph, &world, &class, id)?);
        } else if lives && slow.is_none() {
            slow = Some(owner(&graph, &world, &class, id)?).filter(Owner::will_finish);
        }
    }
    Ok(dead.zip(slow).map(|(dead, slow)| SlowOrDead { class, dead, slow }))
}

fn owner(graph: &Graph<'_, From>, world: &World, class: &Observation, id: u32) -> Result<Owner, ModelError> {
    let run = graph.trace_to(id)?;
    let start: Packed = *graph.state(id);
    let found = |decision| {
        let mut world = world.clone();
        world.setup.strategy = world.setup.strategy.deviating(0, *class, decision);
        judge(&From { model: LeaseModel::new(world), starts: vec![start] })
    };
    Ok(Owner {
        run: run_text(&graph.model().model, &run),
        actions: run.steps.iter().map(|step| step.action).collect(),
        state: start.unpack(),
        waiting: found(Decision::Wait)?,
        running_again: found(RUN_AGAIN)?,
    })
}

/// Whether running again, decided in this state, takes the claim from a run that lives and holds it: a false reclaim.
pub fn takes_from_the_living(world: &World, state: &State) -> bool {
    let model = LeaseModel::new(world.clone());
    let mut after = *state;
    model.step(&mut after, Action::Sweep { by: 0, task: 0 });
    let writes = Action::SweeperWrites { by: 0, task: 0, fate: Fate::Fine };
    let requeues = match sweeper::next(&world.setup, &after, 0, &after.seen[0]) {
        sweeper::Next::Write(request) => request.verb == Verb::Requeue,
        _ => false,
    };
    model.step(&mut after, writes);
    let lives = |run: &Run| run.phase.is_executing() && run.epoch == state.tasks[0].epoch;
    requeues && after.runs.iter().any(lives) && after.tasks[0].epoch != state.tasks[0].epoch
}
