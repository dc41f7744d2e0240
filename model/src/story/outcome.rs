//! All endings of a story.

use std::collections::{BTreeMap, BTreeSet};

use leaseproof_rules::Guards;
use leaseproof_scenarios::{Met, Node, Story, Verdict};
use stateright::Model;

use super::live::{Live, PackedLive};
use super::play::{Play, Step};
use super::script::Script;
use crate::graph::{CheckError, ExploreError, Fair, Limits, TraceOf, explore};
use crate::properties;
use crate::trace::Trace;

/// A story that the model can not play.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoryModelError {
    /// More of something than the state has room for.
    #[error("{count} {what}; the model plays stories of at most {most}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        count: usize,
        /// Accepted.
        most: usize,
    },
    /// The durations have too small a common measure.
    #[error(
        "the durations of the story measure in ticks of {tick_ms} ms, of which the horizon of {horizon_ms} ms has too many: use rounder durations"
    )]
    TooFine {
        /// The tick.
        tick_ms: u64,
        /// The horizon.
        horizon_ms: u64,
    },
    /// The search could not begin.
    #[error(transparent)]
    Explore(#[from] ExploreError),
    /// A trace could not be rebuilt.
    #[error(transparent)]
    Check(#[from] CheckError),
}

/// How a story can end, over all its interleavings.
#[derive(Clone, PartialEq, Debug)]
pub struct StoryOutcome {
    /// Every verdict that some interleaving ends in, each with a shortest one.
    pub verdicts: BTreeMap<Verdict, Trace>,
    /// The faults of the story that strike in some interleaving, by their indices.
    pub struck: BTreeSet<usize>,
    /// States explored.
    pub states: usize,
    /// How often the effect of a task happens, at most, over tasks and endings. 3 stands for 3 or more. 0 if no task has
    /// one.
    pub effects_max: u32,
    /// How often the effect of a task that has one happens, at least. Runs that end early, in a violation, do not count.
    pub effects_min: u32,
    /// How many late results are kept, at least.
    pub late_results_min: u32,
    /// How many late results are kept, at most.
    pub late_results_max: u32,
    /// How often a task is claimed, at most.
    pub runs_max: u32,
    /// From the first fault, or from the start if there is none, until every task is resolved, in ms: the longest over all
    /// endings but violations. `None` if some of these leave a task unresolved, or there are none.
    pub recovered_within_ms: Option<u64>,
    /// The search was cut, at its limit of states or where a task ran out of epochs: there may be other verdicts.
    pub cut: bool,
    /// Wall seconds.
    pub seconds: f64,
}

impl StoryOutcome {
    /// What its story's bounds are held against: the worst over all interleavings.
    pub fn met(&self) -> Met {
        Met {
            recovered_ms: self.recovered_within_ms,
            effects_max: self.effects_max,
            effects_min: self.effects_min,
            late_results: self.late_results_min,
            runs_max: self.runs_max,
        }
    }

    /// What is not as the story's file expects it, over all interleavings.
    pub fn complaints(&self, story: &Story) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.cut {
            wrong.push("the search was cut: there may be other endings".to_owned());
        }
        let expected = &story.expect.verdicts;
        if !self.verdicts.keys().eq(expected.iter()) {
            let list = |verdicts: Vec<String>| verdicts.join(", ");
            wrong.push(format!(
                "the model ends in {}; expected is exactly {}",
                list(self.verdicts.keys().map(ToString::to_string).collect()),
                list(expected.iter().map(ToString::to_string).collect())
            ));
        }
        wrong.extend(story.unstruck(&self.struck));
        // Of a story that always ends in a violation there is nothing to measure.
        if self.verdicts.keys().any(|verdict| !matches!(verdict, Verdict::Violated(_))) {
            wrong.extend(self.met().complaints(&story.expect));
        }
        wrong
    }
}

/// States of a story that are explored at most.
const MAX_STATES: usize = 5_000_000;

/// Plays a story in every interleaving, under the guards that it names.
///
/// # Errors
/// A story that is too large for the model.
pub fn run_story(story: &Story) -> Result<StoryOutcome, StoryModelError> {
    run_story_under(story, story.without.map_or(Guards::ALL, Guards::without))
}

