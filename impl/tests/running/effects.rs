//! Outside calls and the journal, as long as every outcome is known.

use leaseproof_queue::rules::{Entry, Status};
use leaseproof_queue::{CallError, Effect, MOST_JSON_BYTES, TaskError};

use crate::common::Db;
use crate::support::{
    Count, NO_INSTRUMENT, at_once, gate, in_an_hour, put, start, take_over, until, until_status, verbs, worker,
};
use crate::third_party::ThirdParty;

pub async fn the_journal_has_the_intent_while_the_call_runs_and_the_outcome_after(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, at_once()).await;
    let (door, mut keeper) = gate();
    let (says, mut called) = tokio::sync::mpsc::unbounded_channel();
    let worker = start(
        worker(db, move |ctx| {
            let (door, says) = (door.clone(), says.clone());
            async move {
                let call = async |call| {
                    says.send(call).ok();
                    door.pass().await;
                    Ok("\"receipt\"".into())
                };
                let effect = ctx.effect("charge", NO_INSTRUMENT, call).await?;
                assert_eq!(effect, Effect::Done(Some("\"receipt\"".into())));
                Ok("1".into())
            }
        })
        .await,
    );
    keeper.arrival().await;
    let call = called.recv().await.unwrap();
    assert_eq!((call.idempotency_key, call.token), (format!("{id}/charge"), 1));
    let during = queue.show(id).await.unwrap();
    let [entry] = &during.effects[..] else { panic!("{during:?}") };
    assert_eq!((&*entry.key, entry.epoch, entry.state, entry.rule), ("charge", 1, Entry::Intent, NO_INSTRUMENT));
    assert_eq!(entry.outcome, None);
    keeper.open();
    let after = until_status(&queue, id, Status::Success).await;
    let [entry] = &after.effects[..] else { panic!("{after:?}") };
    assert_eq!((entry.epoch, entry.state, entry.outcome.as_deref()), (1, Entry::Done, Some("\"receipt\"")));
    assert_eq!(verbs(&after), ["enqueue", "claim", "intent", "outcome", "complete"]);
    worker.stop().await;
}

pub async fn a_second_run_takes_the_outcome_from_the_journal_and_does_not_call(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, at_once()).await;
    let third = ThirdParty::default();
    let fails_once = |attempts| match attempts {
        0 => Err(TaskError::Retryable("after the call".into())),
        _ => Ok(()),
    };
    let worker = start(third.charging(db, NO_INSTRUMENT, fails_once).await);
    let shown = until_status(&queue, id, Status::Success).await;
    assert_eq!((third.calls().len(), shown.task.attempts), (1, 1));
    assert_eq!(shown.task.result.as_deref(), Some("\"receipt\""), "as the first call brought it");
    worker.stop().await;
}

pub async fn a_call_that_was_surely_not_done_is_made_again(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, in_an_hour()).await;
    let third = ThirdParty::bringing([Err(CallError::NotDone("closed today".into()))]);
    let worker = start(third.charging(db, NO_INSTRUMENT, |_| Ok(())).await);
    let shown = until_status(&queue, id, Status::RetryWait).await;
    assert_eq!((shown.effects[0].state, shown.task.attempts), (Entry::NotDone, 1));
    assert!(shown.task.last_error.as_ref().is_some_and(|error| error.contains("closed today")), "{shown:?}");
    db.make_due(id).await;
    let shown = until_status(&queue, id, Status::Success).await;
    assert_eq!(shown.effects[0].state, Entry::Done);
    let calls = third.calls();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].idempotency_key, calls[1].idempotency_key);
    assert!(calls[0].token < calls[1].token, "{calls:?}");
    worker.stop().await;
}

pub async fn each_effect_of_a_task_has_its_own_entry(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, at_once()).await;
    let third = ThirdParty::bringing([Ok("\"reserved\"".into()), Err(CallError::NotDone("closed".into()))]);
    let called = third.clone();
    let worker = start(
        worker(db, move |ctx| {
            let third = called.clone();
            async move {
                third.effect(&ctx, "reserve", NO_INSTRUMENT).await?;
                third.effect(&ctx, "charge", NO_INSTRUMENT).await?;
                Ok("1".into())
            }
        })
        .await,
    );
    let shown = until_status(&queue, id, Status::Success).await;
    let keys: Vec<String> = third.calls().into_iter().map(|call| call.idempotency_key).collect();
    assert_eq!(keys, [format!("{id}/reserve"), format!("{id}/charge"), format!("{id}/charge")]);
    let entries: Vec<_> = shown.effects.iter().map(|e| (e.key.as_str(), e.state, e.epoch)).collect();
    assert_eq!(entries, [("charge", Entry::Done, 3), ("reserve", Entry::Done, 1)]);
    worker.stop().await;
}

