//! Values that go into a statement and rows that come out of it, the same for every database.

use sqlx::Row as _;
use sqlx::mysql::MySqlRow;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;

use crate::Error;

/// A bind parameter. The kind is known even where the value is absent, since PostgreSQL wants to know it.
#[derive(Clone, Debug)]
pub(crate) enum Param {
    Int(Option<i64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
}

impl Param {
    pub(crate) fn int(value: i64) -> Param {
        Param::Int(Some(value))
    }

    pub(crate) fn text(value: impl Into<String>) -> Param {
        Param::Text(Some(value.into()))
    }
}

/// A row of any of the databases.
pub(crate) struct Row {
    pub(crate) verb: &'static str,
    pub(crate) cells: Cells,
}

pub(crate) enum Cells {
    Postgres(PgRow),
    Sqlite(SqliteRow),
    MySql(MySqlRow),
    /// What a database without `RETURNING` says instead of a row.
    Said {
        /// The one integer that the row would have: an id, or an epoch.
        number: i64,
        /// The one text that it would have.
        note: Option<&'static str>,
    },
}

macro_rules! getter {
    ($name:ident, $type:ty, $said:expr) => {
        pub(crate) fn $name(&self, column: &'static str) -> Result<$type, Error> {
            let said: fn(i64, Option<&'static str>) -> Option<$type> = $said;
            match &self.cells {
                Cells::Postgres(row) => row.try_get(column),
                Cells::Sqlite(row) => row.try_get(column),
                Cells::MySql(row) => row.try_get(column),
                Cells::Said { number, note } => {
                    said(*number, *note).ok_or_else(|| sqlx::Error::ColumnNotFound(column.into()))
                }
            }
            .map_err(|error| self.bad(column, error))
        }
    };
}

impl Row {
    getter!(int, i64, |number, _| Some(number));
    getter!(opt_int, Option<i64>, |number, _| Some(Some(number)));
    getter!(text, String, |_, _| None);
    getter!(opt_text, Option<String>, |_, note| Some(note.map(str::to_string)));
    getter!(bytes, Vec<u8>, |_, _| None);

    /// The error for a column that can not be read.
    pub(crate) fn bad(&self, column: &'static str, why: impl std::fmt::Display) -> Error {
        Error::BadRow { verb: self.verb, why: format!("column {column}: {why}") }
    }
}
