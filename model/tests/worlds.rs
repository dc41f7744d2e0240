//! The design holds in the free worlds, and every guard is missed when it is off.

use std::collections::BTreeSet;

use leaseproof_model::check::{
    CheckRow, Holds, RowKind, Selection, ablation_world, beyond_worlds, check, check_ablation, check_worlds,
    default_worlds, protects,
};
use leaseproof_model::coverage::Kind;
use leaseproof_model::describe::describe;
use leaseproof_model::fail_over::AfterFailOver;
use leaseproof_model::free::LeaseModel;
use leaseproof_model::graph::{
    Counterexample, Fair, Limits, Outcome, Trigger, check_lasso, check_trace, explore, explore_states,
};
use leaseproof_model::packed::Packed;
use leaseproof_model::properties;
use leaseproof_model::world::{Faults, World, WorldError};
use leaseproof_rules::{Guard, Instruments, OnUnknown, Property};
use stateright::{Checker, Model};

fn row(rows: &[CheckRow], property: Property) -> &CheckRow {
    rows.iter().find(|row| row.property == property.name()).unwrap()
}

#[test]
fn every_property_holds_in_every_default_world_and_none_for_want_of_a_case() {
    let rows = check(Selection::default()).unwrap();
    for row in &rows {
        assert_eq!(row.holds, Holds::Holds, "{}: in {:?}: {:#?}", row.property, row.shown_in, row.trace);
        assert!(row.states > 1_000_000, "{} states", row.states);
    }
    let count = |kind| rows.iter().filter(|row| row.kind == kind).count();
    assert_eq!((count(RowKind::Always), count(RowKind::Eventually)), (11, 1));
    // Six statuses, seven reasons, six decisions, the faults, an effect in part, and two handlers at work on one task.
    let faults = Kind::ALL.into_iter().filter(|kind| kind.is_fault()).count();
    assert_eq!((count(RowKind::Sometimes), faults), (36, 15));
}

#[test]
fn without_a_guard_what_it_protects_is_violated_and_with_it_the_same_world_is_sound() {
    for guard in Guard::ALL {
        let without = check_ablation(guard).unwrap();
        let missed = row(&without, protects(guard));
        println!("without {guard}: {} in {} steps, {} states", missed.property, missed.trace_len, missed.states);
        assert_eq!(missed.holds, Holds::Violated, "without {guard}");
        assert_eq!(missed.without, Some(guard));
        assert!(missed.trace.len() >= missed.trace_len && missed.trace_len > 0, "without {guard}");
        let world = ablation_world(guard).unwrap().guards(leaseproof_rules::Guards::ALL);
        let with = check_worlds(vec![world], Selection { property: Some(protects(guard)), ..Selection::default() });
        assert_eq!(row(&with.unwrap(), protects(guard)).holds, Holds::Holds, "with {guard}");
    }
}

/// The evidence against the design without a guard is a real run of it, checked against the model alone.
#[test]
fn evidence_is_a_run_of_the_model() {
    for guard in Guard::ALL {
        let model = LeaseModel::new(ablation_world(guard).unwrap());
        let graph = explore(&model, Limits::default()).unwrap();
        let goal = |state: &Packed| properties::all_resolved(&model.world.setup, &state.unpack());
        let bit = properties::bit(protects(guard));
        let report = match protects(guard) {
            Property::EventuallyResolved => graph.check_leads_to("resolved", Trigger::Anywhere, goal),
            _ => graph.check_always("safe", |state| state.unpack().bad & bit == 0),
        };
        match report.unwrap().outcome {
            Outcome::Violated(Counterexample::Run(run)) => assert_eq!(check_trace(&model, &run), Ok(())),
            Outcome::Violated(Counterexample::Lasso(lasso)) => {
                assert_eq!(check_lasso(&model, &lasso, Trigger::Anywhere, goal), Ok(()));
            }
            other => panic!("without {guard}: {other:?}"),
        }
    }
}

/// The same model, two checkers: stateright's breadth-first search finds as many states, and no violation either.
#[test]
fn stateright_finds_as_many_states_and_the_same_answers() {
    let query = Instruments { status_query: true, ..Instruments::default() };
    let worlds = [
        World::lease(1, 3).unwrap().errors(),
        World::lease(2, 2).unwrap(),
        World::lease(1, 2).unwrap().errors().hangs().reruns(1),
        World::lease(1, 2).unwrap().effect(query, OnUnknown::Escalate).errors(),
        World::lease(1, 2).unwrap().restarts().two_sweepers().clock_back().deploys(1),
    ];
    for world in worlds {
        let name = world.name.clone();
        let model = LeaseModel::new(world);
        let ours = explore(&model, Limits::default()).unwrap().stats();
        let theirs = model.clone().checker().spawn_bfs().join();
        assert!(theirs.is_done());
        assert_eq!(theirs.unique_state_count(), ours.states, "{name}");
        let found: Vec<_> = theirs.discoveries().into_keys().collect();
        assert_eq!(found, [leaseproof_model::witness::CONCURRENT_EXECUTION], "{name}");
    }
}

