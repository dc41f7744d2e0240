//! Events in words, and what of them belongs into one line of the picture. `of_model` and `of_sim` say the words; the
//! folding is shared.

use leaseproof_model::trace::Event;
use leaseproof_rules::Property;
use leaseproof_scenarios::{Millis, Story};
use leaseproof_sim::run::Run;
use leaseproof_sim::trace::Line;

use crate::lanes::{Beat, Life};
use crate::style::Tone;

/// A run, ready to be drawn.
pub struct Picture {
    /// The nodes that have something to tell, in the order of the lanes.
    pub lanes: Vec<String>,
    pub beats: Vec<Beat>,
}

/// What is told of one or more events, before it says of which tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Note {
    at_ms: u64,
    node: String,
    what: String,
    tasks: Vec<String>,
    tone: Tone,
    life: Option<Life>,
    /// How often, one after the other.
    times: usize,
}

/// The same thing about several tasks is one line if it happens within this time, in ms.
const TOGETHER_MS: u64 = 100;

/// The events of a run on the model.
pub fn of_model(story: &Story, events: &[Event]) -> Picture {
    let mut notes = Vec::new();
    for (index, event) in events.iter().enumerate() {
        if is_usual(event, &events[..index], &events[index + 1..]) {
            continue;
        }
        let (what, tone, life) = model_words(event);
        notes.push(Note {
            at_ms: event.time_ms,
            node: event.node.clone(),
            what,
            tasks: event.task.iter().cloned().collect(),
            tone,
            life,
            times: 1,
        });
    }
    picture(story, notes)
}

const HEARTBEAT: &str = "heartbeat";
const RENEWS: &str = "renews the lease";

/// What goes without saying: that a request which was sent has arrived, that a sweep which acts was a sweep.
fn is_usual(event: &Event, earlier: &[Event], later: &[Event]) -> bool {
    let now = |other: &&Event| other.time_ms == event.time_ms;
    let next = || later.iter().find(|other| other.node == event.node).filter(now);
    match event.what.as_str() {
        "begins" | "comes to its call" => true,
        "sweeps" => next().is_some(),
        RENEWS => {
            let cause = earlier.iter().rev().find(|other| other.what != RENEWS).filter(now);
            cause.is_some_and(|cause| cause.what == HEARTBEAT)
        }
        INTENT_KEPT | OUTCOME_KEPT => {
            let cause = earlier.last().filter(now);
            cause.is_some_and(|cause| cause.task == event.task && event.what.starts_with(cause.what.as_str()))
        }
        // Told by what becomes of it.
        sent => next().is_some_and(|next| next.what.strip_prefix(sent).is_some_and(|rest| rest.starts_with(": "))),
    }
}

const INTENT_KEPT: &str = "intent → RUNNING";
const OUTCOME_KEPT: &str = "outcome → RUNNING";

/// Servers say whose write or call it is; the others speak of their own run.
fn with_epoch(event: &Event) -> String {
    let what = &event.what;
    match (event.epoch, event.node.as_str()) {
        (Some(epoch), "database") => match what.split_once(' ') {
            Some(("claim", _)) => format!("claim → epoch {epoch}"),
            Some(("late", rest)) => format!("late {}", rest.replacen(' ', &format!(" of epoch {epoch} "), 1)),
            Some((verb, "→ RUNNING")) => format!("{verb} of epoch {epoch}"),
            Some(("renews", _)) => format!("heartbeat of epoch {epoch}"),
            Some((verb, rest)) => format!("{verb} of epoch {epoch} {rest}"),
            None => what.clone(),
        },
        (Some(token), "third_party") => format!("{what}, token {token}"),
        _ => what.clone(),
    }
}

fn model_words(event: &Event) -> (String, Tone, Option<Life>) {
    let what = event.what.as_str();
    let (tone, life) = match what {
        "CRASH" => (Tone::Fault, Some(Life::Down)),
        "stands still" => (Tone::Fault, Some(Life::Paused)),
        "starts" | "goes on" => (Tone::Plain, Some(Life::Up)),
        HEARTBEAT | RENEWS => (Tone::Dim, None),
        _ if what.starts_with("VIOLATED") || what.contains("WAIT_MANUAL") => (Tone::Bad, None),
        _ if what.starts_with("cut off") || what.ends_with(" lost") => (Tone::Fault, None),
        _ if ["refused", "unknown", "no reply", "held back"].iter().any(|part| what.contains(part)) => {
            (Tone::Dim, None)
        }
        _ if what.contains("SUCCESS") || what.starts_with("executes the call") => (Tone::Good, None),
        _ => (Tone::Plain, None),
    };
    let sentence = what.strip_prefix("VIOLATED: ");
    let words = match Property::ALL.into_iter().find(|property| sentence == Some(property.sentence())) {
        Some(property) => violated(property),
        None => with_epoch(event),
    };
    (words, tone, life)
}