/// [`run_story`] under other guards, e.g. an ablation's story with its guard back.
///
/// # Errors
/// A story that is too large for the model.
pub fn run_story_under(story: &Story, guards: Guards) -> Result<StoryOutcome, StoryModelError> {
    let model = StoryModel { script: Script::new(story, guards)? };
    let graph = explore(&model, Limits { max_states: MAX_STATES })?;
    let script = &model.script;
    let setup = &script.setup;
    let mut firsts = BTreeMap::new();
    let mut recoveries: Vec<Option<u64>> = Vec::new();
    let mut outcome = StoryOutcome {
        verdicts: BTreeMap::new(),
        struck: BTreeSet::new(),
        states: graph.stats().states,
        effects_max: 0,
        effects_min: u32::MAX,
        late_results_min: u32::MAX,
        late_results_max: 0,
        runs_max: 0,
        recovered_within_ms: None,
        cut: graph.stats().cut,
        seconds: graph.stats().seconds,
    };
    for id in graph.ids().filter(|&id| graph.is_expanded(id) && graph.edges_of(id).next().is_none()) {
        let live = graph.state(id).unpack(script);
        let play = Play { script, live, log: None };
        // Not an ending of the story, only of what the model can count.
        let out_of_epochs = play.is_out_of_epochs();
        outcome.cut |= out_of_epochs;
        let live = play.live;
        let verdict = verdict(script, &live);
        if out_of_epochs && verdict == Verdict::Stuck {
            continue;
        }
        outcome.struck.extend((0..story.faults.len()).filter(|fault| live.struck & (1 << fault) != 0));
        // Breadth first: the first is a shortest.
        firsts.entry(verdict).or_insert(id);
        let whole = !matches!(verdict, Verdict::Violated(_));
        for (index, task) in live.core.tasks[..setup.shape.tasks].iter().enumerate() {
            outcome.runs_max = outcome.runs_max.max(live.tasks[index].runs.into());
            if setup.effects[index].is_some() {
                let happened = task.happened().into();
                outcome.effects_max = outcome.effects_max.max(happened);
                outcome.effects_min = outcome.effects_min.min(if whole { happened } else { u32::MAX });
            }
        }
        outcome.late_results_max = outcome.late_results_max.max(live.core.late.into());
        if whole {
            outcome.late_results_min = outcome.late_results_min.min(live.core.late.into());
            recoveries.push(recovery_ms(script, &live));
        }
    }
    // One ending without recovery, and there is no bound.
    outcome.recovered_within_ms = recoveries.into_iter().reduce(|a, b| Some(a?.max(b?))).flatten();
    if outcome.effects_min == u32::MAX {
        outcome.effects_min = 0;
    }
    if outcome.late_results_min == u32::MAX {
        outcome.late_results_min = 0;
    }
    for (verdict, id) in firsts {
        outcome.verdicts.insert(verdict, tell(script, &graph.trace_to(id)?));
    }
    Ok(outcome)
}

/// How this ending is called.
fn verdict(script: &Script, live: &Live) -> Verdict {
    match (properties::broken(&live.core), live.first_reason) {
        (Some(property), _) => Verdict::Violated(property),
        _ if !properties::all_resolved(&script.setup, &live.core) => Verdict::Stuck,
        (None, Some(reason)) => Verdict::Escalated(reason),
        (None, None) => Verdict::AutoRecovered,
    }
}

fn recovery_ms(script: &Script, live: &Live) -> Option<u64> {
    let resolved = live.resolved.checked_sub(1)?;
    let from = live.first_fault.saturating_sub(1);
    Some(u64::from(resolved.saturating_sub(from)) * script.tick_ms)
}

/// Plays a run once more and notes its events.
fn tell(script: &Script, trace: &TraceOf<StoryModel>) -> Trace {
    let mut play = Play { script, live: trace.initial.unpack(script), log: Some(Vec::new()) };
    for step in &trace.steps {
        play.take(step.action);
    }
    if let Some(property) = properties::broken(&play.live.core) {
        play.note(Node::Database, None, None, || format!("VIOLATED: {}", property.sentence()));
    }
    Trace { events: play.log.unwrap_or_default() }
}

/// A story as a transition system.
struct StoryModel {
    script: Script,
}

impl StoryModel {
    fn play(&self, state: &PackedLive) -> Play<'_> {
        Play { script: &self.script, live: state.unpack(&self.script), log: None }
    }
}

impl Model for StoryModel {
    type State = PackedLive;
    type Action = Step;

    fn init_states(&self) -> Vec<PackedLive> {
        vec![PackedLive::pack(&Live::new(&self.script), &self.script)]
    }

    fn actions(&self, state: &PackedLive, out: &mut Vec<Step>) {
        self.play(state).steps(out);
    }

    fn next_state(&self, state: &PackedLive, step: Step) -> Option<PackedLive> {
        let mut play = self.play(state);
        play.take(step);
        Some(PackedLive::pack(&play.live, &self.script))
    }
}

impl Fair for StoryModel {
    /// A story ends by itself: nothing is asked of its infinite runs.
    fn fair_class(&self, _: &PackedLive, _: &Step) -> Option<u8> {
        None
    }
}
