//! What must be reachable, so that no property holds for want of a case.

use leaseproof_rules::{Answer, Decision, Reason, Status};

use crate::coverage::Kind;
use crate::executor;
use crate::free::LeaseModel;
use crate::properties;
use crate::state::State;
use crate::sweeper;
use crate::world::World;

/// The name of the witness that two handlers may work on one task, see [`properties::concurrent_execution`].
pub const CONCURRENT_EXECUTION: &str = "concurrent_execution_is_reachable";

/// Whether a state of a world shows something.
pub type Seen = Box<dyn Fn(&LeaseModel, &State) -> bool>;

/// Something that must be reachable.
pub struct Witness {
    /// Its name.
    pub name: String,
    /// Whether a world can show it at all; where not, no state of it is looked at.
    pub applies: Box<dyn Fn(&World) -> bool>,
    /// The states that show it.
    pub seen: Seen,
}

fn witness(name: impl Into<String>, seen: impl Fn(&LeaseModel, &State) -> bool + 'static) -> Witness {
    Witness { name: name.into(), applies: Box::new(|_| true), seen: Box::new(seen) }
}

/// The decisions, as they are called; what they carry aside.
const DECISIONS: [&str; 6] = [
    "to wait",
    "to let it run again",
    "to ask the third party",
    "to hand it to a person",
    "to end it in FAIL",
    "to undo it",
];

const fn number_of(decision: &Decision) -> usize {
    match decision {
        Decision::Wait => 0,
        Decision::Requeue { .. } => 1,
        Decision::Ask => 2,
        Decision::Escalate(_) => 3,
        Decision::Fail(_) => 4,
        Decision::Compensate { .. } => 5,
    }
}

/// What must be reachable somewhere in the default worlds, so that nothing holds for want of a case: every status,
/// reason, decision and fault.
pub fn witnesses() -> Vec<Witness> {
    let mut all = vec![
        witness(CONCURRENT_EXECUTION, |model, state| properties::concurrent_execution(&model.world.setup, state)),
        witness("some effect has happened in part", |model, state| {
            properties::some_effect_is_partial(&model.world.setup, state)
        }),
    ];
    all.extend(Status::ALL.map(|status| {
        witness(format!("some task is {status}"), move |model, state| {
            properties::some_task_is(&model.world.setup, state, status)
        })
    }));
    all.extend(Reason::ALL.map(|reason| {
        witness(format!("some task is handed over because of {reason}"), move |model, state| {
            properties::some_task_because(&model.world.setup, state, reason)
        })
    }));
    for (number, words) in DECISIONS.into_iter().enumerate() {
        all.push(witness(format!("some decision is {words}"), move |model, state| {
            decides(model, state, &|decision| number_of(decision) == number)
        }));
    }
    for kind in Kind::ALL.into_iter().filter(|kind| kind.is_fault()) {
        all.push(Witness {
            applies: Box::new(move |world| can_show(world, kind)),
            ..witness(format!("some step is “{}”", kind.words()), move |model, state| {
                model.kinds_in(state).any(|of_step| of_step == kind)
            })
        });
    }
    all
}

/// Whether somebody who has read, or whose run has failed, decides like this, on what is known or after an answer that
/// does not come.
fn decides(model: &LeaseModel, state: &State, like: &dyn Fn(&Decision) -> bool) -> bool {
    let setup = &model.world.setup;
    let on = |task: usize, mut observation: leaseproof_rules::Observation| {
        let decision = setup.decide(task, &observation);
        let mut unanswered = || {
            let unknown = observation.unknown.as_mut()?;
            unknown.answer = Some(Answer::Unavailable);
            Some(setup.decide(task, &observation))
        };
        like(&decision) || (decision == Decision::Ask && unanswered().is_some_and(|decision| like(&decision)))
    };
    let sweepers = 0..setup.shape.extras.sweepers();
    let mut read = sweepers.flat_map(|by| (0..setup.shape.tasks).map(move |task| (by, task)));
    let failed = |slot: usize| {
        let task = usize::from(state.runs[slot].task);
        executor::observe(setup, state, slot).is_some_and(|seen| on(task, seen))
    };
    read.any(|(by, task)| {
        sweeper::observe(setup, state, task, state.memory(by, task)).is_some_and(|seen| on(task, seen))
    }) || (0..setup.shape.runs).any(failed)
}

/// Whether a fault can happen in a world: by what the world is made of.
fn can_show(world: &World, kind: Kind) -> bool {
    let shape = &world.setup.shape;
    let calls = world.setup.effects.iter().any(Option::is_some);
    match kind {
        Kind::Start => shape.extras.boots,
        Kind::Deploy => world.faults.deploy,
        Kind::Copy | Kind::CopyArrives => shape.extras.copies,
        Kind::ClockBack => world.faults.clock_back,
        Kind::CallLost | Kind::ArrivesUnheard | Kind::ArrivesLate => calls,
        Kind::ArrivesInPart => calls && shape.parts > 1,
        Kind::NotSent => calls && world.faults.not_sent,
        Kind::ArrivesTwice => calls && world.faults.calls_twice,
        _ => true,
    }
}
