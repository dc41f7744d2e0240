//! Claims (P2), and what goes into the queue before them.

use std::collections::BTreeMap;
use std::sync::Arc;

use leaseproof_queue::rules::{Backoff, OnExhausted, Policy, Status};
use leaseproof_queue::{Error, LONGEST_MS, MOST_JSON_BYTES, NewTask};
use tokio::sync::Barrier;

use crate::common::{Db, HOUR_MS, JoinSet, by, claim_one, enqueue, row};

/// PostgreSQL reads its clock for each column, so two of one row may differ a little.
fn about(at_ms: i64, expected_ms: i64) -> bool {
    (at_ms - expected_ms).abs() < 1_000
}

/// Claimers of several processes at once: every task goes to exactly one of them.
pub async fn many_claimers_share_the_tasks_without_overlap(db: &Db) {
    const TASKS: usize = 60;
    const CLAIMERS: usize = 8;
    let store = db.store().await;
    for _ in 0..TASKS {
        enqueue(&store).await;
    }
    let start = Arc::new(Barrier::new(CLAIMERS));
    let mut claimers = JoinSet::new();
    for claimer in 0..CLAIMERS {
        let (store, start) = (db.store().await, start.clone());
        claimers.spawn(async move {
            let owner = format!("claimer-{claimer}");
            start.wait().await;
            let mut mine = Vec::new();
            loop {
                let claimed = store.claim(&owner, 3).await.expect("the loser of a race gets nothing, never an error");
                if claimed.is_empty() {
                    store.close().await;
                    return mine;
                }
                mine.extend(claimed.into_iter().map(|task| (task.id, task.epoch, owner.clone())));
            }
        });
    }
    let mut owners = BTreeMap::new();
    for (id, epoch, owner) in claimers.join_all().await.into_iter().flatten() {
        assert_eq!(epoch, 1);
        assert_eq!(owners.insert(id, owner), None, "task {id} was claimed twice");
    }
    assert_eq!(owners.len(), TASKS);
    for (id, owner) in owners {
        let claims: Vec<_> =
            store.record(id).await.unwrap().into_iter().filter(|event| event.verb == "claim").collect();
        assert_eq!(claims.len(), 1);
        assert_eq!((claims[0].actor.as_str(), claims[0].epoch), (owner.as_str(), 1));
        assert_eq!(store.task(id).await.unwrap().owner, Some(owner));
    }
}

pub async fn of_many_claimers_of_one_task_one_wins_and_none_fails(db: &Db) {
    const CLAIMERS: usize = 6;
    const ROUNDS: usize = 10;
    let store = db.store().await;
    for round in 0..ROUNDS {
        let id = enqueue(&store).await;
        let start = Arc::new(Barrier::new(CLAIMERS));
        let mut claimers = JoinSet::new();
        for claimer in 0..CLAIMERS {
            let (store, start) = (store.clone(), start.clone());
            claimers.spawn(async move {
                start.wait().await;
                store.claim(&format!("claimer-{claimer}"), 1).await.expect("never an error").len()
            });
        }
        let won: usize = claimers.join_all().await.into_iter().sum();
        assert_eq!(won, 1, "round {round}, task {id}");
        assert_eq!(store.task(id).await.unwrap().epoch, 1);
    }
}

pub async fn a_claim_hands_out_what_was_put_in(db: &Db) {
    let store = db.store().await;
    let policy = Policy {
        lease_ms: 12_345,
        heartbeat_ms: 1_234,
        fence_margin_ms: 123,
        max_attempts: 7,
        max_interruptions: 0,
        backoff: Backoff { base_ms: 11, factor: 3, max_ms: 99_999 },
        expected_run_ms: Some(4_321),
        on_exhausted: OnExhausted::Fail,
        never_retry: vec!["declined".into(), "\"quoted\", 北京".into()],
    };
    let payload = r#"{"to": "北京", "n": 1}"#;
    let id = store
        .enqueue(&NewTask::new("mail", payload).policy(policy.clone()).unique_key("once"), "client")
        .await
        .unwrap()
        .id;
    let task = claim_one(&store, "worker").await;
    assert_eq!((task.id, task.epoch, task.kind.as_str()), (id, 1, "mail"));
    assert_eq!(task.payload, payload.as_bytes());
    assert_eq!(task.policy, Ok(policy.clone()));
    assert_eq!((task.attempts, task.interruptions), (0, 0));

    let shown = store.task(id).await.unwrap();
    assert_eq!((shown.status, shown.owner.as_deref()), (Status::Running, Some("worker")));
    assert_eq!(shown.policy, Ok(policy));
    assert_eq!(shown.unique_key.as_deref(), Some("once"));
    assert_eq!(shown.claimed_at_ms, Some(task.claimed_at_ms));
    assert!(about(shown.lease_until_ms.unwrap(), task.claimed_at_ms + 12_345), "{shown:?}");
    let overrun_at = db.number(&format!("SELECT overrun_at_ms FROM tasks WHERE id = {id}")).await;
    assert!(about(overrun_at, task.claimed_at_ms + 4_321), "{overrun_at} {shown:?}");
}

