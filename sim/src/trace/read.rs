//! A trace from a file, a line at a time.

use std::io::BufRead;

use serde::Deserialize;

use super::{Header, Line, VERSION};

/// Longer than any line of a trace.
const LONGEST: u64 = 64 * 1024;

/// A file that is no trace, or not one of this version.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It can not be read.
    #[error("line {line} can not be read: {error}")]
    Io {
        /// The line, from 1.
        line: usize,
        /// Why.
        error: std::io::Error,
    },
    /// The header names another version.
    #[error(
        "a trace of version {0}; this program reads version {VERSION}: make it anew from its story and seed, with \
         `leaseproof replay STORY --seed N --trace FILE`"
    )]
    Version(u64),
    /// The first line is no header.
    #[error("line 1 is no header of a trace: {0}; a trace is what `leaseproof replay STORY --trace FILE` writes")]
    Header(serde_json::Error),
    /// A line is no event.
    #[error("line {line} is no event of a trace: {error}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// Why.
        error: serde_json::Error,
    },
    /// A line has no end.
    #[error("line {0} is longer than any of a trace, or the file ends within it")]
    Cut(usize),
}

/// Reads a trace without holding more than a line of it.
pub struct Reader<R> {
    file: R,
    header: Header,
    line: usize,
}

impl<R: BufRead> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// See [`TraceError`]. An old version is refused before anything else is looked at.
    pub fn new(mut file: R) -> Result<Reader<R>, TraceError> {
        #[derive(Deserialize)]
        struct Version {
            leaseproof_trace: u64,
        }
        let text = next_text(&mut file, 1)?.unwrap_or_default();
        let version: Version = serde_json::from_str(&text).map_err(TraceError::Header)?;
        if version.leaseproof_trace != u64::from(VERSION) {
            return Err(TraceError::Version(version.leaseproof_trace));
        }
        let header = serde_json::from_str(&text).map_err(TraceError::Header)?;
        Ok(Reader { file, header, line: 1 })
    }

    /// The first line.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The next event; `None` at the end.
    ///
    /// # Errors
    /// See [`TraceError`].
    pub fn next_line(&mut self) -> Result<Option<Line>, TraceError> {
        self.line += 1;
        let line = self.line;
        let Some(text) = next_text(&mut self.file, line)? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(|error| TraceError::Line { line, error })
    }
}

fn next_text(file: &mut impl BufRead, line: usize) -> Result<Option<String>, TraceError> {
    let mut text = String::new();
    let read = std::io::Read::take(file, LONGEST).read_line(&mut text);
    match read.map_err(|error| TraceError::Io { line, error })? {
        0 => Ok(None),
        _ if text.ends_with('\n') => Ok(Some(text)),
        _ => Err(TraceError::Cut(line)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let read = Reader::new(text.as_bytes()).and_then(|mut reader| {
            while reader.next_line()?.is_some() {}
            Ok(())
        });
        read.map(|()| "nothing".to_owned()).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn what_is_no_trace_of_this_version_is_refused_with_its_place() {
        let header = r#"{"leaseproof_trace":2,"scenario":"x","seed":1,"nodes":[],"tasks":[]}"#;
        assert_eq!(refused(&format!("{header}\n")), "nothing");
        // A field that a later version may have dropped does not hide the version.
        let old = refused("{\"leaseproof_trace\":1,\"gone\":true}\n");
        assert!(old.starts_with("a trace of version 1; this program reads version 2: make it anew"), "{old}");
        let cases = [
            (String::new(), "line 1 is no header"),
            ("{}\n".to_owned(), "line 1 is no header"),
            (header.to_owned(), "line 1 is longer than any of a trace, or the file ends within it"),
            (format!("{header}\n{{\"t_ns\":1}}\n"), "line 2 is no event"),
            (format!("{header}\n{{\"t_ns\":1,\"node\":\"a\",\"event\":\"b\",\"more\":1}}\n"), "line 2 is no event"),
            (format!("{header}\n{{\"t_ns\":1"), "line 2 is longer"),
        ];
        for (text, says) in cases {
            assert!(refused(&text).starts_with(says), "{text:?}: {}", refused(&text));
        }
    }
}
