//! The machine room: what happens to machines as opposed to processes.
//!
//! | What | How | What peers see |
//! |---|---|---|
//! | a process crashes (OOM kill, panic) | madsim's `Handle::kill`, later `Handle::restart` | FIN at once, or RST if it left received bytes unread; until the restart its ports refuse |
//! | a process hangs (GC pause, SIGSTOP) | madsim's `Handle::pause`, `Handle::resume` | nothing: the kernel acknowledges until the receive window is full |
//! | a process ends or is restarted without a kill | madsim drops its tasks | FIN or RST as the streams are dropped |
//! | a machine loses its power | [`power_loss`], later [`power_on`] | nothing at all; after the reboot, an RST to whatever they send |
//! | a link or a machine is cut off | madsim's `NetSim::clog_link`, `clog_node` (either direction) | silence; retransmissions go on and heal it within the give-up time |
//!
//! A kernel boots with its node and belongs to it. It does not run *on* it: pausing or killing the node stops the
//! process only.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use madsim::plugin::Simulator;
use madsim::rand::GlobalRng;
use madsim::runtime::{Handle, Runtime};
use madsim::task::{NodeId, Spawner};
use madsim::time::TimeHandle;

pub use crate::tcp::ConnInfo;
use crate::tcp::TcpOptions;
use crate::tcp::kernel::Kernel;
use crate::tcp::pump::{self, Spares};

thread_local! {
    static INSTALLED: Cell<bool> = const { Cell::new(false) };
}

/// Gives a simulation its TCP. Call it right after creating the runtime, before creating nodes, on the runtime's thread.
pub fn install(runtime: &Runtime) {
    INSTALLED.set(true);
    runtime.add_simulator::<TcpSim>();
}

/// The power of a machine fails: its kernel forgets everything, sends nothing more, and its process dies.
///
/// # Errors
/// `Unsupported` outside a simulation with [`install`].
pub fn power_loss(node: NodeId) -> io::Result<()> {
    let sim = TcpSim::current()?;
    if let Some(kernel) = sim.machines(|all| all.get_mut(&node).and_then(|machine| machine.kernel.take())) {
        kernel.power_off();
    }
    Handle::current().kill(node);
    Ok(())
}

/// A machine boots: a fresh kernel, which answers old peers by RST, and the node's initial task.
///
/// # Errors
/// `Unsupported` outside a simulation with [`install`].
pub fn power_on(node: NodeId) -> io::Result<()> {
    let sim = TcpSim::current()?;
    sim.boot(node);
    Handle::current().restart(node);
    sim.boot_from_within(node);
    Ok(())
}

/// Sets the options that new connections of a node get by default: the way to reach connections that sqlx opens.
///
/// # Errors
/// `Unsupported` outside a simulation with [`install`].
pub fn set_options(node: NodeId, options: TcpOptions) -> io::Result<()> {
    TcpSim::current()?.machines(|all| {
        let machine = all.entry(node).or_default();
        machine.options = options;
        if let Some(kernel) = &machine.kernel {
            kernel.set_options(options);
        }
    });
    Ok(())
}

/// The connections a machine's kernel holds, in the order they were opened; none without power.
///
/// # Errors
/// `Unsupported` outside a simulation with [`install`].
pub fn connections(node: NodeId) -> io::Result<Vec<ConnInfo>> {
    let kernel = TcpSim::current()?.machines(|all| all.get(&node).and_then(|machine| machine.kernel.clone()));
    Ok(kernel.map(|kernel| kernel.connections()).unwrap_or_default())
}

/// Ends a simulation: kills every node, forgets every kernel, and lets one virtual second pass.
///
/// madsim keeps the memory of tasks that are pending when the main future returns; a run that ends with this call
/// leaves nothing behind.
///
/// # Errors
/// `Unsupported` outside a simulation with [`install`].
pub async fn shut_down() -> io::Result<()> {
    let sim = TcpSim::current()?;
    let machines = sim.machines(std::mem::take);
    for (node, machine) in machines {
        machine.spares.clear();
        machine.kernel.iter().for_each(|kernel| kernel.power_off());
        if Some(node) != sim.supervisor() {
            Handle::current().kill(node);
        }
    }
    madsim::time::sleep(Duration::from_secs(1)).await;
    Ok(())
}

/// The kernel of the calling task's node, booted if it is not running.
pub(crate) fn local_kernel() -> io::Result<Arc<Kernel>> {
    Ok(TcpSim::current()?.boot(madsim::plugin::node()))
}

/// The simulated machines' kernels: one registry per madsim runtime, gone with it.
struct TcpSim {
    /// Spawns on the supervisor node, which is never paused or killed.
    main: Spawner,
    supervisor: OnceLock<NodeId>,
    time: TimeHandle,
    next_conn: Arc<AtomicU64>,
    machines: Mutex<BTreeMap<NodeId, Machine>>,
}

#[derive(Default)]
struct Machine {
    kernel: Option<Arc<Kernel>>,
    options: TcpOptions,
    spares: Spares,
}

impl TcpSim {
    fn current() -> io::Result<Arc<TcpSim>> {
        if Handle::try_current().is_ok() && INSTALLED.get() {
            return Ok(madsim::plugin::simulator());
        }
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "no simulated TCP here: call async_io::sim::install(&runtime) before block_on, on the same thread",
        ))
    }

    fn machines<R>(&self, act: impl FnOnce(&mut BTreeMap<NodeId, Machine>) -> R) -> R {
        act(&mut self.machines.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn supervisor(&self) -> Option<NodeId> {
        self.supervisor.get().copied()
    }

    /// The running kernel of a node, or a new one.
    fn boot(&self, node: NodeId) -> Arc<Kernel> {
        let at_home = madsim::plugin::node() == node;
        self.machines(|all| {
            let machine = all.entry(node).or_default();
            if at_home {
                machine.spares.fill();
            }
            if let Some(kernel) = &machine.kernel {
                kernel.retry_binding();
                return kernel.clone();
            }
            let kernel = Arc::new(Kernel::new(self.time.clone(), self.next_conn.clone(), machine.options));
            self.main.spawn(pump::run(kernel.clone(), machine.spares.clone()));
            machine.kernel = Some(kernel.clone());
            kernel
        })
    }

    /// Boots a node's kernel from a task of the node itself, which alone can bind its sockets.
    fn boot_from_within(&self, node: NodeId) {
        self.main.spawn(async move {
            if let Some(home) = Handle::current().get_node(node) {
                home.spawn(async { local_kernel().map(drop) });
            }
        });
    }
}

impl Simulator for TcpSim {
    fn new(_rand: &GlobalRng, _time: &TimeHandle, _config: &madsim::Config) -> Self {
        unreachable!("madsim creates simulators through `new1`")
    }

    fn new1(_rand: &GlobalRng, time: &TimeHandle, main: &Spawner, _config: &madsim::Config) -> Self {
        TcpSim {
            main: main.clone(),
            supervisor: OnceLock::new(),
            time: time.clone(),
            next_conn: Arc::default(),
            machines: Mutex::default(),
        }
    }

    fn create_node(&self, id: NodeId) {
        // madsim announces its supervisor node first; it has no address and no life of its own
        if self.supervisor.set(id).is_err() {
            self.machines(|all| {
                all.entry(id).or_default();
            });
            self.boot_from_within(id);
        }
    }

    // madsim holds its own locks here: nothing of madsim's may be called
    fn reset_node(&self, id: NodeId) {
        if let Some(kernel) = self.machines(|all| all.get(&id).and_then(|machine| machine.kernel.clone())) {
            kernel.note_process_killed();
        }
    }
}
