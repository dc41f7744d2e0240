//! Every way to declare an outside call, each with the small worlds in which it is examined.

use leaseproof_rules::{EffectRule, Instruments, OnPartial, OnUnknown, Signal};

use crate::world::{World, WorldError};

/// An outside call as it is declared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Call {
    /// Its instruments, and what to do where they do not help.
    pub rule: EffectRule,
    /// Of how many parts it consists; with checkpoints each is a step.
    pub parts: usize,
}

/// A declaration; `None`: no outside call.
pub type Declaration = Option<Call>;

/// What a call is made of and who makes it, its other instruments aside.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Form {
    /// One call that happens wholly or not at all.
    Whole,
    /// One call of several parts, which the third party may leave half done (E-C).
    Parts,
    /// Steps with journal entries of their own (E4); what is done in part goes on.
    Steps,
    /// The same; what is done in part waits for a person (M4).
    StepsToAPerson,
    /// Steps that can be undone (E5).
    Saga,
    /// As [`Form::Whole`], made by the relay of an outbox (E3).
    OutboxWhole,
    /// As [`Form::Parts`], made by the relay of an outbox.
    OutboxParts,
    /// As [`Form::Steps`], made by the relay of an outbox.
    OutboxSteps,
}

/// Parts of a call of several, in the worlds of this examination. A test shows that three bring nothing new.
pub const PARTS: usize = 2;

impl Form {
    /// Every form.
    pub const ALL: [Form; 8] = [
        Form::Whole,
        Form::Parts,
        Form::Steps,
        Form::StepsToAPerson,
        Form::Saga,
        Form::OutboxWhole,
        Form::OutboxParts,
        Form::OutboxSteps,
    ];

    /// The form of a call.
    pub fn of(call: Call) -> Form {
        let Instruments { checkpoints, outbox, compensation, .. } = call.rule.instruments;
        let to_a_person = call.rule.on_partial == OnPartial::Escalate;
        if compensation {
            return Form::Saga;
        }
        match (outbox, checkpoints, to_a_person, call.parts > 1) {
            (false, true, false, _) => Form::Steps,
            (false, true, true, _) => Form::StepsToAPerson,
            (false, false, _, true) => Form::Parts,
            (false, false, _, false) => Form::Whole,
            (true, true, _, _) => Form::OutboxSteps,
            (true, false, _, true) => Form::OutboxParts,
            (true, false, _, false) => Form::OutboxWhole,
        }
    }

    /// In words, as a heading.
    pub const fn words(self) -> &'static str {
        match self {
            Form::Whole => "One call, done wholly or not at all",
            Form::Parts => "One call of several parts, which may be left half done (E-C)",
            Form::Steps => "Steps with checkpoints (E4), which go on where they stopped",
            Form::StepsToAPerson => "Steps with checkpoints (E4), partly done goes to a person (M4)",
            Form::Saga => "Steps with checkpoints that can be undone (E5)",
            Form::OutboxWhole => "Outbox (E3): the relay makes one call, done wholly or not at all",
            Form::OutboxParts => "Outbox (E3): the relay makes one call of several parts",
            Form::OutboxSteps => "Outbox (E3): the relay makes steps with checkpoints (E4)",
        }
    }

    /// What may be wanted where the instruments do not help. A relay asks the same question as any caller, and whether
    /// a person is asked about the rest does not depend on it: there one choice is enough to see that. A saga allows but one.
    pub const fn choices(self) -> &'static [OnUnknown] {
        match self {
            Form::StepsToAPerson | Form::Saga | Form::OutboxParts | Form::OutboxSteps => &[OnUnknown::Escalate],
            _ => &OnUnknown::ALL,
        }
    }

    /// A call of this form.
    pub fn call(self, plain: Instruments, on_unknown: OnUnknown) -> Call {
        use Form::*;
        let steps = matches!(self, Steps | StepsToAPerson | Saga | OutboxSteps);
        let outbox = matches!(self, OutboxWhole | OutboxParts | OutboxSteps);
        let instruments = Instruments { checkpoints: steps, outbox, compensation: self == Saga, ..plain };
        let on_partial = if self == StepsToAPerson { OnPartial::Escalate } else { OnPartial::Resume };
        let whole = matches!(self, Whole | OutboxWhole);
        Call { rule: EffectRule { instruments, on_unknown, on_partial }, parts: if whole { 1 } else { PARTS } }
    }
}

