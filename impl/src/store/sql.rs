//! The SQL texts. Each `WHERE` clause says what [`leaseproof_rules::judge`] says; the conformance suite compares them.
//!
//! Written in what PostgreSQL, SQLite and MySQL all read, as far as that goes; [`dialect`] has what differs. Every
//! statement stands alone: no operation of the queue holds a transaction, or a lock, over a round trip, so a client that
//! vanishes between two statements leaves nothing behind. MySQL assigns from left to right: what a SET reads of a column
//! stands before what it assigns to it.
//!
//! A statement that changes a task sets the helper columns `record_no`, `last_verb`, `last_actor`, `last_note` and
//! `last_effect_*`; triggers copy them into the execution record and into the effect journal, in the same statement.

mod dialect;
mod many;
mod statement;

use leaseproof_rules::{CLOCK_SLACK_MS, COUNT_MAX, Guard, Guards, Status, Verb};

pub(crate) use dialect::Dialect;
pub(crate) use statement::{Answer, Statement};

use crate::tags;
use crate::task::LONGEST_MS;

/// The columns of a task that make up its policy, in the order the readers expect.
pub(crate) const POLICY_COLUMNS: &str = "lease_ms, heartbeat_ms, fence_margin_ms, max_attempts, max_interruptions, \
     backoff_base_ms, backoff_factor, backoff_max_ms, expected_run_ms, on_exhausted, never_retry";

/// The columns of a task that a person reads.
pub(crate) const TASK_COLUMNS: &str = "id, kind, payload, unique_key, status, epoch, due_at_ms, owner, claimed_at_ms, \
     heartbeat_at_ms, lease_until_ms, attempts, interruptions, reason, last_error, result, created_at_ms, \
     finished_at_ms, record_no";

