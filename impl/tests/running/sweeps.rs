//! The sweeper: what becomes of a task whose worker is lost.

use std::time::Duration;

use leaseproof_queue::rules::{Answer, EffectRule, Entry, OnUnknown, Policy, Reason, Status};
use leaseproof_queue::{NewTask, Queue, StatusQueries, SweepReport, Sweeper};

use crate::common::{Db, HOUR_MS, Kind, LIVE_OWNER, LOST_OWNER, by};
use crate::support::{Count, NO_INSTRUMENT, at_once, put, rule, start, until_status, verbs, within};
use crate::third_party::ThirdParty;

fn sweeper(queue: &Queue) -> Sweeper {
    Sweeper::new(queue.clone(), Duration::from_millis(10))
}

/// A task that a worker has claimed and, with a rule, made the intent for the effect `charge`; its lease has ended.
async fn lost(db: &Db, queue: &Queue, policy: Policy, effect: Option<EffectRule>) -> i64 {
    let id = put(queue, policy).await;
    lose(db, queue, id, effect.map(|rule| ("charge", rule)).as_slice()).await;
    id
}

/// Lets [`LIVE_OWNER`] claim a task, make these intents, and be lost.
async fn lose(db: &Db, queue: &Queue, id: i64, effects: &[(&str, EffectRule)]) {
    let claimed = queue.store().claim(LIVE_OWNER, 10).await.unwrap();
    let epoch = claimed.iter().find(|task| task.id == id).unwrap().epoch;
    for (key, rule) in effects {
        queue.store().intent(by(id, epoch), key, *rule).await.unwrap();
    }
    db.end_lease(id).await;
}

/// What the task and its effects have come to.
async fn came_to(queue: &Queue, id: i64) -> (Status, Option<Reason>, Vec<Entry>) {
    let shown = queue.show(id).await.unwrap();
    (shown.task.status, shown.task.reason, shown.effects.iter().map(|entry| entry.state).collect())
}

pub async fn a_task_of_a_lost_owner_runs_again(db: &Db) {
    let queue = db.queue().await;
    let id = lost(db, &queue, at_once(), None).await;
    let report = sweeper(&queue).name("night sweeper").sweep_once().await.unwrap();
    assert_eq!(report, SweepReport { seen: 1, requeued: 1, ..SweepReport::default() });
    let shown = queue.show(id).await.unwrap();
    let task = &shown.task;
    assert_eq!((task.status, task.attempts, task.interruptions, task.epoch), (Status::Pending, 0, 1, 2));
    assert_eq!((verbs(&shown)[2], &*shown.record[2].actor), ("requeue", "night sweeper"));
    assert_eq!(sweeper(&queue).sweep_once().await.unwrap(), SweepReport::default(), "nothing is left to do");
    let third = ThirdParty::default();
    let worker = start(third.charging(db, NO_INSTRUMENT, |_| Ok(())).await);
    assert_eq!(until_status(&queue, id, Status::Success).await.task.epoch, 3);
    worker.stop().await;
}

pub async fn an_owner_lost_once_too_often_brings_the_task_to_a_person(db: &Db) {
    let queue = db.queue().await;
    let id = lost(db, &queue, Policy { max_interruptions: 1, ..at_once() }, None).await;
    sweeper(&queue).sweep_once().await.unwrap();
    assert_eq!(came_to(&queue, id).await, (Status::Pending, None, vec![]));
    lose(db, &queue, id, &[]).await;
    let report = sweeper(&queue).sweep_once().await.unwrap();
    assert_eq!(report, SweepReport { seen: 1, escalated: 1, ..SweepReport::default() });
    assert_eq!(came_to(&queue, id).await, (Status::WaitManual, Some(Reason::InterruptionsExhausted), vec![]));
    assert_eq!(queue.show(id).await.unwrap().task.interruptions, 2, "the loss that was too many is counted too");
}

/// Its heartbeat is fine (M1).
pub async fn a_run_far_over_its_expected_time_goes_to_a_person(db: &Db) {
    let queue = db.queue().await;
    let policy = Policy { expected_run_ms: Some(60_000), ..at_once() };
    let (slow, fine) = (put(&queue, policy.clone()).await, put(&queue, policy).await);
    queue.store().claim(LIVE_OWNER, 2).await.unwrap();
    let clock = db.clock();
    let earlier = format!("claimed_at_ms = {clock} - {HOUR_MS}, overrun_at_ms = {clock} - {HOUR_MS} + expected_run_ms");
    db.execute(&format!("UPDATE tasks SET {earlier} WHERE id = {slow}")).await;
    let report = sweeper(&queue).sweep_once().await.unwrap();
    assert_eq!(report, SweepReport { seen: 1, escalated: 1, ..SweepReport::default() });
    assert_eq!(came_to(&queue, slow).await, (Status::WaitManual, Some(Reason::Overrun), vec![]));
    assert_eq!(came_to(&queue, fine).await, (Status::Running, None, vec![]));
}

