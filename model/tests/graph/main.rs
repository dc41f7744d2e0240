//! The exact graph checker against naive oracles, against stateright, and on graphs small enough to judge by eye.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

mod exploration;
mod limits;
mod liveness_by_hand;
mod liveness_random;
mod many_classes;
mod oracle;
mod safety;
mod samples;
mod stateright_eventually;
mod table;
mod validator;
