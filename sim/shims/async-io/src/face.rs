//! The face sqlx sees: `Async<std::net::TcpStream>` with `connect`, `get_ref`, `poll_readable`, `poll_writable`.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::path::Path;
use std::task::{Context, Poll};

use crate::tcp::SimTcpStream;

/// Which simulated stream stands in for which stream of the standard library.
pub trait SocketKind {
    /// What [`Async::get_ref`] gives: `&Stream` is a non-blocking `Read + Write`.
    type Stream: Send + Sync + Unpin + 'static;
}

impl SocketKind for std::net::TcpStream {
    type Stream = NonBlocking;
}

/// A simulated stream as sqlx uses it: `&NonBlocking` is a `Read + Write` that says `WouldBlock` instead of waiting.
#[derive(Debug)]
pub struct NonBlocking(SimTcpStream);

impl NonBlocking {
    /// Shuts down one direction or both. See [`SimTcpStream::shut`].
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.shut(how)
    }
}

impl io::Read for &NonBlocking {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(out)
    }
}

impl io::Write for &NonBlocking {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.0.try_write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The name sqlx writes, `Async<std::net::TcpStream>`, around the simulated stream of that kind.
#[derive(Debug)]
pub struct Async<T: SocketKind> {
    io: T::Stream,
}

impl<T: SocketKind> Async<T> {
    /// The stream itself, for non-blocking reads and writes and for `shutdown`.
    pub fn get_ref(&self) -> &T::Stream {
        &self.io
    }
}

impl Async<std::net::TcpStream> {
    /// Connects with the options of the calling node. See [`SimTcpStream::connect`].
    pub async fn connect<A: Into<SocketAddr>>(addr: A) -> io::Result<Self> {
        let stream = SimTcpStream::connect(addr).await?;
        Ok(Async { io: NonBlocking(stream) })
    }

    /// Ready when a read would not block: data, end of stream, or an error.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.0.poll_read_ready(cx)
    }

    /// Ready when a write would not block: room in the send buffer, or an error.
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.0.poll_write_ready(cx)
    }
}

#[cfg(unix)]
impl SocketKind for std::os::unix::net::UnixStream {
    type Stream = NoUnixSocket;
}

/// Unix sockets are not simulated; sqlx only needs the type to exist.
#[derive(Debug)]
pub struct NoUnixSocket(());

#[cfg(unix)]
impl Async<std::os::unix::net::UnixStream> {
    /// Always fails with [`io::ErrorKind::Unsupported`].
    pub async fn connect<P: AsRef<Path>>(_path: P) -> io::Result<Self> {
        Err(unsupported())
    }

    /// Always ready: the read that follows fails.
    pub fn poll_readable(&self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Always ready: the write that follows fails.
    pub fn poll_writable(&self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl io::Read for &NoUnixSocket {
    fn read(&mut self, _out: &mut [u8]) -> io::Result<usize> {
        Err(unsupported())
    }
}

impl io::Write for &NoUnixSocket {
    fn write(&mut self, _data: &[u8]) -> io::Result<usize> {
        Err(unsupported())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl NoUnixSocket {
    /// Nothing to shut down.
    pub fn shutdown(&self, _how: Shutdown) -> io::Result<()> {
        Ok(())
    }
}

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "unix sockets are not simulated")
}
