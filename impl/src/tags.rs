//! Every statement begins with a comment that says what it is.
//!
//! ```sql
//! /* leaseproof:complete id=$1 epoch=$2 */ UPDATE tasks SET …
//! ```
//!
//! Operators see it in `pg_stat_activity` and in slow-query logs. It also says which bind parameters carry the task's
//! id and the epoch that the writer presents, so that an observer on the wire knows who writes under which claim:
//!
//! | Field | Meaning |
//! |---|---|
//! | `id=$n` `epoch=$m` | one task, and the epoch presented for it |
//! | `effect=$n` | the key of the outside effect |
//! | `owner=$n` | the boot id that claims or registers |
//! | `pairs=$n..` | from `$n` on, ids and epochs alternate, to the last parameter |
//!
//! On MySQL, where a parameter has no number, `$n` is the n-th `?` of the text.
//!
//! The name after `leaseproof:` is a [`Verb`](leaseproof_rules::Verb)'s name, or one of the constants here for statements
//! that move no task along the transition table.

/// How every tag begins.
pub const PREFIX: &str = "/* leaseproof:";

/// Puts a task into the queue.
pub const ENQUEUE: &str = "enqueue";
/// Reads which tasks could be claimed. Only made where a claim of several fails for a row that refuses it, or where the
/// compare-and-set at the claim is switched off.
pub const CLAIM_READ: &str = "claim_read";
/// Reads RUNNING tasks whose lease has ended, whose owner is superseded, or that run for too long.
pub const SWEEP: &str = "sweep";
/// Journals what a third party said of an effect, for a task whose owner is lost.
pub const LEARN: &str = "learn";
/// Cuts a lease that ends impossibly late, because the database's clock was set back.
pub const CUT_LEASE: &str = "cut_lease";
/// Looks which leases that a heartbeat has not renewed are live all the same: somebody else holds their row.
pub const HELD_UP: &str = "held_up";
/// Journals what a person said of an effect, for a task in WAIT_MANUAL.
pub const SETTLE: &str = "settle";
/// Records the result of a run that does not own its task any more.
pub const LATE_RESULT: &str = "late_result";
/// Enters a process into the table of instances.
pub const REGISTER: &str = "register";
/// Marks the earlier starts of an instance slot as superseded (A2).
pub const SUPERSEDE: &str = "supersede";
/// Reads one row of the table of instances.
pub const INSTANCE: &str = "instance";
/// Reads what a claim, a heartbeat or a supersede before it has changed. Only exists on MySQL, which has no `RETURNING`.
pub const READ_BACK: &str = "read_back";
/// Reads one task to find out why a write changed nothing.
pub const LOOK: &str = "look";
/// Reads the effect journal of one task.
pub const JOURNAL: &str = "journal";
/// Reads a page of tasks for a person.
pub const LIST: &str = "list";
/// Reads whether any task is not resolved.
pub const OPEN: &str = "open";
/// Reads one task for a person.
pub const SHOW: &str = "show";
/// Reads the execution record of one task.
pub const RECORD: &str = "record";
/// Reads the version of the tables.
pub const SCHEMA: &str = "schema";
/// Creates or brings up the tables.
pub const MIGRATE: &str = "migrate";

/// What a tag says. Parameters are numbered from 1, as in the SQL text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tag<'a> {
    /// The name of the statement.
    pub name: &'a str,
    /// Which parameter carries the task's id.
    pub id: Option<usize>,
    /// Which parameter carries the epoch the writer presents.
    pub epoch: Option<usize>,
    /// Which parameter carries the effect's key.
    pub effect: Option<usize>,
    /// Which parameter carries a boot id.
    pub owner: Option<usize>,
    /// From which parameter on ids and epochs alternate.
    pub pairs: Option<usize>,
}

/// Reads the tag of a statement; `None` if it has none.
///
/// ```
/// let tag = leaseproof_queue::tags::parse("/* leaseproof:complete id=$1 epoch=$2 */ UPDATE tasks").unwrap();
/// assert_eq!((tag.name, tag.id, tag.epoch), ("complete", Some(1), Some(2)));
/// ```
pub fn parse(sql: &str) -> Option<Tag<'_>> {
    let (inside, _) = sql.trim_start().strip_prefix(PREFIX)?.split_once("*/")?;
    let mut words = inside.split_ascii_whitespace();
    let mut tag = Tag { name: words.next()?, ..Tag::default() };
    for word in words {
        let (field, parameter) = word.split_once("=$")?;
        let number = parameter.trim_end_matches("..").parse().ok();
        match field {
            "id" => tag.id = number,
            "epoch" => tag.epoch = number,
            "effect" => tag.effect = number,
            "owner" => tag.owner = number,
            "pairs" => tag.pairs = number,
            _ => {}
        }
    }
    Some(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_says_where_its_pairs_begin() {
        let tag = parse("/* leaseproof:heartbeat pairs=$1.. */ UPDATE tasks").unwrap();
        assert_eq!(tag, Tag { name: "heartbeat", pairs: Some(1), ..Tag::default() });
    }

    #[test]
    fn other_statements_have_no_tag() {
        assert_eq!(parse("SELECT 1"), None);
        assert_eq!(parse("/* leaseproof:never closed"), None);
    }
}
