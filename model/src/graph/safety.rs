//! Properties of states and of single steps. States are numbered breadth first, so the first hit is a nearest one and
//! its trace a shortest one.

use std::time::Instant;

use stateright::{Expectation, Property};

use super::Fair;
use super::liveness::Trigger;
use super::report::{CheckError, Counterexample, Kind, Outcome, Report, ReportOf};
use super::store::{Graph, StateId};
use super::trace::{Step, StepOf, TraceOf};

/// A named predicate over steps, such as "a stale write changes nothing". Like stateright's `Property`, but a step has
/// an action and two states.
pub struct StepProperty<M: Fair> {
    /// The property as a sentence.
    pub name: &'static str,
    /// False for a step that violates it.
    pub condition: StepCondition<M>,
}

/// Judges a step: the model, the state before, the action, the state after.
pub type StepCondition<M> = fn(
    &M,
    &<M as stateright::Model>::State,
    &<M as stateright::Model>::Action,
    &<M as stateright::Model>::State,
) -> bool;

impl<M: Fair> Graph<'_, M> {
    /// Checks every property that the model itself declares, in its order. `eventually` means here: every fair run from
    /// an initial state comes to a state that has it.
    ///
    /// # Errors
    /// [`CheckError::NotRepeatable`], see [`Graph::trace_to`].
    pub fn check_properties(&self) -> Result<Vec<ReportOf<M>>, CheckError> {
        self.model.properties().iter().map(|property| self.check_declared(property)).collect()
    }

    /// Checks one property that the model declares, by name.
    ///
    /// # Errors
    /// [`CheckError::UnknownProperty`]; [`CheckError::NotRepeatable`], see [`Graph::trace_to`].
    pub fn check_property(&self, name: &str) -> Result<ReportOf<M>, CheckError> {
        let properties = self.model.properties();
        match properties.iter().find(|property| property.name == name) {
            Some(property) => self.check_declared(property),
            None => Err(CheckError::UnknownProperty {
                name: name.to_owned(),
                known: properties.iter().map(|property| property.name).collect(),
            }),
        }
    }

    fn check_declared(&self, property: &Property<M>) -> Result<ReportOf<M>, CheckError> {
        let condition = |state: &M::State| (property.condition)(self.model, state);
        match property.expectation {
            Expectation::Always => self.check_always(property.name, condition),
            Expectation::Sometimes => self.check_sometimes(property.name, condition),
            Expectation::Eventually => self.check_leads_to(property.name, Trigger::Start, condition),
        }
    }

    /// Is `condition` true in every reachable state? A violation comes with a shortest run to it.
    ///
    /// # Errors
    /// [`CheckError::NotRepeatable`], see [`Graph::trace_to`].
    pub fn check_always(&self, name: &str, condition: impl Fn(&M::State) -> bool) -> Result<ReportOf<M>, CheckError> {
        let started = Instant::now();
        let outcome = match self.first(|state| !condition(state)) {
            Some(id) => Outcome::Violated(Counterexample::Run(self.trace_to(id)?)),
            None => self.nothing_found(),
        };
        Ok(self.report(name, Kind::Always, outcome, started))
    }

    /// Is `condition` true in some reachable state? If so, the report has a shortest run to one.
    ///
    /// # Errors
    /// [`CheckError::NotRepeatable`], see [`Graph::trace_to`].
    pub fn check_sometimes(
        &self,
        name: &str,
        condition: impl Fn(&M::State) -> bool,
    ) -> Result<ReportOf<M>, CheckError> {
        let started = Instant::now();
        let example: Option<TraceOf<M>> = match self.first(condition) {
            Some(id) => Some(self.trace_to(id)?),
            None => None,
        };
        let outcome = match (&example, self.nothing_found()) {
            (Some(_), _) => Outcome::Holds,
            (None, Outcome::Holds) => Outcome::Violated(Counterexample::NoState),
            (None, cut) => cut,
        };
        let report = self.report(name, Kind::Sometimes, outcome, started);
        Ok(Report { example, ..report })
    }

    /// Is each of `properties` true of every step of the model, those that change nothing included? Steps out of the
    /// boundary are not looked at. All are checked in one pass, because the steps must be computed again.
    ///
    /// # Errors
    /// [`CheckError::NotRepeatable`], see [`Graph::trace_to`].
    pub fn check_steps(&self, properties: &[StepProperty<M>]) -> Result<Vec<ReportOf<M>>, CheckError> {
        let started = Instant::now();
        let mut violations: Vec<Option<(StateId, StepOf<M>)>> = properties.iter().map(|_| None).collect();
        let mut open = properties.len();
        let mut actions = Vec::new();
        for from in 0..self.expanded {
            if open == 0 {
                break;
            }
            let before = self.state(from);
            self.model.actions(before, &mut actions);
            for action in actions.drain(..) {
                let Some(after) = self.model.next_state(before, action.clone()) else {
                    continue;
                };
                if !self.model.within_boundary(&after) {
                    continue;
                }
                for (property, violation) in properties.iter().zip(&mut violations) {
                    if violation.is_none() && !(property.condition)(self.model, before, &action, &after) {
                        let step = Step { action: action.clone(), state: after.clone() };
                        *violation = Some((from, step));
                        open -= 1;
                    }
                }
            }
        }
        let mut reports = Vec::with_capacity(properties.len());
        for (property, violation) in properties.iter().zip(violations) {
            let outcome = match violation {
                Some((from, step)) => {
                    let mut trace = self.trace_to(from)?;
                    trace.steps.push(step);
                    Outcome::Violated(Counterexample::Run(trace))
                }
                None => self.nothing_found(),
            };
            reports.push(self.report(property.name, Kind::EveryStep, outcome, started));
        }
        Ok(reports)
    }

    fn first(&self, condition: impl Fn(&M::State) -> bool) -> Option<StateId> {
        let place = self.states.iter().position(condition)?;
        Some(place as StateId)
    }

    /// The answer when no violation was found: a proof only if there is nothing left to look at.
    pub(super) fn nothing_found(&self) -> Outcome<M::State, M::Action> {
        if self.stats.cut { self.cut() } else { Outcome::Holds }
    }

    pub(super) fn cut(&self) -> Outcome<M::State, M::Action> {
        Outcome::Cut { states: self.states.len() }
    }

    pub(super) fn report(
        &self,
        name: &str,
        kind: Kind,
        outcome: Outcome<M::State, M::Action>,
        started: Instant,
    ) -> ReportOf<M> {
        Report {
            name: name.to_owned(),
            kind,
            outcome,
            example: None,
            stats: self.stats,
            seconds: started.elapsed().as_secs_f64(),
        }
    }
}
