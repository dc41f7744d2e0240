//! A task runs, fails, is retried, is given up.

use std::collections::BTreeMap;
use std::time::Duration;

use leaseproof_queue::rules::{Backoff, OnExhausted, Policy, Reason, Status};
use leaseproof_queue::{Ctx, MOST_JSON_BYTES, MOST_TEXT_BYTES, NewTask, RunEnd, TaskError};
use tokio::sync::mpsc;

use crate::common::{Db, HOUR_MS};
use crate::support::{
    A_WHILE, Count, at_once, gate, in_an_hour, put, start, take_over, until, until_status, verbs, within, worker,
};

pub async fn a_task_runs_and_its_result_is_stored(db: &Db) {
    let queue = db.queue().await;
    let worker = worker(db, async |_| Ok("null".into())).await.handler("greet", |ctx| async move {
        let name: String = ctx.payload()?;
        Ok(format!("\"hello {name}\""))
    });
    let id = queue.enqueue(NewTask::new("greet", "\"ann\"")).await.unwrap().id;
    let worker = start(worker);
    let shown = until_status(&queue, id, Status::Success).await;
    assert_eq!(shown.task.result.as_deref(), Some("\"hello ann\""));
    assert_eq!((shown.task.attempts, shown.task.interruptions, shown.task.owner.as_deref()), (0, 0, None));
    assert_eq!(verbs(&shown), ["enqueue", "claim", "complete"]);
    assert!(shown.record[1..].iter().all(|entry| entry.actor == worker.boot_id), "{shown:?}");
    worker.stop().await;
    let instance = queue.store().instance(&shown.record[1].actor).await.unwrap().unwrap();
    assert_eq!(instance.pid, i64::from(std::process::id()));
}

pub async fn as_many_tasks_run_at_once_as_there_are_slots(db: &Db) {
    let queue = db.queue().await;
    let mut ids = Vec::new();
    for _ in 0..7 {
        ids.push(put(&queue, Policy::default()).await);
    }
    let (door, mut keeper) = gate();
    let (now, most) = (Count::default(), Count::default());
    let counts = (now.clone(), most.clone());
    let worker = start(
        worker(db, move |_| {
            let (door, (now, most)) = (door.clone(), counts.clone());
            async move {
                if now.up() + 1 > most.get() {
                    most.up();
                }
                door.pass().await;
                now.down();
                Ok("1".into())
            }
        })
        .await
        .slots(3),
    );
    for _ in 0..3 {
        keeper.arrival().await;
    }
    tokio::time::sleep(A_WHILE).await;
    assert!(!keeper.more(), "a fourth started");
    let running = queue.list(Some(Status::Running), None, 0, 10).await.unwrap().tasks;
    assert_eq!(running.iter().map(|task| task.id).collect::<Vec<_>>(), ids[..3], "claims no more than it can run");
    // Each that ends makes room for one.
    for _ in 3..7 {
        keeper.open();
        keeper.arrival().await;
    }
    for _ in 0..3 {
        keeper.open();
    }
    for id in ids {
        until_status(&queue, id, Status::Success).await;
    }
    assert_eq!((now.get(), most.get()), (0, 3));
    worker.stop().await;
}

pub async fn a_retryable_error_waits_longer_each_time_until_the_attempts_are_used_up(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, in_an_hour()).await;
    let worker = start(worker(db, async |_| Err(TaskError::Retryable("no luck".into()))).await);
    for (attempt, hours) in [(1, 1), (2, 2)] {
        let shown = until(&queue, id, |shown| shown.task.attempts == attempt).await;
        let task = &shown.task;
        assert_eq!((task.status, task.last_error.as_deref()), (Status::RetryWait, Some("no luck")));
        let failed_at = shown.record.last().unwrap().at_ms;
        let delay = shown.task.due_at_ms - failed_at;
        assert!((delay - hours * HOUR_MS).abs() < 1_000, "attempt {attempt}: {delay} ms");
        db.make_due(id).await;
    }
    let shown = until_status(&queue, id, Status::WaitManual).await;
    assert_eq!((shown.task.attempts, shown.task.reason), (3, Some(Reason::AttemptsExhausted)));
    assert_eq!(verbs(&shown), ["enqueue", "claim", "retry", "claim", "retry", "claim", "give_up"]);
    worker.stop().await;
}

