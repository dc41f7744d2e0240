//! What the node reads in a statement's text: its command, its tag, and what SQLite must not see.

use std::ops::Range;

/// The first thing a statement says it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Command {
    Begin,
    Commit,
    Rollback,
    /// ROLLBACK TO a savepoint.
    RollbackTo,
    Savepoint,
    Set,
    Insert,
    Update,
    Delete,
    /// SELECT, VALUES, and WITH … until SQLite says otherwise.
    Select,
    Other,
}

/// A statement's tag, as the queue's `tags` module describes it: `/* leaseproof:complete id=$1 epoch=$2 */`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Tag {
    /// The word after `leaseproof:`.
    pub op: String,
    /// Number of the parameter that holds the task's id.
    pub id: Option<usize>,
    /// Number of the parameter that holds the epoch the writer presents.
    pub epoch: Option<usize>,
    /// Number of the parameter that holds an effect's key.
    pub effect: Option<usize>,
    /// From this parameter on, ids and epochs alternate.
    pub pairs: Option<usize>,
}

/// A SELECT … FOR UPDATE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LockingRead {
    /// NOWAIT.
    pub no_wait: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Code,
    Quoted,
    Comment,
}

/// Splits a text into code, quoted text and comments.
fn pieces(sql: &str) -> Vec<(Kind, Range<usize>)> {
    let bytes = sql.as_bytes();
    let mut out = Vec::new();
    let (mut at, mut code) = (0, 0);
    while at < bytes.len() {
        let rest = &sql[at..];
        let (kind, len) = if rest.starts_with("--") {
            (Kind::Comment, rest.find('\n').unwrap_or(rest.len()))
        } else if rest.starts_with("/*") {
            (Kind::Comment, rest.find("*/").map_or(rest.len(), |end| end + 2))
        } else if bytes[at] == b'\'' || bytes[at] == b'"' {
            let end = rest[1..].find(char::from(bytes[at])).map_or(rest.len(), |end| end + 2);
            (Kind::Quoted, end)
        } else {
            at += 1;
            while !sql.is_char_boundary(at) {
                at += 1;
            }
            continue;
        };
        if code < at {
            out.push((Kind::Code, code..at));
        }
        out.push((kind, at..at + len));
        at += len;
        code = at;
    }
    if code < sql.len() {
        out.push((Kind::Code, code..sql.len()));
    }
    out
}

/// The statements of a simple query, separated by semicolons outside quotes and comments; empty ones left out.
pub(crate) fn split(sql: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut begin = 0;
    for (kind, range) in pieces(sql) {
        if kind == Kind::Code {
            for (offset, _) in sql[range.clone()].match_indices(';') {
                out.push(&sql[begin..range.start + offset]);
                begin = range.start + offset + 1;
            }
        }
    }
    out.push(&sql[begin..]);
    out.retain(|statement| words(statement).next().is_some());
    out
}

/// The code's words in upper case.
fn words(sql: &str) -> impl Iterator<Item = String> + '_ {
    pieces(sql).into_iter().filter(|(kind, _)| *kind == Kind::Code).flat_map(move |(_, range)| {
        let text = sql[range].split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        text.filter(|word| !word.is_empty()).map(str::to_ascii_uppercase).collect::<Vec<_>>()
    })
}

/// What the statement does, by its first words.
pub(crate) fn command(sql: &str) -> Command {
    let mut words = words(sql);
    match words.next().unwrap_or_default().as_str() {
        "BEGIN" | "START" => Command::Begin,
        "COMMIT" | "END" => Command::Commit,
        "ABORT" => Command::Rollback,
        "ROLLBACK" => match words.next().as_deref() {
            Some("TO") => Command::RollbackTo,
            _ => Command::Rollback,
        },
        "SAVEPOINT" | "RELEASE" => Command::Savepoint,
        "SET" => Command::Set,
        "INSERT" => Command::Insert,
        "UPDATE" => Command::Update,
        "DELETE" => Command::Delete,
        "SELECT" | "VALUES" | "WITH" => Command::Select,
        _ => Command::Other,
    }
}

/// The word that opens the reply to the statement, e.g. `COMMIT`.
pub(crate) fn first_word(sql: &str) -> String {
    words(sql).next().unwrap_or_default()
}

/// The statement's tag, if it begins with one.
pub(crate) fn tag(sql: &str) -> Option<Tag> {
    let tag = leaseproof_queue_sim::tags::parse(sql)?;
    Some(Tag { op: tag.name.to_owned(), id: tag.id, epoch: tag.epoch, effect: tag.effect, pairs: tag.pairs })
}

