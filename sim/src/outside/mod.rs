//! The third party: a machine outside the system that does things which can not be undone, and keeps a ledger of them.
//!
//! Which instruments it has is set per account, an account being one effect of one task: whether it knows a repeated
//! idempotency key (E1), can be asked (E2), checks execution tokens (E6). A request that has arrived is executed even if
//! its sender dies meanwhile; the ledger survives the third party's own crashes.

mod client;
mod ledger;
mod server;
mod wire;

pub use client::{CallFailed, Client};
pub use ledger::{Called, Ledger};
pub use server::serve;
