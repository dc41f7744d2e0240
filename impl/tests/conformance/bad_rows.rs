//! Rows that another program has written, past the tables' own checks: each stops nothing but itself, and is told by id.

use std::collections::BTreeSet;

use leaseproof_queue::rules::{COUNT_MAX, EPOCH_LIMIT, EPOCH_MAX, Epoch, Row, Status};
use leaseproof_queue::{Error, Sweeper};

use crate::common::{Db, HOUR_MS, Kind, enqueue, row};

/// Past the checks of the tables.
async fn force(db: &Db, id: i64, set: &str) {
    db.unchecked("tasks", &format!("UPDATE tasks SET {set} WHERE id = {id}")).await;
}

/// Goal: no row keeps a claim from the tasks behind it. Method: rows that the statement can not write, each due before
/// all others, and one good task.
pub async fn a_row_that_refuses_a_claim_keeps_no_other_from_it(db: &Db) {
    let store = db.store().await;
    for set in [
        format!("epoch = {EPOCH_MAX}"),
        format!("epoch = {EPOCH_LIMIT}"),
        "epoch = 9223372036854775807".into(),
        "epoch = -1".into(),
        "record_no = 9223372036854775807".into(),
        "lease_ms = 9223372036854775807".into(),
        "expected_run_ms = 9223372036854775807".into(),
    ] {
        let bad = enqueue(&store).await;
        force(db, bad, &format!("{set}, due_at_ms = due_at_ms - {HOUR_MS}")).await;
        let good = enqueue(&store).await;
        let claimed: Vec<i64> = store.claim("worker", 10).await.unwrap().into_iter().map(|task| task.id).collect();
        assert_eq!(claimed, [good], "{set}");
    }
    // A limit is one here too.
    let good = [enqueue(&store).await, enqueue(&store).await];
    for id in good {
        assert_eq!(store.claim("worker", 1).await.unwrap()[0].id, id);
    }
}

/// What can be claimed and not run is handed out with the reason, so that its run can hand it to a person.
pub async fn a_claimed_row_that_can_not_be_read_is_handed_out_with_the_reason(db: &Db) {
    let store = db.store().await;
    let mut told = vec![("on_exhausted = 'shrug'", "on_exhausted"), ("never_retry = 'what'", "never_retry")];
    told.extend([("heartbeat_ms = -1", "heartbeat_ms"), ("max_attempts = 9223372036854775807", "max_attempts")]);
    if db.kind() == Kind::Sqlite {
        told.push(("kind = CAST(x'6bff' AS TEXT)", "kind"));
        told.push(("on_exhausted = CAST(x'ff' AS TEXT)", "on_exhausted"));
        told.push(("attempts = 9223372036854775807", "attempts"));
    }
    for (set, column) in told {
        let (bad, good) = (enqueue(&store).await, enqueue(&store).await);
        force(db, bad, set).await;
        let mut claimed = store.claim("worker", 10).await.unwrap();
        claimed.sort_by_key(|task| task.id);
        assert_eq!(claimed.iter().map(|task| task.id).collect::<Vec<_>>(), [bad, good], "{set}");
        assert!(claimed[0].policy.as_ref().is_err_and(|why| why.contains(column)), "{set}: {:?}", claimed[0]);
        assert!(claimed[1].policy.is_ok(), "{set}");
    }
}

pub async fn a_lost_row_that_can_not_be_read_keeps_no_other_from_a_decision(db: &Db) {
    let queue = db.queue().await;
    let lost = Row { lease_live: false, ..row(Status::Running, 1) };
    let mut told =
        vec![("on_exhausted = 'shrug'", true), ("lease_ms = 9223372036854775807", db.kind() == Kind::Sqlite)];
    told.extend([("epoch = -1", false), ("epoch = 9223372036854775807", false)]);
    if db.kind() == Kind::Sqlite {
        told.push(("kind = CAST(x'6bff' AS TEXT)", true));
        told.push(("owner = CAST(x'6bff' AS TEXT)", true));
    }
    for (set, decided) in told {
        let ids = db.put_all(&[lost; 2]).await;
        force(db, ids[0], set).await;
        let report = Sweeper::new(queue.clone(), std::time::Duration::from_secs(1)).sweep_once().await.unwrap();
        assert_eq!((report.seen, report.requeued), (2, 1), "{set}: {report:?}");
        assert_eq!((report.escalated, report.failed), (u64::from(decided), u64::from(!decided)), "{set}: {report:?}");
        let good = queue.show(ids[1]).await.unwrap();
        assert_eq!(good.task.status, Status::Pending, "{set}");
        db.unchecked("tasks", &format!("DELETE FROM tasks WHERE id IN ({}, {})", ids[0], ids[1])).await;
    }
}

