//! A real process is killed with a task in hand.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use leaseproof_older_designs::{Ran, SingleTransaction, Table};
use leaseproof_rules::Status;

use crate::common::{Db, Kind};
use crate::lives::commit_running;

const URL: &str = "LEASEPROOF_OLDER_CHILD_URL";
const DESIGN: &str = "LEASEPROOF_OLDER_CHILD_DESIGN";
const CLAIMED: &str = "the child has claimed";

/// Claims with the design and from the database that the environment names, says so, and works for ever.
pub fn be_the_process() {
    let (Ok(url), Ok(design)) = (std::env::var(URL), std::env::var(DESIGN)) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let table = Table::open(&url, 2, Duration::from_secs(30)).unwrap();
        let claim = match &*design {
            "S1" if url.starts_with("sqlite") => {
                let main = leaseproof_older_designs::MainTransaction::EndsBeforeTheWork;
                leaseproof_older_designs::CommitRunning::new(table).main(main).claim().await
            }
            "S1" => leaseproof_older_designs::CommitRunning::new(table).claim().await,
            _ => SingleTransaction::new(table).claim().await,
        };
        let _claim = claim.unwrap().unwrap();
        println!("\n{CLAIMED}");
        std::future::pending::<()>().await;
    });
}

/// Has a process claim the task, and kills it.
fn claim_and_kill(db: &Db, design: &str) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_process_that_is_killed", "--nocapture"])
        .envs([(URL, &*db.url), (DESIGN, design)])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let claimed = lines.any(|line| line.is_ok_and(|line| line == CLAIMED));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(claimed, "the child ended without a claim");
}

pub async fn a_killed_process_leaves_commit_running_as_it_is_for_ever(db: &Db) {
    let id = db.tasks(1).await[0];
    claim_and_kill(db, "S1");
    let design = commit_running(db, db.table(2));
    let never = |_| async { unreachable!("nobody gets it") };
    assert_eq!(design.run_one(never).await.unwrap(), Ran::Nothing);
    assert_eq!(db.status(id).await, Status::Running);
}

/// The kernel of the killed process closes its connections, and the server, told so, rolls back.
pub async fn a_killed_process_gives_a_single_transaction_back(db: &Db) {
    let id = db.tasks(1).await[0];
    claim_and_kill(db, "S2");
    assert_eq!(db.status(id).await, Status::Pending);
    let design = SingleTransaction::new(db.table(1));
    let began = Instant::now();
    let claim = loop {
        match design.claim().await.unwrap() {
            Some(claim) => break claim,
            None => assert!(began.elapsed() < Duration::from_secs(30), "the lock stays"),
        }
        assert_ne!(db.kind, Kind::Sqlite, "the system has released the file's lock with the process");
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert_eq!(claim.task().id, id);
}
