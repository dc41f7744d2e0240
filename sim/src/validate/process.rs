//! Processes: what strikes them, and what their handlers do meanwhile.

use leaseproof_rules::Guard;
use leaseproof_scenarios::{Op, Point, RunEnd};

use super::{At, Step, Validator, Wrong};
use crate::trace::Line;

/// A process, or a machine that serves.
#[derive(Default)]
pub(super) struct Process {
    /// Grows with every crash.
    pub life: u32,
    state: Life,
    /// When it was told to stand still, in ns.
    paused_ns: Option<u64>,
    /// Cuts that are not healed: the other end and the direction.
    cuts: Vec<(String, String)>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
enum Life {
    #[default]
    NotYet,
    Up,
    Down,
}

impl Process {
    fn words(&self) -> String {
        let state = match (self.state, self.paused_ns) {
            (Life::NotYet, _) => "not started".to_owned(),
            (Life::Down, _) => "dead".to_owned(),
            (Life::Up, None) => "at work".to_owned(),
            (Life::Up, Some(at)) => format!("paused since {at} ns"),
        };
        let cuts: Vec<String> = self.cuts.iter().map(|(peer, way)| format!(", cut {way} {peer}")).collect();
        format!("{state}{}", cuts.concat())
    }
}

impl Validator<'_> {
    /// What happens to a process.
    pub(super) fn process(&mut self, line: &Line) -> Step {
        let says_start = line.node == "database" || self.is_executor(&line.node);
        let Some(process) = self.processes.get_mut(&line.node) else { return Ok(()) };
        let state = format!("{} is {}", line.node, process.words());
        let wrong = |why: &str, allowed: &[&str]| Err(Wrong::new(why, state.clone(), allowed));
        let cut = || Some((line.peer.clone()?, line.way.clone()?));
        match line.event.as_str() {
            "start" if process.state == Life::Up => return wrong("it runs already", &["crash", "pause"]),
            "start" => process.state = Life::Up,
            "crash" if process.state == Life::Down => return wrong("it is dead already", &["start"]),
            "crash" => {
                process.life += 1;
                process.paused_ns = None;
                // The others say nothing when they are back.
                if says_start && process.state == Life::Up || line.for_ms.is_none() {
                    process.state = Life::Down;
                }
            }
            "pause" if process.state == Life::Down => return wrong("the dead do not pause", &["start"]),
            "pause" => process.paused_ns = Some(line.t_ns),
            "resume" => match process.paused_ns.take() {
                Some(_) => {}
                None => return wrong("it does not stand still", &["pause"]),
            },
            "cut" => match cut() {
                Some(cut) => process.cuts.push(cut),
                None => return wrong("a cut from whom?", &["a peer and a way"]),
            },
            "heal" => match cut().and_then(|cut| process.cuts.iter().position(|one| *one == cut)) {
                Some(index) => drop(process.cuts.remove(index)),
                None => return wrong("there is no such cut", &["cut"]),
            },
            _ => {
                let is_sweeper = line.node == "sweeper";
                let comes_to = |point: &Point| match is_sweeper {
                    true => point.op.is_sweepers() || point.op == Op::Query,
                    false => says_start && line.node != "database" && !point.op.is_sweepers(),
                };
                let named = Point::all().filter(comes_to).any(|point| Some(point.name()) == line.point);
                if !named {
                    return wrong("it never comes to this point", &["a point of its own"]);
                }
            }
        }
        Ok(())
    }

    fn is_executor(&self, node: &str) -> bool {
        self.story.executors.iter().any(|executor| executor.name == node)
    }

    /// What a handler does.
    pub(super) fn run(&mut self, at: &At<'_>) -> Step {
        let (line, setup) = (at.line, &self.story.tasks[at.task]);
        let Some(process) = self.processes.get(&line.node) else { return Ok(()) };
        let claims = self.tasks[at.task].runs.len() as u64;
        let state = format!("{} is {}; {}", line.node, process.words(), self.tasks[at.task]);
        let wrong = |why: &str, allowed: &[&str]| Err(Wrong::new(why, state.clone(), allowed));
        // It is told to stand still, and does at its next step.
        let is_paused = process.paused_ns.is_some_and(|at| at < line.t_ns);
        if process.state != Life::Up || is_paused {
            return wrong("its process does not run", &["start", "resume"]);
        }
        let life = process.life;
        let Some((epoch, run)) = line.epoch.and_then(|epoch| Some((epoch, self.tasks[at.task].runs.get_mut(&epoch)?)))
        else {
            return wrong("this run was never claimed", &["claim first"]);
        };
        if run.node != line.node || run.life != life {
            return wrong("this run was claimed by another process", &["by the one that claimed it"]);
        }
        if (line.event == "run_begin") != run.number.is_none() {
            return wrong("a run begins once, and before all else", &["run_begin, once"]);
        }
        match line.event.as_str() {
            "run_begin" => {
                let number = line.count.filter(|number| (1..=claims).contains(number));
                if number.is_none() {
                    return wrong("so many runs were not claimed", &[&format!("count 1 to {claims}")]);
                }
                run.number = number;
            }
            "call_unknown" if run.calls == 0 => return wrong("nothing was called", &["call first"]),
            "call_unknown" => {}
            _ if run.end.is_some() => return wrong("this run's handler has ended", &["a report"]),
            "run_end" => {
                let index = run.number.map_or(0, |number| number.saturating_sub(1)) as usize;
                let ruled = setup.ends.get(index).or(setup.ends.last()).copied().unwrap_or(RunEnd::Ok);
                if line.end.as_deref() != Some(ruled.name()) {
                    return wrong("the story has it end otherwise", &[ruled.name()]);
                }
                run.end = Some(ruled);
            }
            _ => {
                if self.guards.has(Guard::IntentBeforeCall) && !run.has_intent {
                    return wrong("the intent to call is not in the journal", &["intent first"]);
                }
                run.calls += 1;
                self.accounts[at.task].sent(epoch);
            }
        }
        Ok(())
    }
}
