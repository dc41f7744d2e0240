//! From a run that breaks something to the smallest story that still does: fewer faults, fewer tasks, shorter, earlier.
//!
//! A story is data, so it is shrunk as data: one change at a time, kept if what was broken is still broken. A change moves
//! everything that comes later, chance included, so each is tried under a few seeds.

use std::collections::BTreeSet;

use leaseproof_rules::{Backoff, OnExhausted, OnUnknown, Policy, Property};
use leaseproof_scenarios::{Act, Effect, Fault, Node, PersonAct, RunEnd, Story, Timing, Trigger, Verdict, Way, parse};

use super::driver::side_by_side;
use super::generate::rerun_is_safe;
use crate::run::{Run, RunError, run_story};

/// Besides its own seed, a changed story is tried under these.
const SEEDS: std::ops::Range<u64> = 0..3;
/// An hour is beyond all that a story of a sweep needs to be resolved, if its faults are over after ten minutes.
const HOUR_MS: u64 = 3_600_000;
const TEN_MINUTES_MS: u64 = 600_000;

/// What is broken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Symptom {
    /// A property of the design.
    Property(Property),
    /// No property, but something that nothing explains: a defect of the software.
    Defect,
    /// The software panicked.
    Panic,
}

impl Symptom {
    /// What a run shows, the worst first.
    pub fn of(run: &Result<Run, RunError>) -> Option<Symptom> {
        match run {
            Err(RunError::Room(crate::room::RoomError::Panicked { .. })) => Some(Symptom::Panic),
            Err(_) => None,
            Ok(run) => run.verdict.broken().map(Symptom::Property).or_else(|| {
                let unexplained = run.divergence.is_some()
                    || !run.defects.is_empty()
                    || run.findings.iter().any(|finding| finding.property.is_none());
                unexplained.then_some(Symptom::Defect)
            }),
        }
    }
}

/// The smallest story that was found.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// It names its seed and expects what it shows.
    pub story: Story,
    /// What it shows.
    pub symptom: Symptom,
    /// Simulated runs that it took.
    pub runs: u32,
}

/// Shrinks a story that shows something under its seed, in at most so many runs, some of them side by side. `None`: it
/// shows nothing.
pub fn shrink(story: &Story, most_runs: u32, jobs: usize) -> Option<Shrunk> {
    let seed = story.seed.unwrap_or_default();
    let symptom = Symptom::of(&run_story(story, seed))?;
    let mut search = Search { symptom, runs: 1, most_runs, jobs };
    let mut best = Story { seed: Some(seed), ..story.clone() };
    loop {
        let before = best.clone();
        for pass in PASSES {
            search.exhaust(&mut best, pass);
        }
        if best == before || search.runs >= most_runs {
            break;
        }
    }
    if let Ok(run) = run_story(&best, best.seed.unwrap_or_default()) {
        best.expect.verdicts = BTreeSet::from([run.verdict]);
        if let Verdict::Violated(property) = run.verdict {
            best.title = format!("{}, shrunk: not so that {}", best.title, property.sentence());
        }
    }
    Some(Shrunk { story: best, symptom, runs: search.runs })
}

struct Search {
    symptom: Symptom,
    runs: u32,
    most_runs: u32,
    jobs: usize,
}

impl Search {
    /// Applies a kind of change as often as it helps.
    fn exhaust(&mut self, best: &mut Story, pass: Pass) {
        let mut index = 0;
        while self.runs < self.most_runs {
            let Some(candidate) = pass(best).into_iter().nth(index) else { return };
            match self.still_shows(candidate, best) {
                Some(better) => *best = better,
                None => index += 1,
            }
        }
    }

    /// The candidate with the first of its seeds under which it still shows the same.
    fn still_shows(&mut self, candidate: Story, best: &Story) -> Option<Story> {
        let candidate = sound(candidate, best)?;
        let own = candidate.seed.unwrap_or_default();
        let mut seeds = vec![own];
        seeds.extend(SEEDS.filter(|seed| *seed != own));
        // The first alone: it mostly decides.
        for batch in [&seeds[..1], &seeds[1..]] {
            self.runs += batch.len() as u32;
            let shown = side_by_side(batch, self.jobs, &|seed| Symptom::of(&run_story(&candidate, *seed)));
            if let Some(at) = shown.iter().position(|symptom| *symptom == Some(self.symptom)) {
                return Some(Story { seed: Some(batch[at]), ..candidate });
            }
        }
        None
    }
}

