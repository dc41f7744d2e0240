//! Goal: the queue's PostgreSQL statements run on the simulated database node, every one of them.
//! Method: the queue's own store, through sqlx, from one simulated machine to another; a whole life of tasks.

use std::sync::Arc;
use std::time::Duration;

use leaseproof_queue_sim::store::{Fenced, Learnt};
use leaseproof_queue_sim::{NewTask, Queue, sqlite_schema};
use leaseproof_rules::{EffectRule, Entry, Judgement, Policy, Reason, Refusal, Status};
use leaseproof_sim::db::{Database, Open};
use leaseproof_sim::{net, room};
use madsim::runtime::Handle;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};

fn queue() -> Queue {
    let options = PgConnectOptions::new_without_pgpass()
        .host(&net::DATABASE.to_string())
        .port(net::DATABASE_PORT)
        .username("queue")
        .ssl_mode(PgSslMode::Disable)
        .options([("statement_timeout", "5000")]);
    Queue::from_pg_pool(PgPoolOptions::new().max_connections(2).connect_lazy_with(options))
}

fn by(id: i64, epoch: u64) -> Fenced<'static> {
    Fenced { id, epoch, actor: "b1", note: Some("why") }
}

async fn life() {
    let queue = queue();
    let store = queue.store();
    queue.check_schema().await.unwrap();
    let policy = Policy { expected_run_ms: Some(60_000), ..Policy::default() };
    for n in 1..=4 {
        let task = NewTask::new("k", "{}").policy(policy.clone()).unique_key(format!("u{n}"));
        assert_eq!(queue.enqueue(task).await.unwrap().id, n);
    }
    let again = queue.enqueue(NewTask::new("k", "{}").unique_key("u2")).await.unwrap();
    assert_eq!((again.id, again.new), (2, false));

    let claimed = store.claim("b1", 3).await.unwrap();
    assert_eq!(claimed.iter().map(|task| (task.id, task.epoch)).collect::<Vec<_>>(), [(1, 1), (2, 1), (3, 1)]);
    assert_eq!(claimed[0].policy, Ok(policy));
    let beats = [(1, 1), (2, 1), (3, 7)];
    assert_eq!(store.heartbeat(&beats, Duration::from_secs(5)).await.unwrap(), [(1, 1), (2, 1)]);

    let rule = EffectRule::default();
    let running = Judgement::Applied { status: Status::Running, epoch: 1 };
    assert_eq!(store.intent(by(1, 1), "charge", rule).await.unwrap(), running);
    let done = Learnt { key: "charge", state: Entry::Done, rule };
    assert_eq!(store.outcome(by(1, 1), done, Some("{}")).await.unwrap(), running);
    assert_eq!(store.journal(1).await.unwrap()[0].state, Entry::Done);
    let success = Judgement::Applied { status: Status::Success, epoch: 1 };
    assert_eq!(store.complete(by(1, 1), "{}").await.unwrap(), success);
    assert_eq!(store.complete(by(1, 1), "{}").await.unwrap(), Judgement::Already);

    let waits = Judgement::Applied { status: Status::RetryWait, epoch: 2 };
    assert_eq!(store.retry(by(2, 1), 1_000, None).await.unwrap(), waits);
    assert_eq!(store.retry(by(2, 1), 1_000, None).await.unwrap(), Judgement::Refused(Refusal::WrongStatus));
    let given = Judgement::Applied { status: Status::WaitManual, epoch: 2 };
    assert_eq!(store.give_up(by(3, 1), Status::WaitManual, Reason::NotRetryable).await.unwrap(), given);
    store.late_result(Fenced { note: Some("{}"), ..by(3, 1) }).await.unwrap();

    let task = store.task(3).await.unwrap();
    assert_eq!((task.status, task.reason), (Status::WaitManual, Some(Reason::NotRetryable)));
    let again = Judgement::Applied { status: Status::Pending, epoch: 3 };
    assert_eq!(store.rerun(by(3, 2), task.record_no, None).await.unwrap(), again);
    let verbs: Vec<_> = store.record(3).await.unwrap().into_iter().map(|event| event.verb).collect();
    assert_eq!(verbs, ["enqueue", "claim", "give_up", "late_result", "rerun"]);
    assert_eq!(store.list(Some(Status::Success), Some("k"), 0, 10).await.unwrap().tasks.len(), 1);

    assert_eq!(store.claim("b1", 1).await.unwrap()[0].id, 4);
    assert_eq!(store.intent(by(4, 1), "charge", rule).await.unwrap(), running);
    madsim::time::sleep(Duration::from_secs(31)).await;
    let lost = store.lost_tasks(0, 10).await.unwrap();
    assert_eq!(lost.iter().map(|task| (task.id, task.unknown.len())).collect::<Vec<_>>(), [(4, 1)]);
}

#[test]
fn every_statement_of_the_queue_runs_on_the_node() {
    room::simulate(3, || async {
        let schema = sqlite_schema("leaseproof_now_ms()");
        let database = Database::open(&schema, Arc::new(Open)).unwrap();
        let server = Handle::current().create_node().name("database").ip(net::DATABASE.into()).build();
        server.spawn(database.clone().serve());
        let client = Handle::current().create_node().name("client").ip(net::executor(0)).build();
        madsim::time::sleep(Duration::from_secs(1)).await;
        client.spawn(life()).await.unwrap();
        assert!(database.statements() > 20);
    })
    .unwrap();
}
