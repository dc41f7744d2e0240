//! How a worker starts, and what becomes of the earlier start of its slot (A2).

use std::time::Duration;

use leaseproof_queue::rules::Status;
use leaseproof_queue::{Error, MOST_SLOTS, NewTask, Queue, Sweeper, Worker, WorkerBuilder};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::common::Db;
use crate::support::{
    A_WHILE, Background, Gate, at_once, ending, gate, put, start, until_status, verbs, within, worker,
};

/// Ends with its start, or else hangs.
async fn run(worker: WorkerBuilder) -> Result<(), Error> {
    within(worker.build().unwrap().run(std::future::pending())).await
}

pub async fn a_boot_id_can_not_be_used_twice(db: &Db) {
    let queue = db.queue().await;
    let first = start(worker(db, async |_| Ok("1".into())).await.boot_id("node-7"));
    let id = put(&queue, at_once()).await;
    until_status(&queue, id, Status::Success).await;
    let again = async || run(worker(db, async |_| Ok("2".into())).await.boot_id("node-7")).await;
    let error = again().await.unwrap_err();
    assert!(matches!(&error, Error::DuplicateBootId { boot_id, .. } if boot_id == "node-7"), "{error:?}");
    // The first does not mind.
    let id = put(&queue, at_once()).await;
    assert_eq!(until_status(&queue, id, Status::Success).await.task.result.as_deref(), Some("1"));
    first.stop().await;
    let error = again().await.unwrap_err();
    assert!(matches!(error, Error::DuplicateBootId { .. }), "nor after it has ended: {error:?}");
}

pub async fn without_the_tables_a_worker_says_how_to_make_them(db: &Db) {
    let empty = Db::empty(db.kind()).await;
    let error = run(worker(&empty, async |_| Ok("1".into())).await).await.unwrap_err();
    assert!(matches!(error, Error::NotMigrated { .. }), "{error:?}");
    assert!(error.to_string().contains("leaseproof queue migrate"), "{error}");
    let error = within(Sweeper::new(empty.queue().await, A_WHILE).run(std::future::pending())).await.unwrap_err();
    assert!(matches!(error, Error::NotMigrated { .. }), "{error:?}");
}

/// Nothing that waiting would cure.
pub async fn when_the_tables_are_gone_a_worker_ends(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, at_once()).await;
    let worker = start(worker(db, async |_| Ok("1".into())).await);
    until_status(&queue, id, Status::Success).await;
    db.execute("DROP TABLE tasks").await;
    let error = within(worker.ended()).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::NotMigrated { .. }), "{error:?}");
}

/// Somebody migrates while it runs: it does not go on with tables that it does not know.
pub async fn a_newer_schema_under_a_running_process_ends_it(db: &Db) {
    let worker = start(worker(db, async |_| Ok("1".into())).await);
    let id = put(&db.queue().await, at_once()).await;
    until_status(&db.queue().await, id, Status::Success).await;
    let sweeper = Sweeper::new(db.queue().await, Duration::from_millis(10));
    let sweeping = tokio::spawn(sweeper.run(std::future::pending()));
    db.execute("INSERT INTO leaseproof_schema (version, applied_at_ms) VALUES (99, 0)").await;
    for ended in [worker.ended(), sweeping] {
        let error = within(ended).await.unwrap().unwrap_err();
        assert!(matches!(error, Error::NewerSchema { found: 99, .. }), "{error:?}");
    }
}

/// A worker that has run a task, a sweeper, and where their file is.
async fn on_a_file(db: &Db) -> ([JoinHandle<Result<(), Error>>; 2], Queue, &str) {
    let queue = db.queue().await;
    let worker = start(worker(db, async |_| Ok("1".into())).await);
    let id = put(&queue, at_once()).await;
    until_status(&queue, id, Status::Success).await;
    let sweeper = Sweeper::new(queue.clone(), Duration::from_millis(10));
    sweeper.sweep_once().await.unwrap();
    let sweeping = tokio::spawn(sweeper.run(std::future::pending()));
    ([worker.ended(), sweeping], queue, db.url().strip_prefix("sqlite:").unwrap())
}

/// Its open connections would go on with a file that nobody else sees.
pub async fn a_file_that_is_deleted_under_a_running_worker_ends_it(db: &Db) {
    let (running, queue, path) = on_a_file(db).await;
    std::fs::remove_file(path).unwrap();
    for ended in running {
        let error = within(ended).await.unwrap().unwrap_err();
        assert!(matches!(error, Error::FileChanged { what: "deleted", .. }), "{error:?}");
        assert!(error.to_string().contains(path), "{error}");
    }
    let lost = queue.enqueue(NewTask::new("kind", "{}")).await.unwrap_err();
    assert!(matches!(lost, Error::FileChanged { .. }), "{lost:?}");
}