/// A candidate that differs, that a file can hold, and whose violation would be one: it can be resolved, and no person is
/// made to guess.
fn sound(candidate: Story, best: &Story) -> Option<Story> {
    let may_end = candidate.policy.expected_run_ms.is_some()
        || candidate.tasks.iter().all(|task| !task.ends.contains(&RunEnd::Hang));
    let first_returns = candidate.faults.iter().all(|fault| {
        let for_good = matches!(fault.act, Act::Crash { restart_ms: None } | Act::Cut { ms: None, .. });
        !for_good || matches!(fault.on, Node::Executor(index) if index > 0)
    });
    let knows = candidate.decisions.iter().all(|decision| {
        decision.act != PersonAct::Rerun || candidate.tasks.get(decision.task).is_some_and(rerun_is_safe)
    });
    let is_file = || parse(&format!("{}.toml", candidate.name), &candidate.to_toml()).as_ref() == Ok(&candidate);
    (candidate != *best && may_end && first_returns && knows && is_file()).then_some(candidate)
}

type Pass = fn(&Story) -> Vec<Story>;

/// The kinds of changes, the largest first.
const PASSES: [Pass; 7] = [many_faults, one_fault, people, nodes, schedule, shape, lengths];

fn changed(story: &Story, change: impl FnOnce(&mut Story)) -> Story {
    let mut story = story.clone();
    change(&mut story);
    story
}

/// Half of the faults gone.
fn many_faults(story: &Story) -> Vec<Story> {
    let half = story.faults.len() / 2;
    if half < 2 {
        return Vec::new();
    }
    vec![
        changed(story, |story| drop(story.faults.drain(half..))),
        changed(story, |story| drop(story.faults.drain(..half))),
    ]
}

fn one_fault(story: &Story) -> Vec<Story> {
    (0..story.faults.len())
        .map(|index| {
            changed(story, |story| {
                story.faults.remove(index);
            })
        })
        .collect()
}

fn people(story: &Story) -> Vec<Story> {
    (0..story.decisions.len())
        .map(|index| {
            changed(story, |story| {
                story.decisions.remove(index);
            })
        })
        .collect()
}

/// A task or an executor gone, with what is about it.
fn nodes(story: &Story) -> Vec<Story> {
    let tasks = (0..story.tasks.len()).filter(|_| story.tasks.len() > 1).map(|gone| {
        changed(story, |story| {
            story.tasks.remove(gone);
            story.decisions.retain(|decision| decision.task != gone);
            for decision in &mut story.decisions {
                decision.task -= usize::from(decision.task > gone);
            }
        })
    });
    // The first always comes back, so it stays.
    let executors = (1..story.executors.len()).map(|gone| {
        changed(story, |story| {
            story.executors.remove(gone);
            story.faults.retain(|fault| !touches(fault, gone));
            for fault in &mut story.faults {
                fault.on = renumbered(fault.on, gone);
                if let Act::Cut { peer, .. } = &mut fault.act {
                    *peer = renumbered(*peer, gone);
                }
            }
        })
    });
    tasks.chain(executors).collect()
}

fn touches(fault: &Fault, executor: usize) -> bool {
    let peer = match fault.act {
        Act::Cut { peer, .. } => Some(peer),
        _ => None,
    };
    fault.on == Node::Executor(executor) || peer == Some(Node::Executor(executor))
}

fn renumbered(node: Node, gone: usize) -> Node {
    match node {
        Node::Executor(index) if index > gone => Node::Executor(index - 1),
        other => other,
    }
}

/// Each fault earlier, simpler and shorter.
fn schedule(story: &Story) -> Vec<Story> {
    let mut all = Vec::new();
    for (index, fault) in story.faults.iter().enumerate() {
        let mut put = |fault: Fault| all.push(changed(story, |story| story.faults[index] = fault));
        match fault.trigger {
            Trigger::At { point, nth } if nth > 1 => {
                put(Fault { trigger: Trigger::At { point, nth: 1 }, ..*fault });
                put(Fault { trigger: Trigger::At { point, nth: nth - 1 }, ..*fault });
            }
            Trigger::After { ms } if ms > 0 => put(Fault { trigger: Trigger::After { ms: half(ms) }, ..*fault }),
            _ => {}
        }
        match fault.act {
            Act::Lose { times } if times > 1 => put(Fault { act: Act::Lose { times: 1 }, ..*fault }),
            Act::Crash { restart_ms: Some(ms) } if ms > 500 => {
                put(Fault { act: Act::Crash { restart_ms: Some(half(ms)) }, ..*fault });
            }
            Act::Pause { ms } if ms > 500 => put(Fault { act: Act::Pause { ms: half(ms) }, ..*fault }),
            Act::Cut { peer, way, ms } => {
                if way != Way::Both {
                    put(Fault { act: Act::Cut { peer, way: Way::Both, ms }, ..*fault });
                }
                if let Some(ms) = ms.filter(|ms| *ms > 500) {
                    put(Fault { act: Act::Cut { peer, way, ms: Some(half(ms)) }, ..*fault });
                }
            }
            _ => {}
        }
    }
    all
}

