//! The ledger: what was done, how often, and what the third party answers.

use std::collections::{BTreeMap, BTreeSet};

use leaseproof_rules::{Epoch, Instruments};

/// An effect of a task.
type Key = (i64, String);

#[derive(Clone, Debug, Default)]
struct Account {
    instruments: Instruments,
    count: u32,
    /// Idempotency keys of calls that were done.
    done: BTreeSet<String>,
    /// The newest execution token seen.
    newest: Epoch,
}

/// What a call came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Called {
    /// Done, for the first time or again: so many times now.
    Done(u32),
    /// The idempotency key is known: nothing was done, the answer is that of the first time.
    Repeated,
    /// The execution token is older than this one.
    Refused(Epoch),
}

/// The third party's books.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    accounts: BTreeMap<Key, Account>,
}

impl Ledger {
    /// Agrees on the instruments for an effect. An effect without an account has none.
    pub fn open(&mut self, task: i64, effect: &str, instruments: Instruments) {
        self.accounts.entry((task, effect.to_owned())).or_default().instruments = instruments;
    }

    /// Does it, unless an instrument forbids.
    pub fn call(&mut self, task: i64, effect: &str, idempotency_key: &str, token: Epoch) -> Called {
        let account = self.accounts.entry((task, effect.to_owned())).or_default();
        if account.instruments.execution_token && token < account.newest {
            return Called::Refused(account.newest);
        }
        account.newest = account.newest.max(token);
        if account.instruments.idempotency_key && account.done.contains(idempotency_key) {
            return Called::Repeated;
        }
        account.done.insert(idempotency_key.to_owned());
        account.count += 1;
        Called::Done(account.count)
    }

    /// Says whether it was done; `None` if it can not be asked. With a token, calls with older ones are refused from now
    /// on (E2 with E6): what is answered stays true.
    pub fn ask(&mut self, task: i64, effect: &str, token: Option<Epoch>) -> Option<bool> {
        let account = self.accounts.entry((task, effect.to_owned())).or_default();
        if !account.instruments.status_query {
            return None;
        }
        if let Some(token) = token {
            account.newest = account.newest.max(token);
        }
        Some(account.count > 0)
    }

    /// How often the effect of a task was done.
    pub fn count(&self, task: i64, effect: &str) -> u32 {
        self.accounts.get(&(task, effect.to_owned())).map_or(0, |account| account.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(instruments: Instruments) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.open(1, "charge", instruments);
        ledger
    }

    #[test]
    fn without_instruments_every_call_is_done() {
        let mut ledger = ledger(Instruments::default());
        assert_eq!(ledger.call(1, "charge", "k", 2), Called::Done(1));
        assert_eq!(ledger.call(1, "charge", "k", 1), Called::Done(2));
        assert_eq!((ledger.count(1, "charge"), ledger.ask(1, "charge", Some(3))), (2, None));
    }

    #[test]
    fn a_known_key_is_not_done_again() {
        let mut ledger = ledger(Instruments { idempotency_key: true, ..Instruments::default() });
        assert_eq!(ledger.call(1, "charge", "k", 1), Called::Done(1));
        assert_eq!(ledger.call(1, "charge", "k", 2), Called::Repeated);
        assert_eq!(ledger.count(1, "charge"), 1);
    }

    #[test]
    fn a_question_with_a_token_shuts_the_door_behind_it() {
        let rule = Instruments { status_query: true, execution_token: true, ..Instruments::NONE };
        let mut ledger = ledger(rule);
        assert_eq!(ledger.ask(1, "charge", Some(2)), Some(false));
        assert_eq!(ledger.call(1, "charge", "k", 1), Called::Refused(2));
        assert_eq!(ledger.call(1, "charge", "k", 2), Called::Done(1));
        assert_eq!(ledger.ask(1, "charge", None), Some(true));
    }
}