pub async fn a_file_that_is_replaced_under_a_running_worker_ends_it(db: &Db) {
    let (running, _, path) = on_a_file(db).await;
    let other = Db::migrated(db.kind()).await;
    std::fs::rename(other.url().strip_prefix("sqlite:").unwrap(), path).unwrap();
    for ended in running {
        let error = within(ended).await.unwrap().unwrap_err();
        assert!(matches!(error, Error::FileChanged { what: "replaced", .. }), "{error:?}");
    }
    // Whoever opens it now means the new one.
    assert_eq!(db.queue().await.list(None, None, 0, 10).await.unwrap().rows(), 0);
}

pub async fn settings_that_can_not_work_are_refused_before_anything_starts(db: &Db) {
    let builder = worker(db, async |_| Ok("1".into())).await;
    let refused = [
        ("slots", builder.clone().slots(0)),
        ("slots", builder.clone().slots(MOST_SLOTS + 1)),
        ("poll", builder.clone().poll(Duration::ZERO)),
        ("boot_id", builder.clone().boot_id(" ")),
        ("slot_name", builder.clone().slot_name("")),
    ];
    for (field, builder) in refused {
        match builder.build().map(|_| ()).unwrap_err() {
            Error::BadInput { what, .. } => assert_eq!(what, field),
            other => panic!("{field}: {other:?}"),
        }
    }
    assert_ne!(builder.clone().build().unwrap().boot_id(), builder.build().unwrap().boot_id());
}

async fn in_slot(db: &Db, door: &Gate, result: &'static str, slots: u32) -> Background {
    let door = door.clone();
    let handler = move |_| {
        let door = door.clone();
        async move {
            door.pass().await;
            Ok(result.into())
        }
    };
    start(worker(db, handler).await.slot_name("worker-3").slots(slots))
}

/// Long before its lease ends. The earlier process is only slow: it loses the task and claims nothing more.
pub async fn what_the_earlier_start_of_a_slot_had_comes_back_at_once(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, at_once()).await;
    let (old_door, mut old_keeper) = gate();
    let old = in_slot(db, &old_door, "\"old\"", 4).await;
    old_keeper.arrival().await;
    let sweeper = Sweeper::new(queue.clone(), A_WHILE);
    assert_eq!(sweeper.sweep_once().await.unwrap().seen, 0, "nothing to do while it lives");

    let (new_door, mut new_keeper) = gate();
    let new = in_slot(db, &new_door, "\"new\"", 4).await;
    until_registered(&queue, &new.boot_id).await;
    assert_eq!(sweeper.sweep_once().await.unwrap().requeued, 1);
    new_keeper.arrival().await;
    assert_eq!(queue.show(id).await.unwrap().task.owner.as_ref(), Some(&new.boot_id));

    let second = put(&queue, at_once()).await;
    new_keeper.arrival().await;
    assert!(!old_keeper.more());
    assert_eq!(queue.show(second).await.unwrap().task.owner.as_ref(), Some(&new.boot_id));

    let error = within(old.ended()).await.unwrap().unwrap_err();
    assert!(matches!(&error, Error::Superseded { by, .. } if *by == new.boot_id), "{error:?}");
    for id in [id, second] {
        new_keeper.open();
        until_status(&queue, id, Status::Success).await;
    }
    let shown = until_status(&queue, id, Status::Success).await;
    assert_eq!(shown.task.result.as_deref(), Some("\"new\""));
    assert_eq!(verbs(&shown), ["enqueue", "claim", "requeue", "claim", "complete"]);
    new.stop().await;
}

/// Not after its grace: what it does from here on another does too. It looks although all its slots are busy.
pub async fn a_worker_whose_slot_is_taken_cancels_its_handlers_at_once(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, at_once()).await;
    let (door, mut keeper) = gate();
    let (ends, ended) = ending();
    let handler = move |_| {
        let (door, ends) = (door.clone(), ends());
        async move {
            let _ends = ends;
            door.pass().await;
            Ok("\"old\"".into())
        }
    };
    let old = start(worker(db, handler).await.slot_name("worker-3").slots(1).grace(Duration::from_secs(3_600)));
    keeper.arrival().await;
    let new = start(Worker::builder(db.queue().await).slot_name("worker-3"));
    within(ended).await.unwrap();
    let error = within(old.ended()).await.unwrap().unwrap_err();
    assert!(matches!(&error, Error::Superseded { by, .. } if *by == new.boot_id), "{error:?}");
    new.stop().await;
    let shown = queue.show(id).await.unwrap();
    assert_eq!((shown.task.status, verbs(&shown)), (Status::Running, vec!["enqueue", "claim"]), "left to the sweeper");
    assert_eq!(Sweeper::new(queue.clone(), A_WHILE).sweep_once().await.unwrap().requeued, 1);
}

