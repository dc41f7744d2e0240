//! The desk: people see what waits for them, and decide (M5).

use std::collections::BTreeMap;
use std::time::Duration;

use leaseproof_queue::rules::{Entry, Epoch, OnUnknown, Policy, Reason, Status};
use leaseproof_queue::{
    CallError, Error, MOST_JSON_BYTES, MOST_TEXT_BYTES, NewTask, Queue, Resolution, Signed, Sweeper, Task, TaskError,
};

use crate::common::{Db, HOUR_MS};
use crate::support::{A_WHILE, NO_INSTRUMENT, at_once, gate, put, rule, start, until, until_status, verbs, worker};
use crate::third_party::{ThirdParty, no_answer};

const ANN: Signed<'_> = Signed { by: "ann", why: "called the bank" };

fn rerun() -> Resolution {
    Resolution::Rerun { input: None, effects: BTreeMap::new() }
}

fn rerun_knowing(key: &str, entry: Entry) -> Resolution {
    Resolution::Rerun { input: None, effects: BTreeMap::from([(key.into(), entry)]) }
}

/// A task in WAIT_MANUAL for bad input.
async fn waiting(db: &Db, queue: &Queue) -> i64 {
    let id = put(queue, at_once()).await;
    let worker = start(worker(db, async |_| Err(TaskError::BadInput("no such account".into()))).await);
    until_status(queue, id, Status::WaitManual).await;
    worker.stop().await;
    id
}

/// A task in WAIT_MANUAL with an effect `charge` of which only the intent is known.
async fn waiting_with_unknown_effect(db: &Db, queue: &Queue) -> i64 {
    let id = put(queue, at_once()).await;
    let third = ThirdParty::bringing([no_answer()]);
    let worker = start(third.charging(db, NO_INSTRUMENT, |_| Ok(())).await);
    until_status(queue, id, Status::WaitManual).await;
    worker.stop().await;
    id
}

async fn resolve(queue: &Queue, id: i64, resolution: &Resolution) -> Result<Task, Error> {
    queue.resolve(id, None, resolution, ANN).await
}

pub async fn what_waits_can_be_listed_page_by_page_and_shown_with_all_that_happened(db: &Db) {
    let queue = db.queue().await;
    let mut kinds = Vec::new();
    for kind in ["kind", "other", "kind", "kind"] {
        kinds.push(queue.enqueue(NewTask::new(kind, "{}")).await.unwrap().id);
    }
    let refuse = async |_| Err(TaskError::BadInput("no such account".into()));
    let worker = start(worker(db, refuse).await.handler("other", async |_| Ok("1".into())));
    for id in [kinds[0], kinds[2], kinds[3]] {
        until_status(&queue, id, Status::WaitManual).await;
    }
    until_status(&queue, kinds[1], Status::Success).await;
    worker.stop().await;
    let ids = async |status, kind, after, page| -> Vec<i64> {
        queue.list(status, kind, after, page).await.unwrap().tasks.into_iter().map(|task| task.id).collect()
    };
    let manual = Some(Status::WaitManual);
    assert_eq!(ids(None, None, 0, 10).await, kinds);
    assert_eq!(ids(manual, None, 0, 2).await, [kinds[0], kinds[2]]);
    assert_eq!(ids(manual, None, kinds[2], 2).await, [kinds[3]]);
    assert_eq!(ids(None, Some("other"), 0, 10).await, [kinds[1]]);
    assert_eq!(ids(manual, Some("other"), 0, 10).await, Vec::<i64>::new());

    let id = waiting_with_unknown_effect(db, &queue).await;
    let shown = queue.show(id).await.unwrap();
    assert_eq!(shown.task.reason, Some(Reason::OutcomeUnknown));
    assert_eq!(verbs(&shown), ["enqueue", "claim", "intent", "give_up"]);
    let intent = &shown.record[2];
    assert_eq!((intent.effect_key.as_deref(), intent.epoch), (Some("charge"), 1));
    assert!(shown.record.iter().all(|entry| !entry.actor.is_empty() && entry.at_ms > 0));
    assert_eq!((shown.effects[0].key.as_str(), shown.effects[0].state), ("charge", Entry::Intent));
    assert!(matches!(queue.show(999_999).await, Err(Error::NoSuchTask { id: 999_999 })));
}

