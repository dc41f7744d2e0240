//! A story much like another: what a sweep tries next where one has brought something new.

use leaseproof_scenarios::{Act, Node, Story, Trigger};

use super::draw::Draw;
use super::generate::OF_VARIATION;
use super::pick::Pick;
use super::schedule::{Mix, fault, fits, other_phase};

/// Most faults of a story.
const MOST: usize = 10;

/// Changes one to three things of its faults.
pub(super) fn vary(story: &mut Story, pick: Pick) {
    let draw = &mut Draw::new(pick.seed, OF_VARIATION << 32 | u64::from(pick.variation));
    for _ in 0..draw.count(1..=3) {
        step(draw, story);
    }
}

fn step(draw: &mut Draw, story: &mut Story) {
    let index = draw.index(story.faults.len());
    let choice = draw.number(0..=5);
    let Some(old) = story.faults.get(index).copied().filter(|_| choice > 1) else {
        if story.faults.len() < MOST {
            let more = fault(draw, &Mix::all(story), story);
            story.faults.push(more);
        }
        return;
    };
    let mut new = old;
    match choice {
        2 if story.faults.len() > 1 => {
            story.faults.remove(index);
            return;
        }
        3 => match &mut new.trigger {
            Trigger::At { point, nth } => {
                if draw.chance(50) {
                    *point = other_phase(*point);
                } else {
                    *nth = draw.count(1..=4);
                }
            }
            Trigger::After { ms } => *ms = (*ms + draw.number(0..=20) * 500).saturating_sub(5_000),
        },
        4 => {
            if let Act::Pause { ms } | Act::Cut { ms: Some(ms), .. } | Act::Crash { restart_ms: Some(ms) } =
                &mut new.act
            {
                *ms = (*ms * draw.one(&[1, 2, 3, 4]) / 2 / 500 * 500).max(500);
            }
        }
        _ => {
            // What an executor may not survive, the first has to.
            let heals = !matches!(new.act, Act::Crash { restart_ms: None } | Act::Cut { ms: None, .. });
            if let Node::Executor(_) = new.on {
                new.on = Node::Executor(match heals {
                    true => draw.index(story.executors.len()),
                    false => 1 + draw.index(story.executors.len() - 1),
                });
            }
        }
    }
    if fits(story, &new) {
        story.faults[index] = new;
    }
}
