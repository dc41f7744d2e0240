//! The table of processes: who may own tasks, and who is known to be gone (A2).

use std::sync::Arc;

use leaseproof_queue::Error;
use leaseproof_queue::rules::{Judgement, Signal, Status};
use leaseproof_queue::store::Registration;
use tokio::sync::Barrier;

use crate::common::{Db, JoinSet, by, claim_one, enqueue};

fn start(boot_id: &str, slot: Option<&str>, nonce: &str) -> Registration {
    Registration {
        boot_id: boot_id.into(),
        slot_name: slot.map(str::to_string),
        host: "host-1".into(),
        pid: 4_711,
        nonce: nonce.into(),
    }
}

pub async fn the_same_boot_id_twice_is_refused(db: &Db) {
    let store = db.store().await;
    store.register(&start("boot", None, "one")).await.unwrap();
    let other = Registration { host: "host-2".into(), pid: 1, ..start("boot", Some("slot"), "two") };
    let error = store.register(&other).await.unwrap_err();
    assert!(matches!(&error, Error::DuplicateBootId { boot_id, .. } if boot_id == "boot"), "{error:?}");
    // Who has it, not who wants it.
    let said = error.to_string();
    assert!(said.contains("host-1") && said.contains("4711"), "{said}");
    let kept = store.instance("boot").await.unwrap().unwrap();
    assert_eq!((kept.host.as_str(), kept.slot_name, kept.nonce.as_str()), ("host-1", None, "one"));
}

/// Its first answer may have been lost.
pub async fn a_repeated_registration_is_harmless(db: &Db) {
    let store = db.store().await;
    let process = start("boot", Some("slot"), "one");
    assert_eq!(store.register(&process).await.unwrap(), Vec::<String>::new());
    let before = store.instance("boot").await.unwrap();
    assert_eq!(store.register(&process).await.unwrap(), Vec::<String>::new());
    assert_eq!(store.instance("boot").await.unwrap(), before);
}

pub async fn a_new_start_of_a_slot_supersedes_the_earlier_one(db: &Db) {
    let store = db.store().await;
    store.register(&start("old", Some("slot"), "1")).await.unwrap();
    store.register(&start("beside", Some("another slot"), "2")).await.unwrap();
    store.register(&start("nowhere", None, "3")).await.unwrap();
    let mut tasks = Vec::new();
    for owner in ["old", "beside", "nowhere"] {
        tasks.push(enqueue(&store).await);
        claim_one(&store, owner).await;
    }
    assert_eq!(store.lost_tasks(0, 10).await.unwrap(), []);

    assert_eq!(store.register(&start("new", Some("slot"), "4")).await.unwrap(), ["old"]);
    assert_eq!(store.instance("old").await.unwrap().unwrap().superseded_by.as_deref(), Some("new"));
    for untouched in ["beside", "nowhere", "new"] {
        assert_eq!(store.instance(untouched).await.unwrap().unwrap().superseded_by, None, "{untouched}");
    }
    // Its lease is live and its heart may beat: it is taken back all the same, at once.
    let lost = store.lost_tasks(0, 10).await.unwrap();
    assert_eq!(lost.len(), 1);
    assert_eq!((lost[0].id, lost[0].owner.as_str(), lost[0].signal), (tasks[0], "old", Signal::OwnerSuperseded));
    let done = store.requeue(by(tasks[0], 1), lost[0].record_no, 0, None).await.unwrap();
    assert_eq!(done, Judgement::Applied { status: Status::Pending, epoch: 2 });
    assert!(store.heartbeat(&[(tasks[0], 1)], store.deadline()).await.unwrap().is_empty());

    // The third start supersedes the second only; the first keeps its successor.
    assert_eq!(store.register(&start("newest", Some("slot"), "5")).await.unwrap(), ["new"]);
    assert_eq!(store.instance("old").await.unwrap().unwrap().superseded_by.as_deref(), Some("new"));
}

pub async fn a_superseded_process_is_told_and_claims_nothing(db: &Db) {
    let store = db.store().await;
    let old = start("old", Some("slot"), "1");
    store.register(&old).await.unwrap();
    store.register(&start("new", Some("slot"), "2")).await.unwrap();
    enqueue(&store).await;
    assert_eq!(store.claim("old", 10).await.unwrap(), []);
    let error = store.register(&old).await.unwrap_err();
    assert!(matches!(&error, Error::Superseded { boot_id, by } if (boot_id.as_str(), by.as_str()) == ("old", "new")));
    assert_eq!(claim_one(&store, "new").await.epoch, 1);
}

/// Between the two statements of its registration a later start came in.
pub async fn a_start_that_is_overtaken_while_it_registers_is_told(db: &Db) {
    let store = db.store().await;
    let old = start("old", Some("slot"), "1");
    store.register(&old).await.unwrap();
    // The later one has entered itself, and not yet superseded anybody.
    db.execute("INSERT INTO instances (boot_id, slot_name, host, pid, started_at_ms, nonce) VALUES ('new', 'slot', 'h', 1, 0, '2')")
        .await;
    let error = store.register(&old).await.unwrap_err();
    assert!(matches!(&error, Error::Superseded { boot_id, by } if (boot_id.as_str(), by.as_str()) == ("old", "new")));
    assert_eq!(store.instance("new").await.unwrap().unwrap().superseded_by, None);
}

/// Two pods of one name may start at once. One of them takes the slot; that both lose it, or both keep it, must not be.
pub async fn of_starts_at_once_in_one_slot_exactly_one_remains(db: &Db) {
    const STARTS: usize = 4;
    let stores = [db.store().await, db.store().await];
    for round in 0..20 {
        let slot = format!("slot-{round}");
        let start_line = Arc::new(Barrier::new(STARTS));
        let mut starts = JoinSet::new();
        for n in 0..STARTS {
            let (store, start_line) = (stores[n % 2].clone(), start_line.clone());
            let process = start(&format!("{slot}-{n}"), Some(&slot), "nonce");
            starts.spawn(async move {
                start_line.wait().await;
                loop {
                    match store.register(&process).await {
                        Err(error) if error.is_transient() => {}
                        done => return (process.boot_id, done),
                    }
                }
            });
        }
        let mut let_in = Vec::new();
        for (boot_id, done) in starts.join_all().await {
            match done {
                Ok(_) => let_in.push(boot_id),
                Err(Error::Superseded { .. }) => {}
                Err(error) => panic!("{boot_id}: {error}"),
            }
        }
        let sql = format!(
            "SELECT boot_id, superseded_by FROM instances WHERE slot_name = '{slot}' ORDER BY superseded_by IS NOT NULL, boot_id"
        );
        let rows = db.rows(&sql).await;
        let remain = rows.iter().filter(|row| row[1] == "NULL").count();
        assert_eq!(remain, 1, "round {round}: {rows:?}");
        assert!(let_in.contains(&rows[0][0]), "round {round}: {} remains and was refused", rows[0][0]);
    }
}
