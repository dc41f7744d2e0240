//! What the sweeper reads, and what becomes of a decision that comes too late.

use std::sync::Arc;

use leaseproof_queue::rules::{
    CLOCK_SLACK_MS, EffectRule, Entry, Judgement, Policy, Reason, Refusal, Row, Signal, Status, ends_too_late,
};
use leaseproof_queue::store::Learnt;
use leaseproof_queue::{SweepReport, Sweeper};
use tokio::sync::Barrier;

use crate::common::{Db, HOUR_MS, JoinSet, LIVE_OWNER, by, claim_one, enqueue, row};

fn lost() -> Row {
    Row { lease_live: false, ..row(Status::Running, 1) }
}

/// Pages are cut by tasks, not by the effects that come with them.
pub async fn a_page_ends_where_the_next_begins(db: &Db) {
    let store = db.store().await;
    let ids = db.put_all(&[lost(); 7]).await;
    for key in ["a", "b", "c"] {
        for &id in &ids {
            let sql = "INSERT INTO effects (task_id, effect_key, epoch, state, rule, at_ms) VALUES";
            db.execute(&format!("{sql} ({id}, '{key}', 1, 'INTENT', 0, 0)")).await;
        }
    }
    let mut pages = Vec::new();
    let mut after = 0;
    loop {
        let page = store.lost_tasks(after, 3).await.unwrap();
        let Some(last) = page.last() else { break };
        after = last.id;
        assert!(page.iter().all(|task| task.unknown.len() == 3));
        pages.push(page.into_iter().map(|task| task.id).collect::<Vec<_>>());
    }
    assert_eq!(pages, [&ids[..3], &ids[3..6], &ids[6..]]);
}

pub async fn a_lost_task_is_read_with_all_that_a_decision_needs(db: &Db) {
    let store = db.store().await;
    let id = db.put(lost()).await;
    db.execute(&format!("UPDATE tasks SET attempts = 2, interruptions = 1, expected_run_ms = 77 WHERE id = {id}"))
        .await;
    // The owner has one effect whose outcome is known, and one whose is not.
    let rule = EffectRule::default();
    db.execute(&format!("UPDATE tasks SET lease_until_ms = {} + {HOUR_MS} WHERE id = {id}", db.clock())).await;
    for key in ["known", "unknown"] {
        store.intent(by(id, 1), key, rule).await.unwrap();
    }
    store.outcome(by(id, 1), Learnt { key: "known", state: Entry::Done, rule }, None).await.unwrap();
    db.end_lease(id).await;

    let task = store.lost_tasks(0, 10).await.unwrap().pop().unwrap();
    assert_eq!((task.id, task.epoch, task.record_no, task.kind.as_str()), (id, 1, 6, "kind"));
    assert_eq!((task.owner.as_str(), task.signal), (LIVE_OWNER, Signal::LeaseExpired));
    assert_eq!((task.attempts, task.interruptions), (2, 1));
    assert_eq!(task.policy, Ok(Policy { lease_ms: HOUR_MS as u64, expected_run_ms: Some(77), ..Policy::default() }));
    let hour = HOUR_MS as u64;
    assert!((hour..2 * hour).contains(&task.running_ms), "{} ms", task.running_ms);
    let keys: Vec<_> = task.unknown.iter().map(|effect| effect.key.as_str()).collect();
    assert_eq!(keys, ["unknown"]);
}

pub async fn two_sweepers_at_once_requeue_a_task_once(db: &Db) {
    let store = db.store().await;
    for round in 0..10 {
        let id = db.put(lost()).await;
        let start = Arc::new(Barrier::new(3));
        let mut sweepers = JoinSet::new();
        for _ in 0..3 {
            let (store, start) = (store.clone(), start.clone());
            sweepers.spawn(async move {
                start.wait().await;
                store.requeue(by(id, 1), 3, 0, None).await.unwrap()
            });
        }
        let done = sweepers.join_all().await;
        let applied = done.iter().filter(|judged| matches!(judged, Judgement::Applied { .. })).count();
        assert_eq!(applied, 1, "round {round}: {done:?}");
        let task = store.task(id).await.unwrap();
        assert_eq!((task.interruptions, task.epoch), (3, 2), "two before, and this one");
    }
}