pub async fn settings_that_can_not_be_read_bring_a_lost_task_to_a_person(db: &Db) {
    let queue = db.queue().await;
    let id = lost(db, &queue, at_once(), None).await;
    db.execute(&format!("UPDATE tasks SET on_exhausted = 'shrug' WHERE id = {id}")).await;
    let report = sweeper(&queue).sweep_once().await.unwrap();
    assert_eq!(report, SweepReport { seen: 1, escalated: 1, ..SweepReport::default() });
    assert_eq!(came_to(&queue, id).await, (Status::WaitManual, Some(Reason::NotRetryable), vec![]));
}

/// Each declaration, with each answer, comes to what the rules say.
pub async fn an_unknown_effect_is_settled_by_its_instruments(db: &Db) {
    use Entry::{Done, Intent, NotDone};
    use OnUnknown::{Escalate, Repeat, Skip};
    let unknown = Some(Reason::OutcomeUnknown);
    let cases = [
        (rule(false, false, false, Escalate), None, (Status::WaitManual, unknown, Intent)),
        (rule(false, false, false, Repeat), None, (Status::Pending, None, Intent)),
        (rule(false, false, false, Skip), None, (Status::Pending, None, Intent)),
        (rule(true, true, false, Escalate), None, (Status::Pending, None, Intent)),
        (rule(false, true, false, Escalate), Some(Answer::Done), (Status::Pending, None, Done)),
        (rule(false, true, false, Escalate), Some(Answer::NotDone), (Status::WaitManual, unknown, Intent)),
        (rule(false, true, true, Escalate), Some(Answer::NotDone), (Status::Pending, None, NotDone)),
        (rule(false, true, true, Escalate), Some(Answer::Unavailable), (Status::Running, None, Intent)),
    ];
    let queue = db.queue().await;
    for (rule, answer, (status, reason, entry)) in cases {
        let third = ThirdParty::default().answering(answer);
        let id = lost(db, &queue, at_once(), Some(rule)).await;
        let report = sweeper(&queue).queries(third.queries()).sweep_once().await.unwrap();
        assert_eq!(came_to(&queue, id).await, (status, reason, vec![entry]), "{rule:?} {answer:?}");
        let counted = match status {
            Status::Pending => report.requeued,
            Status::WaitManual => report.escalated,
            _ => report.waiting,
        };
        assert_eq!((report.seen, counted), (1, 1), "{rule:?} {answer:?}: {report:?}");
        let tokens: Vec<_> = third.questions().into_iter().map(|question| question.token).collect();
        assert_eq!(tokens, vec![2; usize::from(answer.is_some())], "newer than the lost run's");
        db.execute(&format!("DELETE FROM tasks WHERE id = {id}")).await;
    }
}

/// Ten leases after the end of the lease it counts as one that can not be asked (M3).
pub async fn a_third_party_that_never_answers_brings_the_task_to_a_person(db: &Db) {
    let queue = db.queue().await;
    let third = ThirdParty::default();
    let id = lost(db, &queue, at_once(), Some(rule(false, true, true, OnUnknown::Escalate))).await;
    let asking = sweeper(&queue).queries(third.queries());
    let ended = async |ms_ago: u64| {
        db.execute(&format!("UPDATE tasks SET lease_until_ms = {} - {ms_ago} WHERE id = {id}", db.clock())).await;
    };
    ended(at_once().ask_for_ms() - 60_000).await;
    assert_eq!(asking.sweep_once().await.unwrap(), SweepReport { seen: 1, waiting: 1, ..SweepReport::default() });
    ended(at_once().ask_for_ms()).await;
    assert_eq!(asking.sweep_once().await.unwrap(), SweepReport { seen: 1, escalated: 1, ..SweepReport::default() });
    let unknown = (Status::WaitManual, Some(Reason::OutcomeUnknown), vec![Entry::Intent]);
    assert_eq!(came_to(&queue, id).await, unknown);
    assert_eq!(third.questions().len(), 2, "it is asked a last time");
}