pub async fn each_decision_is_carried_out_and_signed(db: &Db) {
    let queue = db.queue().await;
    for (resolution, status, verb) in [
        (rerun(), Status::Pending, "rerun"),
        (Resolution::Fail, Status::Fail, "mark_failed"),
        (Resolution::Succeed, Status::Success, "mark_succeeded"),
    ] {
        let id = waiting(db, &queue).await;
        let before = queue.show(id).await.unwrap().task;
        let task = queue.resolve(id, Some(before.epoch), &resolution, ANN).await.unwrap();
        assert_eq!((task.status, task.epoch), (status, before.epoch + 1), "{verb}");
        let shown = queue.show(id).await.unwrap();
        assert_eq!(shown.task, task);
        let entry = shown.record.last().unwrap();
        let told = (&*entry.verb, &*entry.actor, entry.note.as_deref());
        assert_eq!(told, (verb, "ann", Some("called the bank")));
        db.execute(&format!("DELETE FROM tasks WHERE id = {id}")).await;
    }
}

pub async fn a_rerun_starts_new_budgets(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, Policy { max_attempts: 1, ..at_once() }).await;
    let worker = start(
        worker(db, async |ctx| match ctx.task().epoch {
            1 => Err(TaskError::Retryable("no luck".into())),
            _ => Ok("1".into()),
        })
        .await,
    );
    let shown = until_status(&queue, id, Status::WaitManual).await;
    assert_eq!((shown.task.attempts, shown.task.reason), (1, Some(Reason::AttemptsExhausted)));
    let task = resolve(&queue, id, &rerun()).await.unwrap();
    assert_eq!((task.attempts, task.interruptions, task.reason), (0, 0, None));
    until_status(&queue, id, Status::Success).await;
    worker.stop().await;
}

