//! Each statement of the store against the rules, in every situation that a row can be in.
//!
//! A situation is put into the database by SQL, the write is made, and its answer and the row afterwards are compared
//! with what [`judge`] says. A write that is refused must leave every column as it was.

use std::collections::{BTreeMap, BTreeSet};

use leaseproof_queue::Store;
use leaseproof_queue::rules::{
    EffectRule, Entry, Epoch, Guard, Guards, Judgement, Reason, Row, Signal, Status, TRANSITIONS, Verb, Write, judge,
};
use leaseproof_queue::store::Learnt;

use crate::common::{Db, JoinSet, Kind, Snapshot, by};

/// The epoch of every row.
const EPOCH: Epoch = 7;

/// The epochs that writers present: two behind, one behind, equal, ahead, the largest that a database can hold, and one
/// that no database can.
const PRESENTED: [Epoch; 7] = [EPOCH - 2, EPOCH - 1, EPOCH, EPOCH + 1, EPOCH + 2, i64::MAX as Epoch, Epoch::MAX];

/// How many entries the record of every row has.
const RECORD_NO: i64 = 3;

/// A row, and the write that is presented to it.
#[derive(Clone, Copy, Debug)]
struct Situation {
    id: i64,
    row: Row,
    write: Write,
}

/// What the store said, and what became of the row.
struct Observed {
    situation: Situation,
    answer: Answer,
    before: Snapshot,
    after: Snapshot,
}

/// What the store said.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Answer {
    /// A method for one task.
    Judged(Judgement),
    /// A method for many tasks: whether this one was among those it took.
    Took(bool),
    /// An error, which no situation is a reason for.
    Failed(String),
}

impl Answer {
    fn applied(&self) -> bool {
        matches!(self, Answer::Took(true) | Answer::Judged(Judgement::Applied { .. } | Judgement::Adopted))
    }
}

/// Every situation of a row of this epoch.
fn every_row() -> Vec<Row> {
    let mut rows = Vec::new();
    for status in Status::ALL {
        for bits in 0..16 {
            let [due, lease_live, owner_superseded, overrun] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
            rows.push(Row { status, epoch: EPOCH, due, lease_live, owner_superseded, overrun });
        }
    }
    rows
}

/// The statuses that a caller can ask a verb's method for.
fn wanted(verb: Verb) -> &'static [Status] {
    match verb {
        Verb::Claim | Verb::Heartbeat | Verb::Intent | Verb::Outcome => &[Status::Running],
        Verb::Complete | Verb::MarkSucceeded => &[Status::Success],
        Verb::Retry | Verb::Requeue => &[Status::Pending, Status::RetryWait],
        Verb::Release | Verb::Rerun => &[Status::Pending],
        // The caller names it; what the table does not allow must be refused.
        Verb::GiveUp => &Status::ALL,
        Verb::Escalate => &[Status::WaitManual],
        Verb::MarkFailed => &[Status::Fail],
    }
}

/// Puts every situation of these verbs into the database.
async fn every_situation(db: &Db, verbs: &[Verb]) -> Vec<Situation> {
    let mut situations = Vec::new();
    for &verb in verbs {
        for &to in wanted(verb) {
            for row in every_row() {
                // A claim presents what it has itself read.
                let presented: &[Epoch] = if verb == Verb::Claim { &[EPOCH] } else { &PRESENTED };
                situations.extend(presented.iter().map(|&epoch| {
                    let write = Write { verb, to, epoch };
                    Situation { id: 0, row, write }
                }));
            }
        }
    }
    let rows: Vec<Row> = situations.iter().map(|situation| situation.row).collect();
    for (situation, id) in situations.iter_mut().zip(db.put_all(&rows).await) {
        situation.id = id;
    }
    situations
}