/// Between the reading and the decision the owner has journalled something, or its lease was renewed.
pub async fn a_decision_on_an_old_reading_is_refused(db: &Db) {
    let store = db.store().await;
    let refused = Judgement::Refused(Refusal::ConditionFails);
    let id = enqueue(&store).await;
    claim_one(&store, "slow").await;
    store.intent(by(id, 1), "charge", EffectRule::default()).await.unwrap();
    db.end_lease(id).await;
    let old = store.lost_tasks(0, 10).await.unwrap().pop().unwrap();
    let learnt = Learnt { key: "charge", state: Entry::Done, rule: EffectRule::default() };
    store.outcome(by(id, 1), learnt, Some("1")).await.unwrap();
    assert_eq!(store.requeue(by(id, 1), old.record_no, 0, None).await.unwrap(), refused);
    assert_eq!(store.escalate(by(id, 1), old.record_no, Reason::OutcomeUnknown).await.unwrap(), refused);
    // The outcome that came in between was not lost, and the next reading decides.
    assert_eq!(store.journal(id).await.unwrap()[0].state, Entry::Done);
    let new = store.lost_tasks(0, 10).await.unwrap().pop().unwrap();
    assert_eq!(new.unknown, []);
    let done = store.requeue(by(id, 1), new.record_no, 0, None).await.unwrap();
    assert_eq!(done, Judgement::Applied { status: Status::Pending, epoch: 2 });
}

/// The database's clock was set back an hour after the claim: without a cut nobody would see for an hour that the owner is
/// gone. That it is gone is not said by the clock: a live owner goes on.
pub async fn a_lease_that_ends_impossibly_late_is_cut_and_its_owner_not_lost(db: &Db) {
    let queue = db.queue().await;
    let store = queue.store();
    let sweeper = Sweeper::new(queue.clone(), std::time::Duration::from_secs(1)).name("sweeper");
    let (id, other) = (enqueue(store).await, enqueue(store).await);
    assert_eq!(store.claim("worker", 10).await.unwrap().len(), 2);
    let late = format!("UPDATE tasks SET lease_until_ms = lease_until_ms + {HOUR_MS} WHERE id = {id}");
    db.execute(&late).await;
    // As far as a clock may be off in the ordinary way.
    db.execute(&format!("UPDATE tasks SET lease_until_ms = lease_until_ms + 50000 WHERE id = {other}")).await;
    let cut = SweepReport { seen: 1, cut: 1, ..SweepReport::default() };
    assert_eq!(sweeper.sweep_once().await.unwrap(), cut);
    let task = store.task(id).await.unwrap();
    assert_eq!((task.status, task.epoch, task.interruptions), (Status::Running, 1, 0));
    let now = db.number(&format!("SELECT {}", db.clock())).await;
    let left = task.lease_until_ms.unwrap() - now;
    assert!((1..=30_000).contains(&left), "{left} ms left");
    let entry = store.record(id).await.unwrap().pop().unwrap();
    assert_eq!((entry.verb.as_str(), entry.actor.as_str(), entry.epoch), ("cut_lease", "sweeper", 1));
    assert!(entry.note.unwrap().contains("clock"));
    assert_eq!(sweeper.sweep_once().await.unwrap(), SweepReport::default(), "once is enough");
    assert_eq!(store.heartbeat(&[(id, 1), (other, 1)], store.deadline()).await.unwrap(), [(id, 1), (other, 1)]);
    // Fenced like every write: neither on an old reading nor for another epoch.
    db.execute(&late).await;
    assert!(!store.cut_lease(by(id, 1), 1).await.unwrap());
    assert!(!store.cut_lease(by(id, 2), 2).await.unwrap());
    assert!(store.cut_lease(by(id, 1), 2).await.unwrap());
    assert!(!store.cut_lease(by(id, 1), 3).await.unwrap(), "it ends in time now");
}

/// Goal: SQL and rules mean the same by "impossibly late". Method: stop the clock, and compare both at the border.
pub async fn a_lease_ends_too_late_exactly_where_the_rules_say(db: &Db) {
    const NOW: i64 = 1_000_000;
    db.stop_clock(NOW).await;
    let store = db.store().await;
    for lease_ms in [1_000, 30_000, HOUR_MS as u64] {
        for beside in [-1i64, 0, 1] {
            let ends_in_ms = (lease_ms + CLOCK_SLACK_MS).saturating_add_signed(beside);
            let ruled = ends_too_late(lease_ms, ends_in_ms);
            assert_eq!(ruled, beside > 0);
            let id = db.put(row(Status::Running, 1)).await;
            let set = format!("lease_ms = {lease_ms}, lease_until_ms = {NOW} + {ends_in_ms}, overrun_at_ms = NULL");
            db.execute(&format!("UPDATE tasks SET {set} WHERE id = {id}")).await;
            let read = store.lost_tasks(id - 1, 1).await.unwrap();
            assert_eq!(read.iter().any(|task| task.id == id && task.ends_too_late), ruled, "{lease_ms} {beside}");
            assert_eq!(store.cut_lease(by(id, 1), 3).await.unwrap(), ruled, "{lease_ms} {beside}");
            db.execute(&format!("DELETE FROM tasks WHERE id = {id}")).await;
        }
    }
}