/// A start that may not go on must not decide about the tasks of others either.
pub async fn a_start_that_is_refused_has_not_swept(db: &Db) {
    let queue = db.queue().await;
    let first = start(worker(db, async |_| Ok("1".into())).await.boot_id("node-7"));
    let id = put(&queue, at_once()).await;
    until_status(&queue, id, Status::Success).await;
    first.stop().await;
    let lost = put(&queue, at_once()).await;
    claim(db, lost).await;
    db.end_lease(lost).await;
    let sweeper = || Sweeper::new(queue.clone(), Duration::from_millis(10));
    let again = worker(db, async |_| Ok("2".into())).await.boot_id("node-7").sweeper(sweeper());
    assert!(matches!(run(again).await, Err(Error::DuplicateBootId { .. })));
    assert_eq!(verbs(&queue.show(lost).await.unwrap()), ["enqueue", "claim"]);
    // One that is accepted does both.
    let second = start(worker(db, async |_| Ok("2".into())).await.sweeper(sweeper()));
    let shown = until_status(&queue, lost, Status::Success).await;
    assert_eq!(verbs(&shown), ["enqueue", "claim", "requeue", "claim", "complete"]);
    second.stop().await;
}

/// By somebody who never comes back.
async fn claim(db: &Db, id: i64) {
    let claimed = db.store().await.claim("somebody", 1).await.unwrap();
    assert_eq!(claimed.iter().map(|task| task.id).collect::<Vec<_>>(), [id]);
}

async fn until_registered(queue: &Queue, boot_id: &str) {
    let registered = async {
        while queue.store().instance(boot_id).await.unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // The earlier one is superseded by the statement after it.
        while queue.store().lost_tasks(0, 1).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(registered).await;
}

/// Tasks of another slot are nobody's business.
pub async fn a_start_in_another_slot_takes_nothing(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, at_once()).await;
    let (door, mut keeper) = gate();
    let first = in_slot(db, &door, "\"first\"", 1).await;
    keeper.arrival().await;
    let second = start(worker(db, async |_| Ok("1".into())).await.slot_name("worker-4"));
    let other = put(&queue, at_once()).await;
    until_status(&queue, other, Status::Success).await;
    assert_eq!(Sweeper::new(queue.clone(), A_WHILE).sweep_once().await.unwrap().seen, 0);
    keeper.open();
    let shown = until_status(&queue, id, Status::Success).await;
    assert_eq!((verbs(&shown).len(), shown.task.result.as_deref()), (3, Some("\"first\"")));
    first.stop().await;
    second.stop().await;
}

/// To it the queue looks empty for ever.
pub async fn a_worker_whose_slot_is_taken_ends_and_names_the_later_start(db: &Db) {
    let queue = db.queue().await;
    let id = put(&queue, at_once()).await;
    let old = start(worker(db, async |_| Ok("1".into())).await.slot_name("worker-3"));
    until_status(&queue, id, Status::Success).await;
    let new = start(worker(db, async |_| Ok("2".into())).await.slot_name("worker-3"));
    let error = within(old.ended()).await.unwrap().unwrap_err();
    assert!(matches!(&error, Error::Superseded { by, .. } if *by == new.boot_id), "{error:?}");
    new.stop().await;
}

/// Needs no server: nobody listens on that port.
#[test]
fn a_worker_waits_for_a_database_that_is_not_there_and_can_be_told_to_stop() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let queue = Queue::connect("postgres://nobody@127.0.0.1:1/none").await.unwrap();
        let queue = queue.deadline(Duration::from_millis(50));
        let (stop, stopped) = oneshot::channel::<()>();
        let worker = Worker::builder(queue).poll(Duration::from_millis(10)).build().unwrap();
        let running = tokio::spawn(worker.run(async {
            stopped.await.ok();
        }));
        tokio::time::sleep(A_WHILE * 2).await;
        assert!(!running.is_finished());
        stop.send(()).unwrap();
        within(running).await.unwrap().unwrap();
    });
}
