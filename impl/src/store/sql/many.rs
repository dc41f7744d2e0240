//! The statements that change many rows and say which. They join what they change with what they were given, and answer
//! with rows; in both MySQL differs.
//!
//! PostgreSQL and SQLite say `UPDATE … FROM … RETURNING`. MySQL says `UPDATE … JOIN`, and has no `RETURNING`: there a claim
//! and a heartbeat mark what they change with a token of their own, and a second statement reads the marked rows. What
//! happened to a row in between is seen by the second statement, which finds it marked no more; what happens to a client
//! in between leaves a change whose caller does not know of it, like any answer that is lost.

use std::sync::Arc;

use leaseproof_rules::{EPOCH_LIMIT, Guard, Guards, Status, Verb};

use super::{Answer, Dialect, POLICY_COLUMNS, Statement, record};
use crate::tags;

/// The two statements of MySQL, of which the second reads back what the first has changed.
fn read_back(change: &str, read: &str) -> Statement {
    let read = Statement::positional(read, Answer::Rows);
    Statement::positional(change, Answer::ReadBack(Arc::new(read)))
}

fn tag(verb: Verb) -> String {
    format!("{}{} owner=$1 */", tags::PREFIX, verb.name())
}

/// What is due, as the claim under these guards sees it.
fn due(guards: Guards, now: &str) -> String {
    let (pending, retry_wait) = (Status::Pending.name(), Status::RetryWait.name());
    let claimable = match guards.has(Guard::ManualIsClosed) {
        true => format!("'{pending}', '{retry_wait}'"),
        false => format!("'{pending}', '{retry_wait}', '{}'", Status::WaitManual.name()),
    };
    format!("status IN ({claimable}) AND due_at_ms <= {now} AND {}", countable())
}

/// What counts up with every write is within its bounds.
fn countable() -> String {
    format!("epoch BETWEEN 0 AND {0} AND record_no BETWEEN 0 AND {0}", EPOCH_LIMIT - 1)
}

/// What a claim by `$1` makes of a task.
fn claimed(dialect: Dialect) -> String {
    let now = dialect.now();
    format!(
        "status = '{}', epoch = tasks.epoch + 1, owner = $1, claimed_at_ms = {now}, heartbeat_at_ms = {now}, \
         beat_gap_ms = 0, lease_until_ms = {now} + lease_ms, overrun_at_ms = {now} + expected_run_ms, {}",
        Status::Running.name(),
        record(Verb::Claim.name(), "$1", "NULL", None)
    )
}

/// What a claim hands out.
fn handed_out() -> String {
    format!("id, epoch, kind, payload, due_at_ms, claimed_at_ms, attempts, interruptions, {POLICY_COLUMNS}")
}

/// Reads back what the claim by `$1` has marked with this parameter.
fn marked(token: &str) -> String {
    let running = Status::Running.name();
    format!(
        "{}{} owner=$1 */ SELECT {} FROM tasks WHERE owner = $1 AND token = {token} AND status = '{running}'",
        tags::PREFIX,
        tags::READ_BACK,
        handed_out()
    )
}

/// A process that a later start has superseded takes nothing: it would be taken from it at once.
const NOT_SUPERSEDED: &str = "NOT EXISTS (SELECT 1 FROM instances WHERE boot_id = $1 AND superseded_by IS NOT NULL)";

/// The claim: `$1` owner, `$2` limit and, in MySQL, `$3` token. What another claim has locked is skipped.
pub(super) fn claim(dialect: Dialect, guards: Guards) -> Statement {
    // Along this index alone no more rows are locked than are taken. Sorted rows would all be locked before the limit
    // is applied, and whoever claims at the same time would find none.
    let place = match guards.has(Guard::ManualIsClosed) {
        true => format!("{} WHERE claimable_at_ms <= {}", dialect.index("tasks_due"), dialect.now_for_index()),
        false => " WHERE TRUE".to_string(),
    };
    let order = if guards.has(Guard::ManualIsClosed) { "claimable_at_ms" } else { "due_at_ms" };
    claim_from(dialect, guards, "", &place, order)
}

/// The claim of one task, if it can be claimed: the parameters of [`claim`], and its id.
pub(super) fn claim_of(dialect: Dialect, guards: Guards) -> Statement {
    let id = if dialect == Dialect::MySql { "$4" } else { "$3" };
    claim_from(dialect, guards, &format!("id = {id} AND "), &format!(" WHERE id = {id}"), "due_at_ms")
}

