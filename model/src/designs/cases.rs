//! The worlds in which the older designs are checked, and what must be reachable there.

use leaseproof_rules::{Property, Status};
use stateright::Model;

use super::commit_running::{self, CommitRunning};
use super::handler::{Faults, Phase, Setup, Turn};
use super::single_transaction::{self, Session, Sessions, SingleTransaction};
use super::{APPLICABLE, Design};
use crate::evidence::Readable;
use crate::free::Fate;

/// Worlds that are answered for together, and the properties that are asked of them.
#[derive(Clone, Debug)]
pub struct Case<M> {
    /// The worlds.
    pub worlds: Vec<M>,
    /// The properties.
    pub properties: Vec<Property>,
    /// Whether it is the design as it is meant, under every fault: then it must also show every [`Witness`]. The other
    /// cases show what an answer depends on.
    pub as_meant: bool,
}

impl<M> Case<M> {
    fn as_meant(worlds: Vec<M>) -> Case<M> {
        Case { worlds, properties: APPLICABLE.to_vec(), as_meant: true }
    }

    fn contrast(world: M, properties: &[Property]) -> Case<M> {
        Case { worlds: vec![world], properties: properties.to_vec(), as_meant: false }
    }
}

/// What must be reachable.
pub struct Witness<M: Readable> {
    /// As a sentence.
    pub name: String,
    /// A state or a step.
    pub find: Find<M>,
}

/// Tells whether a state shows it.
pub type OfState<M> = Box<dyn Fn(&<M as Model>::State) -> bool>;
/// Tells whether a step shows it: the state before, and the action.
pub type OfStep<M> = Box<dyn Fn(&<M as Model>::State, &<M as Model>::Action) -> bool>;

/// Where to look for a [`Witness`].
pub enum Find<M: Readable> {
    /// In a state.
    State(OfState<M>),
    /// In a step from a state.
    Step(OfStep<M>),
}

fn state<M: Readable>(name: &str, find: impl Fn(&M::State) -> bool + 'static) -> Witness<M> {
    Witness { name: name.to_owned(), find: Find::State(Box::new(find)) }
}

fn step<M: Readable>(name: &str, find: impl Fn(&M::State, &M::Action) -> bool + 'static) -> Witness<M> {
    Witness { name: name.to_owned(), find: Find::Step(Box::new(find)) }
}

/// One of the older designs.
pub trait Older: Readable {
    /// Which.
    const DESIGN: Design;

    /// The world's name.
    fn name(&self) -> &str;
    /// What everybody can read in the row.
    fn status(state: &Self::State) -> Status;
    /// The violated properties, one bit each, see [`crate::properties::bit`].
    fn bad(state: &Self::State) -> u16;
    /// What is checked: the design as it is meant first, then the contrasts.
    fn cases() -> Vec<Case<Self>>
    where
        Self: Sized;
    /// What must be reachable in the design as it is meant.
    fn witnesses() -> Vec<Witness<Self>>
    where
        Self: Sized;
}

const RESOLVED: [Property; 1] = [Property::EventuallyResolved];
const WITHOUT_CALL: Setup = Setup { calls: false, ..Setup::new(3) };

fn only(faults: Faults) -> Setup {
    Setup { faults, ..Setup::new(2) }
}

impl Readable for CommitRunning {
    fn tell(&self, before: &commit_running::State, action: &commit_running::Action) -> String {
        self.describe(before, action)
    }
}

impl Older for CommitRunning {
    const DESIGN: Design = Design::CommitRunning;

    fn name(&self) -> &str {
        &self.name
    }

    fn status(state: &commit_running::State) -> Status {
        state.status
    }

    fn bad(state: &commit_running::State) -> u16 {
        state.bad
    }

    fn cases() -> Vec<Case<CommitRunning>> {
        let world = CommitRunning::new;
        let none = Faults::NONE;
        let lost = Faults { lost_request: true, lost_reply: true, ..none };
        let reset = CommitRunning { reset: true, ..world("RUNNING is reset after a while", Setup::new(2)) };
        vec![
            Case::as_meant(vec![
                world("1 task × 2 executors, a call", Setup::new(2)),
                world("1 task × 3 executors", WITHOUT_CALL),
            ]),
            Case::contrast(world("nothing goes wrong", only(none)), &RESOLVED),
            Case::contrast(world("processes die", only(Faults { crash: true, ..none })), &RESOLVED),
            Case::contrast(world("handlers hang", only(Faults { hang: true, ..none })), &RESOLVED),
            Case::contrast(world("messages are lost", only(lost)), &RESOLVED),
            Case::contrast(reset, &APPLICABLE),
        ]
    }

    fn witnesses() -> Vec<Witness<CommitRunning>> {
        use commit_running::{Action, State};
        let working = |state: &State| state.runs.iter().any(|phase| phase.is_executing());
        let running = |state: &State| state.status == Status::Running;
        let mut all: Vec<Witness<CommitRunning>> = statuses(commit_running_status);
        all.extend([
            state("RUNNING, and its executor works", move |s| running(s) && working(s)),
            state("the same row, and nobody works", move |s| running(s) && !working(s)),
            step("a process dies", |_, a| matches!(a, Action::Crash { .. })),
            step("a handler hangs", |_, a| matches!(a, Action::Hang { .. })),
            step("a request is lost", |_, a| matches!(a, Action::Claim { fate: Fate::RequestLost, .. })),
            step("a reply is lost", |_, a| matches!(a, Action::Claim { fate: Fate::ReplyLost, .. })),
            step("a call is lost", |_, a| matches!(a, Action::Work { turn: Turn::CallLost, .. })),
            step("the reply to a call is lost", |_, a| matches!(a, Action::Work { turn: Turn::ReplyLost, .. })),
            step("a call arrives after its sender has gone", |_, a| *a == Action::StrayArrives),
            step("a claim comes too late and changes 0 rows", move |s, a| {
                running(s) && matches!(a, Action::Claim { fate: Fate::Fine, .. })
            }),
        ]);
        all
    }
}

