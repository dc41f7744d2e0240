-- MySQL and MariaDB. {now} stands for the clock expression: ms since the Unix epoch.
-- Here every CREATE commits by itself. A migration that was interrupted is taken up again, so each statement can be
-- repeated; the comment on a table says that it is ours.
-- The collation compares byte by byte and pads nothing: keys that differ in case, or in a blank at the end, are different.
CREATE TABLE IF NOT EXISTS tasks (
  id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  kind VARCHAR(255) NOT NULL,
  payload LONGBLOB NOT NULL,
  unique_key VARCHAR(700) UNIQUE,
  status VARCHAR(20) NOT NULL CHECK (status IN ('PENDING', 'RUNNING', 'RETRY_WAIT', 'SUCCESS', 'FAIL', 'WAIT_MANUAL')),
  epoch BIGINT NOT NULL DEFAULT 0,
  due_at_ms BIGINT NOT NULL,
  owner VARCHAR(255),
  claimed_at_ms BIGINT,
  heartbeat_at_ms BIGINT,
  beat_gap_ms BIGINT,
  lease_until_ms BIGINT,
  overrun_at_ms BIGINT,
  attempts BIGINT NOT NULL DEFAULT 0,
  interruptions BIGINT NOT NULL DEFAULT 0,
  reason VARCHAR(255),
  last_error LONGTEXT,
  result LONGTEXT,
  created_at_ms BIGINT NOT NULL,
  finished_at_ms BIGINT,
  lease_ms BIGINT NOT NULL CHECK (lease_ms BETWEEN 0 AND 3155760000000),
  heartbeat_ms BIGINT NOT NULL,
  fence_margin_ms BIGINT NOT NULL,
  max_attempts BIGINT NOT NULL,
  max_interruptions BIGINT NOT NULL,
  backoff_base_ms BIGINT NOT NULL,
  backoff_factor BIGINT NOT NULL,
  backoff_max_ms BIGINT NOT NULL,
  expected_run_ms BIGINT CHECK (expected_run_ms BETWEEN 0 AND 3155760000000),
  on_exhausted VARCHAR(255) NOT NULL,
  never_retry LONGTEXT NOT NULL DEFAULT ('[]'),
  record_no BIGINT NOT NULL DEFAULT 0,
  last_verb VARCHAR(64) NOT NULL,
  last_actor TEXT NOT NULL,
  last_note LONGTEXT,
  last_effect_key VARCHAR(700),
  last_effect_state VARCHAR(20),
  last_effect_rule BIGINT,
  last_effect_outcome LONGTEXT,
  -- Of the last claim or heartbeat: there is no UPDATE … RETURNING, so a statement marks what it changes, to be read back.
  token BIGINT,
  -- There are no partial indexes: NULL where there is nothing to claim.
  claimable_at_ms BIGINT AS (CASE WHEN status IN ('PENDING', 'RETRY_WAIT') THEN due_at_ms END) STORED,
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
  CHECK (status <> 'RUNNING' OR (owner IS NOT NULL AND lease_until_ms IS NOT NULL AND claimed_at_ms IS NOT NULL)),
  KEY tasks_due (claimable_at_ms, id),
  KEY tasks_lease (lease_until_ms),
  KEY tasks_overrun (overrun_at_ms),
  KEY tasks_owner (owner),
  KEY tasks_status (status, id)
) COMMENT = 'leaseproof' ENGINE = InnoDB DEFAULT CHARSET = utf8mb4
  /*M! COLLATE = utf8mb4_nopad_bin */ /*!80017 COLLATE = utf8mb4_0900_bin */;

CREATE TABLE IF NOT EXISTS task_events (
  id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  task_id BIGINT NOT NULL,
  at_ms BIGINT NOT NULL,
  epoch BIGINT NOT NULL,
  verb VARCHAR(64) NOT NULL,
  actor TEXT NOT NULL,
  from_status VARCHAR(20),
  to_status VARCHAR(20) NOT NULL,
  note LONGTEXT,
  effect_key VARCHAR(700),
  beat_gap_ms BIGINT,
  late_epoch BIGINT AS (CASE WHEN verb = 'late_result' THEN epoch END) STORED,
  KEY task_events_task (task_id, id),
  UNIQUE KEY task_events_late (task_id, late_epoch)
) COMMENT = 'leaseproof' ENGINE = InnoDB DEFAULT CHARSET = utf8mb4
  /*M! COLLATE = utf8mb4_nopad_bin */ /*!80017 COLLATE = utf8mb4_0900_bin */;

