-- {now} stands for the clock expression: ms since the Unix epoch.
-- STRICT: SQLite would else keep any value in any column.
CREATE TABLE tasks (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  payload BLOB NOT NULL,
  unique_key TEXT UNIQUE,
  status TEXT NOT NULL CHECK (status IN ('PENDING', 'RUNNING', 'RETRY_WAIT', 'SUCCESS', 'FAIL', 'WAIT_MANUAL')),
  epoch INTEGER NOT NULL DEFAULT 0,
  due_at_ms INTEGER NOT NULL,
  owner TEXT,
  claimed_at_ms INTEGER,
  heartbeat_at_ms INTEGER,
  beat_gap_ms INTEGER,
  lease_until_ms INTEGER,
  overrun_at_ms INTEGER,
  attempts INTEGER NOT NULL DEFAULT 0,
  interruptions INTEGER NOT NULL DEFAULT 0,
  reason TEXT,
  last_error TEXT,
  result TEXT,
  created_at_ms INTEGER NOT NULL,
  finished_at_ms INTEGER,
  lease_ms INTEGER NOT NULL CHECK (lease_ms BETWEEN 0 AND 3155760000000),
  heartbeat_ms INTEGER NOT NULL,
  fence_margin_ms INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  max_interruptions INTEGER NOT NULL,
  backoff_base_ms INTEGER NOT NULL,
  backoff_factor INTEGER NOT NULL,
  backoff_max_ms INTEGER NOT NULL,
  expected_run_ms INTEGER CHECK (expected_run_ms BETWEEN 0 AND 3155760000000),
  on_exhausted TEXT NOT NULL,
  never_retry TEXT NOT NULL DEFAULT '[]',
  record_no INTEGER NOT NULL DEFAULT 0,
  last_verb TEXT NOT NULL,
  last_actor TEXT NOT NULL,
  last_note TEXT,
  last_effect_key TEXT,
  last_effect_state TEXT,
  last_effect_rule INTEGER,
  last_effect_outcome TEXT,
  -- Room for every statement's sums: one row that overflows would stop a claim of many. The numbers are those of the rules.
  CHECK (epoch BETWEEN 0 AND 9007199254740991 AND record_no BETWEEN 0 AND 9007199254740991),
  CHECK (status NOT IN ('PENDING', 'RETRY_WAIT') OR (epoch < 9000000000000000 AND record_no < 9000000000000000)),
  CHECK (attempts BETWEEN 0 AND 2147483647 AND interruptions BETWEEN 0 AND 2147483647),
  CHECK (due_at_ms BETWEEN -9007199254740991 AND 9007199254740991),
  CHECK (claimed_at_ms BETWEEN -9007199254740991 AND 9007199254740991),
  CHECK (heartbeat_at_ms BETWEEN -9007199254740991 AND 9007199254740991),
  CHECK (beat_gap_ms BETWEEN -9007199254740991 AND 9007199254740991),
  CHECK (lease_until_ms BETWEEN -9007199254740991 AND 9007199254740991),
  CHECK (overrun_at_ms BETWEEN -9007199254740991 AND 9007199254740991),
  CHECK (status <> 'RUNNING' OR (owner IS NOT NULL AND lease_until_ms IS NOT NULL AND claimed_at_ms IS NOT NULL))
) STRICT;
CREATE INDEX tasks_due ON tasks (due_at_ms, id) WHERE status IN ('PENDING', 'RETRY_WAIT');
CREATE INDEX tasks_lease ON tasks (lease_until_ms) WHERE status = 'RUNNING';
CREATE INDEX tasks_overrun ON tasks (overrun_at_ms) WHERE status = 'RUNNING';
CREATE INDEX tasks_owner ON tasks (owner) WHERE status = 'RUNNING';
CREATE INDEX tasks_manual ON tasks (id) WHERE status = 'WAIT_MANUAL';

CREATE TABLE task_events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  task_id INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  verb TEXT NOT NULL,
  actor TEXT NOT NULL,
  from_status TEXT,
  to_status TEXT NOT NULL,
  note TEXT,
  effect_key TEXT,
  beat_gap_ms INTEGER
) STRICT;
CREATE INDEX task_events_task ON task_events (task_id, id);
CREATE UNIQUE INDEX task_events_late ON task_events (task_id, epoch) WHERE verb = 'late_result';