pub async fn every_unknown_effect_of_a_task_is_asked_about_and_none_is_requeued_half_known(db: &Db) {
    let queue = db.queue().await;
    let rule = rule(false, true, true, OnUnknown::Escalate);
    for (answers, status, entries) in [
        ([Answer::Done, Answer::NotDone], Status::Pending, [Entry::Done, Entry::NotDone]),
        ([Answer::Done, Answer::Unavailable], Status::Running, [Entry::Done, Entry::Intent]),
    ] {
        let third = ThirdParty::default().answering(answers);
        let id = put(&queue, at_once()).await;
        lose(db, &queue, id, &[("charge", rule), ("reserve", rule)]).await;
        let queries = third.asked_about(third.queries(), "reserve");
        sweeper(&queue).queries(queries).sweep_once().await.unwrap();
        assert_eq!(came_to(&queue, id).await, (status, None, entries.to_vec()), "{answers:?}");
        db.execute(&format!("DELETE FROM tasks WHERE id = {id}")).await;
    }
}

pub async fn a_query_that_this_sweeper_does_not_have_counts_as_none(db: &Db) {
    let queue = db.queue().await;
    let id = lost(db, &queue, at_once(), Some(rule(false, true, true, OnUnknown::Escalate))).await;
    let of_another_kind = StatusQueries::new().with("other", "charge", async |_| Answer::Done);
    sweeper(&queue).queries(of_another_kind).sweep_once().await.unwrap();
    let unknown = (Status::WaitManual, Some(Reason::OutcomeUnknown), vec![Entry::Intent]);
    assert_eq!(came_to(&queue, id).await, unknown);
}

pub async fn a_third_party_that_hangs_does_not_hold_up_the_sweep(db: &Db) {
    let queue = db.queue().await.deadline(Duration::from_millis(300));
    let asking = lost(db, &queue, at_once(), Some(rule(false, true, true, OnUnknown::Escalate))).await;
    let plain = lost(db, &queue, at_once(), None).await;
    let hangs = StatusQueries::new().with("kind", "charge", |_| std::future::pending());
    let report = within(sweeper(&queue).queries(hangs).sweep_once()).await.unwrap();
    assert_eq!(report, SweepReport { seen: 2, requeued: 1, waiting: 1, ..SweepReport::default() });
    assert_eq!(came_to(&queue, asking).await.0, Status::Running);
    assert_eq!(came_to(&queue, plain).await.0, Status::Pending);
}

