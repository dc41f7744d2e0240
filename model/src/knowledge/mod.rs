//! The line between what a system may do by itself and what must go to a person, computed.
//!
//! A sweeper decides on what it can see. All reachable states that look the same to it are one *class*
//! ([`leaseproof_rules::Observation`]); a strategy maps classes to decisions. A decision is *safe* in a class iff the
//! system that takes it there, and follows the rules everywhere else, keeps every property: "wait" is refuted by
//! liveness, "run again" by the third party's ledger, in whichever state of the class it goes wrong. It *settles* the
//! class iff from every one of its states the task can then come to an end without a person ([`judge::settles`]).
//!
//! Two theorems are then read off ([`Combination::is_sound`], [`Combination::is_maximal`]): the rules as they stand keep
//! every property, and no class that they hand to a person has a safe automatic decision that settles it. Where they
//! must, because nobody can tell two situations apart, a [`Pair`] of runs shows it.

pub mod class;
pub mod combinations;
pub mod examine;
pub mod judge;
pub mod slow;
mod strategy;
pub mod table;

pub use examine::{Candidate, ClassRow, Combination, Pair, Settles, Side, Verdict, examine, examine_all};
pub use strategy::{DecideFn, Strategy};
