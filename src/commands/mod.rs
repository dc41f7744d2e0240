//! One file a command.

pub mod check;
pub mod compare;
pub mod coverage;
pub mod decisions;
pub mod explore;
pub mod exports;
mod group;
pub mod matrix;
mod matrix_table;
pub mod queue;
mod records;
pub mod replay;
mod shell;
mod signals;
mod sim;
pub mod sweep;
mod tally;
mod trace_file;
mod work;

/// Threads for simulated runs; 0 stands for one a core.
fn jobs(wanted: usize) -> usize {
    match wanted {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        some => some,
    }
}
