//! The effect journal (M3): fenced like everything else, and written by the statement that decides.

use leaseproof_queue::rules::{
    EffectRule, Entry, Instruments, Judgement, OnPartial, OnUnknown, Reason, Refusal, Row, Status, entry_after_intent,
};
use leaseproof_queue::store::{Learnt, UnknownInJournal};

use crate::common::{Db, by, claim_one, enqueue, row};

const ASKABLE: EffectRule = EffectRule {
    instruments: Instruments { status_query: true, execution_token: true, ..Instruments::NONE },
    on_unknown: OnUnknown::Skip,
    on_partial: OnPartial::Resume,
};

const RUNNING_AT_1: Judgement = Judgement::Applied { status: Status::Running, epoch: 1 };

fn done(key: &str) -> Learnt<'_> {
    Learnt { key, state: Entry::Done, rule: ASKABLE }
}

/// What the network has kept and delivers after its sender has sent it again and gone on (rules: `entry_after_intent`).
pub async fn a_late_copy_of_an_intent_undoes_nothing(db: &Db) {
    let store = db.store().await;
    let id = enqueue(&store).await;
    claim_one(&store, "worker").await;
    for before in [None, Some(Entry::Intent), Some(Entry::NotDone), Some(Entry::Done)] {
        let key = before.map_or("none", Entry::name);
        if let Some(state) = before {
            assert_eq!(store.intent(by(id, 1), key, ASKABLE).await.unwrap(), RUNNING_AT_1);
            if state != Entry::Intent {
                let learnt = Learnt { key, state, rule: ASKABLE };
                store.outcome(by(id, 1), learnt, Some("{\"no\": 7}")).await.unwrap();
            }
        }
        assert_eq!(store.intent(by(id, 1), key, ASKABLE).await.unwrap(), RUNNING_AT_1);
        let journal = store.journal(id).await.unwrap();
        let entry = journal.iter().find(|entry| entry.key == key).unwrap();
        assert_eq!(entry.state, entry_after_intent(before), "{key}");
        let outcome = before.filter(|state| *state == Entry::Done).map(|_| "{\"no\": 7}");
        assert_eq!(entry.outcome.as_deref(), outcome, "{key}");
    }
}

pub async fn intent_and_outcome_read_back_with_their_rule(db: &Db) {
    let store = db.store().await;
    let id = enqueue(&store).await;
    claim_one(&store, "worker").await;
    assert_eq!(store.journal(id).await.unwrap(), []);
    assert_eq!(store.intent(by(id, 1), "mail", EffectRule::default()).await.unwrap(), RUNNING_AT_1);
    assert_eq!(store.intent(by(id, 1), "charge", ASKABLE).await.unwrap(), RUNNING_AT_1);
    assert_eq!(store.outcome(by(id, 1), done("charge"), Some("{\"no\": 7}")).await.unwrap(), RUNNING_AT_1);

    let journal = store.journal(id).await.unwrap();
    let read: Vec<_> =
        journal.iter().map(|e| (e.key.as_str(), e.epoch, e.state, e.rule, e.outcome.as_deref())).collect();
    assert_eq!(
        read,
        [
            ("charge", 1, Entry::Done, ASKABLE, Some("{\"no\": 7}")),
            ("mail", 1, Entry::Intent, EffectRule::default(), None),
        ]
    );
    assert!(journal[0].at_ms >= journal[1].at_ms);

    let keys: Vec<_> =
        store.record(id).await.unwrap().into_iter().map(|event| (event.verb, event.effect_key)).collect();
    let said = |verb: &str, key: Option<&str>| (verb.to_string(), key.map(str::to_string));
    assert_eq!(
        keys,
        [
            said("enqueue", None),
            said("claim", None),
            said("intent", Some("mail")),
            said("intent", Some("charge")),
            said("outcome", Some("charge")),
        ]
    );
    // A later run's intent takes the place of the earlier one's.
    store.release(by(id, 1)).await.unwrap();
    claim_one(&store, "worker").await;
    store.intent(by(id, 3), "mail", ASKABLE).await.unwrap();
    let mail = &store.journal(id).await.unwrap()[1];
    assert_eq!((mail.epoch, mail.state, mail.rule), (3, Entry::Intent, ASKABLE));
}

