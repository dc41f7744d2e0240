//! Outside effects: what the journal can say, which instruments an effect has, and what follows.

use crate::guard::{Guard, Guards};
use crate::policy::{OnPartial, OnUnknown};
use crate::transition::Epoch;

/// What makes an outside effect safe to repeat, or to ask about. Each has its precondition at the third party.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Instruments {
    /// E1: the third party does nothing, and answers as the first time, for a key it has seen.
    pub idempotency_key: bool,
    /// E2: the third party can be asked whether a call with this key was done.
    pub status_query: bool,
    /// E6: the third party refuses a call, and from a query on, whose execution token is older than the newest it saw.
    pub execution_token: bool,
    /// E4: it is made in steps, each with an intent and an outcome of its own in the journal. A re-run begins after the
    /// last recorded one, so only one step can be unknown.
    pub checkpoints: bool,
    /// E3: the call is not made by the task: what is to be called is written in the same transaction as its SUCCESS, and a
    /// relay makes the call later. The relay has the same question, and the other instruments answer it.
    pub outbox: bool,
    /// E5: each step can be undone by a call of its own, for which the other instruments are true as for the step itself.
    /// With a key the third party undoes what was done under it, and does nothing if nothing was.
    pub compensation: bool,
}

impl Instruments {
    /// Nothing at all.
    pub const NONE: Instruments = Instruments {
        idempotency_key: false,
        status_query: false,
        execution_token: false,
        checkpoints: false,
        outbox: false,
        compensation: false,
    };

    /// The names of those that are there, as stories and reports write them.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let all = [
            (self.idempotency_key, "idempotency_key"),
            (self.status_query, "status_query"),
            (self.execution_token, "execution_token"),
            (self.checkpoints, "checkpoints"),
            (self.outbox, "outbox"),
            (self.compensation, "compensation"),
        ];
        all.into_iter().filter(|(there, _)| *there).map(|(_, name)| name)
    }
}

/// How an effect is declared: its instruments, and what to do where none helps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct EffectRule {
    /// What it has.
    pub instruments: Instruments,
    /// What to do where they do not settle it (E7).
    pub on_unknown: OnUnknown,
    /// What to do where it is known which of its steps are done, and some are not (M4).
    pub on_partial: OnPartial,
}

impl EffectRule {
    /// Checks that what is declared goes together.
    ///
    /// # Errors
    /// What does not, and what would.
    pub const fn validate(self) -> Result<(), &'static str> {
        if !self.instruments.compensation {
            return Ok(());
        }
        if !self.instruments.checkpoints {
            return Err("compensation undoes recorded steps: it needs checkpoints");
        }
        match (self.on_unknown, self.on_partial) {
            (OnUnknown::Escalate, OnPartial::Resume) => Ok(()),
            (OnUnknown::Escalate, OnPartial::Escalate) => Err(
                "either what is partly done is undone or a person decides about it: compensation or on_partial = escalate",
            ),
            _ => Err("what was repeated or skipped can not be undone: compensation needs on_unknown = escalate"),
        }
    }
}

/// An entry of the effect journal; with checkpoints, of one step. No entry: the call was never about to be made (E-A).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Entry {
    /// About to be made, and nothing heard since: done, half done or not (E-B, E-C).
    Intent = 0,
    /// Done.
    Done = 1,
    /// Known not to have happened, and it can not happen later.
    NotDone = 2,
}

impl Entry {
    /// Every entry.
    pub const ALL: [Entry; 3] = [Entry::Intent, Entry::Done, Entry::NotDone];

    /// The name stored in the journal, e.g. `INTENT`.
    pub const fn name(self) -> &'static str {
        match self {
            Entry::Intent => "INTENT",
            Entry::Done => "DONE",
            Entry::NotDone => "NOT_DONE",
        }
    }

    /// The entry with this stored name.
    pub fn from_name(name: &str) -> Option<Entry> {
        Entry::ALL.into_iter().find(|entry| entry.name() == name)
    }
}

/// What the third party said when asked (E2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Answer {
    /// The call was done.
    Done,
    /// Not done so far.
    NotDone,
    /// Some of its parts were done, others not so far (E-C).
    Partial,
    /// No answer this time.
    Unavailable,
}

/// What a run does when it comes to an effect.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EffectStep {
    /// Journal the intent, then call.
    Call,
    /// Take the recorded outcome; do not call.
    Reuse,
    /// Do not call, and go on without an outcome (at most once).
    Skip,
    /// Stop: only a person can say.
    Stop,
}

/// What a run does at an effect, from what an *earlier* run left in the journal.
pub fn effect_step(entry: Option<Entry>, rule: EffectRule) -> EffectStep {
    match entry {
        None | Some(Entry::NotDone) => EffectStep::Call,
        Some(Entry::Done) => EffectStep::Reuse,
        Some(Entry::Intent) if rule.instruments.idempotency_key => EffectStep::Call,
        Some(Entry::Intent) => match rule.on_unknown {
            OnUnknown::Repeat => EffectStep::Call,
            OnUnknown::Skip => EffectStep::Skip,
            OnUnknown::Escalate => EffectStep::Stop,
        },
    }
}

