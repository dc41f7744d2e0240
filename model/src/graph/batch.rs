//! The work of a search cut into batches: the steps of some states, taken in one go, and by any thread.

use super::intern::Successor;
use super::store::{StateId, class_bit};
use super::{CLASSES, Fair};

/// States expanded together.
pub(super) const BATCH: usize = 256;

/// What the steps of one state come to.
#[derive(Default)]
pub(super) struct Row {
    /// Where its successors end in [`Batch::successors`].
    pub(super) end: usize,
    pub(super) self_loops: usize,
    pub(super) exit_steps: usize,
    pub(super) exit_classes: u64,
    /// A class that is out of range.
    pub(super) bad_class: Option<u8>,
}

/// Consecutive states and their steps.
pub(super) struct Batch<M: Fair> {
    pub(super) successors: Vec<Successor<M::State>>,
    /// By state.
    pub(super) rows: Vec<Row>,
    /// Their numbers, as far as they were known when looked up.
    pub(super) known: Vec<StateId>,
    actions: Vec<M::Action>,
}

impl<M: Fair> Default for Batch<M> {
    fn default() -> Self {
        Batch { successors: Vec::new(), rows: Vec::new(), known: Vec::new(), actions: Vec::new() }
    }
}

impl<M: Fair> Batch<M> {
    /// Takes all steps of these states. What the batch held before is forgotten.
    pub(super) fn expand(&mut self, model: &M, states: &[M::State]) {
        let Batch { successors, rows, actions, .. } = self;
        successors.clear();
        rows.clear();
        for from in states {
            let mut row = Row::default();
            model.successors(from, actions, |class, state| {
                if let Some(class) = class
                    && class >= CLASSES
                {
                    row.bad_class.get_or_insert(class);
                }
                if state == *from {
                    row.self_loops += 1;
                } else if !model.within_boundary(&state) {
                    row.exit_steps += 1;
                    row.exit_classes |= class_bit(class);
                } else {
                    successors.push(Successor::new(class, state));
                }
            });
            row.end = successors.len();
            rows.push(row);
        }
    }
}
