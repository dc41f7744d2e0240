//! What the queue stores has to fit, and to be readable in every database. It is checked here, before anything is written.

use std::borrow::Cow;

use crate::Error;

/// The longest payload, result, or outcome of an effect, in bytes: 1 MiB. Larger things belong into a store of their own,
/// and their address into the task.
pub const MOST_JSON_BYTES: usize = 1 << 20;

/// The longest error, reason, name or key, in bytes: 64 KiB.
pub const MOST_TEXT_BYTES: usize = 64 << 10;

/// What a shortened text ends with.
const CUT: &str = "… (cut)";

/// Checks a payload or a result: JSON, not too long, and without the one character that PostgreSQL can not store.
///
/// # Errors
/// [`Error::BadInput`] for `what`.
pub(crate) fn json(what: &'static str, bytes: &[u8]) -> Result<(), Error> {
    let refuse = |why: String| Err(Error::BadInput { what, why });
    if bytes.len() > MOST_JSON_BYTES {
        return refuse(format!("has {} bytes; at most {MOST_JSON_BYTES} are accepted", bytes.len()));
    }
    if let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(bytes) {
        return refuse(format!("is not JSON: {error}"));
    }
    if has_nul(bytes) {
        return refuse("has a NUL (\\u0000), which PostgreSQL can not store; leave it out".into());
    }
    Ok(())
}

/// Checks a text that a person or a program gives.
///
/// # Errors
/// [`Error::BadInput`] for `what`.
pub(crate) fn text(what: &'static str, text: &str) -> Result<(), Error> {
    let refuse = |why: String| Err(Error::BadInput { what, why });
    if text.len() > MOST_TEXT_BYTES {
        return refuse(format!("has {} bytes; at most {MOST_TEXT_BYTES} are accepted", text.len()));
    }
    if text.contains('\0') {
        return refuse("has a NUL, which PostgreSQL can not store; leave it out".into());
    }
    Ok(())
}

/// Whether what a call brought can be stored.
pub(crate) fn fits(outcome: &str) -> bool {
    outcome.len() <= MOST_JSON_BYTES && !outcome.contains('\0')
}

/// An error as it can be stored. It comes from anywhere, and must not keep the report of a run from being written: so it
/// is not refused, but cut.
pub(crate) fn shortened(text: &str) -> Cow<'_, str> {
    let text = match text.contains('\0') {
        true => Cow::Owned(text.replace('\0', "\u{fffd}")),
        false => Cow::Borrowed(text),
    };
    if text.len() <= MOST_TEXT_BYTES {
        return text;
    }
    let end = text.floor_char_boundary(MOST_TEXT_BYTES - CUT.len());
    Cow::Owned(format!("{}{CUT}", &text[..end]))
}

/// Whether JSON has the escape of a NUL. A backslash is only ever found in a string, and begins an escape.
fn has_nul(json: &[u8]) -> bool {
    let mut at = 0;
    while let Some(found) = json[at..].iter().position(|byte| *byte == b'\\') {
        let escape = &json[at + found + 1..];
        if escape.starts_with(b"u0000") {
            return true;
        }
        // The escaped character may be a backslash itself.
        at += found + 2;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_refused_a_byte_beyond_the_bound() {
        let of = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2)).into_bytes();
        assert!(json("payload", &of(MOST_JSON_BYTES)).is_ok());
        let error = json("payload", &of(MOST_JSON_BYTES + 1)).expect_err("too long").to_string();
        assert!(error.contains("payload") && error.contains("1048577") && error.contains("1048576"), "{error}");
    }

    #[test]
    fn only_the_escape_of_a_nul_is_one() {
        for nul in [r#""\u0000""#, r#"{"a\u0000b": 1}"#, r#"["\\\u0000"]"#] {
            let error = json("payload", nul.as_bytes()).expect_err(nul).to_string();
            assert!(error.contains("NUL"), "{error}");
        }
        for fine in [r#""\\u0000""#, r#""\u0001""#, r#""\u00000""#.trim_end_matches("0\""), "\"\\\\\"", "1"] {
            let judged = json("payload", fine.as_bytes());
            assert!(judged.is_ok() || !judged.expect_err(fine).to_string().contains("NUL"), "{fine}");
        }
        assert!(json("payload", b"\"\0\"").is_err(), "a raw one is no JSON");
    }

    #[test]
    fn an_error_is_cut_between_letters_and_says_so() {
        assert_eq!(shortened("boom"), "boom");
        assert_eq!(shortened("a\0b"), "a\u{fffd}b");
        let long = "ä".repeat(MOST_TEXT_BYTES);
        let cut = shortened(&long);
        assert!(cut.len() <= MOST_TEXT_BYTES && cut.len() > MOST_TEXT_BYTES - 20, "{}", cut.len());
        assert!(cut.ends_with("ä… (cut)"));
        assert!(text("why", &cut).is_ok() && text("why", &long).is_err());
    }
}
