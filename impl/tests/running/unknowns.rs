//! The owner itself does not know what became of its call (E-B, E-C).

use std::sync::Arc;

use leaseproof_queue::rules::{Answer, EffectRule, Entry, OnUnknown, Reason, Status};
use leaseproof_queue::{CallError, Shown, StatusQueries, TaskError};
use tokio::sync::Notify;

use crate::common::Db;
use crate::support::{
    NO_INSTRUMENT, at_once, in_an_hour, put, rule, short_lease, start, until, until_status, verbs, worker,
};
use crate::third_party::{ThirdParty, no_answer};

/// Runs one task whose first call brings no answer, until nothing more happens by itself.
async fn run(db: &Db, third: &ThirdParty, rule: EffectRule, queries: StatusQueries) -> Shown {
    let queue = db.queue().await;
    let id = put(&queue, at_once()).await;
    let worker = start(third.charging(db, rule, |_| Ok(())).await.queries(queries));
    let rests = |shown: &Shown| shown.task.status.is_final() || shown.task.status == Status::WaitManual;
    let shown = until(&queue, id, rests).await;
    worker.stop().await;
    shown
}

fn outcome_unknown(shown: &Shown) {
    assert_eq!(
        (shown.task.status, shown.task.reason),
        (Status::WaitManual, Some(Reason::OutcomeUnknown)),
        "{shown:#?}"
    );
    assert_eq!(shown.effects[0].state, Entry::Intent, "a person has to see it");
}

pub async fn without_an_instrument_it_goes_to_a_person(db: &Db) {
    let third = ThirdParty::bringing([no_answer()]);
    let shown = run(db, &third, NO_INSTRUMENT, third.queries()).await;
    outcome_unknown(&shown);
    assert_eq!((third.calls().len(), third.questions().len()), (1, 0), "not called again, not asked");
    assert!(shown.task.last_error.as_ref().is_some_and(|error| error.contains("no answer")), "{shown:?}");
}

pub async fn a_third_party_that_says_done_is_not_called_again(db: &Db) {
    let third = ThirdParty::bringing([no_answer()]).answering([Answer::Done]);
    let shown = run(db, &third, rule(false, true, false, OnUnknown::Escalate), third.queries()).await;
    assert_eq!((shown.task.status, shown.task.result.as_deref()), (Status::Success, Some("null")), "{shown:#?}");
    let (calls, questions) = (third.calls(), third.questions());
    assert_eq!((calls.len(), questions.len()), (1, 1));
    let asked = &questions[0];
    assert_eq!((asked.task_id, asked.effect_key.as_str()), (shown.task.id, "charge"));
    assert_eq!((&asked.idempotency_key, asked.token), (&calls[0].idempotency_key, calls[0].token + 1));
    assert_eq!(shown.effects[0].state, Entry::Done);
}

/// From the question on, a third party that checks tokens refuses the first call; the second carries a newer one.
pub async fn a_third_party_that_checks_tokens_and_says_not_done_is_called_again(db: &Db) {
    let third = ThirdParty::bringing([no_answer()]).answering([Answer::NotDone]);
    let shown = run(db, &third, rule(false, true, true, OnUnknown::Escalate), third.queries()).await;
    assert_eq!((shown.task.status, shown.task.result.as_deref()), (Status::Success, Some("\"receipt\"")));
    let (calls, questions) = (third.calls(), third.questions());
    assert_eq!((calls.len(), questions.len()), (2, 1));
    assert!(calls[0].token < questions[0].token && questions[0].token <= calls[1].token, "{calls:?} {questions:?}");
}

/// The call may still be on its way.
pub async fn without_tokens_not_done_settles_nothing(db: &Db) {
    let third = ThirdParty::bringing([no_answer()]).answering([Answer::NotDone]);
    let shown = run(db, &third, rule(false, true, false, OnUnknown::Escalate), third.queries()).await;
    outcome_unknown(&shown);
    assert_eq!((third.calls().len(), third.questions().len()), (1, 1));
}

pub async fn a_third_party_that_does_not_answer_is_asked_again_under_the_same_lease(db: &Db) {
    let third = ThirdParty::bringing([no_answer()]).answering([Answer::Unavailable, Answer::Done]);
    let queue = db.queue().await;
    let id = put(&queue, short_lease()).await;
    let rule = rule(false, true, false, OnUnknown::Escalate);
    let worker = start(third.charging(db, rule, |_| Ok(())).await.queries(third.queries()));
    let shown = until_status(&queue, id, Status::Success).await;
    assert_eq!((third.calls().len(), third.questions().len()), (1, 2));
    assert_eq!(verbs(&shown), ["enqueue", "claim", "intent", "retry", "claim", "complete"]);
    worker.stop().await;
}

