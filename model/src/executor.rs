//! The executor's protocol: what a run does next, and what it makes of what it hears.
//!
//! A run knows its row as of its claim. While it holds the claim nobody else changes attempts, interruptions and journal
//! of the row, so they are read from the row here; when it does not hold it any more, whatever it concludes is refused.

use leaseproof_rules::{
    Answer, CallOutcome, Decision, EffectRule, EffectStep, Entry, Guard, Judgement, Observation, Signal, Status,
    UnknownEffect, Verb, effect_step, entry_after,
};

use crate::database::{Request, write_entry};
use crate::saga;
use crate::state::{Phase, Run, State};
use crate::world::{Flaw, Setup};

/// What a run does next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Next {
    /// Nothing by itself: the slot is free, or it waits for the third party's reply.
    Wait,
    /// Its handler works on.
    Work,
    /// A write to the database.
    Write(Request),
    /// The outside call.
    Call,
    /// It asks the third party about its unknown call.
    Query,
}

/// How a stretch of work ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Turn {
    /// The handler comes to its outside call.
    Effect,
    /// It succeeds.
    Ok,
    /// It fails, and may be retried.
    Error,
    /// It fails, and is never retried.
    BadInput,
}

/// What a run hears.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Heard {
    /// The write is committed, now or by an earlier attempt.
    Accepted,
    /// The write changed nothing.
    Refused,
    /// No reply within the deadline: the outcome is unknown.
    Unknown,
    /// Its call is done.
    CallDone,
    /// Its call surely did not happen: the third party refuses its token, or it was never sent.
    CallNotDone,
    /// The third party's answer to a question.
    Answer(Answer),
}

impl From<Judgement> for Heard {
    fn from(judgement: Judgement) -> Heard {
        match judgement {
            Judgement::Applied { .. } | Judgement::Already | Judgement::Adopted => Heard::Accepted,
            Judgement::Refused(_) => Heard::Refused,
        }
    }
}

/// A free slot reads a task that can be claimed, and will try to claim it as it read it.
pub fn look(state: &mut State, slot: usize, task: usize) {
    let epoch = state.tasks[task].epoch;
    state.runs[slot] = Run { phase: Phase::Claiming, task: task as u8, epoch, ..Run::IDLE };
}

/// Whether a reader sees this task as one to claim.
pub fn is_candidate(setup: &Setup, state: &State, task: usize) -> bool {
    let task = &state.tasks[task];
    let is_open = task.status == Status::WaitManual && !setup.guards.has(Guard::ManualIsClosed);
    (task.status.is_claimable() || is_open) && task.due
}

/// What the run in this slot does next.
pub fn next(setup: &Setup, state: &State, slot: usize) -> Next {
    let run = state.runs[slot];
    let task = usize::from(run.task);
    let write = |verb, to| Next::Write(Request::plain(task, verb, to, run.epoch).at_step(run.step));
    match run.phase {
        Phase::Idle | Phase::Waiting => Next::Wait,
        Phase::Claiming => write(Verb::Claim, Status::Running),
        Phase::Working | Phase::Doomed | Phase::Finishing => Next::Work,
        Phase::Intending => write(Verb::Intent, Status::Running),
        Phase::Calling => Next::Call,
        Phase::Recording => outcome(run, Entry::Done),
        Phase::Retracting => outcome(run, Entry::NotDone),
        Phase::Completing if state.tasks[task].goes_back(run.epoch) => Next::Write(saga::ends(&state.tasks[task], run)),
        Phase::Completing => write(Verb::Complete, Status::Success),
        Phase::Failing | Phase::FailingBad | Phase::Unsure => {
            observe(setup, state, slot).map_or(Next::Wait, |seen| after_failure(setup, state, slot, &seen))
        }
    }
}

/// What a call came to goes into the journal.
fn outcome(run: Run, entry: Entry) -> Next {
    let request = Request::plain(run.task.into(), Verb::Outcome, Status::Running, run.epoch).at_step(run.step);
    Next::Write(Request { learnt: Some(entry), ..request })
}

/// What the failing executor in this slot decides on; `None` if none is failing there.
pub fn observe(setup: &Setup, state: &State, slot: usize) -> Option<Observation> {
    let run = state.runs[slot];
    if !matches!(run.phase, Phase::Failing | Phase::FailingBad | Phase::Unsure) {
        return None;
    }
    let index = usize::from(run.task);
    let row = &state.tasks[index];
    let intent_only = run.phase == Phase::Unsure || row.journal == Some(Entry::Intent);
    let unknown = setup.effects[index].filter(|_| intent_only).map(|rule: EffectRule| UnknownEffect {
        rule,
        answer: run.answer,
        asked_ms: 0,
    });
    Some(Observation {
        signal: Signal::Failed { retryable: run.phase != Phase::FailingBad },
        running_ms: 0,
        attempts: u32::from(row.attempts),
        interruptions: u32::from(row.interruptions),
        unknown,
        progress: setup.progress(index, row.recorded(), row.goes_back(run.epoch)),
    })
}

/// The failing executor decides by the same rule as the sweeper (A3).
fn after_failure(setup: &Setup, state: &State, slot: usize, seen: &Observation) -> Next {
    let run = state.runs[slot];
    let decision = setup.decide(run.task.into(), seen);
    match Request::of_decision(run.task.into(), run.epoch, decision, Verb::Retry, Verb::GiveUp) {
        Some(request) => Next::Write(request.at_step(run.step)),
        None if decision == Decision::Ask => Next::Query,
        None => Next::Wait,
    }
}