/// What a call came to, as far as the run that made it can know.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CallOutcome {
    /// It is done.
    Done,
    /// This call surely did not happen and will not: refused, or never sent. It says nothing of another call.
    NotDone,
    /// Nothing was heard of it.
    Unknown,
}

/// What the journal says of an effect after a call. `before`: what it said before the intent of this call.
///
/// That *this* call did not happen does not undo an earlier one of which nothing was heard: a connection refused now is
/// no answer to what was sent then. So "not done" settles an effect only if no earlier call of it is open.
pub fn entry_after(before: Option<Entry>, outcome: CallOutcome) -> Entry {
    match (outcome, before) {
        (CallOutcome::Done, _) => Entry::Done,
        (CallOutcome::NotDone, None | Some(Entry::NotDone)) => Entry::NotDone,
        // A call that is made although the journal says "done" is nobody's; its refusal undoes nothing either.
        (CallOutcome::NotDone, Some(Entry::Done)) => Entry::Done,
        (CallOutcome::NotDone, Some(Entry::Intent)) | (CallOutcome::Unknown, _) => Entry::Intent,
    }
}

/// What the journal says after an intent was written into it. `before`: what it said until then.
///
/// Nobody means to call again what is done. An intent that comes then was sent before the call, given up by its sender and
/// sent once more: it arrives late, and what is known stays known.
pub fn entry_after_intent(before: Option<Entry>) -> Entry {
    match before {
        Some(Entry::Done) => Entry::Done,
        None | Some(Entry::Intent | Entry::NotDone) => Entry::Intent,
    }
}

/// Whether a task with this unknown effect may go on by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Unknown {
    /// It may: what the re-run does about the effect is safe.
    Settled {
        /// What to write into the journal first, if something was learnt.
        learnt: Option<Entry>,
    },
    /// Ask the third party first.
    Ask,
    /// The third party does not answer: look again later.
    Later,
    /// Nothing settles it.
    Escalate,
}

/// Settles, as far as its instruments go, an effect of which the journal has only the intent.
///
/// A "not done" alone settles nothing: the call may still be on its way. It does once the third party has seen a newer
/// execution token, since it then refuses the call when it arrives (E2 with E6).
pub fn settle(rule: EffectRule, answer: Option<Answer>) -> Unknown {
    settle_under(rule, answer, Guards::ALL)
}

/// [`settle`] with a guard removed; for ablations.
pub fn settle_under(rule: EffectRule, answer: Option<Answer>, guards: Guards) -> Unknown {
    let Instruments { idempotency_key, status_query, execution_token, .. } = rule.instruments;
    if idempotency_key {
        return Unknown::Settled { learnt: None };
    }
    if status_query {
        match answer {
            None => return Unknown::Ask,
            Some(Answer::Unavailable) => return Unknown::Later,
            Some(Answer::Done) => return Unknown::Settled { learnt: Some(Entry::Done) },
            Some(Answer::NotDone) if execution_token || !guards.has(Guard::TokenForNotDone) => {
                return Unknown::Settled { learnt: Some(Entry::NotDone) };
            }
            // A part of it settles nothing: to call again would repeat that part.
            Some(Answer::NotDone | Answer::Partial) => {}
        }
    }
    match rule.on_unknown {
        OnUnknown::Repeat | OnUnknown::Skip => Unknown::Settled { learnt: None },
        OnUnknown::Escalate => Unknown::Escalate,
    }
}

/// Settles, as far as its instruments go, an unknown step that is to be undone together with those before it (E5).
/// `Settled` with nothing learnt: it is undone whatever became of it.
///
/// A compensation must come after its effect. So what may still arrive is not undone: except by its key, which makes
/// undoing nothing harmless, and behind a token, which keeps the step from happening afterwards.
pub fn settle_back(rule: EffectRule, answer: Option<Answer>, guards: Guards) -> Unknown {
    let Instruments { idempotency_key, status_query, execution_token, .. } = rule.instruments;
    if idempotency_key && execution_token || !guards.has(Guard::KnownBeforeUndo) {
        return Unknown::Settled { learnt: None };
    }
    match answer {
        None if status_query => Unknown::Ask,
        Some(Answer::Unavailable) if status_query => Unknown::Later,
        Some(Answer::Done) => Unknown::Settled { learnt: Some(Entry::Done) },
        Some(Answer::NotDone) if execution_token => Unknown::Settled { learnt: Some(Entry::NotDone) },
        _ => Unknown::Escalate,
    }
}

/// The execution token of a question about the call of a run with this epoch: the next one, so that the third party
/// refuses that call from then on.
pub fn query_token(epoch: Epoch, guards: Guards) -> Epoch {
    if guards.has(Guard::TokenInQuery) { epoch.saturating_add(1) } else { epoch }
}

/// The idempotency key of an effect of a task, made by a run with this epoch. It is the same for every run (E1).
pub fn idempotency_key(task: i64, effect: &str, epoch: Epoch, guards: Guards) -> String {
    if guards.has(Guard::StableKey) { format!("{task}/{effect}") } else { format!("{task}/{effect}/{epoch}") }
}
