//! The application's end of a connection.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::kernel::Kernel;
use super::{Keepalive, TcpOptions};
use crate::sim;

/// A simulated TCP connection.
///
/// It is tokio's `AsyncRead + AsyncWrite`; `try_read` and `try_write` are the non-blocking face. Writes are
/// sent at once (no Nagle), take part of the data when the send buffer is nearly full, and wait when it is full. An
/// error is reported once, after the bytes that arrived before it; later reads end and later writes say `BrokenPipe`.
/// Dropping the stream closes it: a FIN after the written bytes, or an RST if received bytes were left unread.
pub struct SimTcpStream {
    kernel: Arc<Kernel>,
    id: u64,
    local: SocketAddr,
    peer: SocketAddr,
}

impl SimTcpStream {
    /// Connects from the calling task's node, with that node's default options ([`sim::set_options`]).
    ///
    /// # Errors
    /// `ConnectionRefused` by a machine that runs and does not listen there, `TimedOut` after
    /// [`TcpOptions::connect_give_up`] without an answer, `Unsupported` outside a simulation with [`sim::install`].
    pub async fn connect(addr: impl Into<SocketAddr>) -> io::Result<SimTcpStream> {
        SimTcpStream::dial(addr.into(), None).await
    }

    /// Connects with options of its own. Errors as for [`SimTcpStream::connect`].
    pub async fn connect_with(addr: impl Into<SocketAddr>, options: TcpOptions) -> io::Result<SimTcpStream> {
        SimTcpStream::dial(addr.into(), Some(options)).await
    }

    async fn dial(peer: SocketAddr, options: Option<TcpOptions>) -> io::Result<SimTcpStream> {
        let kernel = sim::local_kernel()?;
        let id = kernel.connect(peer, options)?;
        // exists from here on, so that a caller who gives up closes the connection
        let mut stream = SimTcpStream { kernel, id, local: peer, peer };
        poll_fn(|cx| stream.poll_write_ready(cx)).await?;
        stream.local = stream.kernel.with_conn(id, |conn, _| match conn.take_error() {
            Some(kind) => Err(io::Error::from(kind)),
            None => Ok(conn.local),
        })??;
        Ok(stream)
    }

    pub(super) fn accepted(kernel: Arc<Kernel>, id: u64, local: SocketAddr, peer: SocketAddr) -> SimTcpStream {
        SimTcpStream { kernel, id, local, peer }
    }

    /// The address of this end, as the peer sees it.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The address of the other end.
    pub fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    /// Switches keepalive probes on or off.
    ///
    /// # Errors
    /// `NotConnected` if the machine has forgotten the connection.
    pub fn set_keepalive(&self, keepalive: Option<Keepalive>) -> io::Result<()> {
        self.kernel.with_conn(self.id, |conn, _| conn.set_keepalive(keepalive))
    }

    /// Sets how long sent data may stay unacknowledged (`TCP_USER_TIMEOUT`); counts from the next transmission.
    ///
    /// # Errors
    /// `NotConnected` if the machine has forgotten the connection.
    pub fn set_give_up(&self, give_up: Duration) -> io::Result<()> {
        self.kernel.with_conn(self.id, |conn, _| conn.options.give_up = give_up)
    }

    /// Reads without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if nothing has arrived; `ConnectionReset`, `BrokenPipe` or `TimedOut` when the connection failed.
    pub fn try_read(&self, out: &mut [u8]) -> io::Result<usize> {
        self.kernel.with_conn(self.id, |conn, fx| conn.read(out, fx))?
    }

    /// Writes as much as the send buffer takes, without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if the buffer is full; `BrokenPipe` after a shutdown; otherwise as [`SimTcpStream::try_read`].
    pub fn try_write(&self, data: &[u8]) -> io::Result<usize> {
        self.kernel.with_conn(self.id, |conn, fx| conn.write(data, fx))?
    }

    /// Ready when [`SimTcpStream::try_read`] would not block.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready(self.kernel.with_conn(self.id, |conn, _| conn.readable(cx.waker())))
    }

    /// Ready when [`SimTcpStream::try_write`] would not block.
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready(self.kernel.with_conn(self.id, |conn, _| conn.writable(cx.waker())))
    }

    /// Shuts down one direction or both. Writing: a FIN follows the bytes already written; reading: reads end here.
    ///
    /// # Errors
    /// `NotConnected` if the machine has forgotten the connection.
    pub fn shut(&self, how: Shutdown) -> io::Result<()> {
        self.kernel.with_conn(self.id, |conn, fx| {
            if how != Shutdown::Write {
                conn.shutdown_read(fx);
            }
            if how != Shutdown::Read {
                conn.shutdown_write(fx);
            }
        })
    }

    /// Ends the connection with an RST, as closing with `SO_LINGER` zero does: unsent bytes are thrown away.
    pub fn abort(self) {
        let _forgotten = self.kernel.with_conn(self.id, |conn, fx| conn.abort(fx));
    }
}

fn ready(state: io::Result<bool>) -> Poll<io::Result<()>> {
    match state {
        Ok(true) => Poll::Ready(Ok(())),
        Ok(false) => Poll::Pending,
        Err(error) => Poll::Ready(Err(error)),
    }
}

impl Drop for SimTcpStream {
    // Runs wherever madsim drops the owner, perhaps on the killer's node: it touches the kernel's tables only.
    fn drop(&mut self) {
        let _forgotten = self.kernel.with_conn(self.id, |conn, fx| conn.close(fx));
    }
}

impl std::fmt::Debug for SimTcpStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimTcpStream").field("local", &self.local).field("peer", &self.peer).finish()
    }
}

impl AsyncRead for SimTcpStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let outcome = self.kernel.with_conn(self.id, |conn, fx| match conn.read(buf.initialize_unfilled(), fx) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                conn.readable(cx.waker());
                None
            }
            outcome => Some(outcome),
        })?;
        match outcome {
            Some(Ok(n)) => {
                buf.advance(n);
                Poll::Ready(Ok(()))
            }
            Some(Err(error)) => Poll::Ready(Err(error)),
            None => Poll::Pending,
        }
    }
}

impl AsyncWrite for SimTcpStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = self.kernel.with_conn(self.id, |conn, fx| match conn.write(data, fx) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                conn.writable(cx.waker());
                None
            }
            outcome => Some(outcome),
        })?;
        outcome.map_or(Poll::Pending, Poll::Ready)
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.shut(Shutdown::Write))
    }
}