/// In words that a narrow lane can break.
fn violated(property: Property) -> String {
    format!("VIOLATED: {}", property.name().replace('_', " "))
}

/// The events of a simulated run, with what the checkers found wrong.
pub fn of_sim(story: &Story, run: &Run) -> Picture {
    let mut notes = Vec::new();
    let mut broken: Vec<(u64, Property)> =
        run.findings.iter().filter_map(|finding| Some((finding.at_ns, finding.property?))).collect();
    broken.retain(|(_, property)| *property != Property::EventuallyResolved);
    broken.dedup_by_key(|(_, property)| *property);
    let mut down: Vec<&str> = Vec::new();
    for (index, line) in run.lines.iter().enumerate() {
        let later = &run.lines[index + 1..];
        let note = |what: String, tone, life| Note {
            at_ms: line.t_ns / 1_000_000,
            node: line.node.clone(),
            what,
            tasks: line.task.iter().cloned().collect(),
            tone,
            life,
            times: 1,
        };
        if !is_left_out(story, line, later)
            && let Some((mut what, tone, life)) = sim_words(story, line)
        {
            match life {
                Some(Life::Down | Life::Paused) => down.push(&line.node),
                Some(Life::Up) => down.retain(|node| *node != line.node),
                // Sent before its sender stopped.
                None if down.contains(&line.node.as_str()) && line.to.is_some() => {
                    what.insert_str(0, "still arrives: ")
                }
                None => {}
            }
            notes.push(note(what, tone, life));
        }
        // Where it broke: behind the last event of that moment.
        if later.first().is_none_or(|next| next.t_ns > line.t_ns) {
            while let Some((_, property)) = broken.first().filter(|(at_ns, _)| *at_ns <= line.t_ns) {
                notes.push(note(violated(*property), Tone::Bad, None));
                broken.remove(0);
            }
        }
    }
    picture(story, notes)
}

/// What goes without saying: that a process is there from the beginning, that a claim begins a run, that a sweep which
/// acts was a sweep.
fn is_left_out(story: &Story, line: &Line, later: &[Line]) -> bool {
    match line.event.as_str() {
        "start" => {
            let executor = story.executors.iter().find(|executor| executor.name == line.node);
            line.t_ns / 1_000_000 < executor.map_or(0, |executor| executor.start_ms) + 1_000
                && executor.is_none_or(|executor| executor.start_ms == 0)
        }
        "sweep" => later
            .iter()
            .find(|next| next.node == line.node)
            .is_some_and(|next| ["requeue", "escalate", "ask", "learn", "refuse"].contains(&next.event.as_str())),
        "enqueue" | "run_begin" | "resolved" | "horizon" => true,
        _ => false,
    }
}

