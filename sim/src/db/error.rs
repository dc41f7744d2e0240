//! SQLite's errors as PostgreSQL's: what a client may rely on is the SQLSTATE.

use rusqlite::ErrorCode;

/// An error as the wire carries it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SqlError {
    /// The SQLSTATE.
    pub code: &'static str,
    pub message: String,
    /// The constraint that refused, named as PostgreSQL would name it.
    pub constraint: Option<String>,
    /// The session ends with it.
    pub fatal: bool,
}

impl SqlError {
    pub fn new(code: &'static str, message: impl Into<String>) -> SqlError {
        SqlError { code, message: message.into(), constraint: None, fatal: false }
    }

    pub fn fatal(code: &'static str, message: impl Into<String>) -> SqlError {
        SqlError { fatal: true, ..SqlError::new(code, message) }
    }
}

/// SQLite's extended result codes for what a constraint refuses.
mod extended {
    pub const CHECK: i32 = 275;
    pub const FOREIGN_KEY: i32 = 787;
    pub const NOT_NULL: i32 = 1299;
    pub const PRIMARY_KEY: i32 = 1555;
    pub const TRIGGER: i32 = 1811;
    pub const UNIQUE: i32 = 2067;
}

impl From<rusqlite::Error> for SqlError {
    fn from(error: rusqlite::Error) -> SqlError {
        let (failure, message) = match &error {
            rusqlite::Error::SqliteFailure(failure, message) => (failure, message.clone()),
            rusqlite::Error::SqlInputError { error, msg, .. } => (error, Some(msg.clone())),
            _ => return SqlError::new("XX000", error.to_string()),
        };
        let message = message.unwrap_or_else(|| error.to_string());
        let code = match (failure.extended_code, failure.code) {
            (extended::UNIQUE | extended::PRIMARY_KEY, _) => "23505",
            (extended::NOT_NULL, _) => "23502",
            (extended::FOREIGN_KEY, _) => "23503",
            (extended::CHECK, _) => "23514",
            (extended::TRIGGER, _) => "P0001",
            (_, ErrorCode::ConstraintViolation) => "23000",
            (_, ErrorCode::TypeMismatch) => "42804",
            (_, ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "55P03",
            _ if message.starts_with("no such table") => "42P01",
            _ if message.starts_with("no such column") => "42703",
            _ if message.starts_with("no such function") => "42883",
            _ if message.contains("already exists") => "42P07",
            _ => "42601",
        };
        // "UNIQUE constraint failed: tasks.id, tasks.name" is tasks_id_name_key in PostgreSQL
        let constraint = match code {
            "23505" => message.split_once(": ").and_then(|(_, columns)| {
                let mut names = columns.split(", ").map(|column| column.split_once('.').unwrap_or(("", column)));
                let (table, first) = names.next()?;
                let rest: String = names.map(|(_, column)| format!("_{column}")).collect();
                Some(format!("{table}_{first}{rest}_key"))
            }),
            "23514" => message.split_once(": ").map(|(_, name)| name.to_owned()),
            _ => None,
        };
        SqlError { code, message, constraint, fatal: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlites_refusals_carry_the_sqlstate_of_postgresql() {
        let conn = rusqlite::Connection::open_in_memory().unwrap();
        conn.execute_batch(
            "PRAGMA foreign_keys = ON;
             CREATE TABLE a (id BIGINT PRIMARY KEY, b TEXT NOT NULL UNIQUE, c BIGINT CHECK (c > 0));
             CREATE TABLE d (a BIGINT REFERENCES a (id));
             CREATE TRIGGER e BEFORE DELETE ON a BEGIN SELECT RAISE(ABORT, 'append only'); END;
             INSERT INTO a VALUES (1, 'x', 1);",
        )
        .unwrap();
        let cases = [
            ("INSERT INTO a VALUES (1, 'y', 1)", "23505"),
            ("INSERT INTO a VALUES (2, 'x', 1)", "23505"),
            ("INSERT INTO a VALUES (2, NULL, 1)", "23502"),
            ("INSERT INTO a VALUES (2, 'y', 0)", "23514"),
            ("INSERT INTO d VALUES (7)", "23503"),
            ("DELETE FROM a", "P0001"),
            ("SELECT * FROM nowhere", "42P01"),
            ("SELECT missing FROM a", "42703"),
            ("SELECT nofunc()", "42883"),
            ("SELEC 1", "42601"),
            ("CREATE TABLE a (x BIGINT)", "42P07"),
        ];
        for (sql, code) in cases {
            let error = SqlError::from(conn.execute_batch(sql).unwrap_err());
            assert_eq!(error.code, code, "{sql}: {}", error.message);
        }
        let error = SqlError::from(conn.execute_batch("INSERT INTO a VALUES (2, 'x', 1)").unwrap_err());
        assert_eq!(error.constraint.as_deref(), Some("a_b_key"));
    }
}