pub async fn a_decision_says_by_whom_and_why_or_is_refused(db: &Db) {
    let queue = db.queue().await;
    let id = waiting(db, &queue).await;
    let before = queue.show(id).await.unwrap();
    for (missing, signed) in [
        ("by", Signed { by: "", ..ANN }),
        ("by", Signed { by: " \t", ..ANN }),
        ("why", Signed { why: "", ..ANN }),
        ("why", Signed { why: "\n", ..ANN }),
        ("why", Signed { why: &"x".repeat(MOST_TEXT_BYTES + 1), ..ANN }),
        ("why", Signed { why: "a\0b", ..ANN }),
        ("by", Signed { by: "a\0b", ..ANN }),
    ] {
        match queue.resolve(id, None, &Resolution::Fail, signed).await.unwrap_err() {
            Error::BadInput { what, .. } => assert_eq!(what, missing),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(queue.show(id).await.unwrap(), before);
}

pub async fn a_decision_about_a_task_that_has_moved_on_is_refused(db: &Db) {
    let queue = db.queue().await;
    let id = waiting(db, &queue).await;
    let before = queue.show(id).await.unwrap();
    let seen: Epoch = before.task.epoch;
    for stale in [seen - 1, seen + 1] {
        let error = queue.resolve(id, Some(stale), &Resolution::Succeed, ANN).await.unwrap_err();
        assert!(matches!(&error, Error::NotResolved { why, .. } if why.contains("epoch")), "{error}");
    }
    assert_eq!(queue.show(id).await.unwrap(), before);
    resolve(&queue, id, &Resolution::Fail).await.unwrap();
    let failed = queue.show(id).await.unwrap();
    for resolution in [rerun(), Resolution::Fail, Resolution::Succeed] {
        let error = resolve(&queue, id, &resolution).await.unwrap_err();
        assert!(matches!(&error, Error::NotResolved { why, .. } if why.contains("FAIL")), "{error}");
    }
    assert_eq!(queue.show(id).await.unwrap(), failed);
    let pending = put(&queue, at_once()).await;
    assert!(matches!(resolve(&queue, pending, &rerun()).await, Err(Error::NotResolved { .. })));
    assert!(matches!(resolve(&queue, 999_999, &rerun()).await, Err(Error::NoSuchTask { .. })));
}

pub async fn of_two_people_who_decide_at_once_one_is_told(db: &Db) {
    let queue = db.queue().await;
    for _ in 0..5 {
        let id = waiting(db, &queue).await;
        let (fail, succeed) = (Resolution::Fail, Resolution::Succeed);
        let bob = Signed { by: "bob", ..ANN };
        let (ann, bob) = tokio::join!(queue.resolve(id, None, &fail, ANN), queue.resolve(id, None, &succeed, bob));
        let (winner, loser) = match (ann, bob) {
            (Ok(task), Err(error)) | (Err(error), Ok(task)) => (task, error),
            other => panic!("{other:?}"),
        };
        assert!(matches!(loser, Error::NotResolved { .. }), "{loser:?}");
        assert_eq!(queue.show(id).await.unwrap().task, winner);
    }
}

pub async fn a_rerun_past_an_unknown_effect_demands_to_know_it(db: &Db) {
    let queue = db.queue().await;
    for (entry, calls) in [(Entry::Done, 0), (Entry::NotDone, 1)] {
        let id = waiting_with_unknown_effect(db, &queue).await;
        let before = queue.show(id).await.unwrap();
        let refused = [
            (rerun(), "charge"),
            (rerun_knowing("charge", Entry::Intent), "done"),
            (rerun_knowing("refund", Entry::Done), "refund"),
        ];
        for (resolution, names) in refused {
            let error = resolve(&queue, id, &resolution).await.unwrap_err();
            assert!(matches!(error, Error::BadInput { what: "effects", .. }), "{error:?}");
            assert!(error.to_string().contains(names), "{error}");
        }
        assert_eq!(queue.show(id).await.unwrap(), before);

        resolve(&queue, id, &rerun_knowing("charge", entry)).await.unwrap();
        let shown = queue.show(id).await.unwrap();
        assert_eq!(verbs(&shown)[4..], ["settle", "rerun"]);
        assert_eq!((&*shown.record[4].actor, shown.effects[0].state), ("ann", entry));
        let third = ThirdParty::default();
        let worker = start(third.charging(db, NO_INSTRUMENT, |_| Ok(())).await);
        until_status(&queue, id, Status::Success).await;
        assert_eq!(third.calls().len(), calls, "{entry:?}");
        worker.stop().await;
    }
}

/// What was said of the effects is written, and the decision is not.
pub async fn a_decision_that_comes_too_late_tells_what_was_written_of_the_effects(db: &Db) {
    let queue = db.queue().await;
    let id = db.put(crate::common::row(Status::WaitManual, 2)).await;
    for key in ["card", "mail"] {
        let columns = "(task_id, effect_key, epoch, state, rule, at_ms)";
        db.execute(&format!("INSERT INTO effects {columns} VALUES ({id}, '{key}', 1, 'INTENT', 0, 0)")).await;
    }
    // Somebody else is faster, right after the first effect.
    db.execute(
        "CREATE TRIGGER faster AFTER INSERT ON task_events WHEN NEW.verb = 'settle' \
         BEGIN UPDATE tasks SET epoch = epoch + 1 WHERE id = NEW.task_id; END",
    )
    .await;
    let effects = BTreeMap::from([("card".into(), Entry::Done), ("mail".into(), Entry::NotDone)]);
    let error = resolve(&queue, id, &Resolution::Rerun { input: None, effects }).await.unwrap_err();
    assert!(matches!(&error, Error::NotResolved { settled, .. } if settled == &["card"]), "{error:?}");
    let said = error.to_string();
    assert!(said.contains("card") && !said.contains("mail") && !said.contains("nothing was changed"), "{said}");
    assert_eq!(queue.show(id).await.unwrap().effects[0].state, Entry::Done);
}

/// Where a second call is harmless, or the policy has said what to do, a person need not find out.
pub async fn a_rerun_past_a_harmless_effect_demands_nothing(db: &Db) {
    let queue = db.queue().await;
    let harmless = [
        rule(true, false, false, OnUnknown::Escalate),
        rule(false, false, false, OnUnknown::Repeat),
        rule(false, false, false, OnUnknown::Skip),
    ];
    for rule in harmless {
        let id = put(&queue, Policy { max_attempts: 1, ..at_once() }).await;
        let third = ThirdParty::bringing([no_answer()]);
        let worker = start(third.charging(db, rule, |_| Ok(())).await);
        until_status(&queue, id, Status::WaitManual).await;
        resolve(&queue, id, &rerun()).await.unwrap();
        until_status(&queue, id, Status::Success).await;
        worker.stop().await;
    }
}

pub async fn a_rerun_with_corrected_input_runs_on_it(db: &Db) {
    let queue = db.queue().await;
    let id = queue.enqueue(NewTask::new("kind", "{\"amount\": \"ten\"}").policy(at_once())).await.unwrap().id;
    let handler = |ctx: leaseproof_queue::Ctx| async move {
        let payload: BTreeMap<String, u32> = ctx.payload()?;
        Ok(payload["amount"].to_string())
    };
    let worker = start(worker(db, handler).await);
    until_status(&queue, id, Status::WaitManual).await;
    let corrected = |text: &str| Resolution::Rerun { input: Some(text.into()), effects: BTreeMap::new() };
    let before = queue.show(id).await.unwrap();
    for wrong in ["{\"amount\": ten}", "\"\\u0000\"", &format!("\"{}\"", "x".repeat(MOST_JSON_BYTES))] {
        let error = resolve(&queue, id, &corrected(wrong)).await.unwrap_err();
        assert!(matches!(error, Error::BadInput { what: "input", .. }), "{error:?}");
    }
    assert_eq!(queue.show(id).await.unwrap(), before);
    resolve(&queue, id, &corrected("{\"amount\": 10}")).await.unwrap();
    let shown = until_status(&queue, id, Status::Success).await;
    assert_eq!((shown.task.result.as_deref(), &shown.task.payload[..]), (Some("10"), &b"{\"amount\": 10}"[..]));
    worker.stop().await;
}

/// Over its expected time, and alive: it ends after a person has decided.
pub async fn a_run_that_ends_after_the_decision_does_not_undo_it(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, Policy { expected_run_ms: Some(HOUR_MS as u64), ..at_once() }).await;
    let (door, mut keeper) = gate();
    let worker = start(
        worker(db, move |ctx| {
            let door = door.clone();
            async move {
                let call = async |_| {
                    door.pass().await;
                    Ok::<_, CallError>("1".into())
                };
                // Journalled or not, what it did it did.
                ctx.effect("charge", NO_INSTRUMENT, call).await.ok();
                Ok("\"late\"".into())
            }
        })
        .await,
    );
    keeper.arrival().await;
    let clock = db.clock();
    let over = format!("claimed_at_ms = {clock} - 2 * {HOUR_MS}, overrun_at_ms = {clock} - {HOUR_MS}");
    db.execute(&format!("UPDATE tasks SET {over} WHERE id = {id}")).await;
    Sweeper::new(queue.clone(), Duration::from_secs(1)).sweep_once().await.unwrap();
    let shown = queue.show(id).await.unwrap();
    assert_eq!((shown.task.status, shown.task.reason), (Status::WaitManual, Some(Reason::Overrun)));
    resolve(&queue, id, &Resolution::Fail).await.unwrap();
    keeper.open();
    let shown = until(&queue, id, |shown| shown.record.last().unwrap().verb == "late_result").await;
    assert_eq!((shown.task.status, shown.task.result), (Status::Fail, None));
    assert_eq!(shown.record.last().unwrap().note.as_deref(), Some("\"late\""));
    worker.stop().await;
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(queue.show(id).await.unwrap().task.status, Status::Fail);
}
