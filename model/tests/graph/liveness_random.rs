//! Liveness on thousands of random tables, against the oracles.

use crate::oracle::{has_fair_open_run, has_lasso_of};
use crate::table::{any_table, any_trigger};
use leaseproof_model::graph::{Counterexample, Limits, Outcome, check_lasso, explore};
use proptest::prelude::*;

/// Walks tried by the oracle grow like 4^length.
const LONGEST_TRIED: usize = 8;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// Same answer as trying every set of states; a lasso shown is real, fair and owed; none is shorter.
    #[test]
    fn agrees_with_brute_force_and_shows_a_shortest_lasso(table in any_table(6), when in any_trigger()) {
        let graph = explore(&table, Limits::default()).unwrap();
        let goal = |&state: &u8| table.is_goal(state);
        let report = when.with(&table, |trigger| graph.check_leads_to("goal", trigger, goal)).unwrap();
        let expected = has_fair_open_run(&table, when);
        match report.outcome {
            Outcome::Holds => prop_assert!(!expected, "a fair run stays open for ever"),
            Outcome::Violated(Counterexample::Lasso(lasso)) => {
                prop_assert!(expected, "no fair run stays open: {lasso:?}");
                let checked = when.with(&table, |trigger| check_lasso(&table, &lasso, trigger, goal));
                prop_assert_eq!(checked, Ok(()));
                prop_assert!(lasso.shortest);
                for length in 0..lasso.len().min(LONGEST_TRIED) {
                    prop_assert!(!has_lasso_of(&table, when, length), "{length} steps are enough: {lasso:?}");
                }
            }
            other => prop_assert!(false, "{other:?}"),
        }
    }

    /// However small the part explored: no promise is ever said to hold, and a violation is still a real one.
    #[test]
    fn a_cut_search_never_says_holds_and_never_lies(
        table in any_table(8),
        when in any_trigger(),
        max_states in 0_usize..8,
    ) {
        let whole = explore(&table, Limits::default()).unwrap();
        let graph = explore(&table, Limits { max_states }).unwrap();
        prop_assert_eq!(graph.stats().cut, max_states < whole.states().len());
        prop_assert!(graph.states().len() <= max_states || !graph.stats().cut);
        let goal = |&state: &u8| table.is_goal(state);
        let report = when.with(&table, |trigger| graph.check_leads_to("goal", trigger, goal)).unwrap();
        match report.outcome {
            Outcome::Holds => prop_assert!(!graph.stats().cut),
            Outcome::Cut { states } => {
                prop_assert!(graph.stats().cut);
                prop_assert_eq!(states, graph.states().len());
            }
            Outcome::Violated(Counterexample::Lasso(lasso)) => {
                let checked = when.with(&table, |trigger| check_lasso(&table, &lasso, trigger, goal));
                prop_assert_eq!(checked, Ok(()));
            }
            other @ Outcome::Violated(_) => prop_assert!(false, "{other:?}"),
        }
        for report in graph.check_properties().unwrap() {
            prop_assert!(!(graph.stats().cut && report.outcome.holds() && report.example.is_none()));
        }
    }
}
