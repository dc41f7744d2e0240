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

    /// The error for a column that can not be read, with the row's id where it has one.
    pub(crate) fn bad(&self, column: &'static str, why: impl std::fmt::Display) -> Error {
        Error::BadRow { verb: self.verb, id: self.id(), why: format!("column {column}: {why}") }
    }

    /// The row's own id, where it has one.
    fn id(&self) -> Option<i64> {
        match &self.cells {
            Cells::Postgres(row) => row.try_get("id").ok(),
            Cells::Sqlite(row) => row.try_get("id").ok(),
            Cells::MySql(row) => row.try_get("id").ok(),
            Cells::Said { .. } => None,
        }
    }

    /// The bytes of a text, whatever they are.
    fn raw(&self, column: &str) -> Vec<u8> {
        match &self.cells {
            Cells::Postgres(row) => row.try_get_unchecked(column).unwrap_or_default(),
            Cells::Sqlite(row) => row.try_get_unchecked(column).unwrap_or_default(),
            Cells::MySql(row) => row.try_get_unchecked(column).unwrap_or_default(),
            Cells::Said { .. } => Vec::new(),
        }
    }
}

/// Reads a row of which any column may hold what no program of ours has written: what can be read is read, the rest is
/// replaced and told. So one bad row stops nothing but itself.
pub(crate) struct Lenient<'r> {
    row: &'r Row,
    bad: Vec<String>,
}

impl<'r> Lenient<'r> {
    pub(crate) fn new(row: &'r Row) -> Lenient<'r> {
        Lenient { row, bad: Vec::new() }
    }

    /// A text; what is not UTF-8 in it is replaced.
    pub(crate) fn text(&mut self, column: &'static str) -> String {
        let read = self.row.text(column);
        read.unwrap_or_else(|error| self.replaced(column, &error))
    }

    /// A text, if there is one.
    pub(crate) fn opt_text(&mut self, column: &'static str) -> Option<String> {
        let read = self.row.opt_text(column);
        read.unwrap_or_else(|error| Some(self.replaced(column, &error)))
    }

    /// A whole number; 0 where there is none.
    pub(crate) fn int(&mut self, column: &'static str) -> i64 {
        let read = self.row.int(column);
        self.or(read, 0)
    }

    /// A whole number, if there is one.
    pub(crate) fn opt_int(&mut self, column: &'static str) -> Option<i64> {
        let read = self.row.opt_int(column);
        self.or(read, None)
    }

    /// A number that is not negative, or the nearest.
    pub(crate) fn count<N: TryFrom<i64> + Default>(&mut self, column: &'static str, most: N) -> N {
        let number = self.int(column);
        N::try_from(number).unwrap_or_else(|_| {
            self.bad.push(format!("column {column}: {number} is no count"));
            if number < 0 { N::default() } else { most }
        })
    }

    /// What could not be read, column by column.
    pub(crate) fn bad(self) -> Vec<String> {
        self.bad
    }

    fn or<T>(&mut self, read: Result<T, Error>, otherwise: T) -> T {
        read.unwrap_or_else(|error| {
            self.bad.push(said(&error));
            otherwise
        })
    }

    fn replaced(&mut self, column: &'static str, error: &Error) -> String {
        self.bad.push(said(error));
        String::from_utf8_lossy(&self.row.raw(column)).into_owned()
    }
}

/// What an error says of a row, without the statement's name.
fn said(error: &Error) -> String {
    match error {
        Error::BadRow { why, .. } => why.clone(),
        other => other.to_string(),
    }
}
