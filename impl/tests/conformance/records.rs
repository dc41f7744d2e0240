//! The execution record (M5): one entry a write, in the same statement, and never changed.

use leaseproof_queue::rules::{EffectRule, Entry, Judgement, Reason, Row, Status, TRANSITIONS, Transition, Verb};
use leaseproof_queue::store::{Fenced, Learnt};
use leaseproof_queue::{Event, Store};

use crate::common::{Db, HOUR_MS, Kind, claim_one, enqueue, row};

/// Takes one edge of the table, with `who` and `why` for the record.
async fn take(db: &Db, store: &Store, edge: &Transition) -> (i64, Event) {
    // Lost by its lease only where the edge wants it lost: so each edge's own condition holds.
    let lost = matches!(edge.verb, Verb::Requeue | Verb::Escalate);
    let id = db.put(Row { lease_live: !lost, ..row(edge.from, 7) }).await;
    let by = Fenced { id, epoch: 7, actor: "who", note: Some("why") };
    let delay_ms = if edge.to == Status::RetryWait { HOUR_MS as u64 } else { 0 };
    let rule = EffectRule::default();
    let judged = match edge.verb {
        Verb::Claim => {
            assert_eq!(claim_one(store, "who").await.id, id);
            None
        }
        Verb::Heartbeat => panic!("a heartbeat writes no entry"),
        Verb::Intent => Some(store.intent(by, "effect", rule).await),
        Verb::Outcome => Some(store.outcome(by, Learnt { key: "effect", state: Entry::Done, rule }, None).await),
        Verb::Complete => Some(store.complete(by, "1").await),
        Verb::Retry => Some(store.retry(by, delay_ms, None).await),
        Verb::Release => Some(store.release(by).await),
        Verb::GiveUp => Some(store.give_up(by, edge.to, Reason::NotRetryable).await),
        Verb::Requeue => Some(store.requeue(by, 3, delay_ms, None).await),
        Verb::Escalate => Some(store.escalate(by, 3, Reason::Overrun).await),
        Verb::Rerun => Some(store.rerun(by, 3, None).await),
        Verb::MarkFailed => Some(store.mark_failed(by).await),
        Verb::MarkSucceeded => Some(store.mark_succeeded(by).await),
    };
    if let Some(judged) = judged {
        assert!(matches!(judged.unwrap(), Judgement::Applied { .. }), "{edge:?}");
    }
    let mut record = store.record(id).await.unwrap();
    assert_eq!(record.len(), 2, "{edge:?}: one entry besides the first");
    // Out of the way of the next claim.
    db.execute(&format!("UPDATE tasks SET due_at_ms = due_at_ms + 2 * {HOUR_MS} WHERE id = {id}")).await;
    (id, record.pop().unwrap())
}

pub async fn every_transition_writes_exactly_one_entry(db: &Db) {
    let store = db.store().await;
    for edge in TRANSITIONS.iter().filter(|edge| edge.verb != Verb::Heartbeat) {
        let (id, entry) = take(db, &store, edge).await;
        assert_eq!(entry.verb, edge.verb.name());
        assert_eq!(entry.actor, "who", "{edge:?}");
        assert_eq!((entry.from_status, entry.to_status), (Some(edge.from), edge.to), "{edge:?}");
        assert_eq!(entry.epoch, 7 + u64::from(edge.bumps_epoch), "{edge:?}");
        // A claim says nothing but by whom.
        let why = (edge.verb != Verb::Claim).then_some("why");
        assert_eq!(entry.note.as_deref(), why, "{edge:?}");
        let effect = matches!(edge.verb, Verb::Intent | Verb::Outcome).then_some("effect");
        assert_eq!(entry.effect_key.as_deref(), effect, "{edge:?}");
        let now = db.number(&format!("SELECT {}", db.clock())).await;
        assert!((now - entry.at_ms).abs() < HOUR_MS, "{edge:?}: {} is not now", entry.at_ms);
        assert_eq!(store.task(id).await.unwrap().record_no, 4, "{edge:?}");
    }
}

pub async fn a_heartbeat_writes_no_entry(db: &Db) {
    let store = db.store().await;
    let id = enqueue(&store).await;
    let epoch = claim_one(&store, "worker").await.epoch;
    let before = store.record(id).await.unwrap();
    for _ in 0..20 {
        assert_eq!(store.heartbeat(&[(id, epoch)], store.deadline()).await.unwrap(), [(id, epoch)]);
    }
    assert_eq!(store.record(id).await.unwrap(), before);
    assert_eq!(store.task(id).await.unwrap().record_no, 1);
}

pub async fn a_task_that_is_open_is_seen_and_no_other(db: &Db) {
    let store = db.store().await;
    assert!(!store.any_open().await.unwrap());
    for status in Status::ALL {
        let id = db.put(row(status, 7)).await;
        let open = matches!(status, Status::Pending | Status::RetryWait | Status::Running);
        assert_eq!(store.any_open().await.unwrap(), open, "{status}");
        db.execute(&format!("DELETE FROM tasks WHERE id = {id}")).await;
    }
}

