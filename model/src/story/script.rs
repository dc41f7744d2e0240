//! A story as the model plays it: durations in ticks, slots counted through.

use leaseproof_rules::Guards;
use leaseproof_scenarios::{Act, Fault, Node, PersonAct, RunEnd, Story, Trigger};

use super::StoryModelError;
use crate::extra::Extras;
use crate::knowledge::Strategy;
use crate::person;
use crate::state::{MAX_RUNS, MAX_TASKS, Shape};
use crate::world::Setup;

/// A moment or a duration, in ticks of story time.
pub type Ticks = u32;
/// "Not at all": later than every moment.
pub const NEVER: Ticks = (1 << TICK_BITS) - 1;
pub(crate) const TICK_BITS: u32 = 24;
/// Faults in one story at most.
pub const MAX_FAULTS: usize = 8;
/// Decisions in one story at most.
pub const MAX_DECISIONS: usize = 8;

/// For how long the queue uses a connection that has been idle without trying it first, in ms.
const TRUSTED_MS: u64 = 10_000;

/// The first of TCP's retries of a connection, in ms after the first time: the pauses double from one second on.
const SYN_RETRIES_MS: [u64; 4] = [1_000, 3_000, 7_000, 15_000];

/// What a task does, in ticks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TaskScript {
    pub work: Ticks,
    /// When the call comes, if there is one.
    pub call_after: Ticks,
    /// By run; the last repeats.
    pub ends: Vec<RunEnd>,
}

impl TaskScript {
    /// How the run of this number (from 1) ends.
    pub fn end(&self, run: u8) -> RunEnd {
        let last = self.ends.len() - 1;
        self.ends[usize::from(run.saturating_sub(1)).min(last)]
    }
}

/// A person's decision, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DecisionScript {
    pub task: usize,
    pub act: person::Act,
    pub after: Ticks,
}

/// A fault, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FaultScript {
    pub fault: Fault,
    /// When it strikes, if it has a time.
    pub at: Option<Ticks>,
    /// How long it lasts; [`NEVER`]: for good.
    pub long: Ticks,
}

/// A story, ready to be played.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Script {
    pub setup: Setup,
    pub tick_ms: u64,
    pub tasks: Vec<TaskScript>,
    pub task_names: Vec<String>,
    pub executor_names: Vec<String>,
    pub starts: Vec<Ticks>,
    /// The executor of each slot.
    pub executor_of: Vec<usize>,
    /// The first slot of each executor, and one past the last slot of all.
    pub first_slot: Vec<usize>,
    pub faults: Vec<FaultScript>,
    pub decisions: Vec<DecisionScript>,
    pub lease: Ticks,
    pub heartbeat: Ticks,
    pub act_for: Ticks,
    pub expected_run: Option<Ticks>,
    pub poll: Ticks,
    pub sweep: Ticks,
    pub deadline: Ticks,
    /// For how long an idle connection is used without being tried.
    pub trusted: Ticks,
    /// When a connection that does not come about is asked for again, after the first time: as TCP does.
    pub retries: Vec<Ticks>,
    pub horizon: Ticks,
}

