//! The application's listener.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::TcpOptions;
use super::kernel::Kernel;
use super::stream::SimTcpStream;
use crate::sim;

/// A simulated TCP listener on the node that bound it.
///
/// The machine's kernel completes handshakes and queues connections (up to 128) even while the process is paused.
/// Dropping the listener resets what waits in the queue; connections already accepted live on.
pub struct SimTcpListener {
    kernel: Arc<Kernel>,
    id: u64,
    addr: SocketAddr,
}

impl SimTcpListener {
    /// Listens on the calling task's node; port 0 picks a free one. Accepted connections get the node's default options.
    ///
    /// # Errors
    /// `AddrInUse` if the port has a listener, `Unsupported` outside a simulation with [`sim::install`].
    pub async fn bind(addr: impl Into<SocketAddr>) -> io::Result<SimTcpListener> {
        SimTcpListener::listen(addr.into(), None)
    }

    /// Listens, and gives accepted connections these options. Errors as for [`SimTcpListener::bind`].
    pub async fn bind_with(addr: impl Into<SocketAddr>, options: TcpOptions) -> io::Result<SimTcpListener> {
        SimTcpListener::listen(addr.into(), Some(options))
    }

    fn listen(addr: SocketAddr, options: Option<TcpOptions>) -> io::Result<SimTcpListener> {
        let kernel = sim::local_kernel()?;
        let (id, addr) = kernel.listen(addr, options)?;
        Ok(SimTcpListener { kernel, id, addr })
    }

    /// The next connection and its peer's address. Safe to cancel: a connection is never lost.
    ///
    /// # Errors
    /// `NotConnected` once the process that bound the listener is dead or its machine without power.
    pub async fn accept(&self) -> io::Result<(SimTcpStream, SocketAddr)> {
        poll_fn(|cx| self.poll_accept(cx)).await
    }

    /// See [`SimTcpListener::accept`]. Only the last caller's task is woken.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(SimTcpStream, SocketAddr)>> {
        match self.kernel.accept(self.id, self.addr.port(), cx.waker()) {
            Ok(Some(conn)) => {
                let stream = SimTcpStream::accepted(self.kernel.clone(), conn.id, conn.local, conn.peer);
                Poll::Ready(Ok((stream, conn.peer)))
            }
            Ok(None) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// The address it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for SimTcpListener {
    fn drop(&mut self) {
        self.kernel.unlisten(self.id, self.addr.port());
    }
}

impl std::fmt::Debug for SimTcpListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimTcpListener").field("addr", &self.addr).finish()
    }
}
