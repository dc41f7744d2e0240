//! The observer inside the database: every change of a task row, whoever made it and whatever the queue records of it.

use std::sync::{Arc, Mutex, PoisonError};

use leaseproof_rules::{Epoch, Status};
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{FromSql, ValueRef};
use rusqlite::{Connection, OptionalExtension};

/// What is seen of a task row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskRow {
    /// Its status.
    pub status: Status,
    /// Its epoch.
    pub epoch: Epoch,
    /// Who holds or held the claim, as the queue stores it.
    pub owner: Option<String>,
    /// Failed attempts.
    pub attempts: u32,
    /// Lost owners.
    pub interruptions: u32,
    /// When it can be claimed, in ms on the database's clock.
    pub due_at_ms: i64,
    /// End of the lease, in ms on the database's clock.
    pub lease_until_ms: Option<i64>,
    /// When the run is over its expected time, in ms on the database's clock.
    pub overrun_at_ms: Option<i64>,
    /// Why a person is needed, as the queue stores it.
    pub reason: Option<String>,
    /// The effect that the last recorded write journalled.
    pub effect: Option<String>,
    /// What it journalled of that effect.
    pub entry: Option<String>,
}

/// One change of one task row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskChange {
    /// The task's id.
    pub task: i64,
    /// `None`: the row is new.
    pub before: Option<TaskRow>,
    /// `None`: the row was deleted.
    pub after: Option<TaskRow>,
}

/// The table that is watched, and its columns in the order in which the trigger passes them.
const TABLE: &str = "tasks";
const COLUMNS: [&str; 12] = [
    "id",
    "status",
    "epoch",
    "owner",
    "attempts",
    "interruptions",
    "due_at_ms",
    "lease_until_ms",
    "overrun_at_ms",
    "reason",
    "last_effect_key",
    "last_effect_state",
];

type Seen = Arc<Mutex<Vec<TaskChange>>>;

/// Installs the observer, if the schema has task rows: temporary triggers that call back.
///
/// The triggers belong to the connection, not to the schema, so the queue can not see or remove them.
pub(super) fn install(conn: &Connection, seen: &Seen) -> rusqlite::Result<()> {
    let found: Option<i64> = conn
        .query_row("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1", [TABLE], |row| row.get(0))
        .optional()?;
    if found.is_none() {
        return Ok(());
    }
    let seen = seen.clone();
    let arguments = 2 * COLUMNS.len();
    conn.create_scalar_function("leaseproof_seen", arguments as i32, FunctionFlags::SQLITE_UTF8, move |call| {
        let (before, after) = (row(call, 0)?, row(call, COLUMNS.len())?);
        let Some(task) = after.as_ref().or(before.as_ref()).map(|(id, _)| *id) else { return Ok(0) };
        let change = TaskChange { task, before: before.map(|(_, row)| row), after: after.map(|(_, row)| row) };
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(change);
        Ok(0)
    })?;
    let list = |row: &str| COLUMNS.map(|column| format!("{row}.{column}")).join(", ");
    let nothing = ["NULL"; COLUMNS.len()].join(", ");
    for (event, before, after) in [
        ("INSERT", nothing.clone(), list("new")),
        ("UPDATE", list("old"), list("new")),
        ("DELETE", list("old"), nothing),
    ] {
        conn.execute_batch(&format!(
            "CREATE TEMP TRIGGER leaseproof_seen_{event} AFTER {event} ON main.{TABLE} \
             BEGIN SELECT leaseproof_seen({before}, {after}); END"
        ))?;
    }
    Ok(())
}

/// The row as it stands; `None` if there is none, or if the schema is not the queue's.
pub(super) fn look(conn: &Connection, id: i64) -> Option<TaskRow> {
    let sql = format!("SELECT {} FROM {TABLE} WHERE id = ?1", COLUMNS.join(", "));
    let mut query = conn.prepare_cached(&sql).ok()?;
    query.query_row([id], |row| Ok(read(|column| row.get_ref(column)))).ok()?.ok()?.map(|(_, row)| row)
}

/// One half of the call's arguments; `None` if its id is NULL.
fn row(call: &Context<'_>, first: usize) -> rusqlite::Result<Option<(i64, TaskRow)>> {
    read(|column| Ok(call.get_raw(first + column)))
}

/// A row, its values in the order of [`COLUMNS`].
fn read<'a>(value: impl Fn(usize) -> rusqlite::Result<ValueRef<'a>>) -> rusqlite::Result<Option<(i64, TaskRow)>> {
    fn get<T: FromSql>(value: ValueRef<'_>) -> rusqlite::Result<T> {
        Ok(T::column_result(value)?)
    }
    let Some(id) = get::<Option<i64>>(value(0)?)? else { return Ok(None) };
    let status: String = get(value(1)?)?;
    let Some(status) = Status::from_name(&status) else {
        let why = format!("task {id} has the unknown status {status:?}");
        return Err(rusqlite::Error::UserFunctionError(why.into()));
    };
    let row = TaskRow {
        status,
        epoch: get::<i64>(value(2)?)? as Epoch,
        owner: get(value(3)?)?,
        attempts: get(value(4)?)?,
        interruptions: get(value(5)?)?,
        due_at_ms: get(value(6)?)?,
        lease_until_ms: get(value(7)?)?,
        overrun_at_ms: get(value(8)?)?,
        reason: get(value(9)?)?,
        effect: get(value(10)?)?,
        entry: get(value(11)?)?,
    };
    Ok(Some((id, row)))
}
