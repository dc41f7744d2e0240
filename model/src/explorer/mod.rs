//! A free world for stateright's Explorer, a page on which a person walks through it step by step.
//!
//! The Explorer shows an action without the state it is taken in, but most of what there is to say of a step (which
//! write, which epoch) stands in the state. So an action here carries its words, found when it is offered. The checkers
//! keep the bare [`LeaseModel`]: they have no use for words and would pay for them at every step.

mod picture;

use std::fmt;
use std::net::SocketAddr;

use leaseproof_rules::Guard;
use stateright::{Model, Path, Property};

use crate::describe::describe;
use crate::free::{self, LeaseModel};
use crate::packed::Packed;
use crate::properties;
use crate::world::World;

/// A step and what it is called in the state in which it is offered.
#[derive(Clone, PartialEq)]
pub struct Spoken {
    /// The step.
    pub action: free::Action,
    /// Who does what, as [`describe`] has it: `w1: claim t1 epoch 0`.
    pub words: String,
}

impl fmt::Debug for Spoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

/// [`LeaseModel`], with actions in words. It has the same states, steps and properties.
#[derive(Clone, Debug)]
pub struct ExplainedLease(LeaseModel);

impl ExplainedLease {
    /// The model of a world.
    pub fn new(world: World) -> ExplainedLease {
        ExplainedLease(LeaseModel::new(world))
    }

    /// The world's name, and what is switched off in it.
    fn title(&self) -> String {
        let world = &self.0.world;
        let off = Guard::ALL.into_iter().filter(|guard| !world.setup.guards.has(*guard));
        off.fold(world.name.clone(), |title, guard| format!("{title}, without {guard}"))
    }
}

impl AsRef<World> for ExplainedLease {
    fn as_ref(&self) -> &World {
        &self.0.world
    }
}

impl Model for ExplainedLease {
    type State = Packed;
    type Action = Spoken;

    fn init_states(&self) -> Vec<Packed> {
        self.0.init_states()
    }

    fn actions(&self, state: &Packed, out: &mut Vec<Spoken>) {
        let mut actions = Vec::new();
        self.0.actions(state, &mut actions);
        let state = state.unpack();
        out.extend(actions.into_iter().map(|action| Spoken { action, words: describe(&self.0, &state, &action) }));
    }

    fn next_state(&self, state: &Packed, spoken: Spoken) -> Option<Packed> {
        self.0.next_state(state, spoken.action)
    }

    /// The words alone.
    fn format_action(&self, spoken: &Spoken) -> String {
        spoken.words.clone()
    }

    /// What the step changes, one line each. The whole state is shown beside it.
    fn format_step(&self, before: &Packed, spoken: Spoken) -> Option<String> {
        let after = self.next_state(before, spoken)?;
        Some(changes(before, &after))
    }

    /// The steps so far, one lane a node.
    fn as_svg(&self, path: Path<Packed, Spoken>) -> Option<String> {
        let steps: Vec<String> = path.into_actions().into_iter().map(|spoken| spoken.words).collect();
        Some(picture::lanes(&self.title(), self.0.world.setup.shape.runs, &steps))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::declared()
    }
}

/// The lines of a printed state that a step has changed; a line that it has taken away is told by its first words.
fn changes(before: &Packed, after: &Packed) -> String {
    let (before, after) = (format!("{before:#?}"), format!("{after:#?}"));
    let who = |line: &str| line.split(": ").next().unwrap_or(line).to_owned();
    let mut lines: Vec<String> =
        after.lines().filter(|line| !before.lines().any(|old| old == *line)).map(str::to_owned).collect();
    let gone = before.lines().map(who).filter(|name| !after.lines().any(|line| who(line) == *name));
    lines.extend(gone.map(|name| format!("{name}: nothing any more")));
    match lines.is_empty() {
        true => "nothing changes".to_owned(),
        false => lines.join("\n"),
    }
}

/// Serves stateright's Explorer of a world, and does not return. States are computed when they are looked at, or all of
/// them when the page asks for it.
///
/// # Panics
/// The address can not be listened on, which stateright does not tell in any other way: try it before.
pub fn serve(world: World, address: SocketAddr) {
    use stateright::Checker;
    let _ = ExplainedLease::new(world).checker().serve(address).is_done();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(model: &ExplainedLease, steps: &[&str]) -> Packed {
        let mut state = model.init_states()[0];
        for words in steps {
            let mut offered = Vec::new();
            model.actions(&state, &mut offered);
            let next = offered.iter().find(|spoken| spoken.words == *words);
            let next = next.unwrap_or_else(|| panic!("{words:?} is not among {offered:?}"));
            state = model.next_state(&state, next.clone()).expect("every step leads somewhere");
        }
        state
    }

    fn model() -> ExplainedLease {
        ExplainedLease::new(World::lease(1, 2).expect("one task and two executors fit"))
    }

    #[test]
    fn a_step_is_told_by_what_it_changes() {
        let model = model();
        let steps = ["w1: reads t1 as a candidate", "w1: claim t1 epoch 0", "database: lease of t1 ends"];
        let states: Vec<Packed> = (0..=steps.len()).map(|length| walk(&model, &steps[..length])).collect();
        assert_eq!(changes(&states[0], &states[1]), "executor w1: Claiming t1 epoch 0");
        assert_eq!(changes(&states[1], &states[2]), "task t1: RUNNING epoch 1\nexecutor w1: Finishing t1 epoch 1");
        assert_eq!(changes(&states[2], &states[3]), "task t1: RUNNING epoch 1, lease ended");
        assert_eq!(changes(&states[3], &states[3]), "nothing changes");
    }

    #[test]
    fn what_is_forgotten_is_told_too() {
        let model = model();
        let steps = ["w1: reads t1 as a candidate", "w1: claim t1 epoch 0", "database: lease of t1 ends"];
        let read = walk(&model, &[&steps[..], &["sweeper: reads t1"]].concat());
        let wrote = walk(&model, &[&steps[..], &["sweeper: reads t1", "sweeper: requeue t1"]].concat());
        let told = "task t1: PENDING epoch 2, failed 0×, lost 1×\nsweeper: nothing any more";
        assert_eq!(changes(&read, &wrote), told);
    }

    #[test]
    fn words_change_neither_states_nor_answers() {
        let world = World::lease(1, 2).expect("one task and two executors fit");
        let bare = crate::graph::explore(&LeaseModel::new(world.clone()), crate::graph::Limits::default())
            .map(|graph| graph.stats().states);
        use stateright::Checker;
        let checker = ExplainedLease::new(world).checker().spawn_bfs().join();
        checker.assert_properties();
        assert_eq!(bare, Ok(checker.unique_state_count()));
    }
}
