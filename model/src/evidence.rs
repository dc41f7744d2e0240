//! Counterexamples in words.

use std::fmt::Debug;

use crate::graph::{Counterexample, Fair, Step};

/// A model whose steps can be told.
pub trait Readable: Fair<State: Debug> {
    /// Who does what, e.g. `w1: crashes`. `before` is where the step starts.
    fn tell(&self, before: &Self::State, action: &Self::Action) -> String;
}

/// Each step in words, with the state it leads to. `before` is where they start.
pub fn lines<M: Readable>(model: &M, before: &M::State, steps: &[Step<M::State, M::Action>]) -> Vec<String> {
    let befores = std::iter::once(before).chain(steps.iter().map(|step| &step.state));
    let pairs = befores.zip(steps);
    pairs.map(|(before, step)| format!("{} ⇒ {:?}", model.tell(before, &step.action), step.state)).collect()
}

/// A whole counterexample, with one line more where the part begins that goes on for ever.
pub fn evidence<M: Readable>(model: &M, counterexample: &Counterexample<M::State, M::Action>) -> Vec<String> {
    match counterexample {
        Counterexample::NoState => Vec::new(),
        Counterexample::Run(run) => lines(model, &run.initial, &run.steps),
        Counterexample::Lasso(lasso) => {
            let mut all = lines(model, &lasso.stem.initial, &lasso.stem.steps);
            if lasso.stutters() {
                all.push("from here on nothing that must happen can happen".to_owned());
            } else {
                all.push("from here on, for ever:".to_owned());
                all.extend(lines(model, lasso.stem.last(), &lasso.cycle));
            }
            all
        }
    }
}
