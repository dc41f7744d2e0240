//! Heartbeats: one statement for many leases, each fenced by its own epoch.

use std::collections::BTreeSet;

use leaseproof_queue::rules::{Epoch, Row, Status};

use crate::common::{Db, HOUR_MS, by, claim_one, enqueue, row};

async fn lease_until(db: &Db, id: i64) -> i64 {
    db.number(&format!("SELECT lease_until_ms FROM tasks WHERE id = {id}")).await
}

pub async fn a_mixed_batch_renews_exactly_the_live_leases_of_the_caller(db: &Db) {
    let store = db.store().await;
    let running = row(Status::Running, 5);
    let [mine, other_epoch, ahead, ended, done, pending, manual, also_mine] = db
        .put_all(&[
            running,
            running,
            running,
            Row { lease_live: false, ..running },
            row(Status::Success, 5),
            row(Status::Pending, 5),
            row(Status::WaitManual, 5),
            Row { overrun: true, owner_superseded: true, ..running },
        ])
        .await
        .try_into()
        .unwrap();
    let nowhere = 424_242;
    db.execute("UPDATE tasks SET lease_ms = 30000").await;
    let before = db.snapshot().await;
    let leases: [(i64, Epoch); 9] = [
        (also_mine, 5),
        (nowhere, 5),
        (manual, 5),
        (pending, 5),
        (done, 5),
        (ended, 5),
        (ahead, 6),
        (other_epoch, 4),
        (mine, 5),
    ];
    let renewed = store.heartbeat(&leases, store.deadline()).await.unwrap();
    assert_eq!(renewed, [(mine, 5), (also_mine, 5)]);
    for (id, snapshot) in db.snapshot().await {
        assert_eq!(snapshot != before[&id], renewed.contains(&(id, 5)), "task {id}");
    }
    // From now on, for the length of the lease: the row had an hour left, the policy says 30 s.
    let now = db.number(&format!("SELECT {}", db.clock())).await;
    let left = lease_until(db, mine).await - now;
    assert!((1..=30_000).contains(&left), "{left} ms left");
    assert!(store.heartbeat(&[], store.deadline()).await.unwrap().is_empty());
}

pub async fn twelve_hundred_leases_are_renewed_across_batches(db: &Db) {
    const LEASES: usize = 1_200;
    let store = db.store().await;
    // In each batch of 500 one lease has ended and one belongs to a newer claim.
    let (ended, newer) = ([0, 499, 700, 1_199], [1, 500, 999, 1_000]);
    let rows: Vec<Row> = (0..LEASES)
        .map(|n| Row {
            lease_live: !ended.contains(&n),
            epoch: if newer.contains(&n) { 3 } else { 2 },
            ..row(Status::Running, 2)
        })
        .collect();
    let ids = db.put_all(&rows).await;
    db.execute("UPDATE tasks SET lease_ms = 30000").await;
    // In no useful order: the answer is sorted all the same.
    let leases: Vec<(i64, Epoch)> = ids.iter().rev().map(|&id| (id, 2)).collect();
    let renewed = store.heartbeat(&leases, store.deadline()).await.unwrap();
    let live = (0..LEASES).filter(|n| !ended.contains(n) && !newer.contains(n));
    let expected: Vec<(i64, Epoch)> = live.map(|n| (ids[n], 2)).collect();
    assert_eq!(renewed.len(), LEASES - 8);
    assert_eq!(renewed, expected);
    let now = db.number(&format!("SELECT {}", db.clock())).await;
    let id = db.as_text("id");
    let sql = format!("SELECT {id} FROM tasks WHERE lease_until_ms BETWEEN {now} AND {now} + 30000");
    let moved: BTreeSet<i64> = db.rows(&sql).await.iter().map(|row| row[0].parse().unwrap()).collect();
    assert_eq!(moved, expected.into_iter().map(|(id, _)| id).collect());
}

/// Once a lease has ended, the sweeper's reading of it stays true until somebody changes the epoch.
pub async fn a_lease_that_has_ended_is_not_renewed(db: &Db) {
    let store = db.store().await;
    let id = enqueue(&store).await;
    let task = claim_one(&store, "worker").await;
    assert_eq!(store.heartbeat(&[(id, task.epoch)], store.deadline()).await.unwrap(), [(id, task.epoch)]);
    db.end_lease(id).await;
    let ended = lease_until(db, id).await;
    assert!(store.heartbeat(&[(id, task.epoch)], store.deadline()).await.unwrap().is_empty());
    assert_eq!(lease_until(db, id).await, ended);
    assert_eq!(store.lost_tasks(0, 10).await.unwrap().len(), 1);
}

pub async fn a_lease_named_twice_is_renewed_once(db: &Db) {
    let store = db.store().await;
    let id = db.put(row(Status::Running, 5)).await;
    let leases = [(id, 4), (id, 5), (id, 5), (id, 6)];
    assert_eq!(store.heartbeat(&leases, store.deadline()).await.unwrap(), [(id, 5)]);
}

/// What a person reads of the heartbeats is the largest gap (M5): in the entry that ends the run, and in no entry
/// before it.
pub async fn the_largest_gap_between_beats_is_kept_and_recorded(db: &Db) {
    let store = db.store().await;
    let id = enqueue(&store).await;
    let epoch = claim_one(&store, "worker").await.epoch;
    for silent_ms in [2_000, 9_000, 1_000] {
        db.execute(&format!("UPDATE tasks SET heartbeat_at_ms = heartbeat_at_ms - {silent_ms} WHERE id = {id}")).await;
        assert_eq!(store.heartbeat(&[(id, epoch)], store.deadline()).await.unwrap(), [(id, epoch)]);
    }
    store.complete(by(id, epoch), "1").await.unwrap();
    let record = store.record(id).await.unwrap();
    let gaps: Vec<Option<i64>> = record.iter().map(|event| event.beat_gap_ms).collect();
    assert_eq!(gaps.len(), 3);
    assert_eq!(gaps[..2], [None, None]);
    let gap = gaps[2].unwrap();
    assert!((9_000..9_000 + HOUR_MS).contains(&gap), "{gap} ms");

    // The silence before the last write counts, and the next run starts its own count.
    let id = enqueue(&store).await;
    for (silent_ms, gaps) in [(30_000, 30_000..30_000 + HOUR_MS), (0, 0..9_000)] {
        let epoch = claim_one(&store, "worker").await.epoch;
        db.execute(&format!("UPDATE tasks SET heartbeat_at_ms = heartbeat_at_ms - {silent_ms} WHERE id = {id}")).await;
        store.release(by(id, epoch)).await.unwrap();
        let gap = store.record(id).await.unwrap().pop().unwrap().beat_gap_ms.unwrap();
        assert!(gaps.contains(&gap), "{gap} ms after a silence of {silent_ms} ms");
    }
}
