//! Events in words: what stands in a lane.

use leaseproof_model::trace::Event;

use crate::lanes::{Beat, Life};
use crate::style::Tone;

/// A run, ready to be drawn.
pub struct Picture {
    /// The nodes that have events, in the order of the lanes.
    pub lanes: Vec<String>,
    pub beats: Vec<Beat>,
}

/// Something in a lane that says nothing of its task yet.
struct Note {
    at_ms: u64,
    node: String,
    what: String,
    tasks: Vec<String>,
    tone: Tone,
    life: Option<Life>,
    /// A heartbeat without consequence: how often.
    beats: usize,
}

/// The events of the model.
pub fn of_model(events: &[Event], nodes: &[String]) -> Picture {
    let notes = events.iter().map(|event| {
        let what = match event.epoch {
            Some(epoch) if event.task.is_some() => format!("{}, epoch {epoch}", event.what),
            _ => event.what.clone(),
        };
        let (tone, life) = tone_of_model(&event.what);
        Note {
            at_ms: event.time_ms,
            node: event.node.clone(),
            tasks: event.task.iter().cloned().collect(),
            beats: usize::from(event.what == "heartbeat"),
            what,
            tone,
            life,
        }
    });
    picture(notes.collect(), nodes)
}

fn tone_of_model(what: &str) -> (Tone, Option<Life>) {
    match what {
        "CRASH" => (Tone::Fault, Some(Life::Down)),
        "stands still" => (Tone::Fault, Some(Life::Paused)),
        "starts" => (Tone::Plain, Some(Life::Up)),
        "goes on" => (Tone::Plain, Some(Life::Up)),
        _ if what.starts_with("VIOLATED") || what.contains("WAIT_MANUAL") => (Tone::Bad, None),
        _ if what.starts_with("cut off") || what.ends_with(" lost") => (Tone::Fault, None),
        _ if what.contains("refused") || what.contains("unknown") || what.contains("no reply") => (Tone::Dim, None),
        _ if what.contains("SUCCESS") || what.starts_with("executes the call") => (Tone::Good, None),
        _ => (Tone::Plain, None),
    }
}

/// Folds what belongs together and gives each node its lane.
fn picture(notes: Vec<Note>, nodes: &[String]) -> Picture {
    let notes = fold(notes);
    let lanes: Vec<String> =
        nodes.iter().filter(|node| notes.iter().any(|note| note.node == **node)).cloned().collect();
    let mut all: Vec<&str> = notes.iter().flat_map(|note| note.tasks.iter().map(String::as_str)).collect();
    all.sort_unstable();
    all.dedup();
    let beats = notes.iter().filter_map(|note| {
        let lane = lanes.iter().position(|lane| *lane == note.node)?;
        let mut text = note.what.clone();
        if note.beats > 1 {
            text.push_str(&format!(" ×{}", note.beats));
        }
        if all.len() > 1 && !note.tasks.is_empty() {
            text = format!("{} {text}", note.tasks.join(","));
        }
        Some(Beat { at_ms: note.at_ms, lane, text, tone: note.tone, life: note.life })
    });
    Picture { beats: beats.collect(), lanes }
}

/// The same thing about several tasks at one moment is one note; heartbeats of a node with nothing else between them are
/// one note, at the last of them.
fn fold(notes: Vec<Note>) -> Vec<Note> {
    let mut out: Vec<Note> = Vec::new();
    for note in notes {
        let last = out.iter().rposition(|earlier| earlier.node == note.node);
        let Some(index) = last else {
            out.push(note);
            continue;
        };
        let earlier = &mut out[index];
        if earlier.at_ms == note.at_ms && earlier.what == note.what && earlier.life == note.life {
            for task in note.tasks {
                if !earlier.tasks.contains(&task) {
                    earlier.tasks.push(task);
                }
            }
        } else if earlier.beats > 0 && note.beats > 0 && earlier.what == note.what && earlier.tasks == note.tasks {
            let mut note = note;
            note.beats += earlier.beats;
            out.remove(index);
            out.push(note);
        } else {
            out.push(note);
        }
    }
    out
}
