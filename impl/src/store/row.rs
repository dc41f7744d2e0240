//! Values that go into a statement and rows that come out of it, the same for every database.

use sqlx::Row as _;
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
}

macro_rules! getter {
    ($(#[$doc:meta])* $name:ident, $type:ty) => {
        $(#[$doc])*
        pub(crate) fn $name(&self, column: &'static str) -> Result<$type, Error> {
            match &self.cells {
                Cells::Postgres(row) => row.try_get(column),
                Cells::Sqlite(row) => row.try_get(column),
            }
            .map_err(|error| self.bad(column, error))
        }
    };
}

impl Row {
    getter!(int, i64);
    getter!(opt_int, Option<i64>);
    getter!(text, String);
    getter!(opt_text, Option<String>);
    getter!(bytes, Vec<u8>);

    /// The error for a column that can not be read.
    pub(crate) fn bad(&self, column: &'static str, why: impl std::fmt::Display) -> Error {
        Error::BadRow { verb: self.verb, why: format!("column {column}: {why}") }
    }
}