CREATE TABLE IF NOT EXISTS effects (
  task_id BIGINT NOT NULL,
  effect_key VARCHAR(700) NOT NULL,
  epoch BIGINT NOT NULL,
  state VARCHAR(20) NOT NULL CHECK (state IN ('INTENT', 'DONE', 'NOT_DONE')),
  rule BIGINT NOT NULL,
  outcome LONGTEXT,
  at_ms BIGINT NOT NULL,
  PRIMARY KEY (task_id, effect_key)
) COMMENT = 'leaseproof' ENGINE = InnoDB DEFAULT CHARSET = utf8mb4
  /*M! COLLATE = utf8mb4_nopad_bin */ /*!80017 COLLATE = utf8mb4_0900_bin */;

CREATE TABLE IF NOT EXISTS instances (
  start_no BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  boot_id VARCHAR(255) NOT NULL UNIQUE,
  slot_name VARCHAR(255),
  host TEXT NOT NULL,
  pid BIGINT NOT NULL,
  started_at_ms BIGINT NOT NULL,
  nonce TEXT NOT NULL,
  superseded_by VARCHAR(255),
  KEY instances_slot (slot_name, start_no)
) COMMENT = 'leaseproof' ENGINE = InnoDB DEFAULT CHARSET = utf8mb4
  /*M! COLLATE = utf8mb4_nopad_bin */ /*!80017 COLLATE = utf8mb4_0900_bin */;

-- The record writes itself: whoever changes a status or an epoch, by whatever statement, leaves an entry.
DROP TRIGGER IF EXISTS tasks_record_insert;
CREATE TRIGGER tasks_record_insert AFTER INSERT ON tasks FOR EACH ROW
  INSERT INTO task_events (task_id, at_ms, epoch, verb, actor, to_status, note)
  VALUES (NEW.id, {now}, NEW.epoch, NEW.last_verb, NEW.last_actor, NEW.status, NEW.last_note);
DROP TRIGGER IF EXISTS tasks_record_update;
CREATE TRIGGER tasks_record_update AFTER UPDATE ON tasks FOR EACH ROW
BEGIN
  DECLARE now_ms BIGINT DEFAULT {now};
  DECLARE is_intent BOOLEAN DEFAULT COALESCE(NEW.last_effect_state = 'INTENT', FALSE);
  IF NEW.record_no <> OLD.record_no THEN
    INSERT INTO task_events
      (task_id, at_ms, epoch, verb, actor, from_status, to_status, note, effect_key, beat_gap_ms)
    VALUES
      (NEW.id, now_ms, NEW.epoch, NEW.last_verb, NEW.last_actor, OLD.status, NEW.status, NEW.last_note,
       NEW.last_effect_key,
       CASE WHEN OLD.status = 'RUNNING' THEN GREATEST(OLD.beat_gap_ms, now_ms - OLD.heartbeat_at_ms) END);
    IF NEW.last_effect_key IS NOT NULL THEN
      INSERT INTO effects (task_id, effect_key, epoch, state, rule, outcome, at_ms)
      VALUES (NEW.id, NEW.last_effect_key, OLD.epoch, NEW.last_effect_state, NEW.last_effect_rule,
              NEW.last_effect_outcome, now_ms)
      -- As the rules have it: a late copy of an intent undoes nothing. The state comes last, since the others read it.
      ON DUPLICATE KEY UPDATE
        epoch = IF(is_intent AND state = 'DONE', epoch, OLD.epoch),
        rule = IF(is_intent AND state = 'DONE', rule, NEW.last_effect_rule),
        outcome = IF(is_intent AND state = 'DONE', outcome, NEW.last_effect_outcome),
        at_ms = IF(is_intent AND state = 'DONE', at_ms, now_ms),
        state = IF(is_intent AND state = 'DONE', state, NEW.last_effect_state);
    END IF;
  ELSEIF NEW.status <> OLD.status OR NEW.epoch <> OLD.epoch THEN
    -- USER() is who is connected; CURRENT_USER() would be who made the trigger.
    INSERT INTO task_events (task_id, at_ms, epoch, verb, actor, from_status, to_status)
    VALUES (NEW.id, now_ms, NEW.epoch, 'by_hand', USER(), OLD.status, NEW.status);
  END IF;
END;

-- A TRUNCATE asks no trigger: it needs the right to DROP, which no worker should have.
DROP TRIGGER IF EXISTS task_events_no_update;
CREATE TRIGGER task_events_no_update BEFORE UPDATE ON task_events FOR EACH ROW
  SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'task_events is append-only';
DROP TRIGGER IF EXISTS task_events_no_delete;
CREATE TRIGGER task_events_no_delete BEFORE DELETE ON task_events FOR EACH ROW
  SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'task_events is append-only';
