//! The injector: strikes where and when the story says, and heals when it is time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use leaseproof_scenarios::{Act, Fault, Node, Phase, Point, Story, Trigger, Way};
use madsim::net::NetSim;
use madsim::rand::Rng;
use madsim::runtime::{Handle, NodeHandle};
use madsim::task::NodeId;
use tokio::sync::oneshot;

use crate::db::{Answer, Arrival};
use crate::event::{Actor, What};
use crate::observer::Observer;

/// How much later than the story says a fault by time may strike, in ms. A story's times are not exact to the
/// millisecond, and what falls on the same moment happens in any order: the seed decides.
pub const JITTER_MS: std::ops::Range<u64> = 0..150;

/// Strikes and heals the faults of one run.
pub struct Faults {
    observer: Arc<Observer>,
    faults: Vec<Fault>,
    machines: OnceLock<Machines>,
    state: Mutex<State>,
}

struct Machines {
    nodes: BTreeMap<Node, NodeId>,
    /// Outlives every fault: what has to happen later runs here.
    keeper: NodeHandle,
}

#[derive(Default)]
struct State {
    progress: Vec<Progress>,
    process: BTreeMap<Node, Process>,
    /// How many cuts hold for the link from the first to the second.
    cuts: BTreeMap<(Node, Node), u32>,
    /// Restarts, resumptions and heals that are to come.
    pending: u32,
    first: Option<Duration>,
    last: Duration,
}

#[derive(Clone, Copy, Default)]
struct Progress {
    /// How often the node was at the point.
    seen: u32,
    /// Of a fault by time: its moment is past.
    over: bool,
    /// It has struck: what it does was done, and to a process that lived.
    struck: bool,
}

#[derive(Default)]
struct Process {
    /// Grows when it dies.
    incarnation: u32,
    down: bool,
    /// How many pauses hold.
    paused: u32,
    /// Statements that wait for it to go on. Lost when it dies.
    held: Vec<oneshot::Sender<()>>,
}

impl Faults {
    /// The faults of a story; none has struck.
    pub fn new(story: &Story, observer: Arc<Observer>) -> Faults {
        let state = State { progress: vec![Progress::default(); story.faults.len()], ..State::default() };
        Faults { observer, faults: story.faults.clone(), machines: OnceLock::new(), state: Mutex::new(state) }
    }

    /// Story time begins: faults by time are set.
    pub fn arm(self: &Arc<Faults>, nodes: BTreeMap<Node, NodeId>, keeper: NodeHandle) {
        for (index, fault) in self.faults.iter().enumerate() {
            if let Trigger::After { ms } = fault.trigger {
                let late = madsim::rand::thread_rng().gen_range(JITTER_MS);
                let faults = self.clone();
                keeper.spawn(async move {
                    madsim::time::sleep(Duration::from_millis(ms + late)).await;
                    faults.state().progress[index].over = true;
                    faults.strike(index);
                });
            }
        }
        let _ = self.machines.set(Machines { nodes, keeper });
    }

    /// Which faults have struck, by their indices in the story.
    pub fn struck_ones(&self) -> BTreeSet<usize> {
        let state = self.state();
        state.progress.iter().enumerate().filter(|(_, progress)| progress.struck).map(|(index, _)| index).collect()
    }

    /// When the first fault struck, in story time.
    pub fn first(&self) -> Option<Duration> {
        self.state().first
    }

    /// Since when no fault is at work and none by time is to come; `None` while one is.
    pub fn quiet_since(&self) -> Option<Duration> {
        let state = self.state();
        let timed =
            |(fault, progress): (&Fault, &Progress)| matches!(fault.trigger, Trigger::After { .. }) && !progress.over;
        let open = self.faults.iter().zip(&state.progress).any(timed);
        (!open && state.pending == 0).then_some(state.last)
    }

    /// Whether some fault waits for this point at this node, so that it matters whether a poll finds something.
    pub fn waits_at(&self, node: Node, point: Point) -> bool {
        let here =
            |fault: &Fault| fault.on == node && matches!(fault.trigger, Trigger::At { point: at, .. } if at == point);
        self.faults.iter().any(here)
    }

