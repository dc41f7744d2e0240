//! One machine's kernel: its connections, listeners and ports, independent of the process that runs on the machine.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::time::Duration;

use madsim::time::TimeHandle;

use super::conn::{Conn, Effects, State};
use super::options::{BACKLOG, TcpOptions};
use super::segment::{Flag, Segment};

/// First ephemeral port and their number (Linux `ip_local_port_range`).
const EPHEMERAL: (u16, u16) = (32_768, 28_232);

/// What netstat would print about one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnInfo {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub peer: SocketAddr,
    /// `ESTAB`, `FIN-WAIT-2`, ... as `ss` prints it.
    pub state: &'static str,
}

/// A connection taken from a listener's queue.
pub(super) struct Accepted {
    pub id: u64,
    pub local: SocketAddr,
    pub peer: SocketAddr,
}

/// A machine's kernel. The machine's processes, the pump and the controls share it.
pub(crate) struct Kernel {
    pub time: TimeHandle,
    /// Numbers connections across the simulation: sequence numbers and ports come from it.
    next_conn: Arc<AtomicU64>,
    net: Mutex<Net>,
}

/// The state behind the lock. No foreign code runs while it is held.
pub(super) struct Net {
    /// False after a power loss: everything is forgotten and nothing is sent.
    pub powered: bool,
    /// madsim has dropped the machine's datagram socket (the process was killed): bind another.
    pub unbound: bool,
    /// The machine could not get its datagram socket: no connection can be made.
    failed: Option<ErrorKind>,
    /// Counts the processes that ran on this machine; what an older one left open is closed by the pump.
    process: u64,
    process_ended: bool,
    pub options: TcpOptions,
    conns: BTreeMap<u64, Conn>,
    tuples: BTreeMap<(u16, SocketAddr), u64>,
    listeners: BTreeMap<u16, Listening>,
    pub out: Vec<(IpAddr, Segment)>,
    /// No connection has anything to do before this time; it may be early, never late.
    pub due: Option<Duration>,
    pub pump: Option<Waker>,
    wake: Vec<Waker>,
}

struct Listening {
    id: u64,
    addr: SocketAddr,
    options: TcpOptions,
    process: u64,
    queue: VecDeque<u64>,
    /// Half-made connections, which count towards the backlog.
    pending: usize,
    waker: Option<Waker>,
}

impl Kernel {
    pub fn new(time: TimeHandle, next_conn: Arc<AtomicU64>, options: TcpOptions) -> Kernel {
        Kernel {
            time,
            next_conn,
            net: Mutex::new(Net {
                powered: true,
                unbound: true,
                failed: None,
                process: 0,
                process_ended: false,
                options,
                conns: BTreeMap::new(),
                tuples: BTreeMap::new(),
                listeners: BTreeMap::new(),
                out: Vec::new(),
                due: None,
                pump: None,
                wake: Vec::new(),
            }),
        }
    }

