//! Parity: the store's conformance suite on the simulated database node. The cases are those of
//! `impl/tests/conformance`, the same source, which also run on SQLite and on real servers; here the queue's source is
//! compiled against simulated tokio, and its PostgreSQL statements go through the stock driver over the simulated network.
//!
//! Left out are the cases on migrations, which this database does not make (it is opened with its tables), and on what
//! only a real server has: row locks of single rows, rights, connections that an operator ends.

// A test says what it expects by failing.
#![allow(clippy::unwrap_used)]
// One case is only compiled where the package that it belongs to has its feature `ablation`.
#![allow(unexpected_cfgs)]

extern crate leaseproof_queue_sim as leaseproof_queue;

mod common;
#[macro_use]
#[path = "../../../impl/tests/conformance/every_case.rs"]
mod every_case;

#[path = "../../../impl/tests/conformance/claims.rs"]
mod claims;
#[path = "../../../impl/tests/conformance/completions.rs"]
mod completions;
#[path = "../../../impl/tests/conformance/heartbeats.rs"]
mod heartbeats;
#[path = "../../../impl/tests/conformance/instances.rs"]
mod instances;
#[path = "../../../impl/tests/conformance/journal.rs"]
mod journal;
#[path = "../../../impl/tests/conformance/judged.rs"]
mod judged;
#[path = "../../../impl/tests/conformance/records.rs"]
mod records;
#[path = "../../../impl/tests/conformance/sweeps.rs"]
mod sweeps;

macro_rules! cases {
    ($($module:ident::$case:ident,)*) => {
        mod simulated {
            $(#[test]
            fn $case() {
                crate::common::run(|db| async move { crate::$module::$case(&db).await });
            })*
        }
    };
}

every_case! { cases:
    judged::every_statement_agrees_on_the_very_instant,
    sweeps::a_lease_ends_too_late_exactly_where_the_rules_say,
}