#[test]
fn stateright_finds_what_a_missing_guard_breaks() {
    for guard in Guard::ALL.into_iter().filter(|guard| protects(*guard) != Property::EventuallyResolved) {
        let found = LeaseModel::new(ablation_world(guard).unwrap()).checker().spawn_bfs().join().discoveries();
        assert!(found.contains_key(protects(guard).name()), "without {guard}: {:?}", found.keys());
    }
}

/// The search takes all steps of a state at once, unpacked; traces and stateright take them one by one. Both are one model.
#[test]
fn steps_taken_at_once_are_the_steps_taken_one_by_one() {
    let none = Instruments::NONE;
    let worlds = [
        World::lease(1, 1).unwrap().errors().bad_input().hangs().reruns(1),
        World::lease(2, 1).unwrap().errors(),
        World::lease(1, 2).unwrap().effect(none, OnUnknown::Escalate).errors().reruns(1),
        World::lease(1, 1).unwrap().effect(none, OnUnknown::Escalate).parts(2),
        World::lease(1, 3).unwrap().restarts(),
        World::lease(1, 1).unwrap().two_sweepers().clock_back().deploys(1),
        World::lease(1, 1).unwrap().writes_twice().calls_twice().effect(none, OnUnknown::Escalate).reruns(1),
        World::lease(1, 2).unwrap().restarts().fail_over(AfterFailOver::Nothing),
    ];
    for world in worlds {
        let model = LeaseModel::new(world);
        let graph = explore_states(&model, Limits::default()).unwrap();
        let (mut scratch, mut steps) = (Vec::new(), 0);
        for state in graph.states() {
            assert_eq!(Packed::pack(&state.unpack(), model.world.setup.shape), *state);
            let mut at_once = Vec::new();
            model.successors(state, &mut scratch, |class, after| at_once.push((class, after)));
            let mut actions = Vec::new();
            model.actions(state, &mut actions);
            let one_by_one: Vec<_> = actions
                .into_iter()
                .map(|action| (model.fair_class(state, &action), model.next_state(state, action).unwrap()))
                .collect();
            assert_eq!(at_once, one_by_one, "{}", model.world.name);
            steps += at_once.len();
        }
        assert!(scratch.is_empty() && steps > graph.states().len(), "{}", model.world.name);
    }
}

/// Every kind of step, every write and every fate of it happens somewhere.
#[test]
fn every_kind_of_step_happens() {
    let query = Instruments { status_query: true, ..Instruments::default() };
    let worlds = [
        World::lease(1, 2).unwrap().errors().bad_input().hangs().reruns(1).budgets(1, 1),
        World::lease(1, 1).unwrap().effect(query, OnUnknown::Escalate).errors().reruns(1).two_persons(),
        World::lease(1, 1).unwrap().effect(Instruments::NONE, OnUnknown::Escalate).parts(2),
        World::lease(1, 2).unwrap().effect(query, OnUnknown::Escalate).restarts().two_sweepers(),
        World::lease(1, 1).unwrap().clock_back().deploys(1),
    ];
    let mut seen = BTreeSet::new();
    for world in worlds {
        let model = LeaseModel::new(world);
        let graph = explore(&model, Limits::default()).unwrap();
        let mut actions = Vec::new();
        for packed in graph.states() {
            model.actions(packed, &mut actions);
            let state = packed.unpack();
            // Who, what, and what became of it; without numbers, so `w1: claim t1 epoch 0, reply lost` counts once.
            seen.extend(actions.drain(..).map(|action| {
                let text = describe(&model, &state, &action);
                text.replace(|c: char| c.is_ascii_digit(), "").replace(" of step ", "")
            }));
        }
    }
    let expected = BTreeSet::from([
        "database: lease of t ends",
        "database: t is due",
        "database: the clock is set back before the time of t",
        "database: t is over its expected time",
        "network: call of t with token  is lost",
        "person: finds out about the call of t",
        "person: mark_failed t",
        "person: mark_succeeded t",
        "person: opens t",
        "person: rerun t",
        "second person: finds out about the call of t",
        "second person: mark_failed t",
        "second person: mark_succeeded t",
        "second person: opens t",
        "second person: rerun t",
        "second sweeper: asks the third party about t",
        "second sweeper: asks the third party about t, reply lost",
        "second sweeper: asks the third party about t, request lost",
        "second sweeper: escalate t",
        "second sweeper: escalate t, reply lost",
        "second sweeper: escalate t, request lost",
        "second sweeper: reads t",
        "second sweeper: requeue t",
        "second sweeper: requeue t, reply lost",
        "second sweeper: requeue t, request lost",
        "sweeper: asks the third party about t",
        "sweeper: asks the third party about t, reply lost",
        "sweeper: asks the third party about t, request lost",
        "sweeper: escalate t",
        "sweeper: escalate t, reply lost",
        "sweeper: escalate t, request lost",
        "sweeper: reads t",
        "sweeper: requeue t",
        "sweeper: requeue t, reply lost",
        "sweeper: requeue t, request lost",
        "third party: call of t with token  arrives",
        "third party: call of t with token  arrives, reply lost",
        "third party: call of t with token  arrives, done up to part , no reply",
        "w: asks the third party, t epoch ",
        "w: asks the third party, t epoch , reply lost",
        "w: asks the third party, t epoch , request lost",
        "w: a new start registers",
        "w: calls the third party, t epoch ",
        "w: claim t epoch ",
        "w: claim t epoch , reply lost",
        "w: claim t epoch , request lost",
        "w: comes to its call, t epoch ",
        "w: complete t epoch ",
        "w: complete t epoch , reply lost",
        "w: complete t epoch , request lost",
        "w: crashes, t epoch ",
        "w: give_up t epoch ",
        "w: give_up t epoch , reply lost",
        "w: give_up t epoch , request lost",
        "w: heartbeat t epoch ",
        "w: input is bad, t epoch ",
        "w: intent t epoch ",
        "w: intent t epoch , reply lost",
        "w: intent t epoch , request lost",
        "w: no reply in time, t epoch ",
        "w: outcome t epoch ",
        "w: outcome t epoch , reply lost",
        "w: outcome t epoch , request lost",
        "w: reads t as a candidate",
        "w: release t epoch ",
        "w: release t epoch , reply lost",
        "w: release t epoch , request lost",
        "w: retry t epoch ",
        "w: retry t epoch , reply lost",
        "w: retry t epoch , request lost",
        "w: stops itself, t epoch ",
        "w: work done, t epoch ",
        "w: work failed, t epoch ",
        "world: all executors die at once",
        "world: no more faults",
    ]);
    assert_eq!(seen.iter().map(String::as_str).collect::<BTreeSet<_>>(), expected);
}