/// Makes one write to one task.
async fn present(store: &Store, situation: &Situation) -> Answer {
    let Situation { id, write: Write { verb, to, epoch }, .. } = *situation;
    let by = by(id, epoch);
    let rule = EffectRule::default();
    let delay_ms = if to == Status::RetryWait { 60_000 } else { 0 };
    let done = match verb {
        Verb::Intent => store.intent(by, "effect", rule).await,
        Verb::Outcome => store.outcome(by, Learnt { key: "effect", state: Entry::Done, rule }, Some("1")).await,
        Verb::Complete => store.complete(by, "1").await,
        Verb::Retry => store.retry(by, delay_ms, None).await,
        Verb::Release => store.release(by).await,
        Verb::GiveUp => store.give_up(by, to, Reason::NotRetryable).await,
        Verb::Requeue => store.requeue(by, RECORD_NO, delay_ms, None).await,
        Verb::Escalate => store.escalate(by, RECORD_NO, Reason::Overrun).await,
        Verb::Rerun => store.rerun(by, RECORD_NO, None).await,
        Verb::MarkFailed => store.mark_failed(by).await,
        Verb::MarkSucceeded => store.mark_succeeded(by).await,
        Verb::Claim | Verb::Heartbeat => panic!("{verb:?} takes many tasks at once"),
    };
    match done {
        Ok(judgement) => Answer::Judged(judgement),
        Err(error) => Answer::Failed(error.to_string()),
    }
}

/// Makes every write and looks at what it did.
async fn observe(db: &Db, store: &Store, verbs: &[Verb]) -> Vec<Observed> {
    let situations = every_situation(db, verbs).await;
    let before = db.snapshot().await;
    let of = |verb: Verb| situations.iter().copied().filter(move |situation| situation.write.verb == verb);

    let leases: Vec<(i64, Epoch)> =
        of(Verb::Heartbeat).map(|situation| (situation.id, situation.write.epoch)).collect();
    let renewed = store.heartbeat(&leases, store.deadline()).await.unwrap();
    let renewed: BTreeSet<i64> = renewed.into_iter().map(|(id, _)| id).collect();

    // SQLite's writers are serial; a PostgreSQL is kept busy.
    let lanes = if db.kind() == Kind::Sqlite { 1 } else { 4 };
    let single: Vec<Situation> = situations
        .iter()
        .copied()
        .filter(|situation| !matches!(situation.write.verb, Verb::Claim | Verb::Heartbeat))
        .collect();
    let mut running = JoinSet::new();
    for lane in single.chunks(single.len().div_ceil(lanes).max(1)) {
        let (store, lane) = (store.clone(), lane.to_vec());
        running.spawn(async move {
            let mut answers = Vec::new();
            for situation in &lane {
                answers.push((situation.id, present(&store, situation).await));
            }
            answers
        });
    }
    let answers: BTreeMap<i64, Answer> = running.join_all().await.into_iter().flatten().collect();
    let mut after = db.snapshot().await;

    // Last, since a claim takes whatever is due, the rows of the other verbs too.
    let mut claimed = BTreeSet::new();
    if verbs.contains(&Verb::Claim) {
        let due = store.claim("claimer", 1_000_000).await.unwrap();
        claimed.extend(due.into_iter().map(|task| task.id));
        let claims: BTreeSet<i64> = of(Verb::Claim).map(|situation| situation.id).collect();
        after.extend(db.snapshot().await.into_iter().filter(|(id, _)| claims.contains(id)));
    }

    let look = |situation: Situation| {
        let id = situation.id;
        let answer = match situation.write.verb {
            Verb::Claim => Answer::Took(claimed.contains(&id)),
            Verb::Heartbeat => Answer::Took(renewed.contains(&id)),
            _ => answers[&id].clone(),
        };
        Observed { situation, answer, before: before[&id].clone(), after: after[&id].clone() }
    };
    situations.iter().copied().map(look).collect()
}

/// What does not agree with the rules under these guards, in words.
fn disagreement(observed: &Observed, guards: Guards) -> Option<String> {
    let Observed { situation, answer, before, after } = observed;
    let Situation { row, write, .. } = *situation;
    let ruled = judge(row, write, guards);
    let report = |what: &str| {
        let after = (after.status, after.epoch, after.record_no, after.events, after.effects);
        Some(format!("{what}: {row:?} {write:?}: rules say {ruled:?}, store {answer:?}, row {after:?}"))
    };
    match answer {
        Answer::Judged(said) if *said != ruled => return report("answer"),
        Answer::Failed(_) => return report("error"),
        Answer::Judged(_) | Answer::Took(_) => {}
    }
    let (applies, status, epoch) = match ruled {
        Judgement::Applied { status, epoch } => (true, status, epoch),
        Judgement::Adopted => (true, Status::Success, row.epoch),
        Judgement::Already | Judgement::Refused(_) => (false, row.status, row.epoch),
    };
    if answer.applied() != applies {
        return report("applied or not");
    }
    if !applies {
        return if before == after { None } else { report("a refused write left a trace") };
    }
    if (after.status, after.epoch) != (status, epoch) {
        return report("row");
    }
    let counts = before.counts.after(&row, write.verb);
    if after.counts != counts {
        return report(&format!("{:?} instead of {counts:?}", after.counts));
    }
    // A heartbeat changes the lease and leaves no entry; everything else leaves exactly one.
    let entries = i64::from(write.verb != Verb::Heartbeat);
    if after.record_no - before.record_no != entries || after.events - before.events != entries {
        return report("record");
    }
    let journalled = i64::from(matches!(write.verb, Verb::Intent | Verb::Outcome));
    if after.effects - before.effects != journalled {
        return report("journal");
    }
    None
}

