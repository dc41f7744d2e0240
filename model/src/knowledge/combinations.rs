//! Every way to declare an outside call, each with the small worlds in which it is examined.

use leaseproof_rules::{Instruments, OnUnknown, Signal};

use crate::world::{World, WorldError};

/// A declaration: the instruments of the call and what to do where they do not help; `None`: no outside call.
pub type Declaration = Option<(Instruments, OnUnknown)>;

/// All of them. A new instrument is to be added here, and nowhere else in this module's folder.
pub fn declarations() -> Vec<Declaration> {
    let mut all = vec![None];
    for bits in 0..8_u8 {
        let instruments = Instruments {
            idempotency_key: bits & 1 != 0,
            status_query: bits & 2 != 0,
            execution_token: bits & 4 != 0,
            ..Instruments::NONE
        };
        all.extend(OnUnknown::ALL.map(|on_unknown| Some((instruments, on_unknown))));
    }
    all
}

/// The worlds of a declaration, with the signal whose classes are examined in each: ended leases where every handler
/// comes to an end, runs over their time where it may hang.
///
/// # Errors
/// None in a released build: a test builds them all.
pub fn worlds(declaration: Declaration) -> Result<Vec<(World, Signal)>, WorldError> {
    let plain = match declaration {
        None => World::lease(1, 2)?.errors(),
        Some((instruments, on_unknown)) => World::lease(1, 2)?.effect(instruments, on_unknown),
    };
    let plain = plain.budgets(1, 1);
    Ok(vec![(plain.clone(), Signal::LeaseExpired), (plain.hangs(), Signal::Beating)])
}

/// A declaration in words, e.g. `query, token; else escalate`.
pub fn declaration_text(declaration: Declaration) -> String {
    let Some((instruments, on_unknown)) = declaration else { return "no outside call".to_owned() };
    let has = [
        (instruments.idempotency_key, "key"),
        (instruments.status_query, "query"),
        (instruments.execution_token, "token"),
    ];
    let words: Vec<&str> = has.iter().filter(|(has, _)| *has).map(|(_, word)| *word).collect();
    let words = if words.is_empty() { "nothing".to_owned() } else { words.join(" + ") };
    format!("{words}, else {}", on_unknown.name())
}
