//! A run as lanes: one lane a node, virtual time down the side.

use std::fmt::Write;

use unicode_width::UnicodeWidthStr;

use crate::style::{Tone, paint};

/// What an event does to its node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    Up,
    Down,
    Paused,
}

/// One line of the picture.
pub struct Beat {
    /// Virtual time in ms.
    pub at_ms: u64,
    /// Index of the lane.
    pub lane: usize,
    pub text: String,
    pub tone: Tone,
    /// The node's state from here on, if it changes.
    pub life: Option<Life>,
}

const TIME: usize = 10;
const NARROWEST: usize = 18;
const WIDEST: usize = 44;

/// Draws the beats, in the given order, within `width` columns as far as the lanes allow.
pub fn draw(lanes: &[String], beats: &[Beat], width: usize) -> String {
    let each = (width.saturating_sub(TIME) / lanes.len().max(1)).clamp(NARROWEST, WIDEST);
    let mut out = format!("{:>TIME$}", "time ");
    for lane in lanes {
        out.push_str(&paint(Tone::Strong, lane));
        out.push_str(&" ".repeat(each.saturating_sub(lane.width())));
    }
    trim(&mut out);
    let mut life: Vec<Life> = (0..lanes.len()).map(|lane| at_first(lane, beats)).collect();
    let mut last = None;
    for beat in beats {
        let stamp = match last {
            Some(at) if at == beat.at_ms => String::new(),
            _ => format!("{}.{:03}s", beat.at_ms / 1_000, beat.at_ms % 1_000),
        };
        last = Some(beat.at_ms);
        for (row, piece) in wrap(&beat.text, each - 3).into_iter().enumerate() {
            let _ = write!(out, "{:>width$} ", if row == 0 { stamp.as_str() } else { "" }, width = TIME - 1);
            for (lane, state) in life.iter().enumerate() {
                if lane == beat.lane {
                    let mark = if row == 0 { "●" } else { line(*state) };
                    out.push_str(&paint(beat.tone, &format!("{mark} {piece}")));
                    out.push_str(&" ".repeat((each - 2).saturating_sub(piece.width())));
                } else {
                    let _ = write!(out, "{:<each$}", line(*state));
                }
            }
            trim(&mut out);
        }
        if let Some(state) = beat.life {
            life[beat.lane] = state;
        }
    }
    out
}

/// A node whose first change is to come up was not there before.
fn at_first(lane: usize, beats: &[Beat]) -> Life {
    match beats.iter().filter(|beat| beat.lane == lane).find_map(|beat| beat.life) {
        Some(Life::Up) => Life::Down,
        _ => Life::Up,
    }
}

/// What stands for a node that does nothing.
fn line(life: Life) -> &'static str {
    match life {
        Life::Up => "│",
        Life::Paused => "┊",
        Life::Down => " ",
    }
}

fn trim(out: &mut String) {
    out.truncate(out.trim_end_matches(' ').len());
    out.push('\n');
}

/// Breaks a text at spaces into pieces of at most `width` characters; a longer word is broken where it has to be.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let words = text.split(' ').flat_map(|word| {
        let chars: Vec<char> = word.chars().collect();
        chars.chunks(width.max(1)).map(|part| part.iter().collect::<String>()).collect::<Vec<_>>()
    });
    for word in words {
        match pieces.last_mut() {
            Some(piece) if piece.chars().count() + 1 + word.chars().count() <= width => {
                piece.push(' ');
                piece.push_str(&word);
            }
            _ => pieces.push(word),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beat(at_ms: u64, lane: usize, text: &str, life: Option<Life>) -> Beat {
        Beat { at_ms, lane, text: text.to_owned(), tone: Tone::Plain, life }
    }

    #[test]
    fn a_dead_node_has_no_line_and_a_paused_one_a_broken_line() {
        let lanes = ["w1", "w2", "w3"].map(str::to_owned);
        let beats = [
            beat(0, 0, "claim t1", None),
            beat(12_000, 0, "crash", Some(Life::Down)),
            beat(12_000, 1, "pause", Some(Life::Paused)),
            beat(45_250, 0, "start", Some(Life::Up)),
            beat(45_250, 2, "start", Some(Life::Up)),
        ];
        let picture = draw(&lanes, &beats, 70);
        let plain = anstream::adapter::strip_str(&picture).to_string();
        let lines = [
            "     time w1                  w2                  w3",
            "   0.000s ● claim t1          │",
            "  12.000s ● crash             │",
            "                              ● pause",
            "  45.250s ● start             ┊",
            "          │                   ┊                   ● start",
        ];
        assert_eq!(plain.lines().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn a_long_text_goes_on_in_its_lane() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("incomprehensibilities", 7), ["incompr", "ehensib", "ilities"]);
    }
}
