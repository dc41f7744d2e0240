//! Completions: repeated, late, too late.

use std::sync::Arc;

use leaseproof_queue::rules::{Judgement, Reason, Refusal, Status};
use leaseproof_queue::store::Fenced;
use leaseproof_queue::{Error, MOST_JSON_BYTES};
use tokio::sync::Barrier;

use crate::common::{Db, HOUR_MS, by, claim_one, enqueue};

const APPLIED_AT_1: Judgement = Judgement::Applied { status: Status::Success, epoch: 1 };

pub async fn a_repeated_completion_is_already_done(db: &Db) {
    let store = db.store().await;
    let id = enqueue(&store).await;
    claim_one(&store, "worker").await;
    assert_eq!(store.complete(by(id, 1), "\"first\"").await.unwrap(), APPLIED_AT_1);
    let before = db.snapshot().await;
    assert_eq!(store.complete(by(id, 1), "\"second\"").await.unwrap(), Judgement::Already);
    assert_eq!(db.snapshot().await, before);
    let task = store.task(id).await.unwrap();
    assert_eq!(task.result.as_deref(), Some("\"first\""));
    assert!(task.finished_at_ms.is_some() && task.owner.is_none() && task.lease_until_ms.is_none());
}

/// The sweeper takes the task back after its lease, and nobody has claimed it since.
async fn requeued(db: &Db, delay_ms: u64) -> i64 {
    let store = db.store().await;
    let id = enqueue(&store).await;
    claim_one(&store, "slow").await;
    db.end_lease(id).await;
    let seen = store.lost_tasks(0, 10).await.unwrap().pop().unwrap();
    let done = store.requeue(by(id, seen.epoch), seen.record_no, delay_ms, None).await.unwrap();
    assert!(matches!(done, Judgement::Applied { epoch: 2, .. }), "{done:?}");
    id
}

pub async fn a_late_completion_after_a_requeue_is_adopted(db: &Db) {
    let store = db.store().await;
    let id = requeued(db, 0).await;
    assert_eq!(store.complete(by(id, 1), "\"late\"").await.unwrap(), Judgement::Adopted);
    let task = store.task(id).await.unwrap();
    assert_eq!((task.status, task.epoch, task.result.as_deref()), (Status::Success, 2, Some("\"late\"")));
    assert_eq!(store.claim("worker", 1).await.unwrap(), []);
    let last = store.record(id).await.unwrap().pop().unwrap();
    assert_eq!(
        (last.verb.as_str(), last.from_status, last.to_status),
        ("complete", Some(Status::Pending), Status::Success)
    );
    assert!(last.note.unwrap().starts_with("adopted"));
    // Its reply was lost, and it is made again: not a second result, unless it is another one.
    assert_eq!(store.complete(by(id, 1), "\"late\"").await.unwrap(), Judgement::Already);
    assert_eq!(store.complete(by(id, 1), "\"other\"").await.unwrap(), Judgement::Refused(Refusal::WrongStatus));
    assert_eq!(store.complete(by(id, 0), "\"late\"").await.unwrap(), Judgement::Refused(Refusal::WrongStatus));
    assert_eq!(store.task(id).await.unwrap(), task);
}

pub async fn a_late_completion_is_adopted_out_of_retry_wait(db: &Db) {
    let store = db.store().await;
    let id = requeued(db, HOUR_MS as u64).await;
    assert_eq!(store.task(id).await.unwrap().status, Status::RetryWait);
    assert_eq!(store.complete(by(id, 1), "1").await.unwrap(), Judgement::Adopted);
    assert_eq!(store.task(id).await.unwrap().status, Status::Success);
}

