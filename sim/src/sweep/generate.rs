//! Stories from seeds, in the manner of swarm testing: a seed first draws which kinds of things its story is made of, and
//! then the story from these. A story that may contain everything contains a little of everything, and never enough of one.
//!
//! Every story can be written as a file, every one of its faults can strike, and every one can be resolved: the first
//! executor, the sweeper and the database come back from whatever happens to them.

use std::collections::BTreeSet;

use leaseproof_rules::{Backoff, EffectRule, Guard, Instruments, OnExhausted, OnUnknown, Policy, Reason};
use leaseproof_scenarios::{
    Act, Effect, Executor, Expect, Fault, Node, Op, PersonAct, PersonDecision, Phase, Point, RunEnd, Story, Task,
    Timing, Trigger, Verdict,
};

use super::draw::Draw;
use super::pick::Pick;
use super::schedule::{Mix, fault, zombie};

/// Beyond every time that a story of a sweep needs to be resolved.
const HORIZON_MS: u64 = 6 * 3_600_000;

/// What a stream of draws is for.
const OF_STORY: u64 = 1;
pub(super) const OF_VARIATION: u64 = 2;

/// The story of a run, with one guard off if one is named.
pub fn story(pick: Pick, without: Option<Guard>) -> Story {
    let mut story = drawn(pick.seed, without);
    if pick.variation > 0 {
        super::vary::vary(&mut story, pick);
    }
    let variation = match pick.variation {
        0 => String::new(),
        variation => format!(", variation {variation}"),
    };
    story.name = format!("sweep-{}", pick.to_string().replace('.', "-"));
    story.title = format!("Seed {} of a sweep{variation}", pick.seed);
    story
}

fn drawn(seed: u64, without: Option<Guard>) -> Story {
    let draw = &mut Draw::new(seed, OF_STORY);
    // A fifth of the stories is about one thing: somebody stands still behind a write or a call, for longer than the lease.
    let of_zombie = draw.chance(20);
    let policy = policy(draw);
    let deadline_ms = draw.one(&[1_000, 2_000, 5_000]);
    let timing = Timing {
        poll_ms: draw.one(&[500, 1_000, 1_000, 2_000]),
        sweep_ms: draw.one(&[1_000, 5_000, 5_000, 10_000]),
        deadline_ms,
        horizon_ms: HORIZON_MS,
    };
    let with_effects = draw.chance(75);
    let tasks: Vec<Task> =
        (1..=draw.one(&[1, 1, 2, 2, 3, 4])).map(|number| task(draw, number, &policy, with_effects)).collect();
    let mut executors = vec![Executor { name: "w1".to_owned(), slots: slots(draw), start_ms: 0 }];
    for number in 2..=if of_zombie { draw.one(&[1, 1, 2]) } else { draw.one(&[1, 2, 2, 2, 3, 3]) } {
        let start_ms = draw.one(&[0, 0, 5_000, policy.lease_ms]);
        executors.push(Executor { name: format!("w{number}"), slots: slots(draw), start_ms });
    }
    let mut story = Story {
        name: String::new(),
        title: String::new(),
        question: "Does any property break?".to_owned(),
        requirements: Vec::new(),
        sources: Vec::new(),
        without,
        seed: Some(seed),
        policy,
        timing,
        tasks,
        executors,
        faults: Vec::new(),
        decisions: Vec::new(),
        expect: expect(),
    };
    let mix = Mix::draw(draw, &story);
    if of_zombie {
        story.faults.push(zombie(draw, &story));
    }
    for _ in 0..if of_zombie { draw.one(&[0, 0, 1, 2]) } else { draw.one(&[0, 1, 2, 2, 3, 3, 4, 5, 6, 8]) } {
        let fault = fault(draw, &mix, &story);
        story.faults.push(fault);
    }
    let questions = questions(draw, &story);
    story.faults.extend(questions);
    if story.faults.iter().any(asks) {
        for effect in story.tasks.iter_mut().filter_map(|task| task.effect.as_mut()) {
            let instruments = &mut effect.rule.instruments;
            (instruments.status_query, instruments.idempotency_key) = (true, false);
        }
    }
    // Last: whether a person may let a task run again depends on its instruments.
    story.decisions = decisions(draw, &story, if of_zombie { 80 } else { 40 });
    story
}

/// Whether a fault strikes where the third party is asked.
fn asks(fault: &Fault) -> bool {
    matches!(fault.trigger, Trigger::At { point: Point { op: Op::Query, .. }, .. })
}

/// Nobody asks the third party but of a call that nothing was heard of: for each fault at a question one that leads to it.
fn questions(draw: &mut Draw, story: &Story) -> Vec<Fault> {
    let mut leading = |fault: &Fault| {
        let phase = draw.one(&[Phase::Request, Phase::Reply]);
        let trigger = Trigger::At { point: Point { op: Op::Call, phase }, nth: 1 };
        match fault.on {
            // It keeps its lease and asks by itself.
            Node::Executor(_) => Fault { trigger, on: fault.on, act: Act::Lose { times: 1 } },
            _ => {
                let on = Node::Executor(draw.index(story.executors.len()));
                Fault { trigger, on, act: Act::Crash { restart_ms: Some(2 * story.policy.lease_ms) } }
            }
        }
    };
    story.faults.iter().filter(|fault| asks(fault)).take(2).map(&mut leading).collect()
}