pub async fn with_an_idempotency_key_it_is_called_again_under_the_same_key(db: &Db) {
    let third = ThirdParty::bringing([no_answer()]);
    let shown = run(db, &third, rule(true, true, false, OnUnknown::Escalate), third.queries()).await;
    assert_eq!((shown.task.status, shown.task.attempts), (Status::Success, 1));
    let calls = third.calls();
    assert_eq!((calls.len(), third.questions().len()), (2, 0), "no need to ask");
    assert_eq!(calls[0].idempotency_key, calls[1].idempotency_key);
    assert!(calls[0].token < calls[1].token);
}

pub async fn at_most_once_leaves_the_call_out(db: &Db) {
    let third = ThirdParty::bringing([no_answer()]);
    let shown = run(db, &third, rule(false, false, false, OnUnknown::Skip), third.queries()).await;
    assert_eq!((shown.task.status, shown.task.result.as_deref()), (Status::Success, Some("\"skipped\"")));
    assert_eq!(third.calls().len(), 1);
    assert_eq!(shown.effects[0].state, Entry::Intent, "still unknown, for whoever reconciles");
}

pub async fn at_least_once_calls_again(db: &Db) {
    let third = ThirdParty::bringing([no_answer()]);
    let shown = run(db, &third, rule(false, false, false, OnUnknown::Repeat), third.queries()).await;
    assert_eq!((shown.task.status, shown.effects[0].state), (Status::Success, Entry::Done));
    assert_eq!(third.calls().len(), 2);
}

/// It would else wait for ever for an answer that nobody here can ask for.
pub async fn a_query_that_this_process_does_not_have_counts_as_none(db: &Db) {
    let third = ThirdParty::bringing([no_answer()]).answering([Answer::Done]);
    let of_another_effect = third.asked_about(StatusQueries::new(), "refund");
    let shown = run(db, &third, rule(false, true, true, OnUnknown::Escalate), of_another_effect).await;
    outcome_unknown(&shown);
    assert_eq!((third.calls().len(), third.questions().len()), (1, 0));
}

pub async fn a_panic_during_the_call_leaves_its_outcome_unknown(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, at_once()).await;
    let worker = start(
        worker(db, |ctx| async move {
            let call = async |_| panic!("the test says boom");
            ctx.effect("charge", NO_INSTRUMENT, call).await.map(|_| "1".into())
        })
        .await,
    );
    outcome_unknown(&until_status(&queue, id, Status::WaitManual).await);
    worker.stop().await;
}

/// A handler that makes nothing of an unknown outcome and reports another error does not hide it.
pub async fn an_unknown_outcome_comes_before_whatever_else_went_wrong(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, at_once()).await;
    let third = ThirdParty::bringing([no_answer()]);
    let worker = start(
        worker(db, move |ctx| {
            let third = third.clone();
            async move {
                third.effect(&ctx, "charge", NO_INSTRUMENT).await.unwrap_err();
                Err(TaskError::BadInput("another thing".into()))
            }
        })
        .await,
    );
    outcome_unknown(&until_status(&queue, id, Status::WaitManual).await);
    worker.stop().await;
}

/// The journal of an earlier run is read before the handler starts, also by a process that never saw that run.
pub async fn both_unknown_effects_of_one_task_are_asked_about(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, at_once()).await;
    let third = ThirdParty::bringing([no_answer(), no_answer()]).answering([Answer::Done, Answer::NotDone]);
    let rule = rule(false, true, true, OnUnknown::Escalate);
    let called = third.clone();
    let queries = third.asked_about(third.queries(), "reserve");
    let worker = start(
        worker(db, move |ctx| {
            let third = called.clone();
            async move {
                let charge = third.effect(&ctx, "charge", rule).await;
                let reserve = third.effect(&ctx, "reserve", rule).await;
                charge.and(reserve).map(|_| "1".into())
            }
        })
        .await
        .queries(queries),
    );
    let shown = until_status(&queue, id, Status::Success).await;
    let asked: Vec<_> = third.questions().into_iter().map(|question| question.effect_key).collect();
    assert_eq!(asked, ["charge", "reserve"]);
    let called: Vec<_> = third.calls().into_iter().map(|call| call.idempotency_key).collect();
    assert_eq!(called, [format!("{id}/charge"), format!("{id}/reserve"), format!("{id}/reserve")]);
    assert_eq!(shown.effects.iter().map(|e| e.state).collect::<Vec<_>>(), [Entry::Done; 2]);
    worker.stop().await;
}