CREATE TABLE effects (
  task_id INTEGER NOT NULL,
  effect_key TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('INTENT', 'DONE', 'NOT_DONE')),
  rule INTEGER NOT NULL,
  outcome TEXT,
  at_ms INTEGER NOT NULL,
  PRIMARY KEY (task_id, effect_key)
) STRICT;

CREATE TABLE instances (
  start_no INTEGER PRIMARY KEY AUTOINCREMENT,
  boot_id TEXT NOT NULL UNIQUE,
  slot_name TEXT,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started_at_ms INTEGER NOT NULL,
  nonce TEXT NOT NULL,
  superseded_by TEXT
) STRICT;
CREATE INDEX instances_slot ON instances (slot_name) WHERE superseded_by IS NULL;

-- The record writes itself: whoever changes a status or an epoch, by whatever statement, leaves an entry.
CREATE TRIGGER tasks_record_insert AFTER INSERT ON tasks
BEGIN
  INSERT INTO task_events (task_id, at_ms, epoch, verb, actor, to_status, note)
  VALUES (NEW.id, {now}, NEW.epoch, NEW.last_verb, NEW.last_actor, NEW.status, NEW.last_note);
END;
CREATE TRIGGER tasks_record_by_hand AFTER UPDATE ON tasks
WHEN NEW.record_no = OLD.record_no AND (NEW.status <> OLD.status OR NEW.epoch <> OLD.epoch)
BEGIN
  INSERT INTO task_events (task_id, at_ms, epoch, verb, actor, from_status, to_status)
  VALUES (NEW.id, {now}, NEW.epoch, 'by_hand', 'sql', OLD.status, NEW.status);
END;
CREATE TRIGGER tasks_record_update AFTER UPDATE ON tasks WHEN NEW.record_no <> OLD.record_no
BEGIN
  INSERT INTO task_events
    (task_id, at_ms, epoch, verb, actor, from_status, to_status, note, effect_key, beat_gap_ms)
  VALUES
    (NEW.id, {now}, NEW.epoch, NEW.last_verb, NEW.last_actor, OLD.status, NEW.status, NEW.last_note,
     NEW.last_effect_key,
     CASE WHEN OLD.status = 'RUNNING' THEN max(OLD.beat_gap_ms, {now} - OLD.heartbeat_at_ms) END);
END;
CREATE TRIGGER tasks_journal AFTER UPDATE ON tasks
WHEN NEW.record_no <> OLD.record_no AND NEW.last_effect_key IS NOT NULL
BEGIN
  INSERT INTO effects (task_id, effect_key, epoch, state, rule, outcome, at_ms)
  VALUES (NEW.id, NEW.last_effect_key, OLD.epoch, NEW.last_effect_state, NEW.last_effect_rule,
          NEW.last_effect_outcome, {now})
  ON CONFLICT (task_id, effect_key) DO UPDATE SET
    epoch = excluded.epoch, state = excluded.state, rule = excluded.rule, outcome = excluded.outcome,
    at_ms = excluded.at_ms
  -- As the rules have it: a late copy of an intent undoes nothing.
  WHERE NOT (effects.state = 'DONE' AND excluded.state = 'INTENT');
END;

CREATE TRIGGER task_events_no_update BEFORE UPDATE ON task_events
BEGIN
  SELECT RAISE(ABORT, 'task_events is append-only');
END;
CREATE TRIGGER task_events_no_delete BEFORE DELETE ON task_events
BEGIN
  SELECT RAISE(ABORT, 'task_events is append-only');
END;
-- A REPLACE deletes the row in its way without asking the triggers of a DELETE.
CREATE TRIGGER task_events_no_replace BEFORE INSERT ON task_events
WHEN EXISTS (SELECT 1 FROM task_events WHERE id = NEW.id)
  OR (NEW.verb = 'late_result' AND EXISTS (SELECT 1 FROM task_events
      WHERE task_id = NEW.task_id AND epoch = NEW.epoch AND verb = 'late_result'))
BEGIN
  SELECT RAISE(ABORT, 'task_events is append-only');
END;
