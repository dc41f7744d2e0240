//! Re-checks evidence against the model alone: no graph, no component, no search. What the checker claims can be refuted
//! here.

use super::liveness::Trigger;
use super::store::class_bit;
use super::trace::{LassoOf, StepOf, TraceOf};
use super::{CLASSES, Fair};

/// What is wrong with a piece of evidence. Steps count from 0; those of a cycle go on from those of the stem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// It starts elsewhere.
    #[error("the run does not start in an initial state within the boundary")]
    NotInitial,
    /// The model does not take this step.
    #[error("step {step} is not a step of the model")]
    NotAStep {
        /// Which.
        step: usize,
    },
    /// The step is one of the model, but out of its boundary.
    #[error("step {step} leaves the boundary")]
    OutsideBoundary {
        /// Which.
        step: usize,
    },
    /// A cycle of steps that change nothing proves nothing.
    #[error("step {step} of the cycle does not change the state")]
    IdleStep {
        /// Which.
        step: usize,
    },
    /// The cycle ends elsewhere.
    #[error("the cycle does not close")]
    Open,
    /// The promise was kept, or never made.
    #[error("no trigger leaves the goal open to the end of the cycle")]
    NotOwed,
    /// The run is not fair, so nobody claims that it must come to the goal.
    #[error("fairness class {class} is enabled all along the cycle and never taken")]
    Unfair {
        /// The class.
        class: u8,
    },
}

/// Is this a run of the model from an initial state?
///
/// # Errors
/// The first flaw found.
pub fn check_trace<M>(model: &M, trace: &TraceOf<M>) -> Result<(), Flaw>
where
    M: Fair<Action: PartialEq>,
{
    let starts = model.init_states().contains(&trace.initial);
    if !starts || !model.within_boundary(&trace.initial) {
        return Err(Flaw::NotInitial);
    }
    let mut before = &trace.initial;
    for (number, step) in trace.steps.iter().enumerate() {
        check_step(model, before, step, number)?;
        before = &step.state;
    }
    Ok(())
}

fn check_step<M>(model: &M, before: &M::State, step: &StepOf<M>, number: usize) -> Result<(), Flaw>
where
    M: Fair<Action: PartialEq>,
{
    let mut actions = Vec::new();
    model.actions(before, &mut actions);
    let real = actions
        .iter()
        .any(|action| *action == step.action && model.next_state(before, action.clone()).as_ref() == Some(&step.state));
    if !real {
        return Err(Flaw::NotAStep { step: number });
    }
    if !model.within_boundary(&step.state) {
        return Err(Flaw::OutsideBoundary { step: number });
    }
    Ok(())
}

/// Is this a fair run of the model on which `trigger` comes to pass and `goal` does not come from then on?
///
/// # Errors
/// The first flaw found.
pub fn check_lasso<M>(
    model: &M,
    lasso: &LassoOf<M>,
    trigger: Trigger<'_, M::State>,
    goal: impl Fn(&M::State) -> bool,
) -> Result<(), Flaw>
where
    M: Fair<Action: PartialEq>,
{
    check_trace(model, &lasso.stem)?;
    let head = lasso.stem.last();
    let mut before = head;
    for (place, step) in lasso.cycle.iter().enumerate() {
        let number = lasso.stem.len() + place;
        check_step(model, before, step, number)?;
        if step.state == *before {
            return Err(Flaw::IdleStep { step: number });
        }
        before = &step.state;
    }
    if before != head {
        return Err(Flaw::Open);
    }

    // Backwards from the head while the goal does not hold: somewhere there the promise must have been triggered.
    let cycle_is_open = !lasso.cycle.iter().any(|step| goal(&step.state));
    let stem: Vec<&M::State> = lasso.stem.states().collect();
    let open_from = stem.iter().rposition(|state| goal(state)).map_or(0, |last| last + 1);
    let is_owed = match trigger {
        Trigger::Start => open_from == 0,
        Trigger::Anywhere => open_from < stem.len(),
        Trigger::When(condition) => {
            let mut open = stem[open_from..].iter().copied();
            let mut cycle = lasso.cycle.iter().map(|step| &step.state);
            open.any(condition) || cycle.any(condition)
        }
    };
    if !cycle_is_open || !is_owed {
        return Err(Flaw::NotOwed);
    }

    let mut served = !enabled(model, head);
    let mut before = head;
    for step in &lasso.cycle {
        served |= class_bit(model.fair_class(before, &step.action)) | !enabled(model, &step.state);
        before = &step.state;
    }
    match (0..CLASSES).find(|&class| served & class_bit(Some(class)) == 0) {
        Some(class) => Err(Flaw::Unfair { class }),
        None => Ok(()),
    }
}

/// The classes with an action that changes `state`, asked of the model.
fn enabled<M: Fair>(model: &M, state: &M::State) -> u64 {
    let mut actions = Vec::new();
    model.actions(state, &mut actions);
    let mut mask = 0;
    for action in actions {
        let class = model.fair_class(state, &action);
        if model.next_state(state, action).is_some_and(|next| next != *state) {
            mask |= class_bit(class);
        }
    }
    mask
}