fn disagreements(observed: &[Observed], guards: Guards) -> Vec<String> {
    observed.iter().filter_map(|one| disagreement(one, guards)).collect()
}

fn first_of(disagreements: &[String]) -> String {
    disagreements.iter().take(10).cloned().collect::<Vec<_>>().join("\n")
}

/// Goal: no `WHERE` clause says anything else than [`judge`]. Method: all of them, in all situations.
pub async fn every_statement_does_what_the_rules_say(db: &Db) {
    for edge in TRANSITIONS {
        assert!(wanted(edge.verb).contains(&edge.to), "no write asks for {edge:?}");
    }
    let observed = observe(db, &db.store().await, &Verb::ALL).await;
    let found = disagreements(&observed, Guards::ALL);
    let all = observed.len();
    assert!(found.is_empty(), "{} of {all} situations disagree:\n{}", found.len(), first_of(&found));

    // Nothing holds vacuously: each edge was taken, each answer given.
    for edge in TRANSITIONS {
        let takes = |one: &&Observed| {
            let Situation { row, write, .. } = one.situation;
            one.answer.applied() && (write.verb, row.status, write.to) == (edge.verb, edge.from, edge.to)
        };
        assert!(observed.iter().any(|one| takes(&one)), "{edge:?} was never taken");
    }
    let given = |answer: Judgement| observed.iter().any(|one| one.answer == Answer::Judged(answer));
    assert!(given(Judgement::Already) && given(Judgement::Adopted));
    assert_eq!(all, 96 + 19 * 96 * PRESENTED.len(), "situations compared");
}

/// The guards of single statements that a build for ablations can switch off, and the statements.
const GUARDED: [(Guard, &[Verb]); 8] = [
    (Guard::FenceComplete, &[Verb::Complete]),
    (Guard::FenceHeartbeat, &[Verb::Heartbeat]),
    (Guard::FenceFailure, &[Verb::Retry, Verb::Release, Verb::GiveUp]),
    (Guard::FenceJournal, &[Verb::Intent, Verb::Outcome]),
    (Guard::ManualIsClosed, &[Verb::Claim]),
    (Guard::CasAtSweep, &[Verb::Requeue, Verb::Escalate]),
    (Guard::BumpOnEscalate, &[Verb::Escalate]),
    (Guard::BumpOnDecision, &[Verb::Rerun, Verb::MarkFailed, Verb::MarkSucceeded]),
];

/// Goal: the comparison can fail. Method: compare the same rows with rules that lack one guard; each guard that the
/// rules of writing know must be missed, and by the statements that it guards only.
pub async fn the_comparison_notices_a_missing_guard(db: &Db) {
    let of_judge = GUARDED.into_iter().chain([
        (Guard::CasAtClaim, &[Verb::Claim] as &[Verb]),
        (Guard::CasAtDecision, &[Verb::Rerun, Verb::MarkFailed, Verb::MarkSucceeded]),
    ]);
    let observed = observe(db, &db.store().await, &Verb::ALL).await;
    assert_eq!(disagreements(&observed, Guards::ALL), Vec::<String>::new());
    for (guard, verbs) in of_judge {
        let guards = Guards::without(guard);
        let blamed: BTreeSet<Verb> = observed
            .iter()
            .filter(|one| disagreement(one, guards).is_some())
            .map(|one| one.situation.write.verb)
            .collect();
        assert_eq!(blamed, verbs.iter().copied().collect(), "without {guard}");
    }
}