    /// A statement stands at the database's door.
    pub fn arrived(self: &Arc<Faults>, node: Node, point: Point) -> Arrival {
        let mut arrival = Arrival::Execute;
        for index in self.visit(node, point) {
            match self.faults[index].act {
                Act::Lose { .. } => {
                    self.lose(index, point);
                    arrival = Arrival::Lose;
                }
                Act::Crash { .. } => {
                    self.observer.record(Actor::Node(node), What::Hold { point });
                    self.strike(index);
                    arrival = Arrival::Lose;
                }
                Act::Pause { .. } => {
                    self.observer.record(Actor::Node(node), What::Hold { point });
                    self.strike(index);
                    let (release, released) = oneshot::channel();
                    self.state().process.entry(node).or_default().held.push(release);
                    arrival = Arrival::Hold(released);
                }
                Act::Cut { peer, way, .. } => {
                    self.strike(index);
                    if peer == Node::Database && way != Way::From {
                        self.lose(index, point);
                        arrival = Arrival::Lose;
                    }
                }
            }
        }
        arrival
    }

    /// A statement has been committed.
    pub fn committed(self: &Arc<Faults>, node: Node, point: Point) -> Answer {
        match self.replied(node, point) {
            true => Answer::Lose,
            false => Answer::Send,
        }
    }

    /// A receiver has done what it was asked and is about to reply. True: the reply is lost.
    pub fn replied(self: &Arc<Faults>, node: Node, point: Point) -> bool {
        let mut lost = false;
        for index in self.visit(node, point) {
            match self.faults[index].act {
                Act::Lose { .. } => {
                    self.lose(index, point);
                    lost = true;
                }
                Act::Crash { .. } => {
                    self.strike(index);
                    lost = true;
                }
                // the reply reaches the machine, the process reads it when it goes on
                Act::Pause { .. } | Act::Cut { .. } => self.strike(index),
            }
        }
        lost
    }

    /// The calling process is about to send a message to the third party. True: it is lost on its way. Returns after
    /// the process has been stopped and resumed, and not at all if it has died.
    pub async fn sending(self: &Arc<Faults>, node: Node, point: Point) -> bool {
        let mut lost = false;
        for index in self.visit(node, point) {
            match self.faults[index].act {
                Act::Lose { .. } => {
                    self.lose(index, point);
                    lost = true;
                }
                Act::Crash { .. } => {
                    self.observer.record(Actor::Node(node), What::Hold { point });
                    self.strike(index);
                    std::future::pending::<()>().await;
                }
                Act::Pause { .. } => {
                    self.observer.record(Actor::Node(node), What::Hold { point });
                    self.strike(index);
                    // the process has been told to stand still, and does at its next step
                    madsim::task::yield_now().await;
                }
                Act::Cut { peer, way, .. } => {
                    self.strike(index);
                    if peer == Node::ThirdParty && way != Way::From {
                        self.lose(index, point);
                        lost = true;
                    }
                }
            }
        }
        lost
    }

    /// The node is at a point: the faults that strike there and now, by their indices. A reply to a process that is dead is
    /// no point of it.
    fn visit(&self, node: Node, point: Point) -> Vec<usize> {
        let mut state = self.state();
        let dead = state.process.get(&node).is_some_and(|process| process.down);
        if dead && point.phase == Phase::Reply {
            return Vec::new();
        }
        let mut indices = Vec::new();
        for (index, (fault, progress)) in self.faults.iter().zip(&mut state.progress).enumerate() {
            let Trigger::At { point: at, nth } = fault.trigger else { continue };
            if fault.on != node || at != point {
                continue;
            }
            progress.seen += 1;
            let times = match fault.act {
                Act::Lose { times } => times,
                _ => 1,
            };
            if (nth..nth.saturating_add(times)).contains(&progress.seen) {
                indices.push(index);
            }
        }
        indices
    }

    fn lose(&self, index: usize, point: Point) {
        self.struck(index);
        self.observer.record(Actor::Node(self.faults[index].on), What::Lose { point });
    }

