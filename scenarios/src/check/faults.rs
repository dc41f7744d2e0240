//! The checks of faults: that they fit together, and that they can have an effect.

use std::ops::Range;

use toml::Spanned;

use super::{Checked, Place};
use crate::file::FaultTable;
use crate::limits::Length;
use crate::story::{Act, Executor, Fault, Node, Op, Point, Trigger, Way};

/// What of a story decides whether a fault can have an effect.
pub(super) struct Parts<'a> {
    pub executors: &'a [Executor],
    /// Some task makes an outside call.
    pub makes_calls: bool,
    pub horizon_ms: u64,
}

impl Place<'_> {
    fn node(&self, text: &Spanned<String>, field: &str, executors: &[Executor]) -> Checked<Node> {
        let mut words: Vec<_> =
            executors.iter().enumerate().map(|(i, executor)| (executor.name.as_str(), Node::Executor(i))).collect();
        words.extend([("sweeper", Node::Sweeper), ("database", Node::Database), ("third_party", Node::ThirdParty)]);
        self.word(text, field, &words)
    }

    fn point(&self, text: &Spanned<String>, field: &str) -> Checked<Point> {
        let points: Vec<_> = Point::all().map(|point| (point.name(), point)).collect();
        let words: Vec<_> = points.iter().map(|(name, point)| (name.as_str(), *point)).collect();
        self.word(text, field, &words)
    }

    /// Where no task makes an outside call, nobody speaks with the third party.
    fn speaks(&self, text: &Spanned<String>, field: &str, node: Node, parts: &Parts<'_>) -> Checked<()> {
        match node == Node::ThirdParty && !parts.makes_calls {
            false => Ok(()),
            true => {
                let why =
                    "no task of the story makes an outside call (tasks.effects): nobody speaks with the third party";
                self.refuse(text.span(), field, why)
            }
        }
    }

    pub(super) fn fault(&self, raw: &FaultTable, field: &str, parts: &Parts<'_>) -> Checked<Fault> {
        let Parts { executors, horizon_ms, .. } = *parts;
        let on = self.node(&raw.on, &format!("{field}.on"), executors)?;
        self.speaks(&raw.on, &format!("{field}.on"), on, parts)?;
        let trigger = match (&raw.at, &raw.after) {
            (Some(at), None) => {
                let point = self.point(at, &format!("{field}.at"))?;
                let fits = match on {
                    Node::Executor(_) => !point.op.is_sweepers(),
                    Node::Sweeper => point.op.is_sweepers() || point.op == Op::Query,
                    Node::Database | Node::ThirdParty => false,
                };
                if !fits {
                    let why = format!(
                        "{} is never at this point; the sweeper is at sweep, requeue, escalate and query, executors \
                         at the others, and faults of the database and the third party are given by time (after)",
                        raw.on.get_ref()
                    );
                    return self.refuse(at.span(), format!("{field}.at"), why);
                }
                if matches!(point.op, Op::Intent | Op::Call | Op::Outcome | Op::Query) {
                    self.speaks(at, &format!("{field}.at"), Node::ThirdParty, parts)?;
                }
                let nth = raw.nth.as_ref().map_or(1, |nth| nth.get_ref().0);
                if let Some(zero) = raw.nth.as_ref().filter(|_| nth == 0) {
                    return self.refuse(zero.span(), format!("{field}.nth"), "counts from 1");
                }
                Trigger::At { point, nth }
            }
            (None, Some(after)) if after.get_ref().0 >= horizon_ms => {
                let horizon = Length(horizon_ms);
                let why = format!(
                    "{} is not before the horizon: it would never strike; accepted: less than {horizon}",
                    after.get_ref()
                );
                return self.refuse(after.span(), format!("{field}.after"), why);
            }
            (None, Some(after)) => Trigger::After { ms: after.get_ref().0 },
            _ => {
                let why = "a fault has either a point (at = \"claim.reply\") or a time (after = \"12s\")";
                return self.refuse(raw.on.span(), field, why);
            }
        };
        if let (Trigger::After { .. }, Some(nth)) = (trigger, &raw.nth) {
            return self.refuse(nth.span(), format!("{field}.nth"), "goes with a point (at), not with a time (after)");
        }
        let act = self.act(raw, field, parts, trigger)?;
        if let (Trigger::After { ms }, Node::Executor(index), Act::Crash { .. } | Act::Pause { .. }, Some(after)) =
            (trigger, on, act, &raw.after)
            && ms < executors[index].start_ms
        {
            let why = format!(
                "at {} {} is not there yet, it starts at {}: there is nothing to strike",
                after.get_ref(),
                raw.on.get_ref(),
                Length(executors[index].start_ms)
            );
            return self.refuse(after.span(), format!("{field}.after"), why);
        }
        Ok(Fault { trigger, on, act })
    }

    fn act(&self, raw: &FaultTable, field: &str, parts: &Parts<'_>, trigger: Trigger) -> Checked<Act> {
        let executors = parts.executors;
        let ms = raw.duration.as_ref().map(|d| d.get_ref().0);
        let verb = self.word(
            &raw.act,
            &format!("{field}.do"),
            &[("lose", "lose"), ("crash", "crash"), ("pause", "pause"), ("cut", "cut")],
        )?;
        let stray = |span: Option<Range<usize>>, name: &str, goes: &str| match span {
            Some(span) if !goes.contains(verb) => self.refuse(
                span,
                format!("{field}.{name}"),
                format!("does not go with do = {verb:?}, only with {goes}"),
            ),
            _ => Ok(()),
        };
        stray(raw.times.as_ref().map(Spanned::span), "times", "lose")?;
        stray(raw.duration.as_ref().map(Spanned::span), "for", "crash, pause, cut")?;
        stray(raw.peer.as_ref().map(Spanned::span), "peer", "cut")?;
        stray(raw.way.as_ref().map(Spanned::span), "way", "cut")?;
        match verb {
            "lose" if matches!(trigger, Trigger::After { .. }) => {
                self.refuse(raw.act.span(), format!("{field}.do"), "a message is lost at a point (at), not at a time")
            }
            "lose" => {
                let times = raw.times.as_ref().map_or(1, |times| times.get_ref().0);
                match &raw.times {
                    Some(zero) if times == 0 => {
                        self.refuse(zero.span(), format!("{field}.times"), "must be at least 1")
                    }
                    _ => Ok(Act::Lose { times }),
                }
            }
            "crash" => Ok(Act::Crash { restart_ms: ms }),
            "pause" => match ms {
                Some(ms) if ms > 0 => Ok(Act::Pause { ms }),
                _ => self.refuse(raw.act.span(), format!("{field}.for"), "a pause says how long: for = \"45s\""),
            },
            _ => {
                let Some(peer) = &raw.peer else {
                    return self.refuse(raw.act.span(), format!("{field}.peer"), "a cut names the other end: peer = …");
                };
                let ways = [Way::Both, Way::To, Way::From].map(|way| (way.name(), way));
                let way = match &raw.way {
                    Some(text) => self.word(text, &format!("{field}.way"), &ways)?,
                    None => Way::Both,
                };
                let other = self.node(peer, &format!("{field}.peer"), executors)?;
                let on = self.node(&raw.on, &format!("{field}.on"), executors)?;
                let serves = |node: Node| matches!(node, Node::Database | Node::ThirdParty);
                if serves(on) == serves(other) {
                    let why = format!(
                        "{} and {} never speak with each other: nothing would be cut; executors and the sweeper speak \
                         with the database and the third party",
                        raw.on.get_ref(),
                        peer.get_ref()
                    );
                    return self.refuse(peer.span(), format!("{field}.peer"), why);
                }
                self.speaks(peer, &format!("{field}.peer"), other, parts)?;
                match &raw.duration {
                    Some(zero) if ms == Some(0) => self.refuse(
                        zero.span(),
                        format!("{field}.for"),
                        "must be longer than 0; leave it out: for good",
                    ),
                    _ => Ok(Act::Cut { peer: other, way, ms }),
                }
            }
        }
    }
}