pub async fn where_the_policy_says_so_used_up_attempts_are_a_failure(db: &Db) {
    let queue = db.queue().await;
    let backoff = Backoff { base_ms: 1, factor: 1, max_ms: 1 };
    let policy = Policy { max_attempts: 2, on_exhausted: OnExhausted::Fail, backoff, ..Policy::default() };
    let id = put(&queue, policy).await;
    let worker = start(worker(db, async |_| Err(TaskError::Retryable("no luck".into()))).await);
    let shown = until_status(&queue, id, Status::Fail).await;
    assert_eq!((shown.task.attempts, shown.task.reason), (2, Some(Reason::AttemptsExhausted)));
    assert!(shown.task.finished_at_ms.is_some());
    worker.stop().await;
}

/// Bad input, a payload that does not decode, a kind without a handler, settings that can not be read: each is run at
/// most once, and never again by itself.
pub async fn what_can_not_succeed_goes_to_a_person_after_one_run(db: &Db) {
    let queue = db.queue().await;
    let enqueue = async |kind: &str, payload: &str| {
        queue.enqueue(NewTask::new(kind, payload).policy(at_once())).await.unwrap().id
    };
    let refused = enqueue("kind", "{}").await;
    let undecodable = enqueue("decode", "{\"no\": \"list\"}").await;
    let unknown_kind = enqueue("nobody's", "{}").await;
    let unreadable = enqueue("good", "{}").await;
    let unworkable = enqueue("good", "{}").await;
    let unlisted = enqueue("good", "{}").await;
    let good = enqueue("good", "{}").await;
    let never = Policy { never_retry: vec!["declined".into()], ..at_once() };
    let declined = queue.enqueue(NewTask::new("decline", "{}").policy(never)).await.unwrap().id;
    db.execute(&format!("UPDATE tasks SET never_retry = 'declined' WHERE id = {unlisted}")).await;
    db.execute(&format!("UPDATE tasks SET on_exhausted = 'shrug' WHERE id = {unreadable}")).await;
    db.execute(&format!("UPDATE tasks SET lease_ms = 0 WHERE id = {unworkable}")).await;

    let builder = worker(db, async |_| Err(TaskError::BadInput("no such account".into()))).await;
    let worker = start(
        builder
            .handler("decode", |ctx| async move { ctx.payload::<Vec<u8>>().map(|_| "1".into()) })
            .handler("good", async |_| Ok("1".into()))
            .handler("decline", async |_| {
                Err(TaskError::Coded { code: "declined".into(), why: "by the issuer".into() })
            }),
    );
    let expected = [
        (declined, "declined: by the issuer"),
        (unlisted, "never_retry"),
        (refused, "no such account"),
        (undecodable, "payload"),
        (unknown_kind, "nobody's"),
        (unreadable, "shrug"),
        (unworkable, "lease"),
    ];
    for (id, why) in expected {
        let shown = until_status(&queue, id, Status::WaitManual).await;
        assert_eq!((shown.task.reason, shown.task.attempts), (Some(Reason::NotRetryable), 1), "{shown:?}");
        assert!(shown.task.last_error.as_ref().is_some_and(|error| error.contains(why)), "{why}: {shown:?}");
    }
    until_status(&queue, good, Status::Success).await;
    tokio::time::sleep(A_WHILE).await;
    for (id, why) in expected {
        assert_eq!(verbs(&queue.show(id).await.unwrap()), ["enqueue", "claim", "give_up"], "{why}");
    }
    worker.stop().await;
}

pub async fn a_panic_costs_an_attempt(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, in_an_hour()).await;
    let worker = start(
        worker(db, async |ctx| match ctx.task().attempts {
            0 => panic!("the test says boom"),
            _ => Ok("1".into()),
        })
        .await,
    );
    let shown = until_status(&queue, id, Status::RetryWait).await;
    assert_eq!((shown.task.attempts, shown.task.interruptions), (1, 0));
    let error = shown.task.last_error.unwrap();
    assert!(error.contains("the test says boom"), "{error}");
    db.make_due(id).await;
    until_status(&queue, id, Status::Success).await;
    worker.stop().await;
}