    /// A fault strikes now, unless it finds its process dead.
    fn strike(self: &Arc<Faults>, index: usize) {
        let Fault { on, act, .. } = self.faults[index];
        match act {
            Act::Crash { restart_ms } => self.crash(index, on, restart_ms),
            Act::Pause { ms } => self.pause(index, on, ms),
            Act::Cut { peer, way, ms } => self.cut(index, on, peer, way, ms),
            // only at a point
            Act::Lose { .. } => {}
        }
    }

    fn crash(self: &Arc<Faults>, index: usize, node: Node, restart_ms: Option<u64>) {
        let Some(id) = self.id(node) else { return };
        {
            let mut state = self.state();
            let process = state.process.entry(node).or_default();
            if process.down {
                return;
            }
            *process = Process { incarnation: process.incarnation + 1, down: true, ..Process::default() };
        }
        self.struck(index);
        self.observer.record(Actor::Node(node), What::Crash { restart_ms });
        Handle::current().kill(id);
        if let Some(ms) = restart_ms {
            self.later(ms, move |faults| {
                faults.state().process.entry(node).or_default().down = false;
                // the process records its start itself
                Handle::current().restart(id);
            });
        }
    }

    fn pause(self: &Arc<Faults>, index: usize, node: Node, ms: u64) {
        let Some(id) = self.id(node) else { return };
        let incarnation = {
            let mut state = self.state();
            let process = state.process.entry(node).or_default();
            if process.down {
                return;
            }
            process.paused += 1;
            process.incarnation
        };
        self.struck(index);
        self.observer.record(Actor::Node(node), What::Pause { ms });
        Handle::current().pause(id);
        self.later(ms, move |faults| {
            let held = {
                let mut state = faults.state();
                let process = state.process.entry(node).or_default();
                if process.incarnation != incarnation {
                    return;
                }
                process.paused -= 1;
                if process.paused > 0 {
                    return;
                }
                std::mem::take(&mut process.held)
            };
            faults.observer.record(Actor::Node(node), What::Resume);
            for release in held {
                // a session that has ended has nothing to execute
                let _ = release.send(());
            }
            Handle::current().resume(id);
        });
    }

    fn cut(self: &Arc<Faults>, index: usize, node: Node, peer: Node, way: Way, ms: Option<u64>) {
        let mut links = Vec::new();
        if way != Way::From {
            links.push((node, peer));
        }
        if way != Way::To {
            links.push((peer, node));
        }
        self.struck(index);
        self.observer.record(Actor::Node(node), What::Cut { peer, way, ms });
        for link in &links {
            *self.state().cuts.entry(*link).or_default() += 1;
            if let (Some(from), Some(to)) = (self.id(link.0), self.id(link.1)) {
                NetSim::current().clog_link(from, to);
            }
        }
        let Some(ms) = ms else { return };
        self.later(ms, move |faults| {
            faults.observer.record(Actor::Node(node), What::Heal { peer, way });
            for link in links {
                let left = {
                    let mut state = faults.state();
                    let left = state.cuts.entry(link).or_default();
                    *left -= 1;
                    *left
                };
                if let (0, Some(from), Some(to)) = (left, faults.id(link.0), faults.id(link.1)) {
                    NetSim::current().unclog_link(from, to);
                }
            }
        });
    }

    fn later(self: &Arc<Faults>, ms: u64, then: impl FnOnce(&Arc<Faults>) + Send + 'static) {
        let Some(machines) = self.machines.get() else { return };
        self.state().pending += 1;
        let faults = self.clone();
        machines.keeper.spawn(async move {
            madsim::time::sleep(Duration::from_millis(ms)).await;
            then(&faults);
            let now = faults.observer.now();
            let mut state = faults.state();
            state.pending -= 1;
            state.last = state.last.max(now);
        });
    }

    fn struck(&self, index: usize) {
        let now = self.observer.now();
        let mut state = self.state();
        state.progress[index].struck = true;
        state.first.get_or_insert(now);
        state.last = state.last.max(now);
    }

    fn id(&self, node: Node) -> Option<NodeId> {
        self.machines.get()?.nodes.get(&node).copied()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The point at which a request stands.
pub const fn request(op: leaseproof_scenarios::Op) -> Point {
    Point { op, phase: Phase::Request }
}

/// The point at which a reply stands.
pub const fn reply(op: leaseproof_scenarios::Op) -> Point {
    Point { op, phase: Phase::Reply }
}