pub async fn the_record_can_be_neither_changed_nor_deleted(db: &Db) {
    let store = db.store().await;
    let id = enqueue(&store).await;
    store.late_result(Fenced { id, epoch: 1, actor: "slow", note: None }).await.unwrap();
    let record = store.record(id).await.unwrap();
    let entry = record[0].id;
    let mut attempts = vec![
        "UPDATE task_events SET note = 'never happened'".to_string(),
        format!("UPDATE task_events SET actor = 'somebody else' WHERE id = {entry}"),
        format!("DELETE FROM task_events WHERE task_id = {id}"),
        "DELETE FROM task_events".to_string(),
    ];
    let columns = "(id, task_id, at_ms, epoch, verb, actor, to_status)";
    let values = format!("VALUES ({entry}, {id}, 0, 0, 'enqueue', 'somebody else', 'PENDING')");
    let conflict = match db.kind() {
        Kind::MariaDb => "ON DUPLICATE KEY UPDATE actor = VALUES(actor)",
        _ => "ON CONFLICT (id) DO UPDATE SET actor = excluded.actor",
    };
    attempts.push(format!("INSERT INTO task_events {columns} {values} {conflict}"));
    match db.kind() {
        Kind::Postgres => attempts.push("TRUNCATE task_events".into()),
        // A TRUNCATE can not be refused here; it needs the right to DROP.
        Kind::MariaDb => attempts.push(format!("REPLACE INTO task_events {columns} {values}")),
        // In SQLite a REPLACE deletes without asking the triggers of a DELETE.
        Kind::Sqlite => {
            attempts.push(format!("REPLACE INTO task_events {columns} {values}"));
            attempts.push(format!("INSERT OR REPLACE INTO task_events {columns} {values}"));
            let late = format!("VALUES (NULL, {id}, 0, 1, 'late_result', 'somebody else', 'PENDING')");
            attempts.push(format!("REPLACE INTO task_events {columns} {late}"));
        }
    }
    for sql in attempts {
        let refused = db.try_execute(&sql).await;
        assert!(refused.is_err(), "{sql}: was accepted");
        let said = refused.unwrap_err().to_string();
        assert!(said.contains("append-only"), "{sql}: {said}");
    }
    assert_eq!(store.record(id).await.unwrap(), record);
    // The record outlives its task.
    db.execute(&format!("DELETE FROM tasks WHERE id = {id}")).await;
    assert_eq!(store.record(id).await.unwrap(), record);
}

/// Somebody with `psql` is not an executor, and what they did can be seen.
pub async fn a_row_changed_by_hand_is_recorded_as_such(db: &Db) {
    let store = db.store().await;
    let id = enqueue(&store).await;
    claim_one(&store, "worker").await;
    db.execute(&format!("UPDATE tasks SET status = 'WAIT_MANUAL' WHERE id = {id}")).await;
    db.execute(&format!("UPDATE tasks SET epoch = 9 WHERE id = {id}")).await;
    db.execute(&format!("UPDATE tasks SET last_error = 'no change of status or epoch' WHERE id = {id}")).await;
    let record = store.record(id).await.unwrap();
    let by_hand: Vec<_> = record[2..].iter().map(|e| (e.verb.as_str(), e.from_status, e.to_status, e.epoch)).collect();
    assert_eq!(
        by_hand,
        [
            ("by_hand", Some(Status::Running), Status::WaitManual, 1),
            ("by_hand", Some(Status::WaitManual), Status::WaitManual, 9),
        ]
    );
    assert!(record[2..].iter().all(|entry| entry.actor != "worker" && !entry.actor.is_empty()));
}

pub async fn the_record_tells_the_whole_story_in_order(db: &Db) {
    let store = db.store().await;
    let id = enqueue(&store).await;
    let by = |epoch, actor, note| Fenced { id, epoch, actor, note };
    let rule = EffectRule::default();
    claim_one(&store, "first").await;
    store.intent(by(1, "first", None), "charge", rule).await.unwrap();
    db.end_lease(id).await;
    let seen = store.lost_tasks(0, 10).await.unwrap().pop().unwrap();
    store.escalate(by(1, "sweeper", Some("lease expired")), seen.record_no, Reason::OutcomeUnknown).await.unwrap();
    let read = store.task(id).await.unwrap();
    let said = Learnt { key: "charge", state: Entry::NotDone, rule };
    assert!(store.settle(by(2, "ann", Some("bank says no")), read.record_no, said).await.unwrap());
    store.rerun(by(2, "ann", Some("again")), read.record_no + 1, None).await.unwrap();
    store.late_result(by(1, "first", Some("1"))).await.unwrap();
    claim_one(&store, "second").await;
    store.complete(by(4, "second", None), "2").await.unwrap();

    let told: Vec<String> = store
        .record(id)
        .await
        .unwrap()
        .into_iter()
        .map(|entry| {
            let from = entry.from_status.map_or("-", Status::name);
            let [note, key] = [entry.note, entry.effect_key].map(|text| text.unwrap_or_else(|| "-".into()));
            let (verb, actor, to) = (entry.verb, entry.actor, entry.to_status);
            format!("{} {verb} by {actor}: {from} to {to}, {note}, {key}", entry.epoch)
        })
        .collect();
    assert_eq!(
        told,
        [
            "0 enqueue by client: - to PENDING, -, -",
            "1 claim by first: PENDING to RUNNING, -, -",
            "1 intent by first: RUNNING to RUNNING, -, charge",
            "2 escalate by sweeper: RUNNING to WAIT_MANUAL, lease expired, -",
            "2 settle by ann: WAIT_MANUAL to WAIT_MANUAL, bank says no, charge",
            "3 rerun by ann: WAIT_MANUAL to PENDING, again, -",
            "1 late_result by first: PENDING to PENDING, 1, -",
            "4 claim by second: PENDING to RUNNING, -, -",
            "4 complete by second: RUNNING to SUCCESS, -, -",
        ]
    );
}
