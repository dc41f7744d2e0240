//! The SQL texts. Each `WHERE` clause says what [`leaseproof_rules::judge`] says; the conformance suite compares them.
//!
//! Written in the subset that PostgreSQL and SQLite both read; a dialect differs in its clock expression and in how a
//! claim locks what it takes. Every statement stands alone: no operation of the queue holds a transaction, or a lock,
//! over a round trip, so a client that vanishes between two statements leaves nothing behind.
//!
//! A statement that changes a task sets the helper columns `record_no`, `last_verb`, `last_actor`, `last_note` and
//! `last_effect_*`; triggers copy them into the execution record and into the effect journal, in the same statement.

use std::sync::Arc;

use leaseproof_rules::{Guard, Guards, Status, Verb};

use crate::tags;

/// What differs between databases.
pub(crate) struct Dialect {
    /// The database's clock: ms since the Unix epoch.
    pub now: &'static str,
    /// What a claim appends to the reading of what it takes.
    pub lock_due: &'static str,
}

/// PostgreSQL: the clock is a function of the schema.
pub(crate) const POSTGRES: Dialect = Dialect { now: "leaseproof_now_ms()", lock_due: " FOR UPDATE SKIP LOCKED" };

/// SQLite: writers are serial, nothing to lock.
pub(crate) const SQLITE: Dialect = Dialect { now: crate::SQLITE_NOW_MS, lock_due: "" };

/// The columns of a task that make up its policy, in the order the readers expect.
pub(crate) const POLICY_COLUMNS: &str = "lease_ms, heartbeat_ms, fence_margin_ms, max_attempts, max_interruptions, \
     backoff_base_ms, backoff_factor, backoff_max_ms, expected_run_ms, on_exhausted, never_retry";

/// The columns of a task that a person reads.
pub(crate) const TASK_COLUMNS: &str = "id, kind, payload, unique_key, status, epoch, due_at_ms, owner, claimed_at_ms, \
     heartbeat_at_ms, lease_until_ms, attempts, interruptions, reason, last_error, result, created_at_ms, \
     finished_at_ms, record_no";

/// All statements of fixed text, of one dialect under one set of guards.
pub(crate) struct Texts {
    pub enqueue: Arc<str>,
    pub find_unique: Arc<str>,
    pub claim: Arc<str>,
    #[cfg(feature = "ablation")]
    pub claim_read: Arc<str>,
    pub intent: Arc<str>,
    pub outcome: Arc<str>,
    pub complete: Arc<str>,
    pub retry: Arc<str>,
    pub release: Arc<str>,
    pub give_up: Arc<str>,
    pub requeue: Arc<str>,
    pub escalate: Arc<str>,
    pub learn: Arc<str>,
    pub rerun: Arc<str>,
    pub mark_failed: Arc<str>,
    pub mark_succeeded: Arc<str>,
    pub settle: Arc<str>,
    pub late_result: Arc<str>,
    pub sweep: Arc<str>,
    pub look: Arc<str>,
    pub journal: Arc<str>,
    pub show: Arc<str>,
    pub record: Arc<str>,
    pub register: Arc<str>,
    pub supersede: Arc<str>,
    pub instance: Arc<str>,
    pub schema: Arc<str>,
    #[cfg(feature = "ablation")]
    claim_set: String,
    #[cfg(feature = "ablation")]
    claim_returning: String,
    dialect: &'static Dialect,
    guards: Guards,
}

/// What an UPDATE says of itself, for the triggers. `effect` is (key, state, rule, outcome) as SQL.
fn record(verb: &str, actor: &str, note: &str, effect: Option<[&str; 4]>) -> String {
    let [key, state, rule, outcome] = effect.unwrap_or(["NULL"; 4]);
    format!(
        "record_no = tasks.record_no + 1, last_verb = '{verb}', last_actor = {actor}, last_note = {note}, \
         last_effect_key = {key}, last_effect_state = {state}, last_effect_rule = {rule}, \
         last_effect_outcome = {outcome}"
    )
}

/// Nobody owns the task any more.
const UNOWNED: &str = "owner = NULL, lease_until_ms = NULL, overrun_at_ms = NULL, heartbeat_at_ms = NULL";

/// The owner's process is known to be gone (A2).
const SUPERSEDED: &str = "owner IN (SELECT boot_id FROM instances WHERE superseded_by IS NOT NULL)";

