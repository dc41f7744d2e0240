//! What a run knows of its effects: the journal, the calls that are open, and whether it may still make any.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use leaseproof_rules::{EffectRule, Entry};

use crate::task::EffectEntry;

/// What the journal says of an effect, how it is declared, and what its call brought.
pub(crate) type Known = (Entry, EffectRule, Option<String>);

/// Shared by the handler, whatever it has given its context to, and the report of the run.
#[derive(Default)]
pub(crate) struct Effects {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    journal: BTreeMap<String, Known>,
    /// The effects that this run has been about to call, and of which nothing is known since.
    open: BTreeSet<String>,
    /// The effects that are being called at this moment.
    calling: BTreeSet<String>,
    /// The handler has ended: a context that outlives it calls nothing more.
    closed: bool,
}

/// Why an effect is not begun.
pub(crate) enum NotBegun {
    /// The handler has ended.
    Closed,
    /// Somebody in this run is calling it.
    Busy,
}

/// A call under way. Whoever drops it, be it half way, has ended the call.
pub(crate) struct Calling<'a> {
    effects: &'a Effects,
    key: &'a str,
}

impl Effects {
    /// Takes over what earlier runs have left in the journal.
    pub(crate) fn load(&self, entries: Vec<EffectEntry>) {
        let mut inner = self.inner();
        for entry in entries {
            inner.journal.insert(entry.key, (entry.state, entry.rule, entry.outcome));
        }
    }

    /// Begins a call: nobody else in this run calls the effect meanwhile. Also says what is known of it.
    pub(crate) fn begin<'a>(&'a self, key: &'a str) -> Result<(Option<Known>, Calling<'a>), NotBegun> {
        let mut inner = self.inner();
        if inner.closed {
            return Err(NotBegun::Closed);
        }
        if !inner.calling.insert(key.to_owned()) {
            return Err(NotBegun::Busy);
        }
        Ok((inner.journal.get(key).cloned(), Calling { effects: self, key }))
    }

    /// The intent is journalled: from here on the call may be on its way.
    pub(crate) fn intended(&self, key: &str, rule: EffectRule) {
        let mut inner = self.inner();
        inner.journal.insert(key.to_owned(), (Entry::Intent, rule, None));
        inner.open.insert(key.to_owned());
    }

    /// This run knows what became of the call, journalled or not.
    pub(crate) fn known(&self, key: &str) {
        self.inner().open.remove(key);
    }

    /// What became of the call is journalled.
    pub(crate) fn journalled(&self, key: &str, known: Known) {
        self.inner().journal.insert(key.to_owned(), known);
    }

    /// The handler has ended. An effect that is open then is one whose outcome nobody knows.
    pub(crate) fn close(&self) -> Option<String> {
        let mut inner = self.inner();
        inner.closed = true;
        inner.open.first().or(inner.calling.first()).cloned()
    }

    /// Whether the handler has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.inner().closed
    }

    /// The effects of which the journal has only the intent.
    pub(crate) fn unknown(&self) -> BTreeMap<String, EffectRule> {
        let inner = self.inner();
        let open = inner.journal.iter().filter(|(_, (entry, ..))| *entry == Entry::Intent);
        open.map(|(key, (_, rule, _))| (key.clone(), *rule)).collect()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        self.effects.inner().calling.remove(self.key);
    }
}