pub async fn the_longest_due_is_claimed_first(db: &Db) {
    let store = db.store().await;
    let now = db.number(&format!("SELECT {}", db.clock())).await;
    let mut ids = Vec::new();
    // Due 1 to 4 hours ago, not in the order of the ids; the last two at the same time, where the older id comes first.
    for hours in [2, 4, 1, 3, 3] {
        let id = enqueue(&store).await;
        db.execute(&format!("UPDATE tasks SET due_at_ms = {now} - {} WHERE id = {id}", hours * HOUR_MS)).await;
        ids.push(id);
    }
    let mut claimed = Vec::new();
    for _ in 0..ids.len() {
        claimed.extend(store.claim("worker", 1).await.unwrap().into_iter().map(|task| task.id));
    }
    assert_eq!(claimed, [ids[1], ids[3], ids[4], ids[0], ids[2]]);

    // The same order inside one claim.
    for id in &claimed {
        store.release(by(*id, 1)).await.unwrap();
    }
    let at_once: Vec<i64> = store.claim("worker", 10).await.unwrap().into_iter().map(|task| task.id).collect();
    assert_eq!(at_once, claimed);
}

pub async fn a_claim_takes_no_more_than_its_limit(db: &Db) {
    let store = db.store().await;
    for _ in 0..5 {
        enqueue(&store).await;
    }
    let mut taken = Vec::new();
    for limit in [0, 1, 3, 3, 3] {
        taken.push(store.claim("worker", limit).await.unwrap().len());
    }
    assert_eq!(taken, [0, 1, 3, 1, 0]);
}

pub async fn a_delayed_task_is_not_claimed_before_it_is_due(db: &Db) {
    let store = db.store().await;
    let new = NewTask::new("kind", "{}").delay_ms(HOUR_MS as u64);
    let id = store.enqueue(&new, "client").await.unwrap().id;
    assert_eq!(store.claim("worker", 1).await.unwrap(), []);
    let task = store.task(id).await.unwrap();
    assert!(about(task.due_at_ms, task.created_at_ms + HOUR_MS), "{task:?}");
    db.make_due(id).await;
    assert_eq!(claim_one(&store, "worker").await.id, id);
}

pub async fn a_task_in_retry_wait_is_claimed_when_it_is_due(db: &Db) {
    let store = db.store().await;
    let id = enqueue(&store).await;
    let task = claim_one(&store, "worker").await;
    store.retry(by(id, task.epoch), HOUR_MS as u64, None).await.unwrap();
    assert_eq!(store.task(id).await.unwrap().status, Status::RetryWait);
    assert_eq!(store.claim("worker", 1).await.unwrap(), []);
    db.make_due(id).await;
    let again = claim_one(&store, "worker").await;
    assert_eq!((again.id, again.epoch, again.attempts), (id, 3, 1));
}

pub async fn a_second_task_with_the_same_key_is_not_put_in(db: &Db) {
    let store = db.store().await;
    let first = store.enqueue(&NewTask::new("kind", "1").unique_key("key"), "client").await.unwrap();
    let second = store.enqueue(&NewTask::new("kind", "2").unique_key("key"), "client").await.unwrap();
    let other = store.enqueue(&NewTask::new("kind", "3").unique_key("other"), "client").await.unwrap();
    assert!(first.new && !second.new && other.new);
    assert_eq!(first.id, second.id);
    assert_eq!(store.task(first.id).await.unwrap().payload, b"1");
    assert_eq!(db.number("SELECT count(*) FROM tasks").await, 2);
}

