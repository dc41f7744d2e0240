//! A small TCP on madsim's datagrams.
//!
//! madsim's own stream never loses, delays its handshake or closes half-way, and shows a killed peer at once even
//! through a cut link. This one has segments with sequence numbers and acknowledgements; a handshake, FIN and RST that
//! travel; retransmission with backoff and a give-up time; keepalive; a send buffer and a receive window; partial
//! reads; and bytes in order whatever the datagrams do. Defaults are Linux's ([`TcpOptions`]).
//!
//! Layers: `inbox` and `outbox` are the two directions of a connection, `conn` its state machine, `kernel` the tables
//! of one machine, `pump` the task that carries segments to and from madsim, `stream` and `listener` the application's
//! side. The first four do no I/O and know no clock.
//!
//! What is left out, on purpose: congestion control, Nagle, SACK and fast retransmission (a loss costs a timeout of at
//! least 200 ms, later holes of the same burst one round trip each), urgent data, simultaneous open, sequence number
//! wrap, checks against forged segments. A machine without a route loses its SYNs instead of failing with
//! `HostUnreachable`. Each datagram takes madsim's latency plus about one millisecond in the sender and one in the
//! receiver, which is madsim's own floor for datagrams.

mod conn;
mod inbox;
pub(crate) mod kernel;
mod listener;
mod options;
mod outbox;
pub(crate) mod pump;
mod segment;
mod stream;

pub use kernel::ConnInfo;
pub use listener::SimTcpListener;
pub use options::{Keepalive, TcpOptions};
pub use stream::SimTcpStream;