/// Half of a time, in half seconds.
const fn half(ms: u64) -> u64 {
    ms / 2 / 500 * 500
}

/// What is special made ordinary.
fn shape(story: &Story) -> Vec<Story> {
    let mut all = Vec::new();
    for index in 0..story.executors.len() {
        all.push(changed(story, |story| story.executors[index].slots = 1));
        all.push(changed(story, |story| story.executors[index].start_ms = 0));
    }
    for (index, task) in story.tasks.iter().enumerate() {
        let mut put = |change: &dyn Fn(&mut leaseproof_scenarios::Task)| {
            all.push(changed(story, |story| change(&mut story.tasks[index])));
        };
        put(&|task| task.ends = vec![RunEnd::Ok]);
        put(&|task| task.ends.truncate(1));
        put(&|task| task.effect = None);
        let mut effect = |change: &dyn Fn(&mut Effect)| {
            put(&|task| {
                if let Some(effect) = &mut task.effect {
                    change(effect);
                }
            });
        };
        effect(&|effect| effect.rule.instruments.idempotency_key = false);
        effect(&|effect| effect.rule.instruments.execution_token = false);
        effect(&|effect| effect.rule.instruments.status_query = false);
        effect(&|effect| effect.rule.on_unknown = OnUnknown::Escalate);
        let middle = task.work_ms / 2;
        effect(&|effect| effect.after_ms = middle);
    }
    let standard = Policy { backoff: Backoff { factor: 1, ..Policy::default().backoff }, ..Policy::default() };
    let mut policy = |change: &dyn Fn(&mut Policy)| all.push(changed(story, |story| change(&mut story.policy)));
    policy(&|policy| {
        policy.lease_ms = standard.lease_ms;
        policy.heartbeat_ms = standard.heartbeat_ms;
        policy.fence_margin_ms = standard.fence_margin_ms;
    });
    policy(&|policy| policy.max_attempts = standard.max_attempts);
    policy(&|policy| policy.max_interruptions = standard.max_interruptions);
    policy(&|policy| policy.backoff = standard.backoff);
    policy(&|policy| policy.expected_run_ms = None);
    policy(&|policy| policy.on_exhausted = OnExhausted::Escalate);
    let usual = Timing::default();
    let over_soon = story.faults.iter().all(|fault| ends_by(fault) < TEN_MINUTES_MS);
    let horizon_ms = match story.faults.is_empty() || over_soon {
        true => HOUR_MS.min(story.timing.horizon_ms),
        false => story.timing.horizon_ms,
    };
    all.push(changed(story, |story| story.timing.horizon_ms = horizon_ms));
    all.push(changed(story, |story| story.timing = Timing { horizon_ms: story.timing.horizon_ms, ..usual }));
    all
}

/// When a fault is over, if it strikes by a time; what strikes at a point strikes early, or the story is a long one.
const fn ends_by(fault: &Fault) -> u64 {
    let at = match fault.trigger {
        Trigger::After { ms } => ms,
        Trigger::At { .. } => 0,
    };
    at + match fault.act {
        Act::Pause { ms } | Act::Cut { ms: Some(ms), .. } | Act::Crash { restart_ms: Some(ms) } => ms,
        _ => 0,
    }
}

/// Work and decisions shorter.
fn lengths(story: &Story) -> Vec<Story> {
    let tasks = story.tasks.iter().enumerate().filter(|(_, task)| task.work_ms > 1_000).map(|(index, task)| {
        let work_ms = half(task.work_ms);
        changed(story, |story| {
            story.tasks[index].work_ms = work_ms;
            if let Some(effect) = &mut story.tasks[index].effect {
                effect.after_ms = effect.after_ms.min(work_ms);
            }
        })
    });
    let decisions = story.decisions.iter().enumerate().filter(|(_, decision)| decision.after_ms > 1_000);
    let decisions = decisions.map(|(index, decision)| {
        let after_ms = half(decision.after_ms);
        changed(story, |story| story.decisions[index].after_ms = after_ms)
    });
    tasks.chain(decisions).collect()
}