pub async fn every_declaration_survives_the_journal(db: &Db) {
    let store = db.store().await;
    let id = db.put(row(Status::Running, 1)).await;
    let mut declared = Vec::new();
    for bits in 0..8 {
        for on_unknown in [OnUnknown::Escalate, OnUnknown::Repeat, OnUnknown::Skip] {
            let [idempotency_key, status_query, execution_token] = [1, 2, 4].map(|bit| bits & bit != 0);
            let instruments = Instruments { idempotency_key, status_query, execution_token, ..Instruments::NONE };
            let rule = EffectRule { instruments, on_unknown, ..EffectRule::default() };
            let key = format!("effect-{:02}", declared.len());
            assert_eq!(store.intent(by(id, 1), &key, rule).await.unwrap(), RUNNING_AT_1);
            declared.push(UnknownInJournal { key, rule });
        }
    }
    let journal: Vec<_> = store.journal(id).await.unwrap().into_iter().map(|entry| entry.rule).collect();
    assert_eq!(journal, declared.iter().map(|effect| effect.rule).collect::<Vec<_>>());
    // And so does the sweeper read them.
    db.end_lease(id).await;
    assert_eq!(store.lost_tasks(0, 10).await.unwrap()[0].unknown, declared);
}

pub async fn a_zombie_writes_no_intent_and_no_outcome(db: &Db) {
    let store = db.store().await;
    let id = enqueue(&store).await;
    claim_one(&store, "zombie").await;
    store.intent(by(id, 1), "charge", ASKABLE).await.unwrap();
    db.end_lease(id).await;
    let seen = store.lost_tasks(0, 10).await.unwrap().pop().unwrap();
    store.requeue(by(id, 1), seen.record_no, 0, None).await.unwrap();
    let stale = Judgement::Refused(Refusal::StaleEpoch);
    let gone = Judgement::Refused(Refusal::WrongStatus);
    for (expected, step) in [(gone, "requeued"), (stale, "claimed anew"), (stale, "journalled anew")] {
        match step {
            "claimed anew" => assert_eq!(claim_one(&store, "new").await.epoch, 3),
            "journalled anew" => {
                store.intent(by(id, 3), "charge", ASKABLE).await.unwrap();
            }
            _ => {}
        }
        let (before, journal) = (db.snapshot().await, store.journal(id).await.unwrap());
        assert_eq!(store.intent(by(id, 1), "charge", ASKABLE).await.unwrap(), expected, "{step}");
        assert_eq!(store.intent(by(id, 1), "another", ASKABLE).await.unwrap(), expected, "{step}");
        assert_eq!(store.outcome(by(id, 1), done("charge"), Some("1")).await.unwrap(), expected, "{step}");
        assert_eq!(db.snapshot().await, before, "{step}");
        assert_eq!(store.journal(id).await.unwrap(), journal, "{step}");
    }
}

/// What has happened may always be reported by the owner; nothing may be begun.
pub async fn after_the_lease_an_outcome_is_heard_but_no_intent(db: &Db) {
    let store = db.store().await;
    let id = enqueue(&store).await;
    claim_one(&store, "worker").await;
    store.intent(by(id, 1), "charge", ASKABLE).await.unwrap();
    db.end_lease(id).await;
    let refused = Judgement::Refused(Refusal::ConditionFails);
    assert_eq!(store.intent(by(id, 1), "second", ASKABLE).await.unwrap(), refused);
    assert_eq!(store.outcome(by(id, 1), done("charge"), None).await.unwrap(), RUNNING_AT_1);
    let journal = store.journal(id).await.unwrap();
    assert_eq!(journal.len(), 1);
    assert_eq!((journal[0].state, journal[0].outcome.as_deref()), (Entry::Done, None));
}

