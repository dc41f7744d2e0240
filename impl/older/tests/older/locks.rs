//! What each database says when S2's claim meets the lock of a run, and how far that lock reaches.

use leaseproof_older_designs::{Error, LockWait, SingleTransaction};

use crate::common::{Db, Kind};

/// How the claim keeps from waiting, the code, and what the message says. The table of `docs/designs.md`.
fn expected(kind: Kind) -> [(LockWait, &'static str, &'static str); 2] {
    use LockWait::{Minimum, NoWait};
    const WAITED: &str = "Lock wait timeout exceeded; try restarting transaction";
    match kind {
        Kind::Postgres => [
            (Minimum, "55P03", "canceling statement due to lock timeout"),
            (NoWait, "55P03", "could not obtain lock on row in relation \"older_tasks\""),
        ],
        Kind::MariaDb => [(Minimum, "1205", WAITED), (NoWait, "1205", WAITED)],
        Kind::Sqlite => [(Minimum, "5", "database is locked"), (NoWait, "5", "database is locked")],
    }
}

pub async fn what_the_database_says_on_meeting_the_lock(db: &Db) {
    let id = db.tasks(1).await[0];
    let _at_work = SingleTransaction::new(db.table(1)).claim().await.unwrap().unwrap();
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/designs.md")).unwrap();
    for (wait, code, message) in expected(db.kind) {
        let table = db.table(1);
        let other = SingleTransaction::new(table).lock_wait(wait);
        let Err(Error::Locked { code: said, source, .. }) = other.claim_task(id).await else { panic!("{wait:?}") };
        assert_eq!(said, code, "{wait:?}");
        assert!(source.to_string().contains(message), "{wait:?}: {source}");
        let row = page.lines().find(|line| line.contains(message) && line.contains(&format!("`{code}`")));
        assert!(row.is_some(), "docs/designs.md does not say {code} {message}");
    }
}

pub async fn an_executor_locks_its_own_task_only(db: &Db) {
    let ids = db.tasks(2).await;
    let first = SingleTransaction::new(db.table(1)).claim().await.unwrap().unwrap();
    let second = SingleTransaction::new(db.table(1)).claim().await.unwrap().unwrap();
    assert_eq!([first.task().id, second.task().id], ids[..]);
}

/// SQLite's lock is of the whole file.
pub async fn one_executor_locks_every_task(db: &Db) {
    let ids = db.tasks(2).await;
    let _first = SingleTransaction::new(db.table(1)).claim().await.unwrap().unwrap();
    let other = SingleTransaction::new(db.table(1));
    assert!(matches!(other.claim_task(ids[1]).await, Err(Error::Locked { .. })));
}