    /// Runs `act` on the locked state, then wakes whom it concerns, unlocked: a waker may run foreign code at once.
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut Net, Duration) -> R) -> R {
        let mut net = self.net.lock().unwrap_or_else(PoisonError::into_inner);
        let (idle, due) = (net.out.is_empty(), net.due);
        let result = act(&mut net, self.time.elapsed());
        let sooner = net.due.is_some_and(|at| due.is_none_or(|old| at < old));
        let pump = if sooner || (idle && !net.out.is_empty()) { net.pump.take() } else { None };
        let wake = std::mem::take(&mut net.wake);
        drop(net);
        pump.into_iter().chain(wake).for_each(Waker::wake);
        result
    }

    /// Runs `act` on a connection; `NotConnected` if the machine no longer has it.
    pub(super) fn with_conn<R>(&self, id: u64, act: impl FnOnce(&mut Conn, &mut Effects<'_>) -> R) -> io::Result<R> {
        self.with(|net, now| net.touch(id, now, act)).ok_or_else(|| ErrorKind::NotConnected.into())
    }

    /// Opens a connection in SYN-SENT and gives its id.
    pub(super) fn connect(&self, peer: SocketAddr, options: Option<TcpOptions>) -> io::Result<u64> {
        self.with(|net, now| {
            net.check()?;
            let options = options.unwrap_or(net.options);
            let id = self.next_conn.fetch_add(1, Ordering::Relaxed);
            let port = (0..EPHEMERAL.1)
                .map(|n| ephemeral(id.wrapping_add(u64::from(n))))
                .find(|port| !net.tuples.contains_key(&(*port, peer)) && !net.listeners.contains_key(port))
                .ok_or(ErrorKind::AddrNotAvailable)?;
            let unknown = match peer {
                SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
                SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
            };
            let mut fx = Effects { now, out: &mut net.out, wake: &mut net.wake };
            let conn = Conn::connect(SocketAddr::new(unknown, port), peer, first_seq(id), options, &mut fx);
            net.insert(id, conn);
            Ok(id)
        })
    }

    /// Opens a listener and gives its id and address (port 0 picks one).
    pub(super) fn listen(&self, mut addr: SocketAddr, options: Option<TcpOptions>) -> io::Result<(u64, SocketAddr)> {
        self.with(|net, now| {
            net.check()?;
            // a killed process's listener must not be in the way of its successor
            net.close_leftovers(now);
            let id = self.next_conn.fetch_add(1, Ordering::Relaxed);
            if addr.port() == 0 {
                let port = (0..EPHEMERAL.1)
                    .map(|n| ephemeral(id.wrapping_add(u64::from(n))))
                    .find(|port| !net.listeners.contains_key(port))
                    .ok_or(ErrorKind::AddrInUse)?;
                addr.set_port(port);
            }
            if net.listeners.contains_key(&addr.port()) {
                return Err(ErrorKind::AddrInUse.into());
            }
            let listening = Listening {
                id,
                addr,
                options: options.unwrap_or(net.options),
                process: net.process,
                queue: VecDeque::new(),
                pending: 0,
                waker: None,
            };
            net.listeners.insert(addr.port(), listening);
            Ok((id, addr))
        })
    }

    /// The next connection in a listener's queue, or `None` after noting the waker.
    pub(super) fn accept(&self, listener: u64, port: u16, waker: &Waker) -> io::Result<Option<Accepted>> {
        self.with(|net, _| {
            let listening = net.listeners.get_mut(&port).filter(|l| l.id == listener).ok_or(ErrorKind::NotConnected)?;
            let Some(id) = listening.queue.pop_front() else {
                listening.waker = Some(waker.clone());
                return Ok(None);
            };
            let conn = net.conns.get_mut(&id).ok_or(ErrorKind::ConnectionAborted)?;
            conn.listener = None;
            Ok(Some(Accepted { id, local: conn.local, peer: conn.peer }))
        })
    }

    /// Closes a listener: nobody will accept what waits there.
    pub(super) fn unlisten(&self, listener: u64, port: u16) {
        self.with(|net, now| {
            if net.listeners.get(&port).is_some_and(|l| l.id == listener) {
                net.unlisten(port, now);
            }
        });
    }

    /// madsim has killed the process: its sockets are closed, and the datagram socket is gone. Called while madsim
    /// holds its own locks, so it only leaves a note for the pump.
    pub fn note_process_killed(&self) {
        let mut net = self.net.lock().unwrap_or_else(PoisonError::into_inner);
        net.process += 1;
        net.process_ended = true;
        net.unbound = true;
        let pump = net.pump.take();
        drop(net);
        pump.into_iter().for_each(Waker::wake);
    }

    /// There may be a new spare binding: lets a pump that lacks its socket look again.
    pub fn retry_binding(&self) {
        self.with(|net, _| {
            if net.unbound {
                net.wake.extend(net.pump.take());
            }
        });
    }

    /// Sets the options new connections get by default.
    pub fn set_options(&self, options: TcpOptions) {
        self.with(|net, _| net.options = options);
    }

    /// The power fails: connections, listeners and unsent segments are forgotten; nobody is told.
    pub fn power_off(&self) {
        self.with(|net, _| {
            net.powered = false;
            net.out.clear();
            net.listeners.clear();
            net.tuples.clear();
            net.conns.clear();
            net.wake.extend(net.pump.take());
        });
    }

    /// The connections of this machine, in the order they were opened.
    pub fn connections(&self) -> Vec<ConnInfo> {
        let info = |conn: &Conn| ConnInfo { local: conn.local, peer: conn.peer, state: conn.state_name() };
        self.with(|net, _| net.conns.values().filter(|c| c.state != State::Done).map(info).collect())
    }
}

fn ephemeral(n: u64) -> u16 {
    EPHEMERAL.0 + (n % u64::from(EPHEMERAL.1)) as u16
}

/// Each connection of the simulation has its own 4 GiB of sequence space: an old one's segments never fit a new one.
fn first_seq(id: u64) -> u64 {
    (id + 1) << 32
}

impl Net {
    fn check(&self) -> io::Result<()> {
        match self.failed {
            Some(kind) => Err(io::Error::new(kind, "the simulated machine could not bind its datagram port")),
            None if self.powered => Ok(()),
            None => Err(io::Error::new(ErrorKind::NetworkDown, "the simulated machine has no power")),
        }
    }

    /// The datagram socket cannot be had: everything that waits for the network fails.
    pub fn fail(&mut self, kind: ErrorKind, now: Duration) {
        self.failed = Some(kind);
        let ids: Vec<u64> = self.conns.keys().copied().collect();
        for id in ids {
            self.touch(id, now, |conn, fx| conn.fail(kind, fx));
        }
    }

