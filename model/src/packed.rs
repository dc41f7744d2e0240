//! The free worlds' states as the checkers keep them: four words, readable when printed.

use std::fmt;

use crate::bits::{ArrayWriter, Coder, Reader};
use crate::state::{Desk, Run, Seen, Shape, State, Task};
use crate::world::{FREE_RUNS, FREE_TASKS};

const SHAPE: Shape = Shape { tasks: FREE_TASKS, runs: FREE_RUNS };

/// A [`State`] of a free world, packed. Equal exactly when the states are.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Packed([u64; 4]);

impl Packed {
    /// Packs.
    pub fn pack(state: &State, shape: Shape) -> Packed {
        let mut state = *state;
        let mut writer = ArrayWriter::new();
        // How much of it is used is kept only so that it can be printed without the world at hand.
        writer.small(&mut (shape.tasks as u8), 2);
        writer.small(&mut (shape.runs as u8), 2);
        state.code(SHAPE, &mut writer);
        Packed(writer.words)
    }

    /// Unpacks.
    pub fn unpack(&self) -> State {
        self.unpack_with_shape().0
    }

    fn unpack_with_shape(&self) -> (State, Shape) {
        let mut reader = Reader::new(&self.0);
        let (mut tasks, mut runs) = (0, 0);
        reader.small(&mut tasks, 2);
        reader.small(&mut runs, 2);
        let mut state = State::NEW;
        state.code(SHAPE, &mut reader);
        (state, Shape { tasks: usize::from(tasks), runs: usize::from(runs) })
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (state, shape) = self.unpack_with_shape();
        let mut lines = Vec::new();
        for (i, task) in state.tasks[..shape.tasks].iter().enumerate() {
            lines.push((format!("task t{}", i + 1), describe_task(task)));
        }
        for (i, run) in state.runs[..shape.runs].iter().enumerate() {
            lines.push((format!("executor w{}", i + 1), describe_run(run)));
        }
        for (i, seen) in state.seen[..shape.tasks].iter().enumerate() {
            if *seen != Seen::NOTHING {
                lines.push(("sweeper".to_owned(), format!("remembers t{}: {}", i + 1, describe_seen(seen))));
            }
        }
        if state.desk != Desk::EMPTY {
            let Desk { task, epoch, .. } = state.desk;
            lines.push(("person".to_owned(), format!("looks at t{} of epoch {epoch}", task + 1)));
        }
        if state.reruns > 0 {
            lines.push(("reruns".to_owned(), state.reruns.to_string()));
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

fn describe_task(task: &Task) -> String {
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
    if task.attempts + task.interruptions > 0 {
        add(format!("failed {}×, lost {}×", task.attempts, task.interruptions));
    }
    if let Some(entry) = task.journal {
        add(format!("journal {}", entry.name()));
    }
    if let Some(reason) = task.reason {
        add(format!("because {reason}"));
    }
    if task.ledger > 0 {
        add(format!("effect happened {}×", task.ledger));
    }
    if task.fence > 0 {
        add(format!("third party refuses tokens below {}", task.fence));
    }
    for token in (0..32).filter(|token| task.calls & (1 << token) != 0) {
        add(format!("call with token {token} under way"));
    }
    if task.decided > 0 {
        add(format!("a person decided at epoch {}", task.decided));
    }
    text
}

fn describe_run(run: &Run) -> String {
    if *run == Run::IDLE {
        return "idle".to_owned();
    }
    let answer = run.answer.map_or(String::new(), |answer| format!(", was told {answer:?}"));
    format!("{:?} t{} epoch {}{answer}", run.phase, run.task + 1, run.epoch)
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
