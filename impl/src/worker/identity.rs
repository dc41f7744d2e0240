//! Who a process is, unless its maker says.

use crate::Error;

/// A shell sets `$HOSTNAME` and need not export it; a container has it, and so has Linux.
pub(super) fn host() -> String {
    let said = std::env::var("HOSTNAME").ok().filter(|name| !name.trim().is_empty());
    let kernel = || std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    said.unwrap_or_else(kernel).trim().to_owned()
}

/// 128 random bits as text.
pub(super) fn random_id() -> Result<String, Error> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|error| Error::BadInput {
        what: "boot_id",
        why: format!("no randomness: {error}; give one by hand"),
    })?;
    Ok(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}
