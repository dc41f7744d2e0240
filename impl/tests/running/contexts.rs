//! The handler's context in hands that the queue does not see: clones, calls at once, use after the end.

use leaseproof_queue::rules::{Entry, Reason, Status};
use leaseproof_queue::{CallError, Effect, TaskError};
use tokio::sync::mpsc;

use crate::common::Db;
use crate::support::{Count, NO_INSTRUMENT, at_once, gate, put, start, until_status, verbs, within, worker};

/// It would write for a task that somebody else may have by then.
pub async fn a_clone_of_the_context_can_do_nothing_after_its_handler_has_ended(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, at_once()).await;
    let (door, mut keeper) = gate();
    let (says, mut said) = mpsc::unbounded_channel();
    let calls = Count::default();
    let called = calls.clone();
    let worker = start(
        worker(db, move |ctx| {
            let (door, says, called) = (door.clone(), says.clone(), called.clone());
            async move {
                tokio::spawn(async move {
                    door.pass().await;
                    let call = async |_| {
                        called.up();
                        Ok::<_, CallError>("1".into())
                    };
                    let may_act = ctx.may_act();
                    says.send((may_act, ctx.effect("charge", NO_INSTRUMENT, call).await)).ok();
                });
                Ok("1".into())
            }
        })
        .await,
    );
    keeper.arrival().await;
    until_status(&queue, id, Status::Success).await;
    keeper.open();
    assert_eq!(within(said.recv()).await, Some((false, Err(TaskError::LeaseLost))));
    worker.stop().await;
    let shown = queue.show(id).await.unwrap();
    assert_eq!((calls.get(), shown.effects.len()), (0, 0));
    assert_eq!(verbs(&shown), ["enqueue", "claim", "complete"]);
}

/// SUCCESS would claim what nobody knows.
pub async fn a_call_that_a_clone_is_making_when_the_handler_ends_is_unknown(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, at_once()).await;
    let (door, mut keeper) = gate();
    let (called, calling) = (door.clone(), std::sync::Arc::new(tokio::sync::Notify::new()));
    let worker = start(
        worker(db, move |ctx| {
            let (called, calling) = (called.clone(), calling.clone());
            async move {
                let calls = calling.clone();
                tokio::spawn(async move {
                    let call = async |_| {
                        calls.notify_one();
                        called.pass().await;
                        Ok::<_, CallError>("1".into())
                    };
                    ctx.effect("charge", NO_INSTRUMENT, call).await.ok();
                });
                calling.notified().await;
                Ok("1".into())
            }
        })
        .await,
    );
    keeper.arrival().await;
    let shown = until_status(&queue, id, Status::WaitManual).await;
    assert_eq!((shown.task.reason, shown.effects[0].state), (Some(Reason::OutcomeUnknown), Entry::Intent));
    keeper.open();
    worker.stop().await;
    drop(door);
}

/// Both would find that nothing is in the journal yet.
pub async fn one_effect_is_not_called_twice_at_once(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, at_once()).await;
    let calls = Count::default();
    let called = calls.clone();
    let worker = start(
        worker(db, move |ctx| {
            let called = called.clone();
            async move {
                let call = async |_| {
                    called.up();
                    tokio::task::yield_now().await;
                    Ok::<_, CallError>("1".into())
                };
                let first = ctx.effect("charge", NO_INSTRUMENT, call);
                let second = ctx.effect("charge", NO_INSTRUMENT, call);
                let (first, second) = tokio::join!(first, second);
                assert_eq!(first, Ok(Effect::Done(Some("1".into()))));
                assert!(matches!(second, Err(TaskError::BadInput(why)) if why.contains("calling it already")));
                // One after the other it is let, and has the outcome of the first.
                let third = ctx.effect("charge", NO_INSTRUMENT, call).await;
                assert_eq!(third, Ok(Effect::Done(Some("1".into()))));
                Ok("1".into())
            }
        })
        .await,
    );
    let shown = until_status(&queue, id, Status::Success).await;
    assert_eq!((calls.get(), verbs(&shown)), (1, vec!["enqueue", "claim", "intent", "outcome", "complete"]));
    worker.stop().await;
}
