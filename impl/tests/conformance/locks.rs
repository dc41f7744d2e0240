//! Row locks that somebody else holds, on the servers that have them.

use std::time::{Duration, Instant};

use leaseproof_queue::rules::{EffectRule, Entry, Judgement, Reason, Refusal, Row, Status};
use leaseproof_queue::store::{Beaten, Learnt};
use leaseproof_queue::{SweepReport, Sweeper};

use crate::common::{Db, Session, by, claim_one, enqueue, row};

/// A session that holds the row lock of one task.
pub async fn locked(db: &Db, id: i64) -> Session {
    let mut session = db.session().await;
    session.execute(&format!("BEGIN; SELECT id FROM tasks WHERE id = {id} FOR UPDATE")).await;
    session
}

pub async fn a_claim_skips_a_row_that_another_session_has_locked(db: &Db) {
    let store = db.store().await;
    let (first, second) = (enqueue(&store).await, enqueue(&store).await);
    let mut other = locked(db, first).await;
    let began = Instant::now();
    let claimed: Vec<i64> = store.claim("worker", 10).await.unwrap().into_iter().map(|task| task.id).collect();
    assert_eq!(claimed, [second]);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    other.execute("ROLLBACK").await;
    assert_eq!(claim_one(&store, "worker").await.id, first);
}

/// One statement renews many leases: it does not wait for one of their rows until all have ended.
pub async fn a_locked_row_keeps_no_other_lease_from_being_renewed(db: &Db) {
    let store = db.store().await;
    let ids = db.put_all(&[row(Status::Running, 1); 3]).await;
    let mut other = locked(db, ids[1]).await;
    let leases = [(ids[0], 1), (ids[1], 1), (ids[2], 1)];
    let beaten = store.beat(&leases, store.deadline()).await.unwrap();
    assert_eq!(beaten, Beaten { renewed: vec![leases[0], leases[2]], held_up: vec![leases[1]] });
    // Held up is only who could still be renewed: an earlier claim of the locked task is lost.
    let beaten = store.beat(&[(ids[1], 0), leases[2]], store.deadline()).await.unwrap();
    assert_eq!(beaten, Beaten { renewed: vec![leases[2]], held_up: vec![] });
    other.execute("ROLLBACK").await;
    assert_eq!(store.heartbeat(&leases, store.deadline()).await.unwrap(), leases);
}

/// It would wait for the whole deadline, and so would every task behind this one.
pub async fn a_sweeper_does_not_wait_for_a_locked_row(db: &Db) {
    let queue = db.queue().await;
    let store = queue.store();
    let lost = Row { lease_live: false, ..row(Status::Running, 1) };
    let ids = db.put_all(&[lost; 2]).await;
    let mut other = locked(db, ids[0]).await;
    let report = Sweeper::new(queue.clone(), Duration::from_secs(1)).sweep_once().await.unwrap();
    assert_eq!(report, SweepReport { seen: 2, requeued: 1, overtaken: 1, ..SweepReport::default() });
    let held = by(ids[0], 1);
    let refused = Judgement::Refused(Refusal::ConditionFails);
    assert_eq!(store.escalate(held, 3, Reason::Overrun).await.unwrap(), refused);
    let learnt = Learnt { key: "charge", state: Entry::Done, rule: EffectRule::default() };
    assert!(!store.learn(held, 3, learnt).await.unwrap());
    assert!(!store.cut_lease(held, 3).await.unwrap());
    other.execute("ROLLBACK").await;
    assert!(matches!(store.requeue(held, 3, 0, None).await.unwrap(), Judgement::Applied { .. }));
}