/// The budget is used up, so the task goes to a person; what the third party said goes with it.
pub async fn what_was_learnt_is_kept_when_the_task_ends_all_the_same(db: &Db) {
    let queue = db.queue().await;
    let policy = leaseproof_queue::rules::Policy { max_attempts: 1, ..at_once() };
    let id = put(&queue, policy).await;
    let third = ThirdParty::bringing([no_answer()]).answering([Answer::Done]);
    let rule = rule(false, true, true, OnUnknown::Escalate);
    let worker = start(third.charging(db, rule, |_| Ok(())).await.queries(third.queries()));
    let shown = until_status(&queue, id, Status::WaitManual).await;
    assert_eq!(shown.task.reason, Some(Reason::AttemptsExhausted));
    assert_eq!(shown.effects[0].state, Entry::Done);
    worker.stop().await;
}

/// Neither a handler that makes nothing of what it is told nor one that drops its call comes to SUCCESS.
pub async fn there_is_no_success_over_an_unknown_outcome(db: &Db) {
    let queue = db.queue().await;
    for drops in [false, true] {
        let id = put(&queue, at_once()).await;
        let handler = move |ctx: leaseproof_queue::Ctx| async move {
            let called = Arc::new(Notify::new());
            let calling = called.clone();
            let call = async move |_| {
                calling.notify_one();
                if drops { std::future::pending().await } else { no_answer() }
            };
            tokio::select! {
                told = ctx.effect("charge", NO_INSTRUMENT, call) => assert!(told.is_err() && !drops),
                () = called.notified(), if drops => {}
            }
            Ok("1".into())
        };
        let worker = start(worker(db, handler).await);
        let shown = until_status(&queue, id, Status::WaitManual).await;
        outcome_unknown(&shown);
        assert_eq!(verbs(&shown), ["enqueue", "claim", "intent", "give_up"]);
        worker.stop().await;
    }
}

/// The first call may be on its way, or done: that the second surely was not made says nothing of it.
pub async fn a_call_that_surely_was_not_made_leaves_an_earlier_unknown_one_unknown(db: &Db) {
    let queue = db.queue().await;
    let refused = || Err(CallError::NotDone("connection refused".into()));
    let rule = rule(true, false, false, OnUnknown::Escalate);
    for in_one_run in [false, true] {
        let id = put(&queue, in_an_hour()).await;
        let third = ThirdParty::bringing([no_answer(), refused()]);
        let called = third.clone();
        let handler = move |ctx: leaseproof_queue::Ctx| {
            let third = called.clone();
            async move {
                let first = third.effect(&ctx, "charge", rule).await;
                if in_one_run && ctx.task().attempts == 0 {
                    let second = third.effect(&ctx, "charge", rule).await;
                    let unknown = |told: &TaskError| matches!(told, TaskError::OutcomeUnknown { .. });
                    assert!(first.as_ref().is_err_and(unknown) && second.as_ref().is_err_and(unknown), "{second:?}");
                    // Whatever the handler makes of it, there is no SUCCESS over it.
                    return Ok("1".into());
                }
                first.map(|_| "1".into())
            }
        };
        let worker = start(worker(db, handler).await);
        if !in_one_run {
            until_status(&queue, id, Status::RetryWait).await;
            db.make_due(id).await;
        }
        let attempts = if in_one_run { 1 } else { 2 };
        let shown = until(&queue, id, |shown| shown.task.attempts == attempts).await;
        assert_eq!(third.calls().len(), 2);
        assert_eq!(shown.effects[0].state, Entry::Intent, "{in_one_run}: {shown:#?}");
        let error = shown.task.last_error.unwrap_or_default();
        assert!(in_one_run || error.contains("connection refused"), "{error}");
        db.make_due(id).await;
        let shown = until_status(&queue, id, Status::Success).await;
        assert_eq!((third.calls().len(), shown.effects[0].state), (3, Entry::Done));
        worker.stop().await;
    }
}
