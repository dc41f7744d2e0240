//! The third party's books, as the trace tells of them.

use std::collections::BTreeMap;

use leaseproof_rules::{Answer, Epoch, Guard};

use super::{At, Step, Validator, Wrong};

/// One effect of one task.
#[derive(Default)]
pub(super) struct Account {
    count: u64,
    newest: Epoch,
    /// By execution token: calls that were sent, calls that have arrived, and whether one was done or known.
    calls: BTreeMap<Epoch, Calls>,
    /// Answers by the token of the question.
    answers: BTreeMap<Epoch, Vec<Answer>>,
}

#[derive(Default)]
struct Calls {
    sent: u32,
    arrived: u32,
    done: bool,
}

impl Account {
    /// A call of this run was done, or found to be done before.
    pub fn did(&self, epoch: Epoch) -> bool {
        self.calls.get(&epoch).is_some_and(|calls| calls.done)
    }

    /// What was answered to questions about the call of this run.
    pub fn answers(&self, epoch: Epoch) -> impl Iterator<Item = Answer> + '_ {
        self.answers.get(&(epoch + 1)).into_iter().flatten().copied()
    }

    pub fn sent(&mut self, token: Epoch) {
        self.calls.entry(token).or_default().sent += 1;
    }
}

impl Validator<'_> {
    pub(super) fn third_party(&mut self, at: &At<'_>) -> Step {
        self.by(at.line, "third_party")?;
        let (line, rule) = (at.line, self.rule(at.task));
        let stable = self.guards.has(Guard::StableKey);
        let has = rule.instruments;
        let account = &mut self.accounts[at.task];
        let state = format!("done {}×, newest token {}", account.count, account.newest);
        let wrong = |why: &str, allowed: &[&str]| Err(Wrong::new(why, state.clone(), allowed));
        if line.event == "ask" {
            let answer = match line.entry.as_deref() {
                Some("DONE") => Answer::Done,
                Some("NOT_DONE") => Answer::NotDone,
                _ => return wrong("this is no answer", &["DONE", "NOT_DONE"]),
            };
            if !has.status_query {
                return wrong("this third party can not be asked", &["no answer"]);
            }
            if (answer == Answer::Done) != (account.count > 0) {
                return wrong("the answer is not true", &[if account.count > 0 { "DONE" } else { "NOT_DONE" }]);
            }
            let token = line.epoch.unwrap_or_default();
            account.newest = account.newest.max(token);
            let answers = account.answers.entry(token).or_default();
            if !answers.contains(&answer) {
                answers.push(answer);
            }
            return Ok(());
        }
        let Some(token) = line.epoch else { return wrong("a call without a token", &["a token"]) };
        let (count, newest) = (account.count, account.newest);
        let calls = account.calls.entry(token).or_default();
        if calls.arrived >= calls.sent {
            return wrong("no call with this token is on its way", &["call first"]);
        }
        let is_old = has.execution_token && token < newest;
        // Without a stable key every run has one of its own; which calls have the same, a trace does not say.
        let is_known = has.idempotency_key && count > 0;
        let ruled = match (is_old, is_known) {
            (true, _) => "refuse_call",
            (false, true) if stable => "repeat",
            (false, true) if line.event == "repeat" => "repeat",
            _ => "effect",
        };
        if line.event != ruled {
            return wrong("its instruments say otherwise", &[ruled]);
        }
        calls.arrived += 1;
        if ruled == "refuse_call" {
            return if line.newest == Some(newest) {
                Ok(())
            } else {
                wrong("the newest token is another", &["the newest"])
            };
        }
        calls.done = true;
        account.newest = newest.max(token);
        if ruled == "effect" {
            account.count += 1;
            if line.count != Some(account.count) {
                return wrong("it was not done so often", &[&format!("count {}", account.count)]);
            }
        }
        Ok(())
    }
}