pub async fn a_late_completion_after_a_new_claim_is_refused_and_recorded_once(db: &Db) {
    let store = db.store().await;
    let id = requeued(db, 0).await;
    assert_eq!(claim_one(&store, "new").await.epoch, 3);
    let before = db.snapshot().await;
    assert_eq!(store.complete(by(id, 1), "\"late\"").await.unwrap(), Judgement::Refused(Refusal::StaleEpoch));
    assert_eq!(db.snapshot().await, before);

    let evidence = Fenced { id, epoch: 1, actor: "slow", note: Some("\"late\"") };
    store.late_result(evidence).await.unwrap();
    store.late_result(evidence).await.unwrap();
    // Neither stored as it is nor cut: it would be no JSON.
    for wrong in ["late", "\"\\u0000\"", &format!("\"{}\"", "x".repeat(MOST_JSON_BYTES))] {
        let refused = store.late_result(Fenced { epoch: 0, note: Some(wrong), ..evidence }).await;
        assert!(matches!(refused, Err(Error::BadInput { what: "result", .. })), "{refused:?}");
        let refused = store.complete(by(id, 3), wrong).await;
        assert!(matches!(refused, Err(Error::BadInput { what: "result", .. })), "{refused:?}");
    }
    let long = format!("\"{}\"", "x".repeat(MOST_JSON_BYTES - 2));
    store.late_result(Fenced { epoch: 2, note: Some(&long), ..evidence }).await.unwrap();
    assert_eq!(store.record(id).await.unwrap().pop().unwrap().note, Some(long));
    let late: Vec<_> =
        store.record(id).await.unwrap().into_iter().filter(|event| event.verb == "late_result").collect();
    assert_eq!(late.len(), 2);
    assert_eq!((late[0].epoch, late[0].actor.as_str(), late[0].note.as_deref()), (1, "slow", Some("\"late\"")));
    assert_eq!((late[0].from_status, late[0].to_status), (Some(Status::Running), Status::Running));
    // Evidence, not a write: the row is as it was, so that the owner and a sweeper are not disturbed.
    assert_eq!(db.snapshot().await[&id].whole, before[&id].whole);

    let own = store.complete(by(id, 3), "\"own\"").await.unwrap();
    assert_eq!(own, Judgement::Applied { status: Status::Success, epoch: 3 });
    assert_eq!(store.task(id).await.unwrap().result.as_deref(), Some("\"own\""));
    assert_eq!(store.complete(by(id, 1), "\"late\"").await.unwrap(), Judgement::Refused(Refusal::WrongStatus));
}

/// M5: whatever a person decides, the run before it can not undo it, be it ever so successful.
pub async fn a_person_s_decision_is_not_undone_by_an_older_run(db: &Db) {
    let store = db.store().await;
    for decision in ["rerun", "mark_failed", "mark_succeeded", "none yet"] {
        let id = enqueue(&store).await;
        claim_one(&store, "slow").await;
        db.end_lease(id).await;
        let seen = store.lost_tasks(0, 10).await.unwrap().pop().unwrap();
        store.escalate(by(id, 1), seen.record_no, Reason::OutcomeUnknown).await.unwrap();
        let task = store.task(id).await.unwrap();
        assert_eq!((task.status, task.epoch, task.reason), (Status::WaitManual, 2, Some(Reason::OutcomeUnknown)));
        let person = Fenced { id, epoch: 2, actor: "ann", note: Some("asked the bank") };
        let (status, refusal) = match decision {
            "rerun" => {
                store.rerun(person, task.record_no, Some(b"\"corrected\"".to_vec())).await.unwrap();
                (Status::Pending, Refusal::WrongStatus)
            }
            "mark_failed" => {
                store.mark_failed(person).await.unwrap();
                (Status::Fail, Refusal::WrongStatus)
            }
            "mark_succeeded" => {
                store.mark_succeeded(person).await.unwrap();
                (Status::Success, Refusal::WrongStatus)
            }
            _ => (Status::WaitManual, Refusal::WrongStatus),
        };
        let before = db.snapshot().await;
        assert_eq!(store.complete(by(id, 1), "1").await.unwrap(), Judgement::Refused(refusal), "{decision}");
        assert_eq!(db.snapshot().await, before, "{decision}");
        assert_eq!(store.task(id).await.unwrap().status, status);
        if decision == "rerun" {
            let again = claim_one(&store, "new").await;
            assert_eq!((again.epoch, again.payload.as_slice()), (4, b"\"corrected\"".as_slice()));
            assert_eq!(store.complete(by(id, 1), "1").await.unwrap(), Judgement::Refused(Refusal::StaleEpoch));
        }
    }
}

