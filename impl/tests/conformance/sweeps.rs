//! What the sweeper reads, and what becomes of a decision that comes too late.

use std::sync::Arc;

use leaseproof_queue::rules::{EffectRule, Entry, Judgement, Policy, Reason, Refusal, Row, Signal, Status};
use leaseproof_queue::store::Learnt;
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
    assert_eq!(task.policy, Ok(Policy { expected_run_ms: Some(77), ..Policy::default() }));
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