impl Script {
    /// Prepares a story; `guards` are those in force.
    pub fn new(story: &Story, guards: Guards) -> Result<Script, StoryModelError> {
        let tick_ms = story.tick_ms();
        // What is longer than the story can last is as good as NEVER / 4: it is not over when the story is.
        let ticks = |ms: u64| Ticks::try_from(ms / tick_ms).unwrap_or(NEVER).min(NEVER / 4);
        // Sums of a moment and a duration must stay below NEVER.
        if ticks(story.timing.horizon_ms) >= NEVER / 4 {
            let horizon_ms = story.timing.horizon_ms;
            return Err(StoryModelError::TooFine { tick_ms, horizon_ms });
        }
        let too_many = |what, count, most| Err(StoryModelError::TooMany { what, count, most });
        if story.faults.len() > MAX_FAULTS {
            return too_many("faults", story.faults.len(), MAX_FAULTS);
        }
        if story.decisions.len() > MAX_DECISIONS {
            return too_many("decisions", story.decisions.len(), MAX_DECISIONS);
        }
        let policy = story.policy.clone();
        let mut effects = [None; MAX_TASKS];
        for (slot, task) in effects.iter_mut().zip(&story.tasks) {
            *slot = task.effect.as_ref().map(|effect| effect.rule);
        }
        let mut executor_of = Vec::new();
        let mut first_slot = vec![0];
        for (index, executor) in story.executors.iter().enumerate() {
            executor_of.extend((0..executor.slots).map(|_| index));
            first_slot.push(executor_of.len());
        }
        if executor_of.len() > MAX_RUNS {
            return too_many("slots", executor_of.len(), MAX_RUNS);
        }
        Ok(Script {
            setup: Setup {
                shape: Shape { tasks: story.tasks.len(), runs: executor_of.len(), parts: 1, extras: Extras::NONE },
                policy: policy.clone(),
                guards,
                strategy: Strategy::RULES,
                effects,
                timed: true,
                flaw: None,
            },
            tick_ms,
            tasks: story
                .tasks
                .iter()
                .map(|task| TaskScript {
                    work: ticks(task.work_ms),
                    call_after: ticks(task.effect.as_ref().map_or(0, |effect| effect.after_ms)),
                    ends: task.ends.clone(),
                })
                .collect(),
            task_names: story.tasks.iter().map(|task| task.name.clone()).collect(),
            executor_names: story.executors.iter().map(|executor| executor.name.clone()).collect(),
            starts: story.executors.iter().map(|executor| ticks(executor.start_ms)).collect(),
            executor_of,
            first_slot,
            faults: story
                .faults
                .iter()
                .map(|fault| FaultScript {
                    fault: *fault,
                    at: match fault.trigger {
                        Trigger::After { ms } => Some(ticks(ms)),
                        Trigger::At { .. } => None,
                    },
                    long: match fault.act {
                        Act::Lose { .. } => 0,
                        Act::Pause { ms } => ticks(ms),
                        Act::Crash { restart_ms: ms } | Act::Cut { ms, .. } => ms.map_or(NEVER, ticks),
                    },
                })
                .collect(),
            decisions: story
                .decisions
                .iter()
                .map(|decision| DecisionScript {
                    task: decision.task,
                    act: match decision.act {
                        PersonAct::Rerun => person::Act::Rerun,
                        PersonAct::Fail => person::Act::MarkFailed,
                        PersonAct::Succeed => person::Act::MarkSucceeded,
                    },
                    after: ticks(decision.after_ms),
                })
                .collect(),
            lease: ticks(policy.lease_ms),
            heartbeat: ticks(policy.heartbeat_ms),
            act_for: ticks(policy.act_for_ms()),
            expected_run: policy.expected_run_ms.map(ticks),
            poll: ticks(story.timing.poll_ms),
            sweep: ticks(story.timing.sweep_ms),
            deadline: ticks(story.timing.deadline_ms),
            trusted: ticks(TRUSTED_MS + tick_ms - 1),
            retries: SYN_RETRIES_MS.into_iter().map(|ms| ticks(ms + tick_ms - 1)).collect(),
            horizon: ticks(story.timing.horizon_ms),
        })
    }

    /// The slots of an executor.
    pub fn slots(&self, executor: usize) -> std::ops::Range<usize> {
        self.first_slot[executor]..self.first_slot[executor + 1]
    }

    /// The node that a slot is part of.
    pub fn node_of(&self, slot: usize) -> Node {
        Node::Executor(self.executor_of[slot])
    }

    /// The name of a node.
    pub fn node_name(&self, node: Node) -> &str {
        match node {
            Node::Executor(index) => &self.executor_names[index],
            Node::Sweeper => "sweeper",
            Node::Database => "database",
            Node::ThirdParty => "third_party",
        }
    }
}