impl Texts {
    pub(crate) fn new(dialect: &'static Dialect, guards: Guards) -> Texts {
        let now = dialect.now;
        let running = Status::Running.name();
        let (pending, retry_wait) = (Status::Pending.name(), Status::RetryWait.name());
        let manual = Status::WaitManual.name();
        let claimable = format!("status IN ('{pending}', '{retry_wait}')");
        let row = "RETURNING status, epoch, last_note";
        // Parameters of every fenced write: $1 id, $2 epoch, $3 actor, $4 note.
        let tag = |name: &str| format!("{}{name} id=$1 epoch=$2 */", tags::PREFIX);
        let read = |name: &str| format!("{}{name} */", tags::PREFIX);
        let fenced = |status: &str| format!("id = $1 AND epoch = $2 AND status = '{status}'");
        let lost = format!("(lease_until_ms <= {now} OR {SUPERSEDED})");
        let lost_or_overrun = format!("(lease_until_ms <= {now} OR overrun_at_ms < {now} OR {SUPERSEDED})");
        // The same, unless an ablation has the fence removed; the parameter stays, so that it keeps its type.
        let fenced_by = |guard: Guard, status: &str| match guards.has(guard) {
            true => fenced(status),
            false => format!("id = $1 AND CAST($2 AS BIGINT) IS NOT NULL AND status = '{status}'"),
        };
        let bump_by = |guard: Guard| match guards.has(guard) {
            true => "epoch = epoch + 1",
            false => "epoch = epoch",
        };
        let bump = bump_by(Guard::BumpOnDecision);
        let learnt = |first: usize| [0, 1, 2].map(|i| format!("${}", first + i));

        let claim_set = format!(
            "UPDATE tasks SET status = '{running}', epoch = tasks.epoch + 1, owner = $1, claimed_at_ms = {now}, \
             heartbeat_at_ms = {now}, beat_gap_ms = 0, lease_until_ms = {now} + lease_ms, \
             overrun_at_ms = {now} + expected_run_ms, {}",
            record(Verb::Claim.name(), "$1", "NULL", None)
        );
        let claim_returning = format!(
            "RETURNING id, epoch, kind, payload, due_at_ms, claimed_at_ms, attempts, interruptions, {POLICY_COLUMNS}"
        );
        // A process that a later start has superseded takes nothing: it would be taken from it at once.
        let open = match guards.has(Guard::ManualIsClosed) {
            true => claimable.clone(),
            false => format!("status IN ('{pending}', '{retry_wait}', '{manual}')"),
        };
        let due = format!("{open} AND due_at_ms <= {now}");
        let not_superseded = "NOT EXISTS (SELECT 1 FROM instances WHERE boot_id = $1 AND superseded_by IS NOT NULL)";
        let claim = format!(
            "{}{} owner=$1 */ WITH due AS (SELECT id AS due_id, epoch AS due_epoch, status AS due_status FROM tasks \
             WHERE {due} AND {not_superseded} ORDER BY due_at_ms, id LIMIT $2{}) {claim_set} FROM due \
             WHERE id = due_id AND epoch = due_epoch AND status = due_status AND {due} {claim_returning}",
            tags::PREFIX,
            Verb::Claim.name(),
            dialect.lock_due
        );
        #[cfg(feature = "ablation")]
        let claim_read =
            format!("{} SELECT id FROM tasks WHERE {due} ORDER BY due_at_ms, id LIMIT $1", read(tags::CLAIM_READ));

        let complete_own = match guards.has(Guard::FenceComplete) {
            true => format!("(status = '{running}' AND epoch = $2)"),
            false => format!("status = '{running}'"),
        };
        let complete = format!(
            "{} UPDATE tasks SET status = '{}', result = $5, finished_at_ms = {now}, reason = NULL, {UNOWNED}, {} \
             WHERE id = $1 AND ({complete_own} OR ({claimable} AND epoch - 1 = $2)) {row}",
            tag(Verb::Complete.name()),
            Status::Success.name(),
            // The note tells an adoption from a completion, in the record and in the reply.
            record(
                Verb::Complete.name(),
                "$3",
                &format!("CASE WHEN status = '{running}' THEN $4 ELSE '{ADOPTED}' END"),
                None
            ),
        );

        let effect = |name: &str, state: &str, outcome: &str, condition: &str| {
            format!(
                "{}{name} id=$1 epoch=$2 effect=$5 */ UPDATE tasks SET {} WHERE {} {row}",
                tags::PREFIX,
                record(name, "$3", "$4", Some(["$5", state, "$6", outcome])),
                condition
            )
        };
        let of_run = fenced_by(Guard::FenceJournal, running);
        let intent = effect(Verb::Intent.name(), "'INTENT'", "NULL", &format!("{of_run} AND lease_until_ms > {now}"));
        let outcome = effect(Verb::Outcome.name(), "$7", "$8", &of_run);
        let learn = effect(tags::LEARN, "$7", "NULL", &format!("{} AND record_no = $8 AND {lost}", fenced(running)));
        let settle = effect(tags::SETTLE, "$7", "NULL", &format!("{} AND record_no = $8", fenced(manual)));

        // $5 status, $6 delay, $7.. what was learnt of an effect: key, state, rule.
        let [key, state, rule] = learnt(7);
        let retry = format!(
            "{} UPDATE tasks SET status = $5, epoch = epoch + 1, due_at_ms = {now} + $6, attempts = attempts + 1, \
             last_error = $4, {UNOWNED}, {} WHERE {} {row}",
            tag(Verb::Retry.name()),
            record(Verb::Retry.name(), "$3", "$4", Some([&key, &state, &rule, "NULL"])),
            fenced_by(Guard::FenceFailure, running)
        );
        let release = format!(
            "{} UPDATE tasks SET status = '{pending}', epoch = epoch + 1, {UNOWNED}, {} WHERE {} {row}",
            tag(Verb::Release.name()),
            record(Verb::Release.name(), "$3", "$4", None),
            fenced_by(Guard::FenceFailure, running)
        );
        let finished = format!("finished_at_ms = CASE WHEN $5 = '{}' THEN {now} END", Status::Fail.name());
        let give_up = format!(
            "{} UPDATE tasks SET status = $5, epoch = epoch + 1, reason = $6, attempts = attempts + 1, \
             last_error = $4, {finished}, {UNOWNED}, {} WHERE {} {row}",
            tag(Verb::GiveUp.name()),
            record(Verb::GiveUp.name(), "$3", "$4", None),
            fenced_by(Guard::FenceFailure, running)
        );
        // `record_no` as read: nobody has written anything of this task since, an effect's outcome included.
        let as_read = |record_no: &str| match guards.has(Guard::CasAtSweep) {
            true => format!("{} AND record_no = {record_no}", fenced(running)),
            false => format!("{} AND CAST({record_no} AS BIGINT) IS NOT NULL", fenced_by(Guard::CasAtSweep, running)),
        };
        let [key, state, rule] = learnt(8);
        let requeue = format!(
            "{} UPDATE tasks SET status = $5, epoch = epoch + 1, due_at_ms = {now} + $6, \
             interruptions = interruptions + 1, {UNOWNED}, {} WHERE {} AND {lost} {row}",
            tag(Verb::Requeue.name()),
            record(Verb::Requeue.name(), "$3", "$4", Some([&key, &state, &rule, "NULL"])),
            as_read("$7")
        );
        // Only a loss counts as one; an overrun under a live lease does not.
        let escalate = format!(
            "{} UPDATE tasks SET status = '{manual}', {}, reason = $5, \
             interruptions = interruptions + CASE WHEN {lost} THEN 1 ELSE 0 END, {UNOWNED}, {} \
             WHERE {} AND {lost_or_overrun} {row}",
            tag(Verb::Escalate.name()),
            bump_by(Guard::BumpOnEscalate),
            record(Verb::Escalate.name(), "$3", "$4", None),
            as_read("$6")
        );
        // A person's decision starts new budgets; the record keeps the old counts.
        let rerun = format!(
            "{} UPDATE tasks SET status = '{pending}', {bump}, payload = COALESCE($5, payload), due_at_ms = {now}, \
             attempts = 0, interruptions = 0, reason = NULL, {} WHERE {} AND record_no = $6 {row}",
            tag(Verb::Rerun.name()),
            record(Verb::Rerun.name(), "$3", "$4", None),
            fenced(manual)
        );
        let mark = |verb: Verb, to: Status, extra: &str| {
            format!(
                "{} UPDATE tasks SET status = '{}', {bump}, finished_at_ms = {now}{extra}, {} WHERE {} {row}",
                tag(verb.name()),
                to.name(),
                record(verb.name(), "$3", "$4", None),
                fenced(manual)
            )
        };
        let late_result = format!(
            "{} INSERT INTO task_events (task_id, at_ms, epoch, verb, actor, from_status, to_status, note) \
             SELECT id, {now}, CAST($2 AS BIGINT), '{name}', CAST($3 AS TEXT), status, status, CAST($4 AS TEXT) \
             FROM tasks WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM task_events \
             WHERE task_id = $1 AND epoch = $2 AND verb = '{name}') ON CONFLICT DO NOTHING",
            tag(tags::LATE_RESULT),
            name = tags::LATE_RESULT
        );

        let looked_at = format!("CAST({now} AS BIGINT) AS now_ms");
        let sweep = format!(
            "{} SELECT t.id, t.epoch, t.record_no, t.kind, t.owner, t.claimed_at_ms, t.lease_until_ms, t.attempts, \
             t.interruptions, {}, i.superseded_by, e.effect_key, e.rule, {looked_at} FROM tasks AS t \
             LEFT JOIN instances AS i ON i.boot_id = t.owner \
             LEFT JOIN effects AS e ON e.task_id = t.id AND e.state = 'INTENT' \
             WHERE t.id IN (SELECT id FROM (\
             SELECT id FROM tasks WHERE status = '{running}' AND lease_until_ms <= {now} \
             UNION SELECT id FROM tasks WHERE status = '{running}' AND overrun_at_ms < {now} \
             UNION SELECT id FROM tasks WHERE status = '{running}' AND {SUPERSEDED}\
             ) AS seen WHERE id > $1 ORDER BY id LIMIT $2) AND t.status = '{running}' ORDER BY t.id, e.effect_key",
            read(tags::SWEEP),
            POLICY_COLUMNS.split(", ").map(|column| format!("t.{column}")).collect::<Vec<_>>().join(", ")
        );
        let look = format!(
            "{}{} id=$1 */ SELECT t.status, t.epoch, t.due_at_ms, t.lease_until_ms, t.overrun_at_ms, \
             i.superseded_by, {looked_at} FROM tasks AS t LEFT JOIN instances AS i ON i.boot_id = t.owner \
             WHERE t.id = $1",
            tags::PREFIX,
            tags::LOOK
        );
        let by_id = |name: &str| format!("{}{name} id=$1 */", tags::PREFIX);

        let enqueue = format!(
            "{} INSERT INTO tasks (kind, payload, unique_key, status, due_at_ms, created_at_ms, {POLICY_COLUMNS}, \
             last_verb, last_actor) VALUES ($1, $2, $3, '{pending}', {now} + $4, {now}, \
             $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, '{}', $16) ON CONFLICT (unique_key) DO NOTHING RETURNING id",
            read(tags::ENQUEUE),
            tags::ENQUEUE
        );

        Texts {
            enqueue: enqueue.into(),
            find_unique: format!("{} SELECT id FROM tasks WHERE unique_key = $1", read(tags::LOOK)).into(),
            claim: claim.into(),
            #[cfg(feature = "ablation")]
            claim_read: claim_read.into(),
            intent: intent.into(),
            outcome: outcome.into(),
            complete: complete.into(),
            retry: retry.into(),
            release: release.into(),
            give_up: give_up.into(),
            requeue: requeue.into(),
            escalate: escalate.into(),
            learn: learn.into(),
            rerun: rerun.into(),
            mark_failed: mark(Verb::MarkFailed, Status::Fail, "").into(),
            mark_succeeded: mark(Verb::MarkSucceeded, Status::Success, ", reason = NULL").into(),
            settle: settle.into(),
            late_result: late_result.into(),
            sweep: sweep.into(),
            look: look.into(),
            journal: format!(
                "{} SELECT effect_key, epoch, state, rule, outcome, at_ms FROM effects WHERE task_id = $1 \
                 ORDER BY effect_key",
                by_id(tags::JOURNAL)
            )
            .into(),
            show: format!("{} SELECT {TASK_COLUMNS}, {POLICY_COLUMNS} FROM tasks WHERE id = $1", by_id(tags::SHOW))
                .into(),
            record: format!(
                "{} SELECT id, at_ms, epoch, verb, actor, from_status, to_status, note, effect_key, beat_gap_ms \
                 FROM task_events WHERE task_id = $1 ORDER BY id",
                by_id(tags::RECORD)
            )
            .into(),
            register: format!(
                "{}{} owner=$1 */ INSERT INTO instances (boot_id, slot_name, host, pid, started_at_ms, nonce) \
                 VALUES ($1, $2, $3, $4, {now}, $5) ON CONFLICT (boot_id) DO NOTHING RETURNING boot_id",
                tags::PREFIX,
                tags::REGISTER
            )
            .into(),
            // Not "all but me": of starts that register at once, each would supersede the others and none remain. The
            // order is the one they came in, not a clock's, which may step back.
            supersede: format!(
                "{}{} owner=$1 */ UPDATE instances SET superseded_by = newest_id FROM (\
                 SELECT boot_id AS newest_id, start_no AS newest_no, slot_name AS newest_slot FROM instances \
                 WHERE slot_name = (SELECT slot_name FROM instances WHERE boot_id = $1) \
                 ORDER BY start_no DESC LIMIT 1) AS newest WHERE slot_name = newest_slot AND start_no < newest_no \
                 AND superseded_by IS NULL RETURNING boot_id, superseded_by",
                tags::PREFIX,
                tags::SUPERSEDE
            )
            .into(),
            instance: format!(
                "{}{} owner=$1 */ SELECT boot_id, slot_name, host, pid, started_at_ms, nonce, superseded_by \
                 FROM instances WHERE boot_id = $1",
                tags::PREFIX,
                tags::INSTANCE
            )
            .into(),
            schema: format!(
                "{} SELECT version FROM leaseproof_schema ORDER BY version DESC LIMIT 1",
                read(tags::SCHEMA)
            )
            .into(),
            #[cfg(feature = "ablation")]
            claim_set,
            #[cfg(feature = "ablation")]
            claim_returning,
            dialect,
            guards,
        }
    }