/// All statements of fixed text, of one dialect under one set of guards.
pub(crate) struct Texts {
    pub enqueue: Statement,
    pub find_unique: Statement,
    pub claim: Statement,
    pub claim_of: Statement,
    pub due: Statement,
    pub intent: Statement,
    pub outcome: Statement,
    pub complete: Statement,
    pub retry: Statement,
    pub release: Statement,
    pub give_up: Statement,
    pub requeue: Statement,
    pub escalate: Statement,
    pub learn: Statement,
    pub cut_lease: Statement,
    pub rerun: Statement,
    pub mark_failed: Statement,
    pub mark_succeeded: Statement,
    pub settle: Statement,
    pub late_result: Statement,
    pub sweep: Statement,
    pub look: Statement,
    pub journal: Statement,
    pub open: Statement,
    pub show: Statement,
    pub record: Statement,
    pub register: Statement,
    pub supersede: Statement,
    pub instance: Statement,
    pub schema: Statement,
    dialect: Dialect,
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

/// What a SET makes of a count, which stops growing where the rules say so.
fn one_more(count: &str) -> String {
    format!("{count} = {count} + CASE WHEN {count} < {COUNT_MAX} THEN 1 ELSE 0 END")
}

/// Nobody owns the task any more.
const UNOWNED: &str = "owner = NULL, lease_until_ms = NULL, overrun_at_ms = NULL, heartbeat_at_ms = NULL";

/// The owner's process is known to be gone (A2).
const SUPERSEDED: &str = "owner IN (SELECT boot_id FROM instances WHERE superseded_by IS NOT NULL)";

impl Texts {
    pub(crate) fn new(dialect: Dialect, guards: Guards) -> Texts {
        let (now, now_for_index) = (dialect.now(), dialect.now_for_index());
        let (bigint, text) = (dialect.bigint(), dialect.text());
        let running = Status::Running.name();
        let (pending, retry_wait) = (Status::Pending.name(), Status::RetryWait.name());
        let manual = Status::WaitManual.name();
        let claimable = format!("status IN ('{pending}', '{retry_wait}')");
        let row = dialect.returning_task();
        let one = dialect.one_task();
        // Parameters of every fenced write: $1 id, $2 epoch, $3 actor, $4 note.
        let tag = |name: &str| format!("{}{name} id=$1 epoch=$2 */", tags::PREFIX);
        let read = |name: &str| format!("{}{name} */", tags::PREFIX);
        let fenced = |status: &str| format!("id = $1 AND epoch = $2 AND status = '{status}'");
        let lost = format!("(lease_until_ms <= {now} OR {SUPERSEDED})");
        // No sum of it can overflow, whatever the row holds.
        let too_late = format!(
            "CASE WHEN lease_ms BETWEEN 0 AND {LONGEST_MS} AND lease_until_ms > {now} THEN lease_until_ms - lease_ms \
             ELSE 0 END > {now} + {CLOCK_SLACK_MS}"
        );
        // A sweeper does not wait for a row that somebody else holds: it looks again soon.
        let (free, if_free) = dialect.if_free();
        let lost_or_overrun = format!("(lease_until_ms <= {now} OR overrun_at_ms < {now} OR {SUPERSEDED})");
        // The same, unless an ablation has the fence removed; the parameter stays, so that it keeps its type.
        let fenced_by = |guard: Guard, status: &str| match guards.has(guard) {
            true => fenced(status),
            false => format!("id = $1 AND CAST($2 AS {bigint}) IS NOT NULL AND status = '{status}'"),
        };
        let bump_by = |guard: Guard| match guards.has(guard) {
            true => "epoch = epoch + 1",
            false => "epoch = epoch",
        };
        let bump = bump_by(Guard::BumpOnDecision);
        let learnt = |first: usize| [0, 1, 2].map(|i| format!("${}", first + i));

        let complete_own = match guards.has(Guard::FenceComplete) {
            true => format!("(status = '{running}' AND epoch = $2)"),
            false => format!("status = '{running}'"),
        };
        let late = format!("({claimable} AND epoch - 1 = $2)");
        let complete_if = |condition: &str, note: &str| {
            format!(
                "{} UPDATE {one} SET {}, status = '{}', result = $5, finished_at_ms = {now}, reason = NULL, {UNOWNED} \
                 WHERE id = $1 AND {condition} {row}",
                tag(Verb::Complete.name()),
                record(Verb::Complete.name(), "$3", note, None),
                Status::Success.name(),
            )
        };
        let adopted = format!("'{ADOPTED}'");
        let complete = dialect.complete(
            // The note tells an adoption from a completion, in the record and in the reply.
            complete_if(
                &format!("({complete_own} OR {late})"),
                &format!("CASE WHEN status = '{running}' THEN $4 ELSE {adopted} END"),
            ),
            complete_if(&complete_own, "$4"),
            complete_if(&late, &adopted),
            guards.has(Guard::FenceComplete),
        );

        let effect_in = |target: &str, name: &str, state: &str, outcome: &str, condition: &str| {
            format!(
                "{}{name} id=$1 epoch=$2 effect=$5 */ UPDATE {target} SET {} WHERE {} {row}",
                tags::PREFIX,
                record(name, "$3", "$4", Some(["$5", state, "$6", outcome])),
                condition
            )
        };
        let effect =
            |name: &str, state: &str, outcome: &str, condition: &str| effect_in(one, name, state, outcome, condition);
        let of_run = fenced_by(Guard::FenceJournal, running);
        let intent = effect(Verb::Intent.name(), "'INTENT'", "NULL", &format!("{of_run} AND lease_until_ms > {now}"));
        let outcome = effect(Verb::Outcome.name(), "$7", "$8", &of_run);
        let learn_if = format!("{} AND record_no = $8 AND {lost} {if_free}", fenced(running));
        let learn = effect_in(free, tags::LEARN, "$7", "NULL", &learn_if);
        let settle = effect(tags::SETTLE, "$7", "NULL", &format!("{} AND record_no = $8", fenced(manual)));

        // $5 status, $6 delay, $7.. what was learnt of an effect: key, state, rule.
        let (failed, interrupted) = (one_more("attempts"), one_more("interruptions"));
        let [key, state, rule] = learnt(7);
        let retry = format!(
            "{} UPDATE {one} SET status = $5, epoch = epoch + 1, due_at_ms = {now} + $6, {failed}, \
             last_error = $4, {UNOWNED}, {} WHERE {} {row}",
            tag(Verb::Retry.name()),
            record(Verb::Retry.name(), "$3", "$4", Some([&key, &state, &rule, "NULL"])),
            fenced_by(Guard::FenceFailure, running)
        );
        let release = format!(
            "{} UPDATE {one} SET status = '{pending}', epoch = epoch + 1, {UNOWNED}, {} WHERE {} {row}",
            tag(Verb::Release.name()),
            record(Verb::Release.name(), "$3", "$4", None),
            fenced_by(Guard::FenceFailure, running)
        );
        let finished = format!("finished_at_ms = CASE WHEN $5 = '{}' THEN {now} END", Status::Fail.name());
        let give_up = format!(
            "{} UPDATE {one} SET status = $5, epoch = epoch + 1, reason = $6, {failed}, \
             last_error = $4, {finished}, {UNOWNED}, {} WHERE {} {row}",
            tag(Verb::GiveUp.name()),
            record(Verb::GiveUp.name(), "$3", "$4", None),
            fenced_by(Guard::FenceFailure, running)
        );
        // `record_no` as read: nobody has written anything of this task since, an effect's outcome included.
        let as_read = |record_no: &str| match guards.has(Guard::CasAtSweep) {
            true => format!("{} AND record_no = {record_no}", fenced(running)),
            false => format!("{} AND CAST({record_no} AS {bigint}) IS NOT NULL", fenced_by(Guard::CasAtSweep, running)),
        };
        let [key, state, rule] = learnt(8);
        let requeue = format!(
            "{} UPDATE {free} SET status = $5, epoch = epoch + 1, due_at_ms = {now} + $6, \
             {interrupted}, {UNOWNED}, {} WHERE {} AND {lost} {if_free}{row}",
            tag(Verb::Requeue.name()),
            record(Verb::Requeue.name(), "$3", "$4", Some([&key, &state, &rule, "NULL"])),
            as_read("$7")
        );
        // Only a loss counts as one; an overrun under a live lease does not.
        let escalate = format!(
            "{} UPDATE {free} SET status = '{manual}', {}, reason = $5, \
             interruptions = interruptions + CASE WHEN {lost} AND interruptions < {COUNT_MAX} THEN 1 ELSE 0 END, \
             {UNOWNED}, {} \
             WHERE {} AND {lost_or_overrun} {if_free}{row}",
            tag(Verb::Escalate.name()),
            bump_by(Guard::BumpOnEscalate),
            record(Verb::Escalate.name(), "$3", "$4", None),
            as_read("$6")
        );
        let cut_lease = format!(
            "{} UPDATE {free} SET lease_until_ms = {now} + lease_ms, {} WHERE {} AND record_no = $5 AND {too_late} \
             {if_free}{row}",
            tag(tags::CUT_LEASE),
            record(tags::CUT_LEASE, "$3", "$4", None),
            fenced(running)
        );
        // A person's decision starts new budgets; the record keeps the old counts.
        let rerun = format!(
            "{} UPDATE {one} SET status = '{pending}', {bump}, payload = COALESCE($5, payload), due_at_ms = {now}, \
             attempts = 0, interruptions = 0, reason = NULL, {} WHERE {} AND record_no = $6 {row}",
            tag(Verb::Rerun.name()),
            record(Verb::Rerun.name(), "$3", "$4", None),
            fenced(manual)
        );
        let mark = |verb: Verb, to: Status, extra: &str| {
            format!(
                "{} UPDATE {one} SET status = '{}', {bump}, finished_at_ms = {now}{extra}, {} WHERE {} {row}",
                tag(verb.name()),
                to.name(),
                record(verb.name(), "$3", "$4", None),
                fenced(manual)
            )
        };
        let late_result = format!(
            "{} INSERT INTO task_events (task_id, at_ms, epoch, verb, actor, from_status, to_status, note) \
             SELECT id, {now}, CAST($2 AS {bigint}), '{name}', CAST($3 AS {text}), status, status, CAST($4 AS {text}) \
             FROM tasks WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM task_events \
             WHERE task_id = $1 AND epoch = $2 AND verb = '{name}'){}",
            tag(tags::LATE_RESULT),
            dialect.or_nothing("", ""),
            name = tags::LATE_RESULT
        );

        let looked_at = format!("CAST({now} AS {bigint}) AS now_ms");
        let lost_by = |index: &str, condition: &str| {
            let index = dialect.index(index);
            format!("SELECT id FROM tasks{index} WHERE status = '{running}' AND {condition}")
        };
        let sweep = format!(
            "{} SELECT t.id, t.epoch, t.record_no, t.kind, t.owner, t.claimed_at_ms, t.lease_until_ms, t.attempts, \
             t.interruptions, {}, i.superseded_by, e.effect_key, e.rule, \
             CAST(CASE WHEN {too_late} THEN 1 ELSE 0 END AS {bigint}) AS too_late, {looked_at} FROM (\
             SELECT id AS page_id FROM ({} UNION {} UNION {} UNION {}) AS seen WHERE id > $1 ORDER BY id LIMIT $2) AS page \
             JOIN tasks AS t ON t.id = page_id LEFT JOIN instances AS i ON i.boot_id = t.owner \
             LEFT JOIN effects AS e ON e.task_id = t.id AND e.state = 'INTENT' \
             WHERE t.status = '{running}' ORDER BY t.id, e.effect_key",
            read(tags::SWEEP),
            POLICY_COLUMNS.split(", ").map(|column| format!("t.{column}")).collect::<Vec<_>>().join(", "),
            lost_by("tasks_lease", &format!("lease_until_ms <= {now_for_index}")),
            lost_by("tasks_overrun", &format!("overrun_at_ms < {now_for_index}")),
            lost_by("tasks_owner", SUPERSEDED),
            lost_by("tasks_lease", &format!("lease_until_ms > {now_for_index} + {CLOCK_SLACK_MS} AND {too_late}"))
        );
        let look = format!(
            "{}{} id=$1 */ SELECT t.id, t.status, t.epoch, t.due_at_ms, t.lease_until_ms, t.overrun_at_ms, \
             i.superseded_by, {looked_at} FROM tasks AS t LEFT JOIN instances AS i ON i.boot_id = t.owner \
             WHERE t.id = $1",
            tags::PREFIX,
            tags::LOOK
        );
        let by_id = |name: &str| format!("{}{name} id=$1 */", tags::PREFIX);

        let enqueue = format!(
            "{} INSERT INTO tasks (kind, payload, unique_key, status, due_at_ms, created_at_ms, {POLICY_COLUMNS}, \
             last_verb, last_actor) VALUES ($1, $2, $3, '{pending}', {now} + $4, {now}, \
             $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, '{}', $16){}",
            read(tags::ENQUEUE),
            tags::ENQUEUE,
            dialect.or_nothing("(unique_key) ", "id")
        );

        let rows = |text| dialect.rows(text);
        let of_owner = |guard: Guard, text, adds| dialect.task(text, guards.has(guard), adds);
        let of_person = |text| dialect.task(text, true, guards.has(Guard::BumpOnDecision));
        Texts {
            enqueue: dialect.inserted(enqueue),
            find_unique: rows(format!("{} SELECT id FROM tasks WHERE unique_key = $1", read(tags::LOOK))),
            claim: many::claim(dialect, guards),
            claim_of: many::claim_of(dialect, guards),
            due: many::due_ids(dialect, guards),
            intent: of_owner(Guard::FenceJournal, intent, false),
            outcome: of_owner(Guard::FenceJournal, outcome, false),
            complete,
            retry: of_owner(Guard::FenceFailure, retry, true),
            release: of_owner(Guard::FenceFailure, release, true),
            give_up: of_owner(Guard::FenceFailure, give_up, true),
            requeue: of_owner(Guard::CasAtSweep, requeue, true),
            escalate: of_owner(Guard::CasAtSweep, escalate, guards.has(Guard::BumpOnEscalate)),
            learn: dialect.task(learn, true, false),
            cut_lease: dialect.task(cut_lease, true, false),
            rerun: of_person(rerun),
            mark_failed: of_person(mark(Verb::MarkFailed, Status::Fail, "")),
            mark_succeeded: of_person(mark(Verb::MarkSucceeded, Status::Success, ", reason = NULL")),
            settle: dialect.task(settle, true, false),
            late_result: dialect.inserted(late_result),
            sweep: rows(sweep),
            look: rows(look),
            journal: rows(format!(
                "{} SELECT effect_key, epoch, state, rule, outcome, at_ms FROM effects WHERE task_id = $1 \
                 ORDER BY effect_key",
                by_id(tags::JOURNAL)
            )),
            // Two parts, for the two partial indexes.
            open: rows(format!(
                "{} SELECT id FROM tasks WHERE {claimable} \
                 UNION ALL SELECT id FROM tasks WHERE status = '{running}' LIMIT 1",
                read(tags::OPEN)
            )),
            show: rows(format!(
                "{} SELECT {TASK_COLUMNS}, {POLICY_COLUMNS} FROM tasks WHERE id = $1",
                by_id(tags::SHOW)
            )),
            record: rows(format!(
                "{} SELECT id, at_ms, epoch, verb, actor, from_status, to_status, note, effect_key, beat_gap_ms \
                 FROM task_events WHERE task_id = $1 ORDER BY id",
                by_id(tags::RECORD)
            )),
            register: dialect.inserted(format!(
                "{}{} owner=$1 */ INSERT INTO instances (boot_id, slot_name, host, pid, started_at_ms, nonce) \
                 VALUES ($1, $2, $3, $4, {now}, $5){}",
                tags::PREFIX,
                tags::REGISTER,
                dialect.or_nothing("(boot_id) ", "boot_id")
            )),
            supersede: many::supersede(dialect),
            instance: rows(format!(
                "{}{} owner=$1 */ SELECT boot_id, slot_name, host, pid, started_at_ms, nonce, superseded_by \
                 FROM instances WHERE boot_id = $1",
                tags::PREFIX,
                tags::INSTANCE
            )),
            schema: rows(format!(
                "{} SELECT version FROM leaseproof_schema ORDER BY version DESC LIMIT 1",
                read(tags::SCHEMA)
            )),
            dialect,
            guards,
        }
    }

