//! The table of transitions and `judge`: what must hold whatever the row and the write.

use leaseproof_rules::{
    Actor, COUNT_MAX, Counts, EPOCH_LIMIT, EPOCH_MAX, Guard, Guards, Judgement, Refusal, Row, Status, TRANSITIONS,
    Verb, Write, judge, repeats_adopted, transition,
};
use proptest::prelude::*;

fn any_row() -> impl Strategy<Value = Row> {
    (0..6usize, 0u64..4, any::<[bool; 4]>()).prop_map(
        |(status, epoch, [due, lease_live, owner_superseded, overrun])| Row {
            status: Status::ALL[status],
            epoch,
            due,
            lease_live,
            owner_superseded,
            overrun,
        },
    )
}

fn any_write() -> impl Strategy<Value = Write> {
    (0..13usize, 0..6usize, 0u64..4).prop_map(|(verb, to, epoch)| Write {
        verb: Verb::ALL[verb],
        to: Status::ALL[to],
        epoch,
    })
}

/// Status and epoch after the write.
fn after(row: Row, judgement: Judgement) -> (Status, u64) {
    match judgement {
        Judgement::Applied { status, epoch } => (status, epoch),
        Judgement::Adopted => (Status::Success, row.epoch),
        Judgement::Already | Judgement::Refused(_) => (row.status, row.epoch),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, max_global_rejects: 1_000_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_write_takes_an_edge_of_the_table_or_none(row in any_row(), write in any_write()) {
        if let Judgement::Applied { status, epoch } = judge(row, write, Guards::ALL) {
            let edge = transition(write.verb, row.status, status);
            prop_assert!(edge.is_some_and(|edge| epoch == row.epoch + u64::from(edge.bumps_epoch)));
            prop_assert_eq!(status, write.to);
        }
    }

    #[test]
    fn a_final_status_is_never_left(row in any_row(), write in any_write()) {
        prop_assume!(row.status.is_final());
        prop_assert_eq!(after(row, judge(row, write, Guards::ALL)), (row.status, row.epoch));
    }

    #[test]
    fn only_a_person_leaves_wait_manual(row in any_row(), write in any_write()) {
        prop_assume!(row.status == Status::WaitManual && write.verb.actor() != Actor::Person);
        prop_assert_eq!(after(row, judge(row, write, Guards::ALL)), (row.status, row.epoch));
    }

    #[test]
    fn a_stale_epoch_applies_nothing(row in any_row(), write in any_write()) {
        prop_assume!(row.epoch != write.epoch);
        let applied = matches!(judge(row, write, Guards::ALL), Judgement::Applied { .. });
        prop_assert!(!applied);
    }

    #[test]
    fn the_epoch_never_falls_and_grows_at_every_change_of_ownership(row in any_row(), write in any_write()) {
        let (status, epoch) = after(row, judge(row, write, Guards::ALL));
        prop_assert!(epoch >= row.epoch);
        // Into RUNNING, or out of it to anything but a result: somebody else owns the task from here on.
        let changes_owner = (status == Status::Running) != (row.status == Status::Running) && !status.is_final();
        prop_assert!(!changes_owner || epoch == row.epoch + 1);
    }

    #[test]
    fn a_result_is_adopted_only_one_epoch_behind_and_before_anybody_claims(row in any_row(), write in any_write()) {
        if judge(row, write, Guards::ALL) == Judgement::Adopted {
            prop_assert!(write.verb == Verb::Complete && row.status.is_claimable() && row.epoch == write.epoch + 1);
        }
    }

    #[test]
    fn an_expired_lease_is_neither_renewed_nor_begun_upon(row in any_row(), write in any_write()) {
        prop_assume!(matches!(write.verb, Verb::Heartbeat | Verb::Intent));
        let row = Row { lease_live: false, ..row };
        let applied = matches!(judge(row, write, Guards::ALL), Judgement::Applied { .. });
        prop_assert!(!applied);
    }

    #[test]
    fn a_live_lease_within_its_time_is_not_taken_away(row in any_row(), write in any_write()) {
        let row =
            Row { status: Status::Running, lease_live: true, owner_superseded: false, overrun: false, ..row };
        prop_assume!(matches!(write.verb.actor(), Actor::Sweeper | Actor::Claimer));
        prop_assert_eq!(after(row, judge(row, write, Guards::ALL)), (row.status, row.epoch));
    }
}

#[test]
fn every_verb_has_an_edge_and_every_edge_a_distinct_place() {
    for verb in Verb::ALL {
        assert!(TRANSITIONS.iter().any(|edge| edge.verb == verb), "{}", verb.name());
    }
    for (i, edge) in TRANSITIONS.iter().enumerate() {
        let first = TRANSITIONS.iter().position(|e| (e.verb, e.from, e.to) == (edge.verb, edge.from, edge.to));
        assert_eq!(first, Some(i), "{edge:?}");
    }
}

#[test]
fn a_repeated_completion_is_told_that_it_was_done() {
    let row = Row {
        status: Status::Success,
        epoch: 3,
        due: false,
        lease_live: false,
        owner_superseded: false,
        overrun: false,
    };
    let write = Write { verb: Verb::Complete, to: Status::Success, epoch: 3 };
    assert_eq!(judge(row, write, Guards::ALL), Judgement::Already);
    let older = Write { epoch: 2, ..write };
    assert_eq!(judge(row, older, Guards::ALL), Judgement::Refused(Refusal::WrongStatus));
}

/// `judge` knows no results; where one decides, this does. An adopted completion whose reply was lost is made again.
#[test]
fn a_repeated_completion_that_was_adopted_is_told_by_its_result() {
    assert!(repeats_adopted(Status::Success, 2, 1, true));
    assert!(!repeats_adopted(Status::Success, 2, 1, false), "another result of the same run");
    assert!(!repeats_adopted(Status::Success, 3, 1, true), "a person's decision, or a later run's result");
    assert!(!repeats_adopted(Status::Success, 1, 1, true), "its own, which `judge` knows");
    assert!(!repeats_adopted(Status::Success, 0, u64::MAX, true));
    for status in Status::ALL.into_iter().filter(|status| *status != Status::Success) {
        assert!(!repeats_adopted(status, 2, 1, true), "{status}");
    }
}

/// A row of an epoch that only another program can have put there is not claimed; what ends a run of it still has room.
#[test]
fn at_the_limit_of_epochs_nothing_is_claimed_and_everything_is_ended() {
    let pending = |epoch| Row {
        status: Status::Pending,
        epoch,
        due: true,
        lease_live: false,
        owner_superseded: false,
        overrun: false,
    };
    let claim = |epoch| judge(pending(epoch), Write { verb: Verb::Claim, to: Status::Running, epoch }, Guards::ALL);
    let last = EPOCH_LIMIT - 1;
    assert_eq!(claim(last), Judgement::Applied { status: Status::Running, epoch: EPOCH_LIMIT });
    for epoch in [EPOCH_LIMIT, EPOCH_MAX] {
        assert_eq!(claim(epoch), Judgement::Refused(Refusal::ConditionFails));
    }
    let running = Row { status: Status::Running, ..pending(EPOCH_LIMIT) };
    let escalate = Write { verb: Verb::Escalate, to: Status::WaitManual, epoch: EPOCH_LIMIT };
    let escalated = Judgement::Applied { status: Status::WaitManual, epoch: EPOCH_LIMIT + 1 };
    assert_eq!(judge(running, escalate, Guards::ALL), escalated);
}

#[test]
fn a_count_stops_growing_and_never_wraps() {
    let row = Row {
        status: Status::Running,
        epoch: 1,
        due: true,
        lease_live: false,
        owner_superseded: false,
        overrun: false,
    };
    for full in [COUNT_MAX, u32::MAX] {
        let counts = Counts { attempts: full, interruptions: full };
        for verb in [Verb::Retry, Verb::GiveUp, Verb::Requeue, Verb::Escalate] {
            assert_eq!(counts.after(&row, verb), counts, "{}", verb.name());
        }
    }
    let counts = Counts { attempts: COUNT_MAX - 1, interruptions: 0 };
    assert_eq!(counts.after(&row, Verb::Retry).attempts, COUNT_MAX);
}

/// Epochs come from callers: the largest is as stale as any other.
#[test]
fn the_largest_epoch_is_refused_like_any_that_does_not_fit() {
    for status in Status::ALL {
        for verb in Verb::ALL {
            for to in Status::ALL {
                let row =
                    Row { status, epoch: 0, due: true, lease_live: true, owner_superseded: false, overrun: false };
                let judged = judge(row, Write { verb, to, epoch: u64::MAX }, Guards::ALL);
                assert!(matches!(judged, Judgement::Refused(_)), "{status} {} {to}: {judged:?}", verb.name());
            }
        }
    }
}

/// For each guard that `judge` knows: a write that it refuses, and that goes through without it.
#[test]
fn without_a_guard_the_write_that_it_refuses_goes_through() {
    let running =
        Row { status: Status::Running, epoch: 3, due: true, lease_live: true, owner_superseded: false, overrun: false };
    let manual = Row { status: Status::WaitManual, ..running };
    let done = Row { status: Status::Success, ..running };
    let lost = Row { lease_live: false, ..running };
    let with = |verb, to, epoch| Write { verb, to, epoch };
    let beside = [
        (Guard::FenceFailure, running, with(Verb::Retry, Status::RetryWait, 1)),
        (Guard::FenceFailure, running, with(Verb::Release, Status::Pending, 1)),
        (Guard::FenceFailure, running, with(Verb::GiveUp, Status::WaitManual, 1)),
        (Guard::FenceJournal, running, with(Verb::Intent, Status::Running, 1)),
        (Guard::FenceJournal, running, with(Verb::Outcome, Status::Running, 1)),
        (Guard::StatusAtWrite, done, with(Verb::Requeue, Status::Pending, 3)),
        (Guard::ManualIsClosed, manual, with(Verb::Claim, Status::Running, 3)),
        (Guard::EndedIsEnded, lost, with(Verb::Heartbeat, Status::Running, 3)),
        (Guard::CasAtSweep, lost, with(Verb::Requeue, Status::Pending, 1)),
        (Guard::CasAtSweep, lost, with(Verb::Escalate, Status::WaitManual, 1)),
        (Guard::CasAtDecision, manual, with(Verb::Rerun, Status::Pending, 1)),
    ];
    for (guard, row, write) in beside {
        assert!(matches!(judge(row, write, Guards::ALL), Judgement::Refused(_)), "{guard}");
        assert!(matches!(judge(row, write, Guards::without(guard)), Judgement::Applied { .. }), "{guard}");
        let stale_claim = with(Verb::Claim, Status::Running, 1);
        assert!(matches!(judge(row, stale_claim, Guards::without(guard)), Judgement::Refused(_)), "{guard}");
    }
    let cases = [
        (Guard::FenceComplete, Write { verb: Verb::Complete, to: Status::Success, epoch: 1 }),
        (Guard::FenceHeartbeat, Write { verb: Verb::Heartbeat, to: Status::Running, epoch: 1 }),
        (Guard::CasAtClaim, Write { verb: Verb::Claim, to: Status::Running, epoch: 2 }),
    ];
    for (guard, write) in cases {
        assert!(matches!(judge(running, write, Guards::ALL), Judgement::Refused(_)), "{guard}");
        assert!(matches!(judge(running, write, Guards::without(guard)), Judgement::Applied { .. }), "{guard}");
    }
}

#[test]
fn without_the_bump_on_escalate_the_epoch_stays() {
    let lost = Row {
        status: Status::Running,
        epoch: 3,
        due: true,
        lease_live: false,
        owner_superseded: false,
        overrun: false,
    };
    let write = Write { verb: Verb::Escalate, to: Status::WaitManual, epoch: 3 };
    for (guards, epoch) in [(Guards::ALL, 4), (Guards::without(Guard::BumpOnEscalate), 3)] {
        assert_eq!(judge(lost, write, guards), Judgement::Applied { status: Status::WaitManual, epoch });
    }
}

#[test]
fn without_the_bump_on_decision_an_older_run_can_be_adopted_after_it() {
    let escalated = Row {
        status: Status::WaitManual,
        epoch: 2,
        due: true,
        lease_live: false,
        owner_superseded: false,
        overrun: false,
    };
    let decision = Write { verb: Verb::Rerun, to: Status::Pending, epoch: 2 };
    let zombie = Write { verb: Verb::Complete, to: Status::Success, epoch: 1 };
    for (guards, adopted) in [(Guards::ALL, false), (Guards::without(Guard::BumpOnDecision), true)] {
        let (status, epoch) = after(escalated, judge(escalated, decision, guards));
        let decided = Row { status, epoch, ..escalated };
        assert_eq!(judge(decided, zombie, guards) == Judgement::Adopted, adopted);
    }
}