/// A person who decides while a call may still arrive can repeat the effect, whatever the queue does: the guarantee of a
/// re-run by a person rests on that person.
#[test]
fn a_hasty_person_can_repeat_an_effect_and_a_patient_one_can_not() {
    let world = World::lease(1, 2).unwrap().effect(Instruments::default(), OnUnknown::Escalate).reruns(1);
    let answer = |world| {
        let selection = Selection { property: Some(Property::EffectAtMostOnce), ..Selection::default() };
        check_worlds(vec![world], selection).unwrap()[0].holds
    };
    assert_eq!(answer(world.clone()), Holds::Holds);
    assert_eq!(answer(world.hasty()), Holds::Violated);
}

/// Faults that never end resolve nothing: the answer to liveness rests on their coming to an end.
#[test]
fn faults_for_ever_keep_a_task_unresolved() {
    let for_ever = Faults { calm_some_day: false, ..Faults::default() };
    let world = World::lease(1, 2).unwrap().faults(for_ever);
    let rows = check_worlds(vec![world], Selection::default()).unwrap();
    assert_eq!(row(&rows, Property::EventuallyResolved).holds, Holds::Violated);
    assert_eq!(row(&rows, Property::OneCurrentOwner).holds, Holds::Holds);
}

#[test]
fn a_search_that_was_cut_proves_nothing() {
    let rows =
        check_worlds(vec![World::lease(1, 2).unwrap()], Selection { max_states: 100, ..Selection::default() }).unwrap();
    for property in Property::ALL {
        assert_eq!(row(&rows, property).holds, Holds::Cut, "{property}");
    }
}

#[test]
fn states_print_readably_on_one_line_and_on_several() {
    let model = LeaseModel::new(World::lease(1, 2).unwrap());
    let state = model.init_states()[0];
    assert_eq!(format!("{state:?}"), "task t1: PENDING epoch 0 · executor w1: idle · executor w2: idle");
    assert_eq!(format!("{state:#?}"), "task t1: PENDING epoch 0\nexecutor w1: idle\nexecutor w2: idle");
}

#[test]
fn worlds_that_do_not_fit_are_refused() {
    assert!(matches!(World::lease(3, 2), Err(WorldError::Size { tasks: 3, .. })));
    assert!(matches!(World::lease(1, 0), Err(WorldError::Size { executors: 0, .. })));
    let large = World::lease(1, 1).unwrap().budgets(20, 1);
    assert_eq!(large.validate(), Err(WorldError::Epochs { needed: 43 }));
    let two = World::lease(2, 1).unwrap().fail_over(AfterFailOver::Nothing);
    assert_eq!(two.validate(), Err(WorldError::LostCommit { tasks: 2 }));
    for world in default_worlds().unwrap().into_iter().chain(beyond_worlds().unwrap()) {
        assert_eq!(world.validate(), Ok(()), "{}", world.name);
    }
}