    /// See [`many::blind_claim`].
    #[cfg(feature = "ablation")]
    pub(crate) fn blind_claim(&self, tasks: usize) -> Statement {
        many::blind_claim(self.dialect, tasks)
    }

    /// See [`many::heartbeat`].
    pub(crate) fn heartbeat(&self, leases: usize) -> Statement {
        many::heartbeat(self.dialect, self.guards, leases)
    }

    /// See [`many::live_leases`]; `None` where no row is ever held by somebody else.
    pub(crate) fn live_leases(&self, tasks: usize) -> Option<Statement> {
        (self.dialect != Dialect::Sqlite).then(|| many::live_leases(self.dialect, tasks))
    }

    /// The parameter that a claim or a heartbeat has besides, to read back what it has changed; none where it returns
    /// rows itself.
    pub(crate) fn token(&self) -> Result<Option<i64>, getrandom::Error> {
        match self.dialect {
            Dialect::MySql => {
                let mut bytes = [0; 8];
                getrandom::fill(&mut bytes)?;
                Ok(Some(i64::from_le_bytes(bytes)))
            }
            _ => Ok(None),
        }
    }

    /// One page of tasks for a person; `$1` is the id to start after, `$2` the page's length.
    pub(crate) fn list(&self, status: bool, kind: bool) -> Statement {
        let mut next = 3;
        let mut conditions = String::from("id > $1");
        for (wanted, column) in [(status, "status"), (kind, "kind")] {
            if wanted {
                conditions += &format!(" AND {column} = ${next}");
                next += 1;
            }
        }
        self.dialect.rows(format!(
            "{}{} */ SELECT {TASK_COLUMNS}, {POLICY_COLUMNS} FROM tasks WHERE {conditions} ORDER BY id LIMIT $2",
            tags::PREFIX,
            tags::LIST
        ))
    }
}

/// The note of a completion that was adopted.
pub(crate) const ADOPTED: &str = "adopted: the late result of a run that only the sweeper had ended";