fn sim_words(story: &Story, line: &Line) -> Option<(String, Tone, Option<Life>)> {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let key = || {
        let task = story.tasks.iter().find(|task| Some(&task.name) == line.task.as_ref());
        task.and_then(|task| task.effect.as_ref()).map_or("", |effect| effect.key.as_str())
    };
    let duration = line.for_ms.map(|ms| format!(" {}", Millis(ms))).unwrap_or_default();
    let epoch = line.epoch.unwrap_or_default();
    let row_epoch = line.row_epoch.unwrap_or_default();
    let to = text(&line.to);
    let moved = if line.from == line.to { String::new() } else { format!(" → {to}") };
    let reason = line.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let plain = |what: String| (what, Tone::Plain, None);
    Some(match line.event.as_str() {
        "start" => ("starts".to_owned(), Tone::Plain, Some(Life::Up)),
        "crash" => ("CRASH".to_owned(), Tone::Fault, Some(Life::Down)),
        "pause" => (format!("PAUSE{duration}"), Tone::Fault, Some(Life::Paused)),
        "resume" => ("goes on".to_owned(), Tone::Plain, Some(Life::Up)),
        "cut" => (format!("CUT {} {}{duration}", cut_words(line), text(&line.peer)), Tone::Fault, None),
        "heal" => plain(format!("cut {} {} heals", cut_words(line), text(&line.peer))),
        "lose" => (format!("LOST {}", text(&line.point)), Tone::Fault, None),
        "hold" => (format!("held back: {}", text(&line.point)), Tone::Dim, None),
        "claim" => plain(format!("claim → epoch {row_epoch}")),
        "heartbeat" => ("heartbeat".to_owned(), Tone::Dim, None),
        "intent" => plain(format!("intent {}", key())),
        "outcome" => plain(format!("outcome {}: {}", key(), text(&line.entry))),
        "complete" => (format!("complete{moved}"), Tone::Good, None),
        "adopt" => (format!("late complete adopted{moved}"), Tone::Good, None),
        "already" => (format!("{}: known already", text(&line.verb)), Tone::Dim, None),
        "refuse" => {
            let row =
                if line.from.as_deref() == Some("RUNNING") { String::new() } else { format!("{}, ", text(&line.from)) };
            (format!("✗ {} refused (epoch {epoch}; row: {row}epoch {row_epoch})", text(&line.verb)), Tone::Dim, None)
        }
        "late_result" => ("late result kept".to_owned(), Tone::Dim, None),
        "learn" => plain(format!("learns: {} {}", key(), text(&line.entry))),
        "sweep" => plain("sweep".to_owned()),
        "run_end" => plain(
            match line.end.as_deref() {
                Some("ok") => "work done",
                Some("error") => "work failed",
                Some("bad_input") => "input is bad",
                _ => "hangs",
            }
            .to_owned(),
        ),
        "call" => plain(format!("call {}", key())),
        "call_unknown" => ("no answer: outcome unknown".to_owned(), Tone::Dim, None),
        "effect" => {
            let count = line.count.unwrap_or_default();
            (format!("{} happens ×{count}", key()), if count > 1 { Tone::Bad } else { Tone::Good }, None)
        }
        "repeat" => (format!("{}: known key, not again", key()), Tone::Dim, None),
        "refuse_call" => {
            let newest = line.newest.unwrap_or_default();
            (format!("✗ call refused (token {epoch}, newest {newest})"), Tone::Dim, None)
        }
        "ask" => plain(format!("asked: {}", text(&line.entry))),
        // Every other verb: back to the queue, to a person, or to the end.
        verb => {
            let after =
                if to == "PENDING" || to == "RETRY_WAIT" { format!(", epoch {row_epoch}") } else { String::new() };
            let tone = if to == "WAIT_MANUAL" { Tone::Bad } else { Tone::Plain };
            (format!("{}{reason}{moved}{after}", verb.replace('_', " ")), tone, None)
        }
    })
}

fn cut_words(line: &Line) -> &'static str {
    match line.way.as_deref() {
        Some("to") => "to",
        Some("from") => "from",
        _ => "off from",
    }
}

/// Folds what belongs together and gives each node its lane. Executors always have one.
fn picture(story: &Story, notes: Vec<Note>) -> Picture {
    let notes = fold(notes);
    let nodes = nodes(story);
    let told = |node: &String| notes.iter().any(|note| note.node == *node);
    let lanes: Vec<String> = (nodes.iter().enumerate())
        .filter(|(index, node)| *index < story.executors.len() || told(node))
        .map(|(_, node)| node.clone())
        .collect();
    let beats = notes.iter().filter_map(|note| {
        let lane = lanes.iter().position(|lane| *lane == note.node)?;
        let mut text = note.what.clone();
        if note.times > 1 {
            text.push_str(&format!(" ×{}", note.times));
        }
        if story.tasks.len() > 1 && !note.tasks.is_empty() {
            text = format!("{}: {text}", note.tasks.join(" "));
        }
        Some(Beat { at_ms: note.at_ms, lane, text, tone: note.tone, life: note.life })
    });
    Picture { beats: beats.collect(), lanes }
}

/// The nodes of a story in the order of the lanes.
fn nodes(story: &Story) -> Vec<String> {
    let mut nodes: Vec<String> = story.executors.iter().map(|executor| executor.name.clone()).collect();
    nodes.extend(["sweeper", "database", "third_party", "person"].map(str::to_owned));
    nodes
}

/// What happens to several tasks together becomes one note, and so does what a node does again and again with nothing
/// else in between; that one stands where it happened last.
fn fold(notes: Vec<Note>) -> Vec<Note> {
    let mut out: Vec<Note> = Vec::new();
    for note in notes {
        if let Some(index) = same_moment(&out, &note) {
            let mut tasks = std::mem::take(&mut out[index].tasks);
            tasks.extend(note.tasks);
            tasks.sort();
            out[index].tasks = tasks;
        } else {
            out.push(note);
        }
    }
    let mut folded: Vec<Note> = Vec::new();
    for note in out {
        folded.push(note);
        fold_last(&mut folded, 1);
        fold_last(&mut folded, 2);
    }
    folded
}

