//! Faults from draws: which kinds a story has, and each of them.

use leaseproof_scenarios::{Act, Fault, Node, Op, Phase, Point, Story, Trigger, Way};

use super::draw::Draw;

/// The kinds of faults.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Lose,
    Crash,
    Pause,
    Cut,
}

/// What the faults of one story are made of.
pub(super) struct Mix {
    kinds: Vec<Kind>,
    /// Where messages are struck: each node with points, and the points.
    points: Vec<Point>,
    /// How many in a hundred strike at a point, rather than at a time.
    at_points: u32,
    /// How many in a hundred strike a server.
    servers: u32,
}

impl Mix {
    pub fn draw(draw: &mut Draw, story: &Story) -> Mix {
        let all = vec![Kind::Lose, Kind::Crash, Kind::Pause, Kind::Cut];
        let points = points(story);
        let kept = draw.one(&[1, 2, 4, points.len(), points.len()]);
        Mix {
            kinds: {
                let kept = draw.one(&[1, 2, 2, 3, 4]);
                draw.some(all, kept)
            },
            points: draw.some(points, kept),
            at_points: draw.one(&[100, 80, 80, 50, 0]),
            servers: draw.one(&[0, 0, 20, 50]),
        }
    }

    /// Everything there is.
    pub fn all(story: &Story) -> Mix {
        Mix {
            kinds: vec![Kind::Lose, Kind::Crash, Kind::Pause, Kind::Cut],
            points: points(story),
            at_points: 75,
            servers: 15,
        }
    }
}

/// Whether a story calls the third party at all.
pub(super) fn calls(story: &Story) -> bool {
    story.tasks.iter().any(|task| task.effect.is_some())
}

/// The points that somebody in this story can come to.
fn points(story: &Story) -> Vec<Point> {
    let there = |point: &Point| calls(story) || !matches!(point.op, Op::Intent | Op::Call | Op::Outcome | Op::Query);
    Point::all().filter(there).collect()
}

/// One more fault.
pub(super) fn fault(draw: &mut Draw, mix: &Mix, story: &Story) -> Fault {
    let kind = draw.one(&mix.kinds);
    let is_server = kind != Kind::Lose && draw.chance(mix.servers);
    if is_server {
        return of_server(draw, kind, story);
    }
    if kind == Kind::Lose || draw.chance(mix.at_points) {
        let point = draw.one(&mix.points);
        let executors = story.executors.len();
        let on = match point.op {
            op if op.is_sweepers() => Node::Sweeper,
            Op::Query if draw.chance(60) => Node::Sweeper,
            _ => Node::Executor(draw.index(executors)),
        };
        let nth = draw.one(&[1, 1, 1, 2, 3]);
        return Fault { trigger: Trigger::At { point, nth }, on, act: act(draw, kind, on, story) };
    }
    let on = match draw.index(story.executors.len() + 1) {
        index if index < story.executors.len() => Node::Executor(index),
        _ => Node::Sweeper,
    };
    let start_ms = match on {
        Node::Executor(index) => story.executors[index].start_ms,
        _ => 0,
    };
    Fault { trigger: Trigger::After { ms: start_ms + moment(draw, story) }, on, act: act(draw, kind, on, story) }
}

/// A process that stands still before a request leaves, and goes on when others have long dealt with its task.
pub(super) fn zombie(draw: &mut Draw, story: &Story) -> Fault {
    let requests: Vec<Point> = points(story).into_iter().filter(|point| point.phase == Phase::Request).collect();
    let point = draw.one(&requests);
    let on = if point.op.is_sweepers() { Node::Sweeper } else { Node::Executor(draw.index(story.executors.len())) };
    let ms = story.policy.lease_ms * draw.number(2..=4) / 2 + 2 * story.timing.sweep_ms + draw.number(0..=20) * 500;
    Fault { trigger: Trigger::At { point, nth: draw.one(&[1, 1, 1, 2]) }, on, act: Act::Pause { ms } }
}

/// Some time within the first three leases.
fn moment(draw: &mut Draw, story: &Story) -> u64 {
    draw.number(0..=6 * story.policy.lease_ms / 1_000) * 500
}

fn of_server(draw: &mut Draw, kind: Kind, story: &Story) -> Fault {
    let on = if calls(story) && draw.chance(30) { Node::ThirdParty } else { Node::Database };
    let trigger = Trigger::After { ms: moment(draw, story) };
    let act = match kind {
        Kind::Pause => Act::Pause { ms: span(draw, story) },
        Kind::Cut => {
            let client = match draw.index(story.executors.len() + 1) {
                index if index < story.executors.len() => Node::Executor(index),
                _ => Node::Sweeper,
            };
            Act::Cut { peer: client, way: way(draw), ms: Some(span(draw, story)) }
        }
        _ => Act::Crash { restart_ms: Some(draw.one(&[500, 5_000, story.policy.lease_ms])) },
    };
    Fault { trigger, on, act }
}

fn act(draw: &mut Draw, kind: Kind, on: Node, story: &Story) -> Act {
    // One of them always comes back.
    let for_good = matches!(on, Node::Executor(index) if index > 0) && draw.chance(15);
    match kind {
        Kind::Lose => Act::Lose { times: draw.one(&[1, 1, 1, 2, 5]) },
        Kind::Crash if for_good => Act::Crash { restart_ms: None },
        Kind::Crash => Act::Crash { restart_ms: Some(draw.one(&[500, 5_000, 2 * story.policy.lease_ms])) },
        Kind::Pause => Act::Pause { ms: span(draw, story) },
        Kind::Cut => {
            let peer = if calls(story) && draw.chance(30) { Node::ThirdParty } else { Node::Database };
            Act::Cut { peer, way: way(draw), ms: (!for_good).then(|| span(draw, story)) }
        }
    }
}

fn way(draw: &mut Draw) -> Way {
    draw.one(&[Way::Both, Way::Both, Way::To, Way::From])
}

/// Shorter than the lease, about as long, or longer: what is too short for anybody to notice, and what is not.
fn span(draw: &mut Draw, story: &Story) -> u64 {
    let lease_ms = story.policy.lease_ms;
    let more = draw.number(0..=10) * 500;
    more + draw.one(&[500, lease_ms / 2, lease_ms, lease_ms + story.timing.sweep_ms, 2 * lease_ms, 3 * lease_ms])
}

/// Whether a fault can strike on the node where it is.
pub(super) fn fits(story: &Story, fault: &Fault) -> bool {
    let point_fits = match (fault.trigger, fault.on) {
        (Trigger::After { .. }, _) => true,
        (Trigger::At { point, .. }, Node::Executor(_)) => !point.op.is_sweepers(),
        (Trigger::At { point, .. }, Node::Sweeper) => point.op.is_sweepers() || point.op == Op::Query,
        _ => false,
    };
    let there_by_then = match (fault.trigger, fault.on) {
        (Trigger::After { ms }, Node::Executor(index)) => {
            story.executors.get(index).is_some_and(|executor| ms >= executor.start_ms)
        }
        _ => true,
    };
    point_fits && there_by_then
}

/// The request or the reply of the same exchange, whichever it is not.
pub(super) fn other_phase(point: Point) -> Point {
    let phase = match point.phase {
        Phase::Request => Phase::Reply,
        Phase::Reply => Phase::Request,
    };
    Point { phase, ..point }
}