    #[cfg(feature = "ablation")]
    /// A claim by id alone, of `tasks` tasks; what a claim without [`Guard::CasAtClaim`] writes.
    pub(crate) fn blind_claim(&self, tasks: usize) -> String {
        let ids = (0..tasks).map(|i| format!("${}", i + 2)).collect::<Vec<_>>().join(", ");
        let (set, returning) = (&self.claim_set, &self.claim_returning);
        format!("{}{} owner=$1 */ {set} WHERE id IN ({ids}) {returning}", tags::PREFIX, Verb::Claim.name())
    }

    /// The heartbeat for `leases` leases: parameters are id, epoch, id, epoch, …
    ///
    /// Writes no record entry; the largest gap between two beats of a run is kept in the row instead (M5).
    pub(crate) fn heartbeat(&self, leases: usize) -> String {
        let now = self.dialect.now;
        let pairs = (0..leases)
            .map(|i| format!("(CAST(${} AS BIGINT), CAST(${} AS BIGINT))", 2 * i + 1, 2 * i + 2))
            .collect::<Vec<_>>()
            .join(", ");
        let fence = match self.guards.has(Guard::FenceHeartbeat) {
            true => "epoch = beat.column2 AND ",
            false => "",
        };
        format!(
            "{}{} pairs=$1.. */ UPDATE tasks SET lease_until_ms = {now} + lease_ms, heartbeat_at_ms = {now}, \
             beat_gap_ms = CASE WHEN {now} - heartbeat_at_ms > beat_gap_ms THEN {now} - heartbeat_at_ms \
             ELSE beat_gap_ms END FROM (VALUES {pairs}) AS beat WHERE id = beat.column1 AND {fence}status = '{}' \
             AND lease_until_ms > {now} RETURNING id, epoch",
            tags::PREFIX,
            Verb::Heartbeat.name(),
            Status::Running.name()
        )
    }

    /// One page of tasks for a person; `$1` is the id to start after, `$2` the page's length.
    pub(crate) fn list(&self, status: bool, kind: bool) -> String {
        let mut next = 3;
        let mut conditions = String::from("id > $1");
        for (wanted, column) in [(status, "status"), (kind, "kind")] {
            if wanted {
                conditions += &format!(" AND {column} = ${next}");
                next += 1;
            }
        }
        format!(
            "{}{} */ SELECT {TASK_COLUMNS}, {POLICY_COLUMNS} FROM tasks WHERE {conditions} ORDER BY id LIMIT $2",
            tags::PREFIX,
            tags::LIST
        )
    }
}

/// The note of a completion that was adopted.
pub(crate) const ADOPTED: &str = "adopted: the late result of a run that only the sweeper had ended";
