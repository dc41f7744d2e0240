//! Colours, and the one way to standard output and standard error.

use std::borrow::Cow;
use std::io::{self, ErrorKind, Write};

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

/// A text from outside, as a terminal may get it: what would move the cursor, change colours or turn the direction of
/// reading is written as an escape, line ends included. Everything that others have put into the database goes through here.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(unsafe_to_print) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => out.extend(c.escape_default()),
            c if unsafe_to_print(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Control characters, and what nobody sees: marks of direction, separators of lines, letters of no width, tags.
fn unsafe_to_print(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Writes to standard output, without colours where they are not wanted (`NO_COLOR`, a pipe). A reader that has gone
/// away is no failure: the exit code is still the answer.
pub fn print(text: &str) -> Result<(), Failure> {
    write_all(&mut anstream::stdout().lock(), text)
}

/// One JSON value and a line's end.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    print_exactly(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// Writes to standard output what programs read: byte for byte.
pub fn print_exactly(text: &str) -> Result<(), Failure> {
    write_all(&mut io::stdout().lock(), text)
}

fn write_all(out: &mut impl Write, text: &str) -> Result<(), Failure> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Internal(format!("standard output can not be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Says on standard error why the command did not succeed. If that is closed or full, the exit code still says it.
pub fn complain(failure: &Failure) {
    let text = format!("{} {}\n", paint(Tone::Bad, "leaseproof:"), plain(&failure.to_string()));
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

/// Standard error for the log: each write is a line, made [`plain`], and never fails.
pub struct Log;

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let _ = io::stderr().lock().write_all(format!("{}\n", plain(text.trim_end_matches('\n'))).as_bytes());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The columns of the terminal; 100 where there is none.
pub fn width() -> usize {
    terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_reaches_the_terminal_as_a_command() {
        assert_eq!(plain("a\u{1b}[2Jb\r\nc\td"), "a\\u{1b}[2Jb\\r\\nc\\td");
        assert_eq!(
            plain("\u{9b}31m \u{202e}txt\u{2066} \u{200b}\u{feff}"),
            r"\u{9b}31m \u{202e}txt\u{2066} \u{200b}\u{feff}"
        );
        assert!(matches!(plain("größer, 大, 🦀, \\n"), Cow::Borrowed(_)));
    }
}
