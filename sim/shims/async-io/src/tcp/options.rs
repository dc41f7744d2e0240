//! Options and the constants of the simulated TCP, with Linux's defaults.

use std::time::Duration;

/// Keepalive probes on an idle connection (`SO_KEEPALIVE`, `TCP_KEEPIDLE`, `TCP_KEEPINTVL`, `TCP_KEEPCNT`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// Silence from the peer before the first probe.
    pub idle: Duration,
    /// Time between unanswered probes.
    pub interval: Duration,
    /// Unanswered probes after which the connection fails with `TimedOut`.
    pub probes: u32,
}

impl Keepalive {
    /// Linux's defaults: 7200 s, 75 s, 9 probes, so a dead peer is found 7875 s after its last word.
    pub const LINUX: Keepalive =
        Keepalive { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), probes: 9 };
}

impl Default for Keepalive {
    fn default() -> Self {
        Keepalive::LINUX
    }
}

/// Options of a connection; a listener hands its own to the connections it accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOptions {
    /// Keepalive probes; off unless set, as on Linux.
    pub keepalive: Option<Keepalive>,
    /// How long sent data may stay unacknowledged before the connection fails with `TimedOut`
    /// (`TCP_USER_TIMEOUT`; the default is what `tcp_retries2 = 15` comes to, 924.6 s).
    pub give_up: Duration,
    /// How long `connect` tries before it fails with `TimedOut` (`tcp_syn_retries = 6`: 127 s).
    pub connect_give_up: Duration,
    /// Bytes written and not yet acknowledged before a write waits.
    pub send_buffer: usize,
    /// Bytes received and not yet read before the peer has to stop sending.
    pub recv_buffer: usize,
}

impl Default for TcpOptions {
    fn default() -> Self {
        TcpOptions {
            keepalive: None,
            give_up: Duration::from_millis(924_600),
            connect_give_up: Duration::from_secs(127),
            send_buffer: 64 * 1024,
            recv_buffer: 64 * 1024,
        }
    }
}

/// First retransmission timeout, before a round trip was measured (RFC 6298).
pub(super) const RTO_FIRST: Duration = Duration::from_secs(1);
/// Bounds of the retransmission timeout (Linux `TCP_RTO_MIN`, `TCP_RTO_MAX`).
pub(super) const RTO_MIN: Duration = Duration::from_millis(200);
pub(super) const RTO_MAX: Duration = Duration::from_secs(120);
/// How long an acknowledgement waits for data to travel with (Linux `TCP_DELACK_MIN`).
pub(super) const ACK_DELAY: Duration = Duration::from_millis(40);
/// How long a listener's half-made connection retries its SYN-ACK (Linux `tcp_synack_retries = 5`).
pub(super) const SYN_ACK_GIVE_UP: Duration = Duration::from_secs(63);
/// How long a connection without an owner goes on retrying (Linux: 8 retries, 102.2 s).
pub(super) const ORPHAN_GIVE_UP: Duration = Duration::from_millis(102_200);
/// TIME_WAIT, and how long an ownerless connection waits for the peer's FIN (Linux: 60 s).
pub(super) const LINGER: Duration = Duration::from_secs(60);
/// Connections that may wait at a listener to be accepted; a SYN beyond them is dropped.
pub(super) const BACKLOG: usize = 128;