pub async fn what_was_learnt_is_journalled_by_the_requeue_itself(db: &Db) {
    let store = db.store().await;
    let id = enqueue(&store).await;
    claim_one(&store, "lost").await;
    store.intent(by(id, 1), "charge", ASKABLE).await.unwrap();
    let read = store.task(id).await.unwrap().record_no;

    // Refused, since the lease is live: nothing of it reaches the journal.
    let refused = store.requeue(by(id, 1), read, 0, Some(done("charge"))).await.unwrap();
    assert_eq!(refused, Judgement::Refused(Refusal::ConditionFails));
    assert_eq!(store.journal(id).await.unwrap()[0].state, Entry::Intent);

    db.end_lease(id).await;
    let applied = store.requeue(by(id, 1), read, 0, Some(done("charge"))).await.unwrap();
    assert_eq!(applied, Judgement::Applied { status: Status::Pending, epoch: 2 });
    let entry = &store.journal(id).await.unwrap()[0];
    assert_eq!((entry.state, entry.epoch, entry.rule), (Entry::Done, 1, ASKABLE));
    let last = store.record(id).await.unwrap().pop().unwrap();
    assert_eq!((last.verb.as_str(), last.effect_key.as_deref()), ("requeue", Some("charge")));
}

pub async fn what_was_learnt_is_journalled_by_the_retry_itself(db: &Db) {
    let store = db.store().await;
    let id = enqueue(&store).await;
    claim_one(&store, "worker").await;
    store.intent(by(id, 1), "charge", ASKABLE).await.unwrap();
    let learnt = Learnt { state: Entry::NotDone, ..done("charge") };
    assert_eq!(store.retry(by(id, 9), 0, Some(learnt)).await.unwrap(), Judgement::Refused(Refusal::StaleEpoch));
    assert_eq!(store.journal(id).await.unwrap()[0].state, Entry::Intent);
    store.retry(by(id, 1), 0, Some(learnt)).await.unwrap();
    let entry = &store.journal(id).await.unwrap()[0];
    assert_eq!((entry.state, entry.epoch), (Entry::NotDone, 1));
}

pub async fn a_sweeper_learns_only_of_a_lost_task_as_it_was_read(db: &Db) {
    let store = db.store().await;
    let id = enqueue(&store).await;
    claim_one(&store, "worker").await;
    store.intent(by(id, 1), "charge", ASKABLE).await.unwrap();
    let read = store.task(id).await.unwrap().record_no;
    assert!(!store.learn(by(id, 1), read, done("charge")).await.unwrap(), "its lease is live");
    db.end_lease(id).await;
    assert!(!store.learn(by(id, 0), read, done("charge")).await.unwrap(), "read before the claim");
    assert!(!store.learn(by(id, 1), read - 1, done("charge")).await.unwrap(), "read before the intent");
    assert_eq!(store.journal(id).await.unwrap()[0].state, Entry::Intent);

    assert!(store.learn(by(id, 1), read, done("charge")).await.unwrap());
    assert_eq!(store.journal(id).await.unwrap()[0].state, Entry::Done);
    assert_eq!(store.look(id).await.unwrap().status, Status::Running);
    assert!(!store.learn(by(id, 1), read, done("charge")).await.unwrap(), "the reading is used up");
    assert_eq!(store.lost_tasks(0, 10).await.unwrap()[0].unknown, []);
}

pub async fn a_person_settles_only_in_wait_manual_and_as_it_was_read(db: &Db) {
    let store = db.store().await;
    let lost = db.put(Row { lease_live: false, ..row(Status::Running, 1) }).await;
    assert!(!store.settle(by(lost, 1), 3, done("charge")).await.unwrap(), "not in the hands of a person");

    let id = db.put(row(Status::Running, 1)).await;
    store.intent(by(id, 1), "charge", ASKABLE).await.unwrap();
    store.give_up(by(id, 1), Status::WaitManual, Reason::OutcomeUnknown).await.unwrap();
    let read = store.task(id).await.unwrap();
    assert!(!store.settle(by(id, 1), read.record_no, done("charge")).await.unwrap(), "the epoch of the run");
    assert!(!store.settle(by(id, 2), read.record_no - 1, done("charge")).await.unwrap(), "an old reading");
    assert!(store.settle(by(id, 2), read.record_no, done("charge")).await.unwrap());
    let task = store.task(id).await.unwrap();
    assert_eq!((task.status, task.epoch, task.record_no), (Status::WaitManual, 2, read.record_no + 1));
    assert_eq!(store.journal(id).await.unwrap()[0].state, Entry::Done);
    // A decision on the reading from before the settlement is refused.
    let rerun = store.rerun(by(id, 2), read.record_no, None).await.unwrap();
    assert_eq!(rerun, Judgement::Refused(Refusal::ConditionFails));
}