/// If the last `length` notes of a node are the same as those before them, makes one of each two.
fn fold_last(notes: &mut Vec<Note>, length: usize) {
    let Some(last) = notes.last() else { return };
    let own: Vec<usize> =
        (0..notes.len()).rev().filter(|index| notes[*index].node == last.node).take(2 * length).collect();
    if own.len() < 2 * length {
        return;
    }
    let (new, old) = own.split_at(length);
    let same = |(new, old): (&usize, &usize)| {
        let (new, old) = (&notes[*new], &notes[*old]);
        new.what == old.what && new.tasks == old.tasks && new.life.is_none()
    };
    if new.iter().zip(old).all(same) {
        for (new, old) in new.iter().zip(old) {
            let before = notes[*old].times;
            notes[*new].times += before;
        }
        // From the last on, so that the indices stay right.
        for index in old {
            notes.remove(*index);
        }
    }
}

/// The note that this one joins: the same about another task, with nothing but its own node's doings since.
fn same_moment(out: &[Note], note: &Note) -> Option<usize> {
    let task = note.tasks.first()?;
    let near = out.iter().enumerate().rev().take_while(|(_, earlier)| {
        let own = earlier.node == note.node && earlier.life.is_none() && earlier.at_ms + TOGETHER_MS >= note.at_ms;
        own || earlier.at_ms == note.at_ms && earlier.life.is_none()
    });
    let joins = |earlier: &Note| {
        earlier.node == note.node
            && earlier.what == note.what
            && !earlier.tasks.is_empty()
            && !earlier.tasks.contains(task)
    };
    near.filter(|(_, earlier)| joins(earlier)).map(|(index, _)| index).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(at_ms: u64, node: &str, what: &str, task: &str) -> Note {
        let tasks = vec![task.to_owned()];
        Note { at_ms, node: node.into(), what: what.into(), tasks, tone: Tone::Plain, life: None, times: 1 }
    }

    fn told(notes: &[Note]) -> Vec<String> {
        let tell = |note: &Note| {
            format!("{} {} {} {} ×{}", note.at_ms, note.node, note.tasks.join(","), note.what, note.times)
        };
        notes.iter().map(tell).collect()
    }

    #[test]
    fn what_happens_to_several_tasks_together_is_told_once() {
        let notes = vec![
            note(0, "w1", "claim", "t1"),
            note(0, "w1", "claim", "t2"),
            note(7, "w1", "work done", "t2"),
            note(9, "w1", "complete", "t2"),
            note(11, "w1", "work done", "t1"),
            note(15, "w1", "complete", "t1"),
        ];
        assert_eq!(told(&fold(notes)), ["0 w1 t1,t2 claim ×1", "7 w1 t1,t2 work done ×1", "9 w1 t1,t2 complete ×1"]);
    }

    #[test]
    fn heartbeats_fold_until_something_else_happens_at_their_node() {
        let notes = vec![
            note(10, "w1", "heartbeat", "t1"),
            note(12, "w2", "heartbeat", "t2"),
            note(20, "w1", "heartbeat", "t1"),
            note(25, "w1", "complete", "t1"),
            note(30, "w1", "heartbeat", "t1"),
        ];
        let expected =
            ["12 w2 t2 heartbeat ×1", "20 w1 t1 heartbeat ×2", "25 w1 t1 complete ×1", "30 w1 t1 heartbeat ×1"];
        assert_eq!(told(&fold(notes)), expected);
    }

    #[test]
    fn a_pair_that_comes_again_and_again_is_told_once() {
        let tries = (0..3).flat_map(|n| [note(n, "w1", "outcome", "t1"), note(n + 5, "w1", "no reply", "t1")]);
        assert_eq!(told(&fold(tries.collect())), ["2 w1 t1 outcome ×3", "7 w1 t1 no reply ×3"]);
    }

    #[test]
    fn nothing_is_folded_across_a_crash() {
        let crash = Note { life: Some(Life::Down), tasks: Vec::new(), ..note(10, "w1", "CRASH", "") };
        let notes = vec![note(10, "w1", "claim", "t1"), crash, note(10, "w1", "claim", "t2")];
        assert_eq!(fold(notes).len(), 3);
    }
}