/// Byte by byte, whatever the database takes for equal by its own choice.
pub async fn keys_that_only_look_alike_are_different_keys(db: &Db) {
    let store = db.store().await;
    // Another case, a blank at the end, an accent, and a letter of four bytes in UTF-8.
    let keys = ["key", "KEY", "key ", "kéy", "key🔑", "key🔒"];
    for key in keys {
        let put = store.enqueue(&NewTask::new(key, "{}").unique_key(key), "client").await.unwrap();
        assert!(put.new, "{key:?}");
        let task = store.task(put.id).await.unwrap();
        assert_eq!((task.kind.as_str(), task.unique_key.as_deref()), (key, Some(key)));
    }
    let of_kind = store.list(None, Some("KEY"), 0, 10).await.unwrap().tasks;
    assert_eq!(of_kind.iter().map(|task| task.kind.as_str()).collect::<Vec<_>>(), ["KEY"]);
}

pub async fn many_enqueues_under_one_key_put_in_one_task(db: &Db) {
    let store = db.store().await;
    let start = Arc::new(Barrier::new(8));
    let mut clients = JoinSet::new();
    for _ in 0..8 {
        let (store, start) = (store.clone(), start.clone());
        clients.spawn(async move {
            start.wait().await;
            store.enqueue(&NewTask::new("kind", "{}").unique_key("key"), "client").await.expect("safe to repeat")
        });
    }
    let done = clients.join_all().await;
    assert_eq!(done.iter().filter(|enqueued| enqueued.new).count(), 1);
    assert!(done.iter().all(|enqueued| enqueued.id == done[0].id));
}

/// One bad row must not hide the others: it is handed out, so that its owner can give it up with the reason.
pub async fn a_task_with_settings_that_can_not_work_is_handed_out_with_the_reason(db: &Db) {
    let store = db.store().await;
    let (bad, good) = (db.put(row(Status::Pending, 0)).await, db.put(row(Status::Pending, 0)).await);
    for (column, value) in [("heartbeat_ms", "-1"), ("on_exhausted", "'dance'"), ("max_attempts", "0")] {
        let kept = db.rows(&format!("SELECT {} FROM tasks WHERE id = {good}", db.as_text(column))).await[0][0].clone();
        db.execute(&format!("UPDATE tasks SET {column} = {value} WHERE id = {bad}")).await;
        let claimed = store.claim("worker", 10).await.unwrap();
        assert_eq!(claimed.len(), 2);
        for task in claimed {
            assert_eq!(task.policy.is_ok(), task.id == good, "{column} = {value}: {:?}", task.policy);
            if let Err(why) = &task.policy {
                let name = column.trim_end_matches("_ms");
                assert!(why.contains(name), "{why:?} does not name {name}");
            }
            store.release(by(task.id, task.epoch)).await.unwrap();
        }
        db.execute(&format!("UPDATE tasks SET {column} = '{kept}' WHERE id = {bad}")).await;
    }
}

pub async fn bad_input_is_refused_before_the_database_sees_it(db: &Db) {
    let store = db.store().await;
    let policy = |lease_ms, heartbeat_ms| Policy { lease_ms, heartbeat_ms, ..Policy::default() };
    let refused = [
        (NewTask::new("", "{}"), "kind"),
        (NewTask::new("kind", "{"), "payload"),
        (NewTask::new("kind", vec![0xff]), "payload"),
        (NewTask::new("kind", r#"{"name": "a\u0000b"}"#), "payload"),
        (NewTask::new("kind", format!("[{}]", " ".repeat(MOST_JSON_BYTES))), "payload"),
        (NewTask::new("ki\0nd", "{}"), "kind"),
        (NewTask::new("kind", "{}").unique_key("a\0b"), "unique_key"),
        (NewTask::new("kind", "{}").policy(policy(0, 0)), "lease"),
        (NewTask::new("kind", "{}").policy(policy(LONGEST_MS + 1, 1_000)), "lease"),
        (NewTask::new("kind", "{}").delay_ms(LONGEST_MS + 1), "delay"),
    ];
    for (new, field) in refused {
        let error = store.enqueue(&new, "client").await.unwrap_err();
        assert!(matches!(error, Error::BadInput { .. } | Error::Policy(_)), "{error:?}");
        assert!(error.to_string().contains(field), "{error} does not name {field}");
    }
    assert_eq!(db.number("SELECT count(*) FROM tasks").await, 0);
}