/// What the run in this slot does that has asked a silent third party for so long; `None` if it asks again.
pub fn next_after_silence(setup: &Setup, state: &State, slot: usize, asked_ms: u64) -> Option<Next> {
    let mut seen = observe(setup, state, slot)?;
    let unknown = seen.unknown.as_mut().filter(|unknown| unknown.answer.is_none())?;
    (unknown.answer, unknown.asked_ms) = (Some(Answer::Unavailable), asked_ms);
    Some(after_failure(setup, state, slot, &seen)).filter(|next| *next != Next::Wait)
}

/// The claim is committed, and its reply brings epoch and journal: how the run will go about its outside call follows.
pub fn begin(setup: &Setup, state: &mut State, slot: usize) {
    let index = usize::from(state.runs[slot].task);
    let task = state.tasks[index];
    let (step, journal) = match setup.flaw {
        Some(Flaw::FromTheStart) if task.step > 0 => (0, None),
        _ => (task.step, task.journal),
    };
    let first = setup.effects[index].map(|rule| effect_step(journal, rule));
    let run = &mut state.runs[slot];
    (run.epoch, run.step) = (task.epoch, step);
    run.earlier_open = first == Some(EffectStep::Call) && journal == Some(Entry::Intent);
    let back = task.goes_back(run.epoch);
    match first {
        Some(EffectStep::Call) => run.phase = Phase::Working,
        Some(EffectStep::Stop) => run.phase = Phase::Doomed,
        Some(EffectStep::Reuse | EffectStep::Skip) | None => pass_step(setup, run, back),
    }
}

/// A step is done, or left out: of the next one nothing is in the journal yet.
fn pass_step(setup: &Setup, run: &mut Run, back: bool) {
    let more = if back {
        run.step > 0 && setup.flaw != Some(Flaw::UndoesOnlyTheLast)
    } else {
        usize::from(run.step) + 1 < setup.steps_of(run.task.into())
    };
    run.step = match back {
        true => run.step - u8::from(more),
        false => run.step + u8::from(more),
    };
    run.phase = if more { Phase::Working } else { Phase::Finishing };
}

/// The handler comes to its call, or ends.
pub fn turn(setup: &Setup, state: &mut State, slot: usize, turn: Turn) {
    let run = &mut state.runs[slot];
    run.phase = match (turn, run.phase) {
        (Turn::Effect, Phase::Doomed) => Phase::Unsure,
        (Turn::Effect, _) if setup.guards.has(Guard::IntentBeforeCall) => Phase::Intending,
        (Turn::Effect, _) => Phase::Calling,
        (Turn::Ok, _) => Phase::Completing,
        (Turn::Error, _) => Phase::Failing,
        (Turn::BadInput, _) => Phase::FailingBad,
    };
}

/// The run in this slot hears something and goes on, or stops.
pub fn hear(setup: &Setup, state: &mut State, slot: usize, heard: Heard) {
    if state.runs[slot].phase == Phase::Claiming && heard == Heard::Accepted {
        begin(setup, state, slot);
        return;
    }
    if setup.flaw == Some(Flaw::EntryAfterSuccess)
        && (state.runs[slot].phase, heard) == (Phase::Completing, Heard::Accepted)
    {
        write_entry(setup, state, state.runs[slot].task.into());
    }
    let run = &mut state.runs[slot];
    let back = state.tasks[usize::from(run.task)].goes_back(run.epoch);
    match (run.phase, heard) {
        // A claim of unknown outcome is forgotten: nobody runs it, and if it was made its lease ends.
        (Phase::Claiming, _) => *run = Run::IDLE,
        (Phase::Intending, Heard::Accepted) => run.phase = Phase::Calling,
        (Phase::Recording, Heard::Accepted) => pass_step(setup, run, back),
        (Phase::Retracting, Heard::Accepted) => run.phase = Phase::Failing,
        (Phase::Calling | Phase::Waiting, Heard::CallDone) => called(run, CallOutcome::Done),
        (Phase::Calling | Phase::Waiting, Heard::CallNotDone) => called(run, CallOutcome::NotDone),
        (Phase::Waiting, Heard::Unknown) => called(run, CallOutcome::Unknown),
        (_, Heard::Answer(Answer::Unavailable)) => {}
        (_, Heard::Answer(answer)) => run.answer = Some(answer),
        // What is written with an epoch can be written again until the answer is known.
        (_, Heard::Unknown) => {}
        // Refused: not the owner any more. Accepted: the run has ended.
        (_, Heard::Accepted | Heard::Refused | Heard::CallDone | Heard::CallNotDone) => *run = Run::IDLE,
    }
}

/// Its call is over: what is journalled of it follows.
fn called(run: &mut Run, outcome: CallOutcome) {
    let before = run.earlier_open.then_some(Entry::Intent);
    run.earlier_open = false;
    run.phase = match entry_after(before, outcome) {
        Entry::Done => Phase::Recording,
        Entry::NotDone => Phase::Retracting,
        Entry::Intent => Phase::Unsure,
    };
}

/// The run is cancelled: its lease is lost, its process is gone, or it has stopped itself. A call under way stays so.
pub fn cancel(state: &mut State, slot: usize) {
    state.runs[slot] = Run::IDLE;
}

/// How a run that is told to stop puts its task back unharmed: a deploy, done in order. `None` where a call of it may be on
/// its way, or where it has ended: then its lease ends, or it reports.
pub fn release(state: &State, slot: usize) -> Option<Request> {
    let run = state.runs[slot];
    let index = usize::from(run.task);
    let works = matches!(run.phase, Phase::Working | Phase::Doomed | Phase::Finishing);
    let is_known = state.tasks[index].journal != Some(Entry::Intent);
    (works && is_known).then(|| Request::plain(index, Verb::Release, Status::Pending, run.epoch))
}

/// The renewal of this run's lease.
pub fn heartbeat(run: Run) -> Request {
    Request::plain(usize::from(run.task), Verb::Heartbeat, Status::Running, run.epoch)
}
