//! The executor behind the wire: one SQLite connection in memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::Value;

use super::error::SqlError;
use super::sql::{self, Command, LockingRead, Tag};
use super::value::{self, oid};
use super::watch::{self, TaskChange, TaskRow};

/// A column of a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Column {
    pub name: String,
    pub oid: u32,
    /// SQLite does not tell the type, so it is a guess. Only clients that do not ask beforehand are spared it.
    pub guessed: bool,
}

/// A statement that SQLite has accepted.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    /// As SQLite gets it.
    pub text: String,
    pub command: Command,
    pub tag: Option<Tag>,
    /// The clause of it that locks what it reads, which SQLite must not see.
    pub locking: Option<LockingRead>,
    /// How many parameters it has.
    pub parameters: usize,
    /// Empty if it returns no rows.
    pub columns: Vec<Column>,
}

impl Prepared {
    /// For a simple query, whose client learns the types with the rows: guesses become text, which holds anything.
    pub fn unasked(mut self: Arc<Prepared>) -> Arc<Prepared> {
        if self.columns.iter().any(|column| column.guessed) {
            for column in Arc::make_mut(&mut self).columns.iter_mut().filter(|column| column.guessed) {
                column.oid = oid::TEXT;
            }
        }
        self
    }
}

/// What an execution brought.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Encoded values, one buffer a row.
    pub rows: Vec<BytesMut>,
    /// The number in the reply to a command.
    pub count: usize,
    /// What happened to task rows.
    pub changes: Vec<TaskChange>,
}

/// A statement with its values.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub what: Prepared,
    pub values: Vec<Value>,
}

/// The connection and what is known of its schema.
pub(crate) struct Engine {
    pub conn: Connection,
    /// Types by column name, for results whose declared type SQLite does not tell; `None` where tables disagree.
    types: HashMap<String, Option<u32>>,
    prepared: HashMap<String, Arc<Prepared>>,
    seen: Arc<Mutex<Vec<TaskChange>>>,
}

impl Engine {
    /// Opens an empty database with this schema and the clock `leaseproof_now_ms()`: virtual time and a skew, in ms.
    pub fn open(schema: &str, skew_ms: Arc<AtomicI64>) -> rusqlite::Result<Engine> {
        let conn = Connection::open_in_memory()?;
        conn.set_prepared_statement_cache_capacity(256);
        // Else every new value of a parameter makes SQLite plan the statement anew: two thirds of a run's time.
        conn.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        conn.create_scalar_function("leaseproof_now_ms", 0, FunctionFlags::SQLITE_UTF8, move |_| {
            Ok(virtual_ms() + skew_ms.load(Ordering::Relaxed))
        })?;
        conn.execute_batch(schema)?;
        let mut types: HashMap<String, Option<u32>> = HashMap::new();
        {
            let mut query = conn.prepare(
                "SELECT c.name, c.type FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table' \
                 ORDER BY t.name, c.cid",
            )?;
            let mut rows = query.query([])?;
            while let Some(row) = rows.next()? {
                let oid = value::oid_of_declared(&row.get::<_, String>(1)?);
                let known = types.entry(row.get(0)?).or_insert(Some(oid));
                if *known != Some(oid) {
                    *known = None;
                }
            }
        }
        let seen = Arc::default();
        watch::install(&conn, &seen)?;
        Ok(Engine { conn, types, prepared: HashMap::new(), seen })
    }

    /// Lets SQLite read a statement.
    pub fn prepare(&mut self, text: &str) -> Result<Arc<Prepared>, SqlError> {
        if let Some(known) = self.prepared.get(text) {
            return Ok(known.clone());
        }
        let mut command = sql::command(text);
        let mut prepared = Prepared {
            text: sql::for_sqlite(text),
            command,
            tag: sql::tag(text),
            locking: sql::locking(text),
            parameters: 0,
            columns: Vec::new(),
        };
        let control = matches!(command, Command::Begin | Command::Commit | Command::Rollback | Command::Set);
        if !control {
            let statement = self.conn.prepare_cached(&prepared.text)?;
            for index in 1..=statement.parameter_count() {
                let number = statement.parameter_name(index).and_then(|name| name.strip_prefix('$')?.parse().ok());
                let Some(number) = number else {
                    return Err(SqlError::new("42601", "parameters are written $1, $2, …"));
                };
                prepared.parameters = prepared.parameters.max(number);
            }
            for column in statement.columns() {
                let declared = column.decl_type().map(value::oid_of_declared);
                // an expression: the column it is named after, or a count
                let known = declared.or_else(|| self.types.get(column.name()).copied().flatten());
                let name = column.name().to_owned();
                prepared.columns.push(Column { name, oid: known.unwrap_or(oid::INT8), guessed: known.is_none() });
            }
            if command == Command::Select && !statement.readonly() {
                command = Command::Update;
            }
        }
        prepared.command = command;
        let prepared = Arc::new(prepared);
        self.prepared.insert(text.to_owned(), prepared.clone());
        Ok(prepared)
    }