impl Readable for SingleTransaction {
    fn tell(&self, before: &single_transaction::State, action: &single_transaction::Action) -> String {
        self.describe(before, action)
    }
}

impl Older for SingleTransaction {
    const DESIGN: Design = Design::SingleTransaction;

    fn name(&self) -> &str {
        &self.name
    }

    fn status(state: &single_transaction::State) -> Status {
        state.status
    }

    fn bad(state: &single_transaction::State) -> u16 {
        state.bad
    }

    fn cases() -> Vec<Case<SingleTransaction>> {
        let world = SingleTransaction::new;
        let under = |name: &str, faults: Faults, keepalive: bool, idle_timeout: bool| SingleTransaction {
            sessions: Sessions { keepalive, idle_timeout },
            ..world(name, only(faults))
        };
        let all = Faults::ALL;
        let no_hang = Faults { hang: false, ..all };
        let dies = Faults { crash: true, ..Faults::NONE };
        // Not counted, or the cycle would begin only when the count has reached its end.
        let uncounted = Setup { max_interruptions: None, ..Setup::new(2) };
        let outlasts =
            SingleTransaction { outlasts_timeout: true, ..world("runs outlast the idle timeout", uncounted) };
        vec![
            Case::as_meant(vec![
                world("1 task × 2 executors, a call", Setup::new(2)),
                world("1 task × 3 executors", WITHOUT_CALL),
            ]),
            Case::contrast(under("neither keepalive nor idle timeout", all, false, false), &RESOLVED),
            Case::contrast(under("neither, but processes only die cleanly", dies, false, false), &RESOLVED),
            Case::contrast(under("keepalive alone", all, true, false), &RESOLVED),
            Case::contrast(under("keepalive alone, no handler hangs", no_hang, true, false), &RESOLVED),
            Case::contrast(under("idle timeout alone", all, false, true), &RESOLVED),
            Case::contrast(outlasts, &RESOLVED),
        ]
    }

    fn witnesses() -> Vec<Witness<SingleTransaction>> {
        use single_transaction::{Action, State, Whose};
        let unsure = |state: &State| state.runs.iter().any(|(phase, _)| *phase == Phase::Unsure);
        let ended = |state: &State, run: u8| state.runs[usize::from(run)].1 == Session::Ended;
        let keepalive = |a: &Action| matches!(a, Action::Keepalive { whose: Whose::Orphan });
        let mut all: Vec<Witness<SingleTransaction>> = statuses(single_transaction_status);
        all.extend([
            state("a commit whose fate is unknown was made", move |s: &State| unsure(s) && s.status == Status::Success),
            state("a commit whose fate is unknown was not made", move |s| unsure(s) && s.status == Status::Pending),
            state("two handlers work on the task, one of them in a session that has ended", |s: &State| {
                s.runs.iter().filter(|(phase, _)| phase.is_at_work()).count() > 1
            }),
            step("a process dies and its connection is reset", |_, a| matches!(a, Action::Crash { .. })),
            step("a host dies in silence", |_, a| matches!(a, Action::HostFault { .. })),
            step("a handler hangs", |_, a| matches!(a, Action::Hang { .. })),
            step("the network is cut under a transaction", |_, a| matches!(a, Action::Cut { .. })),
            step("a request is lost", |_, a| matches!(a, Action::Commit { fate: Fate::RequestLost, .. })),
            step("a reply is lost", |_, a| matches!(a, Action::Commit { fate: Fate::ReplyLost, .. })),
            step("a call is lost", |_, a| matches!(a, Action::Work { turn: Turn::CallLost, .. })),
            step("the reply to a call is lost", |_, a| matches!(a, Action::Work { turn: Turn::ReplyLost, .. })),
            step("a call arrives after its sender has gone", |_, a| *a == Action::StrayArrives),
            step("keepalive ends the session of a silent peer", move |_, a| keepalive(a)),
            step("the idle timeout ends the session of a live run", |_, a| {
                matches!(a, Action::IdleTimeout { whose: Whose::Run(_) })
            }),
            step("a claim meets the lock", |s: &State, a| {
                s.is_locked() && matches!(a, Action::Claim { fate: Fate::Fine, .. })
            }),
            step(
                "a run wakes up after its session has ended, commits and is refused",
                move |s, a| matches!(a, Action::Commit { run, fate: Fate::Fine } if ended(s, *run)),
            ),
        ]);
        all
    }
}

/// What a row of commit-running can show.
fn commit_running_status(state: &commit_running::State, status: Status) -> bool {
    state.status == status
}

/// What a row of single-transaction can show: to everybody, and RUNNING inside its own transaction only.
fn single_transaction_status(state: &single_transaction::State, status: Status) -> bool {
    match status {
        Status::Running => state.runs.iter().any(|(_, session)| session.holds_lock()),
        _ => state.status == status,
    }
}

fn statuses<M: Readable + 'static>(has: fn(&M::State, Status) -> bool) -> Vec<Witness<M>> {
    let reachable = [Status::Pending, Status::Running, Status::Success, Status::Fail];
    reachable.map(|status| state(&format!("some task is {status}"), move |s: &M::State| has(s, status))).into()
}
