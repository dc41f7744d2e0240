//! Goal: the two pairs of runs on which docs/theory.md rests: what somebody sees is equal, what is true is not.

use leaseproof_model::explorer::ExplainedLease;
use leaseproof_model::state::{Run, State};
use leaseproof_model::sweeper;
use leaseproof_model::world::World;
use leaseproof_rules::{Instruments, OnUnknown, Status};
use stateright::Model;

/// Takes these steps, by their words, one after the other.
fn walk(model: &ExplainedLease, steps: &[&str]) -> State {
    let mut state = model.init_states()[0];
    for words in steps {
        let mut offered = Vec::new();
        model.actions(&state, &mut offered);
        let next = offered.iter().find(|spoken| spoken.words == *words);
        let next = next.unwrap_or_else(|| panic!("{words:?} is not among {offered:?}"));
        state = model.next_state(&state, next.clone()).unwrap();
    }
    state.unpack()
}

/// U1. There is no clock here: the lease has ended however long it was, so this holds for every length.
#[test]
fn dead_and_slow_are_one_row_with_opposite_right_answers() {
    let model = ExplainedLease::new(World::lease(1, 2).unwrap());
    let begin = ["w1: reads t1 as a candidate", "w1: claim t1 epoch 0", "w1: work done, t1 epoch 1"];
    let slow = [&begin[..], &["database: lease of t1 ends"]].concat();
    let dead = [&begin[..], &["w1: crashes, t1 epoch 1", "database: lease of t1 ends"]].concat();

    let (of_dead, of_slow) = (walk(&model, &dead), walk(&model, &slow));
    assert_eq!(of_dead.tasks, of_slow.tasks);
    let seen = sweeper::read(&of_dead, 0);
    assert!(seen.is_some() && seen == sweeper::read(&of_slow, 0));

    // Left alone, the slow one's report is accepted; of the dead one nobody is left to report.
    let left_alone = walk(&model, &[&slow[..], &["w1: complete t1 epoch 1"]].concat());
    assert_eq!(left_alone.tasks[0].status, Status::Success);
    assert!(of_dead.runs.iter().all(|run| *run == Run::IDLE));
}

#[test]
fn a_lost_request_and_a_lost_reply_leave_the_caller_with_the_same() {
    let world = World::lease(1, 2).unwrap().effect(Instruments::default(), OnUnknown::Escalate);
    let model = ExplainedLease::new(world);
    let begin = [
        "w1: reads t1 as a candidate",
        "w1: claim t1 epoch 0",
        "w1: comes to its call, t1 epoch 1",
        "w1: intent t1 epoch 1",
        "w1: calls the third party, t1 epoch 1",
    ];
    let end = "w1: no reply in time, t1 epoch 1";
    let request = walk(&model, &[&begin[..], &["network: call of t1 with token 1 is lost", end]].concat());
    let arrives = "third party: call of t1 with token 1 arrives, reply lost";
    let reply = walk(&model, &[&begin[..], &[arrives, end]].concat());

    assert_eq!((request.tasks[0].ledger[0], reply.tasks[0].ledger[0]), (0, 1));
    assert_eq!(request.runs, reply.runs);
    assert_eq!(request.tasks[0].row(), reply.tasks[0].row());
    assert_eq!(request.tasks[0].journal, reply.tasks[0].journal);
}