pub async fn a_count_that_is_full_stays_full(db: &Db) {
    let store = db.store().await;
    let running = row(Status::Running, 1);
    let lost = Row { lease_live: false, ..running };
    let ids = db.put_all(&[running, lost]).await;
    db.execute(&format!("UPDATE tasks SET attempts = {COUNT_MAX}, interruptions = {COUNT_MAX}")).await;
    store.retry(crate::common::by(ids[0], 1), 0, None).await.unwrap();
    store.requeue(crate::common::by(ids[1], 1), 3, 0, None).await.unwrap();
    for id in ids {
        let task = store.task(id).await.unwrap();
        assert_eq!((task.status, task.attempts, task.interruptions), (Status::Pending, COUNT_MAX, COUNT_MAX));
    }
}

pub async fn a_row_that_refuses_a_heartbeat_keeps_no_other_from_it(db: &Db) {
    let store = db.store().await;
    let ids = db.put_all(&[row(Status::Running, 1); 7]).await;
    force(db, ids[4], "heartbeat_at_ms = -9223372036854775807").await;
    let leases: Vec<(i64, Epoch)> = ids.iter().map(|id| (*id, 1)).collect();
    let good: Vec<_> = leases.iter().copied().filter(|lease| lease.0 != ids[4]).collect();
    let mut renewed = BTreeSet::new();
    // PostgreSQL tells of an error before it lets go of the rows of the statement: some may be held up for a moment.
    while renewed.len() < good.len() {
        let beaten = store.beat(&leases, store.deadline()).await.unwrap();
        assert!(beaten.held_up.contains(&leases[4]), "{beaten:?}");
        assert_eq!(beaten.renewed.len() + beaten.held_up.len(), leases.len(), "none is lost: {beaten:?}");
        renewed.extend(beaten.renewed);
    }
    assert_eq!(renewed, good.into_iter().collect());
}

pub async fn a_task_that_can_not_be_read_is_listed_by_its_id_beside_the_others(db: &Db) {
    let queue = db.queue().await;
    let store = queue.store();
    let ids = [enqueue(store).await, enqueue(store).await, enqueue(store).await];
    force(db, ids[1], "status = 'DONE'").await;
    let listed = queue.list(None, None, 0, 10).await.unwrap();
    assert_eq!(listed.tasks.iter().map(|task| task.id).collect::<Vec<_>>(), [ids[0], ids[2]]);
    assert_eq!((listed.bad.len(), listed.bad[0].id), (1, ids[1]));
    assert!(listed.bad[0].why.contains("status") && listed.bad[0].why.contains("DONE"), "{listed:?}");
    assert_eq!((listed.rows(), listed.last_id()), (3, Some(ids[2])));
    let error = queue.show(ids[1]).await.unwrap_err();
    assert!(matches!(&error, Error::BadRow { id: Some(id), .. } if *id == ids[1]), "{error:?}");
    assert!(error.to_string().contains(&ids[1].to_string()), "{error}");
    assert_eq!(queue.show(ids[2]).await.unwrap().bad, Vec::<String>::new());
}

/// The journal and the record of one task are read by nobody but whoever looks at that task.
pub async fn what_can_not_be_read_of_record_and_journal_is_told_and_the_rest_shown(db: &Db) {
    let queue = db.queue().await;
    let (id, other) = (enqueue(queue.store()).await, enqueue(queue.store()).await);
    for (key, state) in [("good", "DONE"), ("strange", "MAYBE")] {
        let columns = "(task_id, effect_key, epoch, state, rule, at_ms)";
        db.unchecked("effects", &format!("INSERT INTO effects {columns} VALUES ({id}, '{key}', 1, '{state}', 0, 0)"))
            .await;
    }
    let columns = "(task_id, at_ms, epoch, verb, actor, to_status)";
    db.execute(&format!("INSERT INTO task_events {columns} VALUES ({id}, 0, 1, 'strange', 'somebody', 'DONE')")).await;
    if db.kind() == Kind::Sqlite {
        let entry = format!("INSERT INTO task_events {columns} VALUES ({id}, 0, 1, CAST(x'ff' AS TEXT), 's', 'FAIL')");
        db.execute(&entry).await;
    }
    let shown = queue.show(id).await.unwrap();
    assert_eq!(shown.effects.iter().map(|effect| effect.key.as_str()).collect::<Vec<_>>(), ["good"]);
    assert_eq!(shown.record[0].verb, "enqueue");
    assert!(shown.bad.iter().any(|why| why.contains("strange") && why.contains("MAYBE")), "{:?}", shown.bad);
    assert!(shown.bad.iter().any(|why| why.contains("to_status") && why.contains("DONE")), "{:?}", shown.bad);
    let (told, entries) = if db.kind() == Kind::Sqlite { (3, 2) } else { (2, 1) };
    assert_eq!((shown.bad.len(), shown.record.len()), (told, entries), "{:?}", shown.bad);
    assert_eq!(queue.show(other).await.unwrap().bad, Vec::<String>::new());
    // Whoever decides by the journal has to have all of it.
    assert!(matches!(queue.store().journal(id).await, Err(Error::BadRow { .. })));
}
