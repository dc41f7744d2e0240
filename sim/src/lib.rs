//! The simulated world.

#[cfg(not(madsim))]
compile_error!(
    "leaseproof-sim needs `--cfg madsim` for the whole build. The workspace's .cargo/config.toml sets it; an \
     environment variable RUSTFLAGS, or building from outside the workspace, replaces it. Unset RUSTFLAGS, or add \
     `--cfg madsim` to it."
);

pub mod db;
pub mod net;
pub mod room;
