//! The free worlds' states as the checkers keep them: four words, readable when printed.

use std::fmt;

use crate::bits::{ArrayWriter, Coder, Patch, Pieces, Reader};
use crate::copies::Sent;
use crate::describe::{PERSONS, SWEEPERS};
use crate::extra::{Boot, Extras};
use crate::state::{Desk, Run, Seen, Shape, State, Task};

/// Codes a state. For the shapes of most worlds the shape is a constant, and so is every field's place: packing, which is
/// what a search does most, is then a few instructions a field. Others are coded alike, slower.
#[inline(always)]
fn code(state: &mut State, shape: Shape, c: &mut impl Coder) {
    macro_rules! constants {
        ($($tasks:literal $runs:literal),*) => {
            match shape {
                $(Shape { tasks: $tasks, runs: $runs, parts: 1, extras: Extras::NONE } => {
                    state.code(Shape { tasks: $tasks, runs: $runs, parts: 1, extras: Extras::NONE }, c);
                })*
                other => state.code(other, c),
            }
        };
    }
    constants!(1 1, 1 2, 1 3, 2 1, 2 2, 2 3)
}

#[inline(always)]
fn code_shape(shape: &mut Shape, c: &mut impl Coder) {
    let (mut tasks, mut runs, mut parts) = (shape.tasks as u8, shape.runs as u8, shape.parts as u8);
    c.small(&mut tasks, 2);
    c.small(&mut runs, 2);
    c.small(&mut parts, 3);
    (shape.tasks, shape.runs, shape.parts) = (tasks.into(), runs.into(), parts.into());
    shape.extras.code(c);
}

/// A [`State`] of a free world, packed. Equal exactly when the states are.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Packed([u64; 4]);

impl Packed {
    /// Packs.
    pub fn pack(state: &State, shape: Shape) -> Packed {
        Packed::pack_in_place(&mut { *state }, shape)
    }

    /// As [`Packed::pack`], without a copy: writing goes over the fields as reading does, and leaves them as they are.
    #[inline]
    fn pack_in_place(state: &mut State, shape: Shape) -> Packed {
        let mut writer = ArrayWriter::new();
        // Only what the world uses is kept, so that small worlds have room for what large ones have none for.
        code_shape(&mut { shape }, &mut writer);
        code(state, shape, &mut writer);
        Packed(writer.words)
    }

    /// Packs a state that differs from this one in `changed` pieces at most.
    #[inline]
    pub(crate) fn repack(&self, state: &mut State, shape: Shape, changed: Pieces) -> Packed {
        // With extras a state has parts whose width varies.
        if shape.extras != Extras::NONE {
            return Packed::pack_in_place(state, shape);
        }
        let mut patch = Patch::new(self.0, changed);
        code_shape(&mut { shape }, &mut patch);
        code(state, shape, &mut patch);
        let packed = Packed(patch.finish());
        debug_assert_eq!(packed, Packed::pack(state, shape), "a step changes more than {changed:?}");
        packed
    }

    /// Unpacks.
    pub fn unpack(&self) -> State {
        self.unpack_with_shape().0
    }

