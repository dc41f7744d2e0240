//! Colours, and the one way to standard output.

use std::io::{ErrorKind, Write};

use anstyle::{AnsiColor, Style};

use crate::failure::Failure;

/// What a text means to the reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    Plain,
    /// Headings.
    Strong,
    /// The work, or a decision, goes through.
    Good,
    /// A write is refused, a reply does not come.
    Dim,
    /// Somebody has to look.
    Bad,
    /// The story does this on purpose.
    Fault,
}

/// The style of a tone. Whether it is shown is decided where it is printed.
pub fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Strong => Style::new().bold(),
        Tone::Good => AnsiColor::Green.on_default(),
        Tone::Dim => Style::new().dimmed(),
        Tone::Bad => AnsiColor::Red.on_default().bold(),
        Tone::Fault => AnsiColor::Yellow.on_default(),
    }
}

/// The text in its tone.
pub fn paint(tone: Tone, text: &str) -> String {
    let style = style(tone);
    format!("{}{text}{}", style.render(), style.render_reset())
}

/// Writes to standard output, without colours where they are not wanted (`NO_COLOR`, a pipe). A reader that has gone
/// away is no failure: the exit code is still the answer.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Internal(format!("standard output can not be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// One JSON value and a line's end.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    print(&text)
}

/// The columns of the terminal; 100 where there is none.
pub fn width() -> usize {
    terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0))
}
