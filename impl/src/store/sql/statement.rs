//! A statement, and how its database answers it.

use std::sync::Arc;

/// A text, and where its parameters go.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub text: Arc<str>,
    /// For a database whose parameters have no numbers: which parameter each place takes, counted from 0. Else empty.
    pub places: Arc<[usize]>,
    pub answer: Answer,
}

/// How a statement says what it did. PostgreSQL and SQLite say it in rows. MySQL has no `RETURNING`; a change is answered
/// by a count of rows, an insert by the new id too. (`LAST_INSERT_ID(…)` in an UPDATE does not get into the answer where
/// the table has triggers.)
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// In rows.
    Rows,
    /// A write of one task that presents its epoch as `$2`.
    Task {
        /// What it adds to the epoch.
        adds: i64,
        /// What a row would have as its note.
        note: Option<&'static str>,
        /// What is tried, with the same parameters, if it changed nothing.
        or: Option<Arc<Statement>>,
    },
    /// An insert of one row. That a unique key is in the way is an answer too, and no error: nothing is new.
    Inserted,
    /// A write of many rows, which a second statement with the same parameters reads back.
    ReadBack(Arc<Statement>),
}

impl From<String> for Statement {
    fn from(text: String) -> Statement {
        Statement { text: text.into(), places: Arc::new([]), answer: Answer::Rows }
    }
}

impl Statement {
    /// The same with `?` for each `$n`, as MySQL has it. In the tag, a parameter's number becomes that of the first place
    /// that takes it.
    pub(crate) fn positional(text: &str, answer: Answer) -> Statement {
        let (tag, body) = text.split_at(text.find("*/").unwrap_or(0));
        let mut places = Vec::new();
        let body = with_numbers(body, |number| {
            places.push(number - 1);
            "?".into()
        });
        let tag = with_numbers(tag, |number| match places.iter().position(|place| place + 1 == number) {
            Some(place) => format!("${}", place + 1),
            None => format!("${number}"),
        });
        Statement { text: (tag + &body).into(), places: places.into(), answer }
    }
}

/// The text with every `$n` replaced.
fn with_numbers(text: &str, mut replaced: impl FnMut(usize) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut pieces = text.split('$');
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let end = piece.find(|c: char| !c.is_ascii_digit()).unwrap_or(piece.len());
        match piece[..end].parse() {
            Ok(number) if number > 0 => out.push_str(&replaced(number)),
            _ => {
                out.push('$');
                out.push_str(&piece[..end]);
            }
        }
        out.push_str(&piece[end..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_that_is_used_twice_has_two_places() {
        let text =
            "/* leaseproof:x id=$1 epoch=$2 */ UPDATE t SET a = $12, b = $2 WHERE id = $1 AND c <> $2 AND d = '$'";
        let statement = Statement::positional(text, Answer::Rows);
        assert_eq!(
            &*statement.text,
            "/* leaseproof:x id=$3 epoch=$2 */ UPDATE t SET a = ?, b = ? WHERE id = ? AND c <> ? AND d = '$'"
        );
        assert_eq!(&*statement.places, [11, 1, 0, 1]);
    }
}