/// A handler is a function that returns a future; the function can panic too.
pub async fn a_panic_before_the_first_await_costs_an_attempt(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, in_an_hour()).await;
    let boom = |ctx: leaseproof_queue::Ctx| {
        assert!(ctx.task().attempts > 0, "the test says boom");
        async { Ok("1".into()) }
    };
    let worker = start(worker(db, boom).await);
    let shown = until_status(&queue, id, Status::RetryWait).await;
    assert_eq!((shown.task.attempts, shown.task.interruptions), (1, 0));
    db.make_due(id).await;
    until_status(&queue, id, Status::Success).await;
    worker.stop().await;
}

pub async fn each_end_of_a_run_is_told_with_what_became_of_the_task(db: &Db) {
    let queue = db.queue().await;
    let (tell, mut told) = mpsc::unbounded_channel();
    let (door, mut keeper) = gate();
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(put(&queue, in_an_hour()).await);
    }
    let [good, bad, again, lost, late] = ids[..] else { unreachable!() };
    let handler = move |ctx: Ctx| {
        let door = door.clone();
        async move {
            let id = ctx.task().id;
            if id == lost || id == late {
                door.pass().await;
            }
            match id {
                id if id == bad => Err(TaskError::BadInput("no".into())),
                id if id == again => Err(TaskError::Retryable("later".into())),
                _ => Ok("1".into()),
            }
        }
    };
    let worker = worker(db, handler).await.slots(5).grace(Duration::from_millis(50));
    let worker = start(worker.on_end(move |end| {
        tell.send(end).ok();
    }));
    let mut ends = BTreeMap::new();
    for _ in 0..3 {
        let end: RunEnd = within(told.recv()).await.unwrap();
        ends.insert(end.task, (end.epoch, end.status, end.why));
    }
    keeper.arrival().await;
    keeper.arrival().await;
    take_over(db, lost).await;
    // Both doors are shut: the one is put back, and of the other nothing can be said.
    worker.stop().await;
    while let Some(end) = within(told.recv()).await {
        ends.insert(end.task, (end.epoch, end.status, end.why));
    }
    let why = |why: &str| Some(why.to_owned());
    let expected = BTreeMap::from([
        (good, (1, Some(Status::Success), None)),
        (bad, (1, Some(Status::WaitManual), why("bad input: no"))),
        (again, (1, Some(Status::RetryWait), why("later"))),
        (lost, (1, None, None)),
        (late, (1, Some(Status::Pending), why("shutdown"))),
    ]);
    assert_eq!(ends, expected);
}

/// Its work is done; what it says of it nobody could read, or no database store.
pub async fn a_result_that_can_not_be_stored_goes_to_a_person(db: &Db) {
    let queue = db.queue().await;
    let results = ["done".to_owned(), r#""\u0000""#.to_owned(), format!("\"{}\"", "x".repeat(MOST_JSON_BYTES))];
    let handler = move |ctx: leaseproof_queue::Ctx| {
        let results = results.clone();
        async move { Ok(results[ctx.payload::<usize>()?].clone()) }
    };
    let worker = start(worker(db, handler).await);
    for index in ["0", "1", "2"] {
        let id = queue.enqueue(NewTask::new("kind", index)).await.unwrap().id;
        let shown = until_status(&queue, id, Status::WaitManual).await;
        assert_eq!((shown.task.reason, &shown.task.result), (Some(Reason::NotRetryable), &None));
        let error = shown.task.last_error.unwrap();
        assert!(error.contains("result"), "{error}");
    }
    worker.stop().await;
}

/// A report that the database refuses for its text would leave the task to the end of its lease, again and again.
pub async fn an_error_is_stored_whatever_is_in_it(db: &Db) {
    let queue = db.queue().await;
    let handler = async |_| Err(TaskError::BadInput(format!("a\0b{}", "ä".repeat(MOST_TEXT_BYTES))));
    let worker = start(worker(db, handler).await);
    let id = put(&queue, at_once()).await;
    let shown = until_status(&queue, id, Status::WaitManual).await;
    let error = shown.task.last_error.unwrap();
    assert!(error.starts_with("bad input: a\u{fffd}bää") && error.ends_with("(cut)"), "{} bytes", error.len());
    assert!(error.len() <= MOST_TEXT_BYTES);
    worker.stop().await;
}