    /// Executes a prepared statement. `binary` says so of each column; the last entry holds for all further ones.
    pub fn execute(&self, what: &Prepared, values: &[Value], binary: &[bool]) -> Result<Outcome, SqlError> {
        let result = self.step(what, values, binary);
        let changes = std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner));
        result.map(|outcome| Outcome { changes, ..outcome })
    }

    fn step(&self, what: &Prepared, values: &[Value], binary: &[bool]) -> Result<Outcome, SqlError> {
        let mut statement = self.conn.prepare_cached(&what.text)?;
        for (index, value) in values.iter().enumerate() {
            // to SQLite, $1 is a *named* parameter, numbered by its first use
            if let Some(at) = statement.parameter_index(&format!("${}", index + 1))? {
                statement.raw_bind_parameter(at, value)?;
            }
        }
        let mut outcome = Outcome::default();
        {
            let mut rows = statement.raw_query();
            while let Some(row) = rows.next()? {
                let mut data = BytesMut::new();
                for (index, column) in what.columns.iter().enumerate() {
                    let binary = binary.get(index).or(binary.last()).copied().unwrap_or(false);
                    value::to_wire(row.get_ref(index)?, column.oid, binary, &mut data)?;
                }
                outcome.rows.push(data);
            }
        }
        outcome.count = match what.command {
            _ if !what.columns.is_empty() => outcome.rows.len(),
            Command::Insert | Command::Update | Command::Delete => self.conn.changes() as usize,
            _ => 0,
        };
        Ok(outcome)
    }

    /// What a statement does after these writes, of which none is to stay.
    pub fn rehearse(&self, writes: &[Write], what: &Write, binary: &[bool]) -> Result<Outcome, SqlError> {
        self.conn.execute_batch("SAVEPOINT leaseproof_block")?;
        let replayed = writes.iter().try_for_each(|write| self.execute(&write.what, &write.values, &[]).map(drop));
        let outcome = replayed.and_then(|()| self.execute(&what.what, &what.values, binary));
        self.conn.execute_batch("ROLLBACK TO leaseproof_block; RELEASE leaseproof_block")?;
        outcome
    }

    /// Commits these writes together.
    pub fn commit(&self, writes: &[Write]) -> Result<(), SqlError> {
        self.conn.execute_batch("BEGIN")?;
        let done = writes.iter().try_for_each(|write| self.execute(&write.what, &write.values, &[]).map(drop));
        self.conn.execute_batch(if done.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        done
    }

    /// A task's row as it stands.
    pub fn look(&self, task: i64) -> Option<TaskRow> {
        watch::look(&self.conn, task)
    }

    /// Whether the statement would change a row or return one, found out by doing and undoing it.
    pub fn would_do_something(&self, what: &Prepared, values: &[Value]) -> Result<bool, SqlError> {
        self.conn.execute_batch("SAVEPOINT leaseproof_rehearsal")?;
        let outcome = self.execute(what, values, &[]);
        self.conn.execute_batch("ROLLBACK TO leaseproof_rehearsal; RELEASE leaseproof_rehearsal")?;
        outcome.map(|outcome| outcome.count > 0)
    }
}

/// Virtual time since the simulation began, in ms.
pub(super) fn virtual_ms() -> i64 {
    madsim::time::TimeHandle::try_current().map_or(0, |time| time.elapsed().as_millis() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine() -> Engine {
        let schema = "CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT NOT NULL, done BOOLEAN NOT NULL DEFAULT 0);
                      CREATE TABLE u (id BIGINT, name BIGINT);
                      INSERT INTO t (id, name) VALUES (1, 'a'), (2, 'b');";
        Engine::open(schema, Arc::default()).unwrap()
    }

    #[test]
    fn results_are_described_by_declared_type_then_by_name_then_as_numbers() {
        let mut engine = engine();
        let oids = |engine: &mut Engine, text: &str| {
            let prepared = engine.prepare(text).unwrap();
            prepared.columns.iter().map(|column| column.oid).collect::<Vec<_>>()
        };
        assert_eq!(oids(&mut engine, "SELECT id, name, done FROM t"), [oid::INT8, oid::TEXT, oid::BOOL]);
        assert_eq!(oids(&mut engine, "SELECT max(done) AS done, count(*) FROM t"), [oid::BOOL, oid::INT8]);
        assert_eq!(oids(&mut engine, "UPDATE t SET name = $1 WHERE id = $2 RETURNING done"), [oid::BOOL]);
    }

    #[test]
    fn parameters_are_bound_by_number_in_any_order() {
        let mut engine = engine();
        let prepared = engine.prepare("UPDATE t SET name = $2 WHERE id = $1 AND name <> $2").unwrap();
        assert_eq!(prepared.parameters, 2);
        let outcome = engine.execute(&prepared, &[Value::Integer(2), Value::Text("z".into())], &[]).unwrap();
        assert_eq!(outcome.count, 1);
        let name: String = engine.conn.query_row("SELECT name FROM t WHERE id = 2", [], |row| row.get(0)).unwrap();
        assert_eq!(name, "z");
    }

    #[test]
    fn a_rehearsal_tells_and_leaves_no_trace() {
        let mut engine = engine();
        let prepared = engine.prepare("DELETE FROM t WHERE id = $1").unwrap();
        assert!(engine.would_do_something(&prepared, &[Value::Integer(1)]).unwrap());
        assert!(!engine.would_do_something(&prepared, &[Value::Integer(7)]).unwrap());
        let left: i64 = engine.conn.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(left, 2);
    }

    #[test]
    fn a_with_that_writes_is_no_select() {
        let mut engine = engine();
        let write = engine.prepare("WITH x AS (SELECT 1 AS id) UPDATE t SET name = 'q' WHERE id IN (SELECT id FROM x)");
        assert_eq!(write.unwrap().command, Command::Update);
    }
}