/// Either the late result is adopted and there is nothing to claim, or the task is claimed and the result refused.
pub async fn a_late_completion_and_a_new_claim_exclude_each_other(db: &Db) {
    let store = db.store().await;
    for round in 0..20 {
        let id = requeued(db, 0).await;
        let start = Arc::new(Barrier::new(2));
        let (mine, other) = ((store.clone(), start.clone()), (store.clone(), start));
        let late = tokio::spawn(async move {
            mine.1.wait().await;
            mine.0.complete(by(id, 1), "1").await.unwrap()
        });
        let claim = tokio::spawn(async move {
            other.1.wait().await;
            other.0.claim("new", 1).await.unwrap().len()
        });
        match (late.await.unwrap(), claim.await.unwrap()) {
            (Judgement::Adopted, 0) => assert_eq!(store.task(id).await.unwrap().status, Status::Success),
            (Judgement::Refused(Refusal::StaleEpoch), 1) => {
                assert_eq!(
                    store.complete(by(id, 3), "1").await.unwrap(),
                    Judgement::Applied { status: Status::Success, epoch: 3 }
                );
            }
            both => panic!("round {round}: {both:?}"),
        }
    }
}

/// Whoever is first, the work that was done is not lost.
pub async fn a_completion_and_a_requeue_at_once_end_in_success(db: &Db) {
    let store = db.store().await;
    for round in 0..20 {
        let id = enqueue(&store).await;
        claim_one(&store, "slow").await;
        db.end_lease(id).await;
        let seen = store.lost_tasks(0, 10).await.unwrap().pop().unwrap();
        let start = Arc::new(Barrier::new(2));
        let (mine, other) = ((store.clone(), start.clone()), (store.clone(), start));
        let complete = tokio::spawn(async move {
            mine.1.wait().await;
            mine.0.complete(by(id, 1), "1").await.unwrap()
        });
        let requeue = tokio::spawn(async move {
            other.1.wait().await;
            other.0.requeue(by(id, 1), seen.record_no, 0, None).await.unwrap()
        });
        match (complete.await.unwrap(), requeue.await.unwrap()) {
            (Judgement::Adopted, Judgement::Applied { status: Status::Pending, epoch: 2 }) => {}
            (APPLIED_AT_1, Judgement::Refused(_)) => {}
            both => panic!("round {round}: {both:?}"),
        }
        assert_eq!(store.task(id).await.unwrap().status, Status::Success);
    }
}

/// A deploy must not use up a task's attempts; a person's decision starts both counts anew.
pub async fn attempts_and_interruptions_are_counted_apart(db: &Db) {
    let store = db.store().await;
    let id = enqueue(&store).await;
    let counts = async || {
        let task = store.task(id).await.unwrap();
        (task.attempts, task.interruptions)
    };
    let mut epoch = claim_one(&store, "worker").await.epoch;
    store.release(by(id, epoch)).await.unwrap();
    assert_eq!(counts().await, (0, 0));

    epoch = claim_one(&store, "worker").await.epoch;
    store.retry(Fenced { note: Some("boom"), ..by(id, epoch) }, 0, None).await.unwrap();
    assert_eq!(counts().await, (1, 0));
    assert_eq!(store.task(id).await.unwrap().last_error.as_deref(), Some("boom"));

    epoch = claim_one(&store, "worker").await.epoch;
    db.end_lease(id).await;
    let seen = store.lost_tasks(0, 10).await.unwrap().pop().unwrap();
    store.requeue(by(id, epoch), seen.record_no, 0, None).await.unwrap();
    assert_eq!(counts().await, (1, 1));

    let claimed = claim_one(&store, "worker").await;
    assert_eq!((claimed.attempts, claimed.interruptions), (1, 1));
    store.give_up(by(id, claimed.epoch), Status::WaitManual, Reason::AttemptsExhausted).await.unwrap();
    assert_eq!(counts().await, (2, 1));

    let task = store.task(id).await.unwrap();
    store.rerun(by(id, task.epoch), task.record_no, None).await.unwrap();
    assert_eq!(counts().await, (0, 0));
}

pub async fn a_task_that_is_not_there_is_named(db: &Db) {
    let store = db.store().await;
    let errors = [
        store.complete(by(42, 1), "1").await.unwrap_err(),
        store.release(by(42, 1)).await.unwrap_err(),
        store.rerun(by(42, 1), 0, None).await.unwrap_err(),
        store.task(42).await.unwrap_err(),
        store.look(42).await.unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, Error::NoSuchTask { id: 42 }), "{error:?}");
    }
    store.late_result(by(42, 1)).await.unwrap();
    assert_eq!(db.number("SELECT count(*) FROM task_events").await, 0);
}
