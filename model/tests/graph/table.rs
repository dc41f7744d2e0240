//! A model given as a table of steps, and random ones.

use leaseproof_model::graph::{Fair, Trigger};
use proptest::prelude::*;
use stateright::{Model, Property};

/// A step: where to, and the fairness class.
pub type Row = (u8, Option<u8>);

/// A model of at most 64 states. Actions are places in a state's row.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub initial: Vec<u8>,
    pub rows: Vec<Vec<Row>>,
    /// States where the goal holds, one bit each.
    pub goal: u64,
    /// States that trigger the promise, for [`Trigger::When`].
    pub trigger: u64,
    /// States outside the boundary.
    pub outside: u64,
}

impl Table {
    /// A table with initial state 0.
    pub fn new(rows: &[&[Row]]) -> Self {
        Table { initial: vec![0], rows: rows.iter().map(|row| row.to_vec()).collect(), ..Table::default() }
    }

    pub fn with_goal(mut self, states: &[u8]) -> Self {
        self.goal = bits(states);
        self
    }

    pub fn with_trigger(mut self, states: &[u8]) -> Self {
        self.trigger = bits(states);
        self
    }

    pub fn with_outside(mut self, states: &[u8]) -> Self {
        self.outside = bits(states);
        self
    }

    pub fn is_goal(&self, state: u8) -> bool {
        self.goal >> state & 1 == 1
    }

    pub fn triggers(&self, state: u8) -> bool {
        self.trigger >> state & 1 == 1
    }
}

fn bits(states: &[u8]) -> u64 {
    states.iter().fold(0, |mask, state| mask | 1 << state)
}

impl Model for Table {
    type State = u8;
    type Action = usize;

    fn init_states(&self) -> Vec<u8> {
        self.initial.clone()
    }

    fn actions(&self, &state: &u8, actions: &mut Vec<usize>) {
        actions.extend(0..self.rows[usize::from(state)].len());
    }

    fn next_state(&self, &state: &u8, action: usize) -> Option<u8> {
        Some(self.rows[usize::from(state)][action].0)
    }

    fn within_boundary(&self, &state: &u8) -> bool {
        self.outside >> state & 1 == 0
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no state is the goal", |model, &state| !model.is_goal(state)),
            Property::sometimes("some state is the goal", |model, &state| model.is_goal(state)),
            Property::eventually("the goal is reached", |model, &state| model.is_goal(state)),
        ]
    }
}

impl Fair for Table {
    fn fair_class(&self, &state: &u8, &action: &usize) -> Option<u8> {
        self.rows[usize::from(state)][action].1
    }
}

/// The three triggers, by name because they cannot be made at random themselves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    Start,
    Anywhere,
    Marked,
}

impl When {
    /// Calls `check` with this trigger of `table`.
    pub fn with<T>(self, table: &Table, check: impl FnOnce(Trigger<'_, u8>) -> T) -> T {
        let marked = |&state: &u8| table.triggers(state);
        match self {
            When::Start => check(Trigger::Start),
            When::Anywhere => check(Trigger::Anywhere),
            When::Marked => check(Trigger::When(&marked)),
        }
    }
}

pub fn any_trigger() -> impl Strategy<Value = When> {
    prop_oneof![Just(When::Start), Just(When::Anywhere), Just(When::Marked)]
}

/// Tables of 1 to `most` states with up to three classes, self-loops and parallel steps. Goals are rare enough to leave
/// cycles without one. Half of the tables are sparse and mostly stutter; half have two to four steps in each state, and
/// what decides is whether their cycles are fair.
pub fn any_table(most: u8) -> impl Strategy<Value = Table> {
    prop_oneof![table_with(most, 0, 1), table_with(most, 2, most)]
}

/// At least `steps` steps a state, and at least `states` states.
fn table_with(most: u8, steps: usize, states: u8) -> impl Strategy<Value = Table> {
    let class = prop_oneof![1 => Just(None), 3 => (0_u8..3).prop_map(Some)];
    let row = proptest::collection::vec((0..most, class), steps..=steps + 2);
    let rare = (any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(a, b, c)| a & (b | c));
    (
        proptest::collection::vec(row, usize::from(states)..=usize::from(most)),
        proptest::collection::vec(0..most, 1..3),
        prop_oneof![rare, (0..most).prop_map(|state| 1 << state)],
        any::<u64>(),
    )
        .prop_map(|(mut rows, mut initial, goal, trigger)| {
            let count = rows.len() as u8;
            for (to, _) in rows.iter_mut().flatten() {
                *to %= count;
            }
            for state in &mut initial {
                *state %= count;
            }
            initial.dedup();
            Table { initial, rows, goal, trigger, outside: 0 }
        })
}
