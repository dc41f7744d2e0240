//! MariaDB: the rights that a worker needs, as the README of this package names them.

use leaseproof_queue::rules::{EffectRule, Entry, Judgement, Reason, Status};
use leaseproof_queue::store::{Learnt, Registration};
use leaseproof_queue::{Error, NewTask, Queue};

use crate::common::{Db, by, claim_one, enqueue};

/// A worker with no more than these can do all that workers, sweepers and people do, and can not touch the record. Its
/// password goes over the wire as MariaDB has it by default.
pub async fn a_worker_needs_no_more_than_the_rights_that_are_named(db: &Db) {
    let user = db.name();
    db.execute(&format!("CREATE USER '{user}'@'%' IDENTIFIED BY 'pass word'")).await;
    for (rights, table) in [
        ("SELECT, INSERT, UPDATE", "tasks"),
        ("SELECT, INSERT, UPDATE", "instances"),
        ("SELECT, INSERT", "task_events"),
        ("SELECT", "effects"),
        ("SELECT", "leaseproof_schema"),
    ] {
        db.execute(&format!("GRANT {rights} ON {table} TO '{user}'@'%'")).await;
    }
    let (_, place) = db.url().rsplit_once('@').unwrap();
    let url = format!("mariadb://{user}:pass%20word@{place}");
    let queue = Queue::connect(&url).await.unwrap();
    let store = queue.store();
    queue.check_schema().await.unwrap();
    for boot_id in ["first", "worker"] {
        let (slot_name, host, nonce) = (Some("slot".to_string()), "host".to_string(), boot_id.to_string());
        store.register(&Registration { boot_id: boot_id.into(), slot_name, host, pid: 1, nonce }).await.unwrap();
    }

    let id = enqueue(store).await;
    claim_one(store, "worker").await;
    let rule = EffectRule::default();
    store.intent(by(id, 1), "charge", rule).await.unwrap();
    assert_eq!(store.heartbeat(&[(id, 1)], store.deadline()).await.unwrap(), [(id, 1)]);
    db.end_lease(id).await;
    let seen = store.lost_tasks(0, 10).await.unwrap().pop().unwrap();
    store.escalate(by(id, 1), seen.record_no, Reason::OutcomeUnknown).await.unwrap();
    let task = store.task(id).await.unwrap();
    let said = Learnt { key: "charge", state: Entry::NotDone, rule };
    assert!(store.settle(by(id, 2), task.record_no, said).await.unwrap());
    store.rerun(by(id, 2), task.record_no + 1, None).await.unwrap();
    store.late_result(by(id, 1)).await.unwrap();
    claim_one(store, "worker").await;
    let done = store.complete(by(id, 4), "1").await.unwrap();
    assert_eq!(done, Judgement::Applied { status: Status::Success, epoch: 4 });
    assert_eq!(store.record(id).await.unwrap().len(), 9);
    assert_eq!(store.journal(id).await.unwrap().len(), 1);

    let mut session = crate::common::Session::open(db.kind(), &url).await;
    for sql in
        ["TRUNCATE task_events", "DROP TABLE task_events", "DELETE FROM task_events", "UPDATE effects SET epoch = 0"]
    {
        assert!(session.try_execute(sql).await.is_err(), "{sql}: was allowed");
    }
    // And what it may not do is an error that says so.
    db.execute(&format!("REVOKE INSERT ON tasks FROM '{user}'@'%'")).await;
    let error = queue.enqueue(NewTask::new("kind", "{}")).await.unwrap_err();
    assert!(matches!(error, Error::Rejected { .. }) && error.to_string().contains("denied"), "{error:?}");
}