    fn unpack_with_shape(&self) -> (State, Shape) {
        let mut reader = Reader::new(&self.0);
        let mut shape = Shape { tasks: 0, runs: 0, parts: 0, extras: Extras::NONE };
        code_shape(&mut shape, &mut reader);
        let mut state = State::NEW;
        code(&mut state, shape, &mut reader);
        (state, shape)
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (state, shape) = self.unpack_with_shape();
        let mut lines = Vec::new();
        for (i, task) in state.tasks[..shape.tasks].iter().enumerate() {
            lines.push((format!("task t{}", i + 1), describe_task(task, shape)));
        }
        for (i, run) in state.runs[..shape.runs].iter().enumerate() {
            let boot = match state.extra.boots.get(i) {
                Some(boot) if shape.extras.boots && *boot != Boot::Current => format!(", {boot:?}").to_lowercase(),
                _ => String::new(),
            };
            lines.push((format!("executor w{}", i + 1), describe_run(run, shape) + &boot));
        }
        for (who, memory) in SWEEPERS.into_iter().zip([&state.seen, &state.extra.seen]) {
            for (i, seen) in memory[..shape.tasks].iter().enumerate().filter(|(_, seen)| **seen != Seen::NOTHING) {
                lines.push((who.to_owned(), format!("remembers t{}: {}", i + 1, describe_seen(seen))));
            }
        }
        for (who, desk) in PERSONS.into_iter().zip(state.desks).filter(|(_, desk)| *desk != Desk::EMPTY) {
            let truth = match (desk.found_out, desk.truth) {
                (false, _) => "",
                (true, None) => ", knows that the call was done in part",
                (true, Some(true)) => ", knows that the call was done",
                (true, Some(false)) => ", knows that the call was not done",
            };
            lines.push((who.to_owned(), format!("looks at t{} of epoch {}{truth}", desk.task + 1, desk.epoch)));
        }
        if state.reruns > 0 {
            lines.push(("reruns".to_owned(), state.reruns.to_string()));
        }
        if state.extra.releases > 0 {
            lines.push(("releases".to_owned(), state.extra.releases.to_string()));
        }
        if let Some(Sent { request, .. }) = state.extra.copy {
            let told =
                format!("copy of {} t{} epoch {} under way", request.verb.name(), request.task + 1, request.epoch);
            lines.push(("network".to_owned(), told));
        }
        if let Some(past) = state.extra.past {
            lines.push(("replica".to_owned(), format!("has t1 as {}", describe_task(&past, shape))));
        }
        if state.extra.failed_over {
            lines.push(("database".to_owned(), "has failed over".to_owned()));
        }
        if state.calm {
            lines.push(("world".to_owned(), "no more faults".to_owned()));
        }
        for property in leaseproof_rules::Property::ALL {
            if state.bad & crate::properties::bit(property) != 0 {
                lines.push(("violated".to_owned(), property.name().to_owned()));
            }
        }
        let between = if f.alternate() { "\n" } else { " · " };
        for (i, (who, what)) in lines.iter().enumerate() {
            let start = if i == 0 { "" } else { between };
            write!(f, "{start}{who}: {what}")?;
        }
        Ok(())
    }
}

fn describe_task(task: &Task, shape: Shape) -> String {
    if *task == Task::UNWRITTEN {
        return "not written yet".to_owned();
    }
    let mut text = format!("{} epoch {}", task.status, task.epoch);
    let mut add = |part: String| {
        text.push_str(", ");
        text.push_str(&part);
    };
    if task.expired {
        add("lease ended".into());
    }
    if task.overrun {
        add("overrun".into());
    }
    if task.superseded {
        add("owner superseded".into());
    }
    if task.attempts + task.interruptions > 0 {
        add(format!("failed {}×, lost {}×", task.attempts, task.interruptions));
    }
    if let Some(entry) = task.journal {
        add(format!("journal {}{}", entry.name(), of_step(task.step, shape)));
    }
    if let Some(reason) = task.reason {
        add(format!("because {reason}"));
    }
    if task.happened() > 0 {
        let times = task.ledger[..shape.parts].iter().map(|times| format!("{times}×"));
        add(format!("effect happened {}", times.collect::<Vec<_>>().join(" ")));
    }
    if task.turned > 0 {
        add(format!("is undone since epoch {}", task.turned));
    }
    if task.undone.iter().any(|&times| times > 0) {
        let times = task.undone[..shape.parts].iter().map(|times| format!("{times}×"));
        add(format!("compensation made {}", times.collect::<Vec<_>>().join(" ")));
    }
    if task.fence > 0 {
        add(format!("third party refuses tokens below {}", task.fence));
    }
    for (token, step) in shape.calls(task.calls) {
        add(format!("call{} with token {token} under way", of_step(step, shape)));
    }
    if task.decided > 0 {
        add(format!("a person decided at epoch {}", task.decided));
    }
    text
}

/// Which step it is about; nothing where there is but one.
fn of_step(step: u8, shape: Shape) -> String {
    if shape.parts > 1 { format!(" of step {}", step + 1) } else { String::new() }
}

fn describe_run(run: &Run, shape: Shape) -> String {
    if *run == Run::IDLE {
        return "idle".to_owned();
    }
    let answer = run.answer.map_or(String::new(), |answer| format!(", was told {answer:?}"));
    let earlier = if run.earlier_open { ", an earlier call is open" } else { "" };
    format!("{:?}{} t{} epoch {}{answer}{earlier}", run.phase, of_step(run.step, shape), run.task + 1, run.epoch)
}

fn describe_seen(seen: &Seen) -> String {
    let mut text = format!("epoch {}", seen.epoch);
    if let Some(picked) = seen.signal {
        text += &format!(", {picked:?}");
    }
    if seen.intent {
        text += ", an intent without outcome";
    }
    if let Some(answer) = seen.answer {
        text += &format!(", third party says {answer:?}");
    }
    text
}