/// What key, query and token there may be.
pub fn plain_instruments() -> impl Iterator<Item = Instruments> {
    (0..8_u8).map(|bits| Instruments {
        idempotency_key: bits & 1 != 0,
        status_query: bits & 2 != 0,
        execution_token: bits & 4 != 0,
        ..Instruments::NONE
    })
}

/// All of them. A new instrument is to be added here, and nowhere else in this module's folder.
pub fn declarations() -> Vec<Declaration> {
    let mut all = vec![None];
    for form in Form::ALL {
        for plain in plain_instruments() {
            all.extend(form.choices().iter().map(|on_unknown| Some(form.call(plain, *on_unknown))));
        }
    }
    all
}

/// A world in which a declaration is examined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Examined {
    /// The world.
    pub world: World,
    /// Whose classes are examined in it.
    pub signal: Signal,
    /// The task that makes the call.
    pub task: usize,
}

/// The worlds of a declaration: ended leases where every handler comes to an end, runs over their time where it may hang.
///
/// Two executors, so that one can be taken for dead while the other runs the task. Where that would be too large there is
/// one, whose calls outlive it: behind an outbox, in steps but for one choice, and for a lease that is live, which nobody
/// else takes, but for the plainest call.
///
/// # Errors
/// None in a released build: a test builds them all.
pub fn worlds(declaration: Declaration) -> Result<Vec<Examined>, WorldError> {
    let world = |executors| match declaration {
        None => Ok((World::lease(1, executors)?.errors().budgets(1, 1), 0)),
        Some(call) => world_of(call, executors),
    };
    let is_plain = declaration.is_none_or(|call| Form::of(call) == Form::Whole);
    let is_small = declaration.is_none_or(|call| match Form::of(call) {
        Form::Whole | Form::Parts => true,
        Form::Steps => call.rule.on_unknown == OnUnknown::Escalate,
        Form::StepsToAPerson | Form::Saga | Form::OutboxWhole | Form::OutboxParts | Form::OutboxSteps => false,
    });
    let (ended, task) = world(if is_small { 2 } else { 1 })?;
    let (live, _) = world(if is_plain { 2 } else { 1 })?;
    let ended = Examined { world: ended, signal: Signal::LeaseExpired, task };
    Ok(vec![ended, Examined { world: live.hangs(), signal: Signal::Beating, task }])
}

fn world_of(Call { rule, parts }: Call, executors: usize) -> Result<(World, usize), WorldError> {
    let EffectRule { instruments, on_unknown, on_partial } = rule;
    let (mut world, task) = match instruments.outbox {
        true => (World::lease(2, executors)?.outbox(instruments, on_unknown), 1),
        false => (World::lease(1, executors)?.effect(instruments, on_unknown), 0),
    };
    if parts > 1 {
        world = world.parts(parts);
    }
    if on_partial == OnPartial::Escalate {
        world = world.partial_to_a_person();
    }
    Ok((world.budgets(1, 1), task))
}

/// A declaration in words, e.g. `query + token + checkpoints, else escalate`.
pub fn declaration_text(declaration: Declaration) -> String {
    let Some(Call { rule, parts }) = declaration else { return "no outside call".to_owned() };
    let has = rule.instruments;
    let words = [
        (has.idempotency_key, "key"),
        (has.status_query, "query"),
        (has.execution_token, "token"),
        (has.checkpoints, "checkpoints"),
        (has.outbox, "outbox"),
        (has.compensation, "compensation"),
    ];
    let words: Vec<&str> = words.iter().filter(|(has, _)| *has).map(|(_, word)| *word).collect();
    let mut text = if words.is_empty() { "nothing".to_owned() } else { words.join(" + ") };
    if parts > 1 && !has.checkpoints {
        text += ", in parts";
    }
    if rule.on_partial == OnPartial::Escalate {
        text += ", partly done to a person";
    }
    text + ", else " + rule.on_unknown.name()
}
