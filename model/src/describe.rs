//! Steps of the free worlds in words.

use leaseproof_rules::Verb;

use crate::copies::Source;
use crate::executor::Turn;
use crate::free::{Action, Fate, LeaseModel};
use crate::state::State;

/// The persons at the desk, as they are called.
pub(crate) const PERSONS: [&str; crate::state::MAX_PERSONS] = ["person", "second person"];

/// The sweepers, as they are called.
pub(crate) const SWEEPERS: [&str; 2] = ["sweeper", "second sweeper"];

pub(crate) fn fate_text(fate: Fate) -> &'static str {
    match fate {
        Fate::Fine => "",
        Fate::RequestLost => ", request lost",
        Fate::ReplyLost => ", reply lost",
    }
}

/// Who does what: `w1: complete t1 epoch 3, reply lost`.
pub fn describe(model: &LeaseModel, before: &State, action: &Action) -> String {
    let run = |run: u8| {
        let run = before.runs[usize::from(run)];
        format!("t{} epoch {}", run.task + 1, run.epoch)
    };
    let of_step = |step: u8| match model.world.setup.shape.parts {
        1 => String::new(),
        _ => format!(" of step {}", step + 1),
    };
    let worker = |run: u8| format!("w{}", run + 1);
    let sweeper = |by: u8| SWEEPERS[usize::from(by)];
    let verb = || {
        let request = model.request_of(before, action);
        let turns = request.is_some_and(|request| request.turns);
        let verb = request.map_or("write", |request| Verb::name(request.verb));
        if turns { format!("{verb} to undo") } else { verb.to_owned() }
    };
    let call = |task: u8, epoch: u8| match before.tasks[usize::from(task)].goes_back(epoch) {
        true => "compensation",
        false => "call",
    };
    match *action {
        Action::Look { run, task } => format!("{}: reads t{} as a candidate", worker(run), task + 1),
        Action::Exchange { run: w, fate } => format!("{}: {} {}{}", worker(w), verb(), run(w), fate_text(fate)),
        Action::Work { run: w, turn } => {
            let what = match turn {
                Turn::Effect => "comes to its call",
                Turn::Ok => "work done",
                Turn::Error => "work failed",
                Turn::BadInput => "input is bad",
            };
            format!("{}: {what}, {}", worker(w), run(w))
        }
        Action::Call { run: w } => format!("{}: calls the third party, {}", worker(w), run(w)),
        Action::NotSent { run: w } => format!("{}: can not reach the third party, {}", worker(w), run(w)),
        Action::Deliver { task, token, step, lost } => {
            let reply = if lost { ", reply lost" } else { "" };
            format!(
                "third party: {} of t{}{} with token {token} arrives{reply}",
                call(task, token),
                task + 1,
                of_step(step)
            )
        }
        Action::DeliverPart { task, token, parts } => {
            format!("third party: call of t{} with token {token} arrives, done up to part {parts}, no reply", task + 1)
        }
        Action::DeliverCopy { task, token, step } => {
            format!("third party: a copy of the call of t{}{} with token {token} arrives", task + 1, of_step(step))
        }
        Action::CallLost { task, token, step } => {
            format!("network: {} of t{}{} with token {token} is lost", call(task, token), task + 1, of_step(step))
        }
        Action::Deadline { run: w } => format!("{}: no reply in time, {}", worker(w), run(w)),
        Action::Query { run: w, fate } => format!("{}: asks the third party, {}{}", worker(w), run(w), fate_text(fate)),
        Action::Heartbeat { run: w } => format!("{}: heartbeat {}", worker(w), run(w)),
        Action::SelfFence { run: w } => format!("{}: stops itself, {}", worker(w), run(w)),
        Action::Crash { run: w } => format!("{}: crashes, {}", worker(w), run(w)),
        Action::Start { run } => format!("{}: a new start registers", worker(run)),
        Action::Release { run: w, fate } => format!("{}: {} {}{}", worker(w), verb(), run(w), fate_text(fate)),
        Action::Deploy => "world: all executors die at once".to_owned(),
        Action::Expire { task } => format!("database: lease of t{} ends", task + 1),
        Action::Overrun { task } => format!("database: t{} is over its expected time", task + 1),
        Action::ClockBack { task } => format!("database: the clock is set back before the time of t{}", task + 1),
        Action::Due { task } => format!("database: t{} is due", task + 1),
        Action::Sweep { by, task } => format!("{}: reads t{}", sweeper(by), task + 1),
        Action::SweeperAsks { by, task, fate } => {
            format!("{}: asks the third party about t{}{}", sweeper(by), task + 1, fate_text(fate))
        }
        Action::SweeperWrites { by, task, fate } => {
            format!("{}: {} t{}{}", sweeper(by), verb(), task + 1, fate_text(fate))
        }
        Action::Open { by, task } => format!("{}: opens t{}", PERSONS[usize::from(by)], task + 1),
        Action::FindOut { by } => {
            let by = usize::from(by);
            format!("{}: finds out about the call of t{}", PERSONS[by], before.desks[by].task + 1)
        }
        Action::Decide { by, act } => {
            let by = usize::from(by);
            format!("{}: {} t{}", PERSONS[by], act.write().0.name(), before.desks[by].task + 1)
        }
        Action::Copy { of } => {
            let verb = model.written(before, of).map_or("write", |request| request.verb.name());
            let whose = match of {
                Source::Run(w) => worker(w),
                Source::Sweeper { by, .. } => sweeper(by).to_owned(),
                Source::Person { by, .. } => PERSONS[usize::from(by)].to_owned(),
            };
            format!("network: copies {verb} of {whose}")
        }
        Action::CopyArrives => {
            let sent = before.extra.copy.map(|sent| sent.request);
            let told =
                sent.map(|request| format!("{} t{} epoch {}", request.verb.name(), request.task + 1, request.epoch));
            format!("database: a copy arrives, {}", told.unwrap_or_default())
        }
        Action::FailOver => "database: fails over and loses its last commit".to_owned(),
        Action::Calm => "world: no more faults".to_owned(),
    }
}