/// The text for SQLite: without row locking clauses, which a serial executor does not need.
pub(crate) fn for_sqlite(sql: &str) -> String {
    const CLAUSES: [&str; 6] = [
        "FOR NO KEY UPDATE SKIP LOCKED",
        "FOR UPDATE SKIP LOCKED",
        "FOR UPDATE NOWAIT",
        "FOR NO KEY UPDATE",
        "FOR UPDATE",
        "FOR SHARE",
    ];
    let mut out = String::with_capacity(sql.len());
    for (kind, range) in pieces(sql) {
        let mut rest = &sql[range];
        loop {
            if kind != Kind::Code {
                break;
            }
            let upper = rest.to_ascii_uppercase();
            let found = CLAUSES.iter().filter_map(|clause| Some((upper.find(clause)?, clause.len()))).min_by_key(
                // of the clauses that begin earliest, the longest
                |(at, len)| (*at, usize::MAX - len),
            );
            let Some((at, len)) = found else { break };
            out.push_str(&rest[..at]);
            rest = &rest[at + len..];
        }
        out.push_str(rest);
    }
    out
}

/// Whether the statement locks the rows it reads, and if so, whether it gives up at once where somebody holds one.
pub(crate) fn locking(sql: &str) -> Option<LockingRead> {
    let words: Vec<String> = words(sql).collect();
    let locks = words.windows(2).any(|two| two[0] == "FOR" && two[1] == "UPDATE");
    locks.then(|| LockingRead { no_wait: words.last().is_some_and(|word| word == "NOWAIT") })
}

/// Whether a `SET` ends with its transaction.
pub(crate) fn is_local(sql: &str) -> bool {
    words(sql).nth(1).is_some_and(|word| word == "LOCAL")
}

/// A `SET name = value` or `SET name TO value`, `LOCAL` and `SESSION` ignored.
pub(crate) fn setting(sql: &str) -> Option<(String, String)> {
    let text = sql.trim().trim_end_matches(';').trim();
    let rest = text.get(..3).filter(|set| set.eq_ignore_ascii_case("set")).map(|_| text[3..].trim())?;
    let (name, value) = rest.split_once('=').or_else(|| rest.split_once(" TO ")).or_else(|| rest.split_once(" to "))?;
    let name = name.split_whitespace().last()?.to_ascii_lowercase();
    Some((name, value.trim().trim_matches('\'').to_owned()))
}

/// A duration as PostgreSQL's settings have it: milliseconds unless it says otherwise.
pub(crate) fn setting_ms(value: &str) -> Option<u64> {
    let value = value.trim();
    let end = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let number: u64 = value[..end].parse().ok()?;
    match value[end..].trim() {
        "" | "ms" => Some(number),
        "s" => number.checked_mul(1_000),
        "min" => number.checked_mul(60_000),
        "h" => number.checked_mul(3_600_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_found_in_the_opening_comment_and_nowhere_else() {
        let sql = "/* leaseproof:complete id=$1 epoch=$2 */ UPDATE tasks SET a = $3";
        let expected = Tag { op: "complete".into(), id: Some(1), epoch: Some(2), ..Tag::default() };
        assert_eq!(tag(sql), Some(expected));
        assert_eq!(tag("SELECT '/* leaseproof:claim */'"), None);
    }

    #[test]
    fn the_command_is_the_first_word_after_comments() {
        assert_eq!(command("/* SELECT */ -- INSERT\n update t set x = 1"), Command::Update);
        assert_eq!(command("ROLLBACK TO SAVEPOINT a"), Command::RollbackTo);
        assert_eq!(command("rollback"), Command::Rollback);
        assert_eq!(command("/* nothing */"), Command::Other);
    }

    #[test]
    fn statements_are_split_outside_quotes_and_comments() {
        assert_eq!(split("SELECT ';'; -- ;\n SELECT 2;;"), ["SELECT ';'", " -- ;\n SELECT 2"]);
        assert!(split(" ; /* ; */ ").is_empty());
    }

    #[test]
    fn locking_clauses_are_removed_from_code_only() {
        let sql = "SELECT 'FOR UPDATE' FROM t ORDER BY id LIMIT 1 for update skip locked";
        assert_eq!(for_sqlite(sql), "SELECT 'FOR UPDATE' FROM t ORDER BY id LIMIT 1 ");
        assert_eq!(for_sqlite("(SELECT 1 FOR UPDATE) x"), "(SELECT 1 ) x");
    }

    #[test]
    fn a_locking_read_is_known_with_its_patience() {
        assert_eq!(locking("SELECT 1 FROM t FOR UPDATE"), Some(LockingRead { no_wait: false }));
        assert_eq!(locking("/* x */ select 1 from t for update nowait"), Some(LockingRead { no_wait: true }));
        assert_eq!(locking("UPDATE t SET a = 'FOR UPDATE'"), None);
        assert!(is_local("SET LOCAL lock_timeout = '1ms'") && !is_local("SET lock_timeout = 1"));
    }

    #[test]
    fn settings_are_read_with_their_units() {
        assert_eq!(setting("SET statement_timeout = '5s'"), Some(("statement_timeout".into(), "5s".into())));
        assert_eq!(setting("set local lock_timeout TO 250"), Some(("lock_timeout".into(), "250".into())));
        assert_eq!((setting_ms("5s"), setting_ms("250"), setting_ms("2 min")), (Some(5000), Some(250), Some(120_000)));
        assert_eq!(setting_ms("soon"), None);
    }
}