/// Goal: the guards that a build for ablations can switch off are the ones that the rules mean. Method: the same
/// comparison on a store without one guard; it must do what the rules without it say, and not what they say with it.
#[cfg(feature = "ablation")]
pub async fn a_store_without_a_guard_does_what_the_rules_without_it_say(db: &Db) {
    for (guard, verbs) in GUARDED {
        let guards = Guards::without(guard);
        let queue = db.queue().await.with_guards(guards);
        let observed = observe(db, queue.store(), verbs).await;
        assert_eq!(disagreements(&observed, guards), Vec::<String>::new(), "without {guard}");
        assert!(!disagreements(&observed, Guards::ALL).is_empty(), "without {guard} as with it");
    }
}

/// Goal: the sweep misses no task that may be taken back, and shows none that may not.
pub async fn the_sweep_reads_exactly_what_a_sweeper_may_write(db: &Db) {
    let rows = every_row();
    let ids = db.put_all(&rows).await;
    let store = db.store().await;
    let read: BTreeMap<i64, Signal> =
        store.lost_tasks(0, 1_000).await.unwrap().into_iter().map(|task| (task.id, task.signal)).collect();
    for (id, row) in ids.into_iter().zip(rows) {
        let may = |verb, to| {
            let judged = judge(row, Write { verb, to, epoch: EPOCH }, Guards::ALL);
            matches!(judged, Judgement::Applied { .. })
        };
        let expected = (may(Verb::Requeue, Status::Pending) || may(Verb::Escalate, Status::WaitManual)).then_some(
            match (row.lease_live, row.owner_superseded) {
                (false, _) => Signal::LeaseExpired,
                (true, true) => Signal::OwnerSuperseded,
                (true, false) => Signal::Beating,
            },
        );
        assert_eq!(read.get(&id).copied(), expected, "{row:?}");
    }
}

/// Goal: "ended", "due" and "over" mean the same in every statement at the millisecond itself. Method: stop the clock,
/// and compare each answer with what the rules say of the row as the store itself reads it.
pub async fn every_statement_agrees_on_the_very_instant(db: &Db) {
    const NOW: i64 = 1_000_000;
    db.stop_clock(NOW).await;
    let store = db.store().await;
    let mut compared = 0;
    for (verb, status) in [
        (Verb::Claim, Status::Pending),
        (Verb::Heartbeat, Status::Running),
        (Verb::Intent, Status::Running),
        (Verb::Requeue, Status::Running),
        (Verb::Escalate, Status::Running),
    ] {
        for beside in [-1, 0, 1] {
            for overrun_beside in [-1, 0, 1] {
                let row =
                    Row { status, epoch: EPOCH, due: true, lease_live: true, owner_superseded: false, overrun: false };
                let id = db.put(row).await;
                db.execute(&format!(
                    "UPDATE tasks SET due_at_ms = {NOW} + {beside}, lease_until_ms = {NOW} + {beside}, \
                     overrun_at_ms = {NOW} + {overrun_beside} WHERE id = {id}"
                ))
                .await;
                let seen = store.look(id).await.unwrap();
                let expected = Row { due: beside <= 0, lease_live: beside > 0, overrun: overrun_beside < 0, ..row };
                assert_eq!(seen, expected, "{beside} {overrun_beside}");

                let swept = store.lost_tasks(id - 1, 1).await.unwrap().iter().any(|task| task.id == id);
                let lost = !seen.lease_live || seen.overrun;
                assert_eq!(swept, status == Status::Running && lost, "{seen:?}");

                let write = Write { verb, to: wanted(verb)[0], epoch: EPOCH };
                let ruled = judge(seen, write, Guards::ALL);
                let applies = matches!(ruled, Judgement::Applied { .. });
                match verb {
                    Verb::Claim => {
                        let claimed = store.claim("claimer", 10).await.unwrap();
                        assert_eq!(claimed.iter().any(|task| task.id == id), applies, "{seen:?}");
                    }
                    Verb::Heartbeat => {
                        let renewed = store.heartbeat(&[(id, EPOCH)], store.deadline()).await.unwrap();
                        assert_eq!(renewed.contains(&(id, EPOCH)), applies, "{seen:?}");
                    }
                    _ => {
                        let answer = present(&store, &Situation { id, row: seen, write }).await;
                        assert_eq!(answer, Answer::Judged(ruled), "{seen:?}");
                    }
                }
                db.execute(&format!("DELETE FROM tasks WHERE id = {id}")).await;
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 45);
}