/// Nothing is known of how it ends, but that no property breaks.
fn expect() -> Expect {
    let mut verdicts = BTreeSet::from([Verdict::AutoRecovered]);
    verdicts.extend(Reason::ALL.map(Verdict::Escalated));
    Expect {
        verdicts,
        recovers_within_ms: None,
        effects_max: None,
        effects_min: None,
        late_results_min: None,
        runs_max: None,
    }
}

fn policy(draw: &mut Draw) -> Policy {
    let lease_ms = draw.one(&[6_000, 10_000, 30_000, 30_000, 60_000]);
    let fence_margin_ms = draw.one(&[1_000, 2_000, 3_000]);
    let most = (lease_ms - fence_margin_ms) / 2;
    let base_ms = draw.one(&[0, 1_000, 1_000, 5_000]);
    Policy {
        lease_ms,
        heartbeat_ms: draw.one(&[most, lease_ms / 3, lease_ms / 5]).min(most) / 500 * 500,
        fence_margin_ms,
        max_attempts: draw.one(&[1, 2, 2, 3]),
        max_interruptions: draw.one(&[0, 1, 1, 2, 3]),
        backoff: Backoff { base_ms, factor: draw.one(&[1, 2]), max_ms: draw.one(&[10_000, 300_000]) },
        expected_run_ms: draw.one(&[None, None, None, Some(4 * lease_ms), Some(20_000)]),
        on_exhausted: draw.one(&[OnExhausted::Escalate, OnExhausted::Escalate, OnExhausted::Fail]),
        never_retry: Vec::new(),
    }
}

fn slots(draw: &mut Draw) -> u32 {
    draw.one(&[1, 1, 2, 4])
}

fn task(draw: &mut Draw, number: u32, policy: &Policy, with_effects: bool) -> Task {
    let work_ms = draw.one(&[1_000, 5_000, 12_000, 24_000, policy.lease_ms, 2 * policy.lease_ms]);
    let effect = (with_effects && draw.chance(85)).then(|| effect(draw, work_ms));
    Task { name: format!("t{number}"), work_ms, ends: ends(draw, policy), effect }
}

fn ends(draw: &mut Draw, policy: &Policy) -> Vec<RunEnd> {
    use RunEnd::{BadInput, Error, Hang, Ok};
    // What hangs is only ever resolved by the bound on its run.
    let hangs = policy.expected_run_ms.is_some() && draw.chance(30);
    match draw.number(0..=19) {
        _ if hangs => draw.one(&[&[Hang][..], &[Hang, Ok]]).to_vec(),
        0..=3 => vec![Error, Ok],
        4..=5 => vec![Error],
        6 => vec![BadInput],
        7 => vec![Error, Error, Ok],
        _ => vec![Ok],
    }
}

fn effect(draw: &mut Draw, work_ms: u64) -> Effect {
    let instruments = Instruments {
        idempotency_key: draw.chance(25),
        status_query: draw.chance(50),
        execution_token: draw.chance(50),
        ..Instruments::NONE
    };
    let on_unknown =
        draw.one(&[OnUnknown::Escalate, OnUnknown::Escalate, OnUnknown::Escalate, OnUnknown::Repeat, OnUnknown::Skip]);
    Effect {
        key: "charge".to_owned(),
        after_ms: draw.one(&[0, work_ms / 2, work_ms / 2, work_ms]),
        rule: EffectRule { instruments, on_unknown, ..EffectRule::default() },
    }
}

fn decisions(draw: &mut Draw, story: &Story, percent: u32) -> Vec<PersonDecision> {
    if !draw.chance(percent) {
        return Vec::new();
    }
    let mut decisions = Vec::new();
    for _ in 0..draw.count(1..=2) {
        let task = draw.index(story.tasks.len());
        let act = match draw.number(0..=3) {
            0 => PersonAct::Fail,
            1 => PersonAct::Succeed,
            _ if rerun_is_safe(&story.tasks[task]) => PersonAct::Rerun,
            _ => PersonAct::Fail,
        };
        decisions.push(PersonDecision { task, act, after_ms: draw.one(&[1_000, 10_000, story.policy.lease_ms]) });
    }
    decisions
}

/// Whether a person who lets it run again can not be wrong. Whoever finds that a call was not made, of a third party that
/// does not refuse it from then on, may be told the truth and see it made later: that is the person's risk, and no rule's.
pub(super) fn rerun_is_safe(task: &Task) -> bool {
    task.effect
        .as_ref()
        .is_none_or(|effect| effect.rule.instruments.idempotency_key || effect.rule.on_unknown == OnUnknown::Repeat)
}