/// Nor one that is lost only while the question is on its way.
pub async fn while_a_third_party_is_silent_other_tasks_are_decided(db: &Db) {
    let queue = db.queue().await.deadline(Duration::from_secs(3_600));
    let asking = lost(db, &queue, at_once(), Some(rule(false, true, true, OnUnknown::Escalate))).await;
    let asked = Count::default();
    let counted = asked.clone();
    let hangs = StatusQueries::new().with("kind", "charge", move |_| {
        counted.up();
        std::future::pending()
    });
    let sweeping = tokio::spawn(sweeper(&queue).queries(hangs).run(std::future::pending()));
    let is_asked = async {
        while asked.get() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(is_asked).await;
    let plain = lost(db, &queue, at_once(), None).await;
    until_status(&queue, plain, Status::Pending).await;
    assert_eq!((came_to(&queue, asking).await.0, asked.get()), (Status::Running, 1), "asked once at a time");
    sweeping.abort();
}

/// One silent third party would else take a deadline for each of its tasks; all at once would be an attack on it.
pub async fn tasks_are_asked_about_side_by_side_but_not_all_at_once(db: &Db) {
    let queue = db.queue().await;
    put_asking(db, 30).await;
    let (now, most, total) = (Count::default(), Count::default(), Count::default());
    let (counted, seen, asked) = (now.clone(), most.clone(), total.clone());
    let queries = StatusQueries::new().with("kind", "charge", move |_| {
        let (now, most, total) = (counted.clone(), seen.clone(), asked.clone());
        async move {
            total.up();
            if now.up() + 1 > most.get() {
                most.up();
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
            now.down();
            Answer::Unavailable
        }
    });
    let report = sweeper(&queue).queries(queries).sweep_once().await.unwrap();
    assert_eq!(report, SweepReport { seen: 30, waiting: 30, ..SweepReport::default() });
    assert_eq!((most.get(), total.get()), (8, 30));
}

/// So many lost tasks of which a third party has to be asked; returns their ids.
async fn put_asking(db: &Db, count: usize) -> Vec<i64> {
    let running = leaseproof_queue::rules::Row { lease_live: false, ..crate::common::row(Status::Running, 1) };
    let ids = db.put_all(&vec![running; count]).await;
    let asked = i64::from(instruments(rule(false, true, true, OnUnknown::Escalate)));
    let intents: Vec<String> = ids.iter().map(|id| format!("({id}, 'charge', 1, 'INTENT', {asked}, 0)")).collect();
    let into = "INSERT INTO effects (task_id, effect_key, epoch, state, rule, at_ms) VALUES";
    db.execute(&format!("{into} {}", intents.join(", "))).await;
    db.execute(&format!("UPDATE tasks SET lease_until_ms = {} - 1000", db.clock())).await;
    ids
}

/// It is one task's question; the sweeper has others.
pub async fn a_query_that_panics_counts_as_no_answer(db: &Db) {
    let queue = db.queue().await;
    let asking = lost(db, &queue, at_once(), Some(rule(false, true, true, OnUnknown::Escalate))).await;
    let plain = lost(db, &queue, at_once(), None).await;
    let at_call = StatusQueries::new().with("kind", "charge", |_| -> std::future::Ready<Answer> { panic!("at once") });
    let later = StatusQueries::new().with("kind", "charge", async |_| panic!("later"));
    for (queries, requeued) in [(at_call, 1), (later, 0)] {
        let report = sweeper(&queue).queries(queries).sweep_once().await.unwrap();
        let seen = 1 + requeued;
        assert_eq!(report, SweepReport { seen, requeued, waiting: 1, ..SweepReport::default() });
    }
    assert_eq!((came_to(&queue, asking).await.0, came_to(&queue, plain).await.0), (Status::Running, Status::Pending));
}

/// Neither while it waits for a third party nor while it has many tasks to write.
pub async fn a_shutdown_ends_a_sweep_that_is_under_way(db: &Db) {
    let queue = db.queue().await.deadline(Duration::from_secs(3_600));
    let (says, mut said) = tokio::sync::mpsc::unbounded_channel();
    let hangs = StatusQueries::new().with("kind", "charge", move |_| {
        says.send(()).ok();
        std::future::pending()
    });
    put_asking(db, 3).await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(sweeper(&queue).queries(hangs).run(async {
        stopped.await.ok();
    }));
    within(said.recv()).await.unwrap();
    stop.send(()).unwrap();
    within(running).await.unwrap().unwrap();

    let running = leaseproof_queue::rules::Row { lease_live: false, ..crate::common::row(Status::Running, 1) };
    db.put_all(&[running; 150]).await;
    let mut other = db.session().await;
    other.execute("BEGIN").await;
    other.execute("UPDATE tasks SET last_error = 'locked'").await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let hasty = db.queue().await.deadline(Duration::from_millis(300));
    let running = tokio::spawn(sweeper(&hasty).run(async {
        stopped.await.ok();
    }));
    tokio::time::sleep(Duration::from_millis(500)).await;
    stop.send(()).unwrap();
    within(running).await.unwrap().unwrap();
    other.execute("ROLLBACK").await;
}

pub async fn what_was_learnt_is_kept_when_the_task_goes_to_a_person_all_the_same(db: &Db) {
    let queue = db.queue().await;
    let policy = Policy { max_interruptions: 0, ..at_once() };
    let id = lost(db, &queue, policy, Some(rule(false, true, false, OnUnknown::Escalate))).await;
    let third = ThirdParty::default().answering([Answer::Done]);
    sweeper(&queue).queries(third.queries()).sweep_once().await.unwrap();
    let exhausted = (Status::WaitManual, Some(Reason::InterruptionsExhausted), vec![Entry::Done]);
    assert_eq!(came_to(&queue, id).await, exhausted);
}

/// While the third party is asked, the owner comes back with what it knows: that is better than any answer.
pub async fn an_owner_that_reports_while_the_sweeper_asks_is_not_overwritten(db: &Db) {
    let queue = db.queue().await;
    let id = lost(db, &queue, at_once(), Some(rule(false, true, true, OnUnknown::Escalate))).await;
    let store = db.store().await;
    let queries = StatusQueries::new().with("kind", "charge", move |_| {
        let store = store.clone();
        async move {
            store.complete(by(id, 1), "\"in time\"").await.unwrap();
            Answer::NotDone
        }
    });
    let report = sweeper(&queue).queries(queries).sweep_once().await.unwrap();
    assert_eq!(report, SweepReport { seen: 1, overtaken: 1, ..SweepReport::default() });
    assert_eq!(came_to(&queue, id).await.0, Status::Success);
}

pub async fn two_sweepers_at_once_decide_each_task_once(db: &Db) {
    let queue = db.queue().await;
    let mut ids = Vec::new();
    for _ in 0..30 {
        ids.push(queue.enqueue(NewTask::new("kind", "{}")).await.unwrap().id);
    }
    queue.store().claim(LIVE_OWNER, 30).await.unwrap();
    db.execute(&format!("UPDATE tasks SET lease_until_ms = {} - 1", db.clock())).await;
    let (left, right) = (sweeper(&queue), sweeper(&db.queue().await));
    let (left, right) = tokio::join!(left.sweep_once(), right.sweep_once());
    let reports = [left.unwrap(), right.unwrap()];
    assert_eq!(reports.iter().map(|report| report.requeued).sum::<u64>(), 30, "{reports:?}");
    for report in reports {
        assert_eq!(report.seen, report.requeued + report.overtaken, "{report:?}");
    }
    for id in ids {
        let shown = queue.show(id).await.unwrap();
        assert_eq!((shown.task.interruptions, verbs(&shown)), (1, vec!["enqueue", "claim", "requeue"]));
    }
}

pub async fn a_report_counts_every_kind_of_decision(db: &Db) {
    let queue = db.queue().await;
    for _ in 0..3 {
        lost(db, &queue, at_once(), None).await;
    }
    for _ in 0..2 {
        lost(db, &queue, at_once(), Some(NO_INSTRUMENT)).await;
    }
    lost(db, &queue, at_once(), Some(rule(false, true, false, OnUnknown::Escalate))).await;
    // Left alone: its lease is live.
    put(&queue, at_once()).await;
    queue.store().claim(LIVE_OWNER, 10).await.unwrap();
    // Known to be gone, although its lease is live (A2).
    put(&queue, at_once()).await;
    db.execute(&format!("UPDATE instances SET superseded_by = NULL WHERE boot_id = '{LOST_OWNER}'")).await;
    queue.store().claim(LOST_OWNER, 10).await.unwrap();
    db.execute(&format!("UPDATE instances SET superseded_by = 'next' WHERE boot_id = '{LOST_OWNER}'")).await;
    let report = sweeper(&queue).queries(ThirdParty::default().queries()).sweep_once().await.unwrap();
    assert_eq!(report, SweepReport { seen: 7, requeued: 4, escalated: 2, waiting: 1, ..SweepReport::default() });
}

/// More than one page, and a first page on which nothing can be decided: what comes after it is reached.
pub async fn tasks_that_wait_do_not_hide_those_behind_them(db: &Db) {
    let queue = db.queue().await;
    put_asking(db, 202).await;
    for _ in 0..3 {
        lost(db, &queue, at_once(), None).await;
    }
    let silent = StatusQueries::new().with("kind", "charge", async |_| Answer::Unavailable);
    let report = sweeper(&queue).queries(silent).sweep_once().await.unwrap();
    assert_eq!(report, SweepReport { seen: 205, requeued: 3, waiting: 202, ..SweepReport::default() });
}

/// As the journal stores it.
fn instruments(rule: EffectRule) -> u8 {
    let bits = rule.instruments;
    u8::from(bits.idempotency_key) | u8::from(bits.status_query) << 1 | u8::from(bits.execution_token) << 2
}

pub async fn what_could_not_be_written_is_left_to_the_next_sweep(db: &Db) {
    let queue = db.queue().await;
    let id = lost(db, &queue, at_once(), None).await;
    let hasty = db.queue().await.deadline(Duration::from_millis(200));
    let mut other = db.session().await;
    other.execute("BEGIN").await;
    other.execute(&format!("UPDATE tasks SET last_error = 'locked' WHERE id = {id}")).await;
    let report = sweeper(&hasty).sweep_once().await.unwrap();
    // On a server that locks rows it has not waited.
    let left = match db.kind() {
        Kind::Sqlite => SweepReport { seen: 1, failed: 1, ..SweepReport::default() },
        Kind::Postgres | Kind::MariaDb => SweepReport { seen: 1, overtaken: 1, ..SweepReport::default() },
    };
    assert_eq!(report, left);
    other.execute("ROLLBACK").await;
    // The first may yet have been applied, once the lock was free; but not twice.
    let sweeping = tokio::spawn(sweeper(&queue).run(std::future::pending()));
    let shown = until_status(&queue, id, Status::Pending).await;
    assert_eq!(verbs(&shown), ["enqueue", "claim", "requeue"]);
    sweeping.abort();
}

pub async fn a_sweeper_sweeps_until_it_is_told_to_stop(db: &Db) {
    let queue = db.queue().await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let shutdown = async {
        stopped.await.ok();
    };
    let running = tokio::spawn(sweeper(&queue).run(shutdown));
    for _ in 0..2 {
        let id = lost(db, &queue, at_once(), None).await;
        until_status(&queue, id, Status::Pending).await;
        db.execute(&format!("DELETE FROM tasks WHERE id = {id}")).await;
    }
    assert!(!running.is_finished());
    stop.send(()).unwrap();
    within(running).await.unwrap().unwrap();
}
