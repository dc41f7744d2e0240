//! Properties of states and steps, with shortest counterexamples.

use crate::oracle::distances;
use crate::table::{Table, any_table};
use leaseproof_model::graph::{CheckError, Counterexample, Kind, Limits, Outcome, StepProperty, check_trace, explore};
use proptest::prelude::*;

const NO_STEP_TO_GOAL: StepProperty<Table> =
    StepProperty { name: "no step comes to the goal", condition: |model, _, _, &after| !model.is_goal(after) };

const NO_IDLE_STEP: StepProperty<Table> =
    StepProperty { name: "no step leads back", condition: |_, before, _, after| before != after };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn finds_a_nearest_state_or_none(table in any_table(12)) {
        let graph = explore(&table, Limits::default()).unwrap();
        let nearest = distances(&table)
            .iter()
            .enumerate()
            .filter(|&(state, _)| table.is_goal(state as u8))
            .filter_map(|(_, &distance)| distance)
            .min();

        let always = graph.check_property("no state is the goal").unwrap();
        let sometimes = graph.check_property("some state is the goal").unwrap();
        match (always.outcome, nearest) {
            (Outcome::Holds, None) => {
                prop_assert_eq!(sometimes.outcome, Outcome::Violated(Counterexample::NoState));
                prop_assert_eq!(sometimes.example, None);
            }
            (Outcome::Violated(Counterexample::Run(trace)), Some(distance)) => {
                prop_assert_eq!(trace.len(), distance);
                prop_assert!(table.is_goal(*trace.last()));
                prop_assert_eq!(check_trace(&table, &trace), Ok(()));
                prop_assert_eq!(sometimes.outcome, Outcome::Holds);
                prop_assert_eq!(sometimes.example, Some(trace));
            }
            other => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn finds_a_nearest_step_or_none(table in any_table(12)) {
        let graph = explore(&table, Limits::default()).unwrap();
        let distances = distances(&table);
        let nearest = |bad: &dyn Fn(usize, u8) -> bool| {
            table
                .rows
                .iter()
                .enumerate()
                .filter(|&(from, row)| row.iter().any(|&(to, _)| bad(from, to)))
                .filter_map(|(from, _)| distances[from])
                .min()
        };
        let expected = [
            nearest(&|_, to| table.is_goal(to)),
            nearest(&|from, to| from == usize::from(to)),
        ];
        let reports = graph.check_steps(&[NO_STEP_TO_GOAL, NO_IDLE_STEP]).unwrap();
        for (report, nearest) in reports.iter().zip(expected) {
            match (&report.outcome, nearest) {
                (Outcome::Holds, None) => {}
                (Outcome::Violated(Counterexample::Run(trace)), Some(distance)) => {
                    prop_assert_eq!(trace.len(), distance + 1);
                    prop_assert_eq!(check_trace(&table, trace), Ok(()));
                }
                other => prop_assert!(false, "{other:?}"),
            }
        }
    }
}

#[test]
fn a_step_property_sees_the_action() {
    let table = Table::new(&[&[(1, None), (1, Some(0))], &[]]);
    let graph = explore(&table, Limits::default()).unwrap();
    let fair_only = StepProperty { name: "only the second action", condition: |_, _, &action, _| action == 1 };
    let reports = graph.check_steps(&[fair_only]).unwrap();
    let Outcome::Violated(Counterexample::Run(trace)) = &reports[0].outcome else {
        panic!("{reports:?}");
    };
    assert_eq!(trace.steps[0].action, 0);
}

#[test]
fn all_declared_properties_are_reported_in_order() {
    let table = Table::new(&[&[(1, Some(0))], &[]]).with_goal(&[1]);
    let graph = explore(&table, Limits::default()).unwrap();
    let reports = graph.check_properties().unwrap();
    let summary: Vec<_> =
        reports.iter().map(|report| (report.name.as_str(), report.kind, report.outcome.holds())).collect();
    assert_eq!(
        summary,
        [
            ("no state is the goal", Kind::Always, false),
            ("some state is the goal", Kind::Sometimes, true),
            ("the goal is reached", Kind::LeadsTo, true),
        ]
    );
    assert_eq!(reports[0].stats.states, 2);
    assert_eq!(reports[0].stats.depth, 1);
    assert!(reports[0].stats.memory_bytes > 0);
}

#[test]
fn an_unknown_name_is_an_error_that_lists_the_known_ones() {
    let table = Table::new(&[&[]]);
    let graph = explore(&table, Limits::default()).unwrap();
    let error = graph.check_property("the gaol is reached").unwrap_err();
    assert!(matches!(&error, CheckError::UnknownProperty { name, .. } if name == "the gaol is reached"));
    assert!(error.to_string().contains("\"the goal is reached\""));
}