/// `this` and `place` say the same of which tasks are meant; the latter is MySQL's, and says the index too.
fn claim_from(dialect: Dialect, guards: Guards, this: &str, place: &str, order: &str) -> Statement {
    let (tag, set, due_now) = (tag(Verb::Claim), claimed(dialect), due(guards, dialect.now()));
    let read = "SELECT id AS due_id, epoch AS due_epoch, status AS due_status FROM tasks";
    let lock = if dialect == Dialect::Sqlite { "" } else { " FOR UPDATE SKIP LOCKED" };
    if dialect != Dialect::MySql {
        return dialect.rows(format!(
            "{tag} WITH due AS ({read} WHERE {this}{due_now} AND {NOT_SUPERSEDED} ORDER BY due_at_ms, id LIMIT $2{lock}) \
             UPDATE tasks SET {set} FROM due WHERE id = due_id AND epoch = due_epoch AND status = due_status \
             AND {due_now} RETURNING {}",
            handed_out()
        ));
    }
    let due_then = due(guards, dialect.now_for_index());
    let change = format!(
        "{tag} UPDATE ({read}{place} AND {due_then} AND {NOT_SUPERSEDED} ORDER BY {order}, id LIMIT $2{lock}) AS due STRAIGHT_JOIN tasks \
         ON id = due_id SET {set}, token = $3 WHERE epoch = due_epoch AND status = due_status AND {due_now}"
    );
    read_back(&change, &marked("$3"))
}

/// Which tasks could be claimed, the longest due first: `$1` limit.
pub(super) fn due_ids(dialect: Dialect, guards: Guards) -> Statement {
    let due = due(guards, dialect.now());
    let tag = format!("{}{} */", tags::PREFIX, tags::CLAIM_READ);
    dialect.rows(format!("{tag} SELECT id FROM tasks WHERE {due} ORDER BY due_at_ms, id LIMIT $1"))
}

/// A claim by id alone; what a claim without [`Guard::CasAtClaim`] writes: `$1` owner, then the ids and, in MySQL, the token.
#[cfg(feature = "ablation")]
pub(super) fn blind_claim(dialect: Dialect, tasks: usize) -> Statement {
    let ids = (0..tasks).map(|i| format!("${}", i + 2)).collect::<Vec<_>>().join(", ");
    let (tag, set) = (tag(Verb::Claim), claimed(dialect));
    match dialect {
        Dialect::MySql => {
            let token = format!("${}", tasks + 2);
            let change = format!("{tag} UPDATE tasks SET {set}, token = {token} WHERE id IN ({ids})");
            read_back(&change, &marked(&token))
        }
        _ => dialect.rows(format!("{tag} UPDATE tasks SET {set} WHERE id IN ({ids}) RETURNING {}", handed_out())),
    }
}

