//! S1's two classic traps, and a third on SQLite.

use leaseproof_older_designs::{CommitRunning, Error, MainTransaction, Outcome, Read};
use leaseproof_rules::Status;

use crate::common::{Db, Kind};

/// A pool of one shows it alone: the outer transaction has the only connection.
pub async fn an_inner_transaction_never_gets_the_connection_that_its_outer_one_holds(db: &Db) {
    let id = db.tasks(1).await[0];
    let error = CommitRunning::new(db.hasty_table(1)).claim().await.unwrap_err();
    let Error::NoConnection { step, source } = error else { panic!("{error}") };
    assert_eq!(step, "begin transaction 2");
    assert!(matches!(source, sqlx::Error::PoolTimedOut), "{source}");
    assert_eq!(db.status(id).await, Status::Pending);
    // One more connection, and it goes through.
    assert!(CommitRunning::new(db.hasty_table(2)).claim().await.unwrap().is_some());
}

/// Three runs on three connections, all at the moment between their first look and transaction 2: none goes on before one
/// of them has given up.
pub async fn as_many_runs_as_connections_wait_for_each_other(db: &Db) {
    let ids = db.tasks(3).await;
    let design = CommitRunning::new(db.hasty_table(3));
    // Holds them all at their first look until the last has come.
    let mut gate = db.session().await;
    let lock = match db.kind {
        Kind::Postgres => "BEGIN; LOCK TABLE older_tasks IN ACCESS EXCLUSIVE MODE",
        _ => "LOCK TABLES older_tasks WRITE",
    };
    gate.execute(lock).await;
    let mut running = tokio::task::JoinSet::new();
    for id in ids {
        let design = design.clone();
        running.spawn(async move { design.claim_task(id).await.map(|claim| claim.is_some()) });
    }
    db.until_waiting(3).await;
    gate.execute(if db.kind == Kind::Postgres { "COMMIT" } else { "UNLOCK TABLES" }).await;
    let ended = running.join_all().await;
    let starved = |end: &&Result<bool, Error>| {
        matches!(end, Err(Error::NoConnection { step: "begin transaction 2", source: sqlx::Error::PoolTimedOut }))
    };
    let (given_up, claimed) = (ended.iter().filter(starved).count(), ended.iter().filter(|end| end.is_ok()).count());
    assert!(given_up >= 1 && given_up + claimed == 3, "{ended:?}");
}

/// No database looks for this deadlock: one half of it is in the program. The lock's own time-out ends it, 0 on PostgreSQL
/// being for ever, 50 s the default of MySQL.
pub async fn a_locking_read_in_transaction_1_makes_transaction_2_wait_for_it(db: &Db) {
    let id = db.tasks(1).await[0];
    let (table, code) = match db.kind {
        Kind::Postgres => (db.table_with("options[lock_timeout]=200"), "55P03"),
        Kind::MariaDb => (db.mariadb_table_that_waits_a_second(), "1205"),
        Kind::Sqlite => (db.table(2), "5"),
    };
    let design = CommitRunning::new(table).read(Read::ForUpdate);
    let error = design.claim_task(id).await.unwrap_err();
    let Error::Locked { step, code: said, .. } = error else { panic!("{error}") };
    assert_eq!((step, &*said), ("claim", code));
    assert_eq!(db.status(id).await, Status::Pending);
}

/// Transaction 1 has read before transaction 2 has written: what it read is out of date, and it may not write any more.
pub async fn transaction_1_can_not_report_after_transaction_2(db: &Db) {
    let id = db.tasks(1).await[0];
    let design = CommitRunning::new(db.table(2)).main(MainTransaction::SpansTheRun);
    let claim = design.claim().await.unwrap().unwrap();
    let error = claim.report(Outcome::Success).await.unwrap_err();
    let Error::Locked { code, .. } = error else { panic!("{error}") };
    assert_eq!(code, "517");
    assert_eq!(db.status(id).await, Status::Running, "for ever");
}