/// Nobody has told the owner yet: the database does, when it refuses the intent.
pub async fn without_the_lease_no_call_is_made(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, at_once()).await;
    let (door, mut keeper) = gate();
    let third = ThirdParty::default();
    let called = third.clone();
    let worker = start(
        worker(db, move |ctx| {
            let (door, third) = (door.clone(), called.clone());
            async move {
                door.pass().await;
                third.effect(&ctx, "charge", NO_INSTRUMENT).await.map(|_| "1".into())
            }
        })
        .await,
    );
    keeper.arrival().await;
    take_over(db, id).await;
    keeper.open();
    worker.stop().await;
    let shown = queue.show(id).await.unwrap();
    assert_eq!((third.calls().len(), &shown.effects[..]), (0, &[][..]));
    assert_eq!(verbs(&shown), ["enqueue", "claim", "by_hand"]);
}

/// What the call brought is not journalled over what the new owner may have begun.
pub async fn the_outcome_of_a_call_that_outlived_the_lease_is_not_journalled(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, at_once()).await;
    let (door, mut keeper) = gate();
    let after = Count::default();
    let reached = after.clone();
    let worker = start(
        worker(db, move |ctx| {
            let (door, reached) = (door.clone(), reached.clone());
            async move {
                let call = async |_| {
                    door.pass().await;
                    Ok::<_, CallError>("1".into())
                };
                let effect = ctx.effect("charge", NO_INSTRUMENT, call).await;
                assert_eq!(effect, Err(TaskError::LeaseLost));
                reached.up();
                effect.map(|_| "1".into())
            }
        })
        .await,
    );
    keeper.arrival().await;
    take_over(db, id).await;
    keeper.open();
    worker.stop().await;
    assert_eq!(after.get(), 1);
    let shown = queue.show(id).await.unwrap();
    assert_eq!(verbs(&shown), ["enqueue", "claim", "intent", "by_hand"]);
    assert_eq!(shown.effects[0].state, Entry::Intent);
}

/// A handler that calls again within one run, after an answer that surely came from no call, is let.
pub async fn a_handler_may_call_again_after_a_refusal_within_one_run(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, at_once()).await;
    let third = ThirdParty::bringing([Err(CallError::NotDone("busy".into()))]);
    let called = third.clone();
    let worker = start(
        worker(db, move |ctx| {
            let third = called.clone();
            async move {
                third.effect(&ctx, "charge", NO_INSTRUMENT).await.unwrap_err();
                third.effect(&ctx, "charge", NO_INSTRUMENT).await.map(|_| "1".into())
            }
        })
        .await,
    );
    let shown = until(&queue, id, |shown| shown.task.status.is_final()).await;
    assert_eq!((shown.task.status, shown.task.attempts, third.calls().len()), (Status::Success, 0, 2));
    worker.stop().await;
}

/// PostgreSQL would refuse the entry, and a call that is done would count as unknown.
pub async fn what_a_call_brought_and_can_not_be_stored_is_done_all_the_same(db: &Db) {
    let queue = db.queue().await;
    for brought in ["\0".to_owned(), "x".repeat(MOST_JSON_BYTES + 1)] {
        let id = put(&queue, at_once()).await;
        let third = ThirdParty::bringing([Ok(brought)]);
        let called = third.clone();
        let handler = move |ctx: leaseproof_queue::Ctx| {
            let third = called.clone();
            async move {
                match third.effect(&ctx, "charge", NO_INSTRUMENT).await? {
                    Effect::Done(Some(_)) => Err(TaskError::Retryable("after the call".into())),
                    other => Ok(format!("\"{other:?}\"")),
                }
            }
        };
        let worker = start(worker(db, handler).await);
        let shown = until_status(&queue, id, Status::Success).await;
        assert_eq!((shown.effects[0].state, &shown.effects[0].outcome), (Entry::Done, &None));
        assert_eq!((shown.task.result.as_deref(), third.calls().len()), (Some("\"Done(None)\""), 1));
        worker.stop().await;
    }
}