    fn insert(&mut self, id: u64, mut conn: Conn) {
        conn.process = self.process;
        self.tuples.insert((conn.local.port(), conn.peer), id);
        self.lower_due(conn.due());
        self.conns.insert(id, conn);
    }

    fn lower_due(&mut self, at: Option<Duration>) {
        if let Some(at) = at {
            self.due = Some(self.due.map_or(at, |due| due.min(at)));
        }
    }

    /// Runs `act` on a connection and draws the consequences for the tables.
    fn touch<R>(&mut self, id: u64, now: Duration, act: impl FnOnce(&mut Conn, &mut Effects<'_>) -> R) -> Option<R> {
        let conn = self.conns.get_mut(&id)?;
        let before = conn.state;
        let result = act(conn, &mut Effects { now, out: &mut self.out, wake: &mut self.wake });
        let (after, listener, due, tuple) = (conn.state, conn.listener, conn.due(), (conn.local.port(), conn.peer));
        if before == State::SynReceived && after != State::SynReceived {
            match listener.and_then(|port| self.listeners.get_mut(&port)) {
                Some(listening) => {
                    listening.pending = listening.pending.saturating_sub(1);
                    if after == State::Done {
                        conn.owned = false;
                    } else {
                        listening.queue.push_back(id);
                        self.wake.extend(listening.waker.take());
                    }
                }
                None => conn.owned = false,
            }
        }
        if after == State::Done {
            if self.tuples.get(&tuple) == Some(&id) {
                self.tuples.remove(&tuple);
            }
            if !conn.owned {
                self.conns.remove(&id);
            }
        }
        self.lower_due(due);
        Some(result)
    }

    /// Takes a segment from the network.
    pub fn on_segment(&mut self, from: IpAddr, segment: Segment, next_conn: &AtomicU64, now: Duration) {
        let tuple = (segment.dst_port, SocketAddr::new(from, segment.src_port));
        let opens = segment.flag == Flag::Syn && segment.ack.is_none();
        if let Some(&id) = self.tuples.get(&tuple) {
            let reusable = opens && self.conns.get(&id).is_some_and(|conn| conn.state == State::TimeWait);
            if !reusable {
                self.touch(id, now, |conn, fx| conn.on_segment(segment, fx));
                return;
            }
            self.touch(id, now, |conn, fx| conn.abort(fx));
        }
        let listening = self.listeners.get_mut(&segment.dst_port).filter(|listening| {
            let ip = listening.addr.ip();
            opens && (ip.is_unspecified() || ip == segment.dst_ip)
        });
        if let Some(listening) = listening {
            if listening.queue.len() + listening.pending < BACKLOG {
                listening.pending += 1;
                let options = listening.options;
                let id = next_conn.fetch_add(1, Ordering::Relaxed);
                let mut fx = Effects { now, out: &mut self.out, wake: &mut self.wake };
                let conn = Conn::answer(&segment, from, first_seq(id), options, &mut fx);
                self.insert(id, conn);
            }
        } else if segment.flag != Flag::Rst {
            self.out.push((from, segment.refusal(from)));
        }
    }

    /// Does what is due, and finds out when to come back.
    pub fn on_time(&mut self, now: Duration) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        let ids: Vec<u64> =
            self.conns.iter().filter(|(_, conn)| conn.due().is_some_and(|at| at <= now)).map(|(id, _)| *id).collect();
        for id in ids {
            self.touch(id, now, |conn, fx| conn.on_time(fx));
        }
        self.due = self.conns.values().filter_map(Conn::due).min();
    }

    fn unlisten(&mut self, port: u16, now: Duration) {
        if self.listeners.remove(&port).is_none() {
            return;
        }
        let waiting: Vec<u64> =
            self.conns.iter().filter(|(_, conn)| conn.listener == Some(port)).map(|(id, _)| *id).collect();
        for id in waiting {
            self.touch(id, now, |conn, fx| {
                conn.owned = false;
                conn.abort(fx);
            });
        }
    }

    /// Closes what killed processes left open, as a kernel does for a process that ends.
    pub fn close_leftovers(&mut self, now: Duration) {
        if !std::mem::take(&mut self.process_ended) {
            return;
        }
        let process = self.process;
        let ports: Vec<u16> =
            self.listeners.iter().filter(|(_, l)| l.process < process).map(|(port, _)| *port).collect();
        for port in ports {
            self.unlisten(port, now);
        }
        let ids: Vec<u64> =
            self.conns.iter().filter(|(_, c)| c.owned && c.process < process).map(|(id, _)| *id).collect();
        for id in ids {
            self.touch(id, now, |conn, fx| conn.close(fx));
        }
    }
}

impl Kernel {
    /// Hands a received segment to the connections.
    pub(super) fn receive(&self, from: IpAddr, segment: Segment) {
        self.with(|net, now| net.on_segment(from, segment, &self.next_conn, now));
    }
}