/// The heartbeat for `leases` leases: parameters are id, epoch, id, epoch, … and, in MySQL, the token.
///
/// Writes no record entry; the largest gap between two beats of a run is kept in the row instead (M5).
pub(super) fn heartbeat(dialect: Dialect, guards: Guards, leases: usize) -> Statement {
    let (now, bigint) = (dialect.now(), dialect.bigint());
    let pairs = |pair: fn(usize, usize, &str) -> String| {
        (0..leases).map(|i| pair(2 * i + 1, 2 * i + 2, bigint)).collect::<Vec<_>>().join(", ")
    };
    let tag = format!("{}{} pairs=$1.. */", tags::PREFIX, Verb::Heartbeat.name());
    let live = format!("status = '{}' AND lease_until_ms > {now}", Status::Running.name());
    let beat = format!(
        "beat_gap_ms = CASE WHEN {now} - heartbeat_at_ms > beat_gap_ms THEN {now} - heartbeat_at_ms \
         ELSE beat_gap_ms END, heartbeat_at_ms = {now}, lease_until_ms = {now} + lease_ms"
    );
    let fenced = guards.has(Guard::FenceHeartbeat);
    let as_values = |id, epoch, bigint: &str| format!("(CAST(${id} AS {bigint}), CAST(${epoch} AS {bigint}))");
    match dialect {
        Dialect::MySql => {}
        Dialect::Sqlite => {
            let pairs = pairs(as_values);
            let fence = if fenced { "epoch = beat.column2 AND " } else { "" };
            return dialect.rows(format!(
                "{tag} UPDATE tasks SET {beat} FROM (VALUES {pairs}) AS beat WHERE id = beat.column1 AND {fence}{live} \
                 RETURNING id, epoch"
            ));
        }
        // A row that somebody else has locked would hold up all the others.
        Dialect::Postgres => {
            let pairs = pairs(as_values);
            let given = match fenced {
                true => format!("(id, epoch) IN (VALUES {pairs})"),
                false => format!("id IN (SELECT column1 FROM (VALUES {pairs}) AS given)"),
            };
            return dialect.rows(format!(
                "{tag} WITH free AS (SELECT id AS free_id, epoch AS free_epoch FROM tasks WHERE {given} AND {live} \
                 FOR NO KEY UPDATE SKIP LOCKED) UPDATE tasks SET {beat} FROM free \
                 WHERE id = free_id AND epoch = free_epoch AND {live} RETURNING id, epoch"
            ));
        }
    }
    // The pairs come last, so that they go on to the last parameter in the order of the places too.
    let (token, those) = (format!("${}", 2 * leases + 1), pairs(|id, _, _| format!("${id}")));
    let given = match fenced {
        true => format!("(id, epoch) IN ({})", pairs(|id, epoch, _| format!("(${id}, ${epoch})"))),
        // The parameter stays, and says nothing.
        false => format!("(id, 0) IN ({})", pairs(|id, epoch, _| format!("(${id}, 0 * ${epoch})"))),
    };
    // A search past the index would wait for every row that somebody holds.
    let by_id = dialect.index("PRIMARY");
    let change = format!(
        "{tag} UPDATE (SELECT CAST({token} AS {bigint}) AS beat_token, id AS free_id FROM tasks{by_id} WHERE {live} AND {given} \
         LIMIT {leases} FOR UPDATE SKIP LOCKED) AS free STRAIGHT_JOIN tasks{by_id} ON id = free_id SET {beat}, token = beat_token"
    );
    let read = format!(
        "{}{} */ SELECT id, epoch FROM tasks WHERE id IN ({those}) AND token = {token}",
        tags::PREFIX,
        tags::READ_BACK
    );
    read_back(&change, &read)
}

/// Which of so many tasks have a live lease, and under which epoch: parameters are their ids.
pub(super) fn live_leases(dialect: Dialect, tasks: usize) -> Statement {
    let ids = (1..=tasks).map(|i| format!("${i}")).collect::<Vec<_>>().join(", ");
    dialect.rows(format!(
        "{}{} */ SELECT id, epoch FROM tasks WHERE id IN ({ids}) AND status = '{}' AND lease_until_ms > {}",
        tags::PREFIX,
        tags::HELD_UP,
        Status::Running.name(),
        dialect.now()
    ))
}

/// Marks the earlier starts of the slot of `$1` as superseded.
///
/// Not "all but me": of starts that register at once, each would supersede the others and none remain. The order is the
/// one they came in, not a clock's, which may step back.
pub(super) fn supersede(dialect: Dialect) -> Statement {
    let tag = |name: &str| format!("{}{name} owner=$1 */", tags::PREFIX);
    let newest = "SELECT boot_id AS newest_id, start_no AS newest_no, slot_name AS newest_slot FROM instances \
                  WHERE slot_name = (SELECT slot_name FROM instances WHERE boot_id = $1) \
                  ORDER BY start_no DESC LIMIT 1";
    let earlier = "slot_name = newest_slot AND start_no < newest_no";
    match dialect {
        Dialect::MySql => read_back(
            &format!(
                "{} UPDATE ({newest}) AS newest STRAIGHT_JOIN instances ON {earlier} SET superseded_by = newest_id \
                 WHERE superseded_by IS NULL",
                tag(tags::SUPERSEDE)
            ),
            &format!(
                "{} SELECT boot_id, superseded_by FROM ({newest}) AS newest STRAIGHT_JOIN instances ON {earlier} \
                 WHERE superseded_by = newest_id",
                tag(tags::READ_BACK)
            ),
        ),
        _ => dialect.rows(format!(
            "{} UPDATE instances SET superseded_by = newest_id FROM ({newest}) AS newest WHERE {earlier} \
             AND superseded_by IS NULL RETURNING boot_id, superseded_by",
            tag(tags::SUPERSEDE)
        )),
    }
}
