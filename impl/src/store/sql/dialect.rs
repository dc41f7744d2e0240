//! What differs between databases.

use std::sync::Arc;

use super::ADOPTED;
use super::statement::{Answer, Statement};
use crate::tags;

/// The SQL of one kind of database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dialect {
    Postgres,
    Sqlite,
    /// MySQL and MariaDB.
    MySql,
}

impl Dialect {
    /// The database's clock: ms since the Unix epoch. In PostgreSQL a function of the schema.
    pub(crate) fn now(self) -> &'static str {
        match self {
            Dialect::Postgres => "leaseproof_now_ms()",
            Dialect::Sqlite => crate::SQLITE_NOW_MS,
            Dialect::MySql => crate::MYSQL_NOW_MS,
        }
    }

    /// The clock for a search by index. MySQL searches no index for a clock that is read anew for each row, so there it
    /// is the one of the statement's start: nothing is found too early.
    pub(super) fn now_for_index(self) -> &'static str {
        match self {
            Dialect::MySql => "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000",
            _ => self.now(),
        }
    }

    /// The name of a 64-bit integer in a CAST.
    pub(crate) fn bigint(self) -> &'static str {
        match self {
            Dialect::MySql => "SIGNED",
            _ => "BIGINT",
        }
    }

    /// The name of a text in a CAST.
    pub(super) fn text(self) -> &'static str {
        match self {
            Dialect::MySql => "CHAR",
            _ => "TEXT",
        }
    }

    /// Which index to search, where the planner is not to choose: of an index on a status it can not know how few rows
    /// have it at this moment.
    pub(super) fn index(self, name: &str) -> String {
        match self {
            Dialect::MySql => format!(" FORCE INDEX ({name})"),
            _ => String::new(),
        }
    }

    /// The table in an UPDATE of one task by its id. MySQL is told to go by the id: it may else go by the index on the status,
    /// lock its entry before the row, and so get into a deadlock with whoever has the row and changes its status.
    pub(super) fn one_task(self) -> &'static str {
        match self {
            Dialect::MySql => "tasks FORCE INDEX (PRIMARY)",
            _ => "tasks",
        }
    }

    /// What an UPDATE of the task `$1` changes, and what it demands besides, so that it does not wait for a row that
    /// somebody else has locked but changes nothing. SQLite locks no rows. (MySQL reads a subquery without a LIMIT as a part
    /// of the statement around it, and then skips nothing.)
    pub(super) fn if_free(self) -> (&'static str, &'static str) {
        match self {
            Dialect::Postgres => {
                ("tasks", "AND id IN (SELECT id FROM tasks WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED) ")
            }
            Dialect::Sqlite => ("tasks", ""),
            Dialect::MySql => (
                "(SELECT id AS free_id FROM tasks WHERE id = $1 LIMIT 1 FOR UPDATE SKIP LOCKED) AS free \
                 STRAIGHT_JOIN tasks FORCE INDEX (PRIMARY) ON id = free_id",
                "",
            ),
        }
    }

    /// What a write of one task ends with.
    pub(super) fn returning_task(self) -> &'static str {
        match self {
            Dialect::MySql => "",
            _ => "RETURNING epoch, last_note",
        }
    }

    /// What an insert ends with that does nothing where a unique key is in the way. Not MySQL's INSERT IGNORE, which
    /// ignores other errors too, nor its ON DUPLICATE KEY UPDATE, whose count does not tell new from old for a client
    /// that counts found rows, as sqlx does.
    pub(super) fn or_nothing(self, columns: &str, returning: &str) -> String {
        match (self, returning) {
            (Dialect::MySql, _) => String::new(),
            (_, "") => format!(" ON CONFLICT {columns}DO NOTHING"),
            (_, returning) => format!(" ON CONFLICT {columns}DO NOTHING RETURNING {returning}"),
        }
    }

    /// A statement that answers in rows.
    pub(super) fn rows(self, text: String) -> Statement {
        self.answering(text, Answer::Rows)
    }

    /// A write of one task that presents its epoch as `$2` and, if `fenced` by it, adds this much to it. Without a fence
    /// MySQL has to look what the epoch was.
    pub(super) fn task(self, text: String, fenced: bool, adds: bool) -> Statement {
        let answer = match fenced {
            true => Answer::Task { adds: i64::from(adds), note: None, or: None },
            false => {
                let read = format!(
                    "{}{} id=$1 */ SELECT epoch, last_note FROM tasks WHERE id = $1",
                    tags::PREFIX,
                    tags::READ_BACK
                );
                Answer::ReadBack(Arc::new(Statement::positional(&read, Answer::Rows)))
            }
        };
        self.answering(text, answer)
    }

    /// A completion: of the run that owns the task or, failing that, a late one that is adopted.
    pub(super) fn complete(self, own_or_late: String, own: String, late: String, fenced: bool) -> Statement {
        if self != Dialect::MySql || !fenced {
            return self.task(own_or_late, fenced, false);
        }
        let adopted = Answer::Task { adds: 1, note: Some(ADOPTED), or: None };
        let or = Some(Arc::new(Statement::positional(&late, adopted)));
        Statement::positional(&own, Answer::Task { adds: 0, note: None, or })
    }

    /// An insert of one row.
    pub(super) fn inserted(self, text: String) -> Statement {
        self.answering(text, Answer::Inserted)
    }

    fn answering(self, text: String, answer: Answer) -> Statement {
        match self {
            Dialect::MySql => Statement::positional(&text, answer),
            _ => text.into(),
        }
    }
}
