//! One file a command.

pub mod check;
pub mod matrix;
pub mod queue;
mod records;
pub mod replay;
mod shell;
mod sim;
mod work;
