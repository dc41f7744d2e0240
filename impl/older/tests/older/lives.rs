//! How the designs live when nothing goes wrong, and what others see of it.

use std::collections::BTreeSet;

use leaseproof_older_designs::{Claim, CommitRunning, Error, MainTransaction, Outcome, Ran, SingleTransaction, Table};
use leaseproof_rules::Status;

use crate::common::{Db, Kind};

/// Commit-running as it can be written on this database.
pub fn commit_running(db: &Db, table: Table) -> CommitRunning {
    let main = match db.kind {
        Kind::Sqlite => MainTransaction::EndsBeforeTheWork,
        Kind::Postgres | Kind::MariaDb => MainTransaction::SpansTheRun,
    };
    CommitRunning::new(table).main(main)
}

pub async fn both_run_tasks_to_their_ends(db: &Db) {
    let (s1, s2) = (commit_running(db, db.table(2)), SingleTransaction::new(db.table(2)));
    for outcome in [Outcome::Success, Outcome::Fail] {
        let ids = db.tasks(2).await;
        let handler = |task: leaseproof_older_designs::Task| async move {
            assert_eq!((&*task.kind, &*task.payload), ("test", &b"{}"[..]));
            outcome
        };
        assert_eq!(s1.run_one(handler).await.unwrap(), Ran::Ended(ids[0], outcome));
        assert_eq!(s2.run_one(handler).await.unwrap(), Ran::Ended(ids[1], outcome));
        for id in ids {
            assert_eq!(db.status(id).await, outcome.status());
        }
    }
    let never = |_| async { unreachable!("there is nothing to run") };
    assert_eq!(s1.run_one(never).await.unwrap(), Ran::Nothing);
    assert_eq!(s2.run_one(never).await.unwrap(), Ran::Nothing);
}

pub async fn a_claim_of_commit_running_is_seen_by_everybody(db: &Db) {
    let id = db.tasks(1).await[0];
    let design = commit_running(db, db.table(2));
    let claim = design.claim().await.unwrap().unwrap();
    assert_eq!(db.status(id).await, Status::Running);
    assert!(commit_running(db, db.table(2)).claim_task(id).await.unwrap().is_none());
    assert!(claim.report(Outcome::Success).await.unwrap());
    assert_eq!(db.status(id).await, Status::Success);
}

pub async fn a_claim_of_a_single_transaction_is_seen_by_nobody(db: &Db) {
    let id = db.tasks(1).await[0];
    let claim = SingleTransaction::new(db.table(1)).claim().await.unwrap().unwrap();
    assert_eq!(db.status(id).await, Status::Pending, "RUNNING is not committed");
    let other = SingleTransaction::new(db.table(1));
    assert!(matches!(other.claim_task(id).await, Err(Error::Locked { .. })), "the lock is the only sign");
    assert!(other.claim().await.unwrap().is_none());
    assert!(claim.report(Outcome::Success).await.unwrap());
    assert_eq!(db.status(id).await, Status::Success);
    assert!(other.claim_task(id).await.unwrap().is_none());
}

/// The compare-and-set, and the lock, do what they are for.
pub async fn of_many_executors_each_task_goes_to_one(db: &Db) {
    let ids: BTreeSet<i64> = db.tasks(12).await.into_iter().collect();
    let mut running = tokio::task::JoinSet::new();
    for number in 0..4 {
        let design = SingleTransaction::new(db.table(1));
        let other = commit_running(db, db.table(2));
        running.spawn(async move {
            let mut mine: Vec<i64> = Vec::new();
            // SQLite has one writer: who meets it tries again.
            for _ in 0..200 {
                let claim: Result<Option<Claim>, Error> =
                    if number % 2 == 0 { design.claim().await } else { other.claim().await };
                match claim {
                    Ok(Some(claim)) => {
                        let id = claim.task().id;
                        if matches!(claim.report(Outcome::Success).await, Ok(true)) {
                            mine.push(id);
                        }
                    }
                    Ok(None) | Err(Error::Locked { .. }) => tokio::task::yield_now().await,
                    Err(error) => panic!("{error}"),
                }
            }
            mine
        });
    }
    let all: Vec<i64> = running.join_all().await.into_iter().flatten().collect();
    assert_eq!(all.len(), ids.len(), "{all:?}");
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), ids);
}

pub async fn a_dropped_claim_is_what_a_crash_leaves(db: &Db) {
    let [lost, kept] = db.tasks(2).await[..] else { unreachable!() };
    let (s1, s2) = (commit_running(db, db.table(2)), SingleTransaction::new(db.table(1)));
    drop(s1.claim_task(lost).await.unwrap().unwrap());
    drop(s2.claim_task(kept).await.unwrap().unwrap());
    // The one connection of the pool is rolled back before it is given out again.
    let again = s2.claim().await.unwrap().unwrap();
    assert_eq!(again.task().id, kept);
    drop(again);
    assert_eq!(db.status(lost).await, Status::Running);
    assert!(s1.claim_task(lost).await.unwrap().is_none());
}

/// Without an epoch a report can only ask for the status.
pub async fn a_report_on_a_row_that_was_reset_changes_nothing(db: &Db) {
    let id = db.tasks(1).await[0];
    // Not the spanning transaction: on MariaDB it would not see the reset that came after its first read.
    let design = CommitRunning::new(db.table(2)).main(MainTransaction::EndsBeforeTheWork);
    let claim = design.claim().await.unwrap().unwrap();
    db.session().await.execute(&format!("UPDATE older_tasks SET status = 'PENDING' WHERE id = {id}")).await;
    assert!(!claim.report(Outcome::Success).await.unwrap());
    assert_eq!(db.status(id).await, Status::Pending);
}
