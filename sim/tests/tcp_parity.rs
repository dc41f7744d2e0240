//! Goal: the simulated TCP behaves as the real one where the queue and its driver can see it.
//! Method: each story is written once and told twice, over the simulated TCP and over the loopback of this machine's
//! kernel with real tokio; both must give the expected observations.

mod tcp_support;

use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use async_io::{SimTcpListener, SimTcpStream};
use madsim::runtime::NodeHandle;
use tcp_support::{addr, pattern, run, server_and_client};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// A network to tell a story on.
trait Network {
    type Listener;
    type Stream: AsyncRead + AsyncWrite + Unpin;
    async fn listen(&self) -> (Self::Listener, SocketAddr);
    async fn accept(&self, listener: &Self::Listener) -> Self::Stream;
    async fn connect(&self, to: SocketAddr) -> io::Result<Self::Stream>;
    /// Ends a connection by RST (`SO_LINGER` zero).
    fn abort(&self, stream: Self::Stream);
    async fn wait(&self, time: Duration);
    async fn within<F: Future>(&self, time: Duration, future: F) -> Option<F::Output>;
}

struct Simulated {
    server: NodeHandle,
    client: NodeHandle,
}

impl Network for Simulated {
    type Listener = SimTcpListener;
    type Stream = SimTcpStream;

    async fn listen(&self) -> (SimTcpListener, SocketAddr) {
        let binding = self.server.spawn(SimTcpListener::bind(addr("10.0.0.1:0")));
        let listener = binding.await.expect("server lives").expect("bind");
        let address = listener.local_addr();
        (listener, address)
    }

    async fn accept(&self, listener: &SimTcpListener) -> SimTcpStream {
        listener.accept().await.expect("accept").0
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<SimTcpStream> {
        self.client.spawn(SimTcpStream::connect(to)).await.expect("client lives")
    }

    fn abort(&self, stream: SimTcpStream) {
        stream.abort();
    }

    async fn wait(&self, time: Duration) {
        madsim::time::sleep(time).await;
    }

    async fn within<F: Future>(&self, time: Duration, future: F) -> Option<F::Output> {
        madsim::time::timeout(time, future).await.ok()
    }
}

struct Loopback;

impl Network for Loopback {
    type Listener = real_tokio::net::TcpListener;
    type Stream = real_tokio::net::TcpStream;

    async fn listen(&self) -> (Self::Listener, SocketAddr) {
        let listener = real_tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let address = listener.local_addr().expect("bound");
        (listener, address)
    }

    async fn accept(&self, listener: &Self::Listener) -> Self::Stream {
        listener.accept().await.expect("accept").0
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<Self::Stream> {
        real_tokio::net::TcpStream::connect(to).await
    }

    fn abort(&self, stream: Self::Stream) {
        stream.set_zero_linger().expect("a socket option");
    }

    async fn wait(&self, time: Duration) {
        real_tokio::time::sleep(time).await;
    }

    async fn within<F: Future>(&self, time: Duration, future: F) -> Option<F::Output> {
        real_tokio::time::timeout(time, future).await.ok()
    }
}

/// Long enough for anything to arrive on either network, short enough to wait for it.
const A_MOMENT: Duration = Duration::from_millis(300);

async fn pair<N: Network>(net: &N) -> (N::Stream, N::Stream) {
    let (listener, address) = net.listen().await;
    let here = net.connect(address).await.expect("connect");
    (net.accept(&listener).await, here)
}

/// What a read gave, in a form that both networks must share.
async fn read<N: Network>(net: &N, stream: &mut N::Stream, len: usize) -> String {
    let mut buf = vec![0; len];
    match net.within(A_MOMENT, stream.read(&mut buf)).await {
        None => "nothing yet".into(),
        Some(Ok(0)) => "end".into(),
        Some(Ok(n)) => String::from_utf8_lossy(&buf[..n]).into_owned(),
        Some(Err(error)) => format!("{:?}", error.kind()),
    }
}

async fn write<N: Network>(net: &N, stream: &mut N::Stream, text: &str) -> String {
    match net.within(A_MOMENT, stream.write_all(text.as_bytes())).await {
        None => "no room".into(),
        Some(Ok(())) => "written".into(),
        Some(Err(error)) => format!("{:?}", error.kind()),
    }
}

/// Runs a story over both networks.
macro_rules! parity {
    ($name:ident, $expected:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn simulated() {
                let seen = run(1, || async {
                    let (server, client) = server_and_client();
                    super::stories::$name(&Simulated { server, client }).await
                });
                assert_eq!(seen, $expected);
            }

            #[test]
            fn real() {
                let runtime =
                    real_tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
                assert_eq!(runtime.block_on(super::stories::$name(&Loopback)), $expected);
            }
        }
    };
}

mod stories {
    use super::*;

    pub async fn echo<N: Network>(net: &N) -> Vec<String> {
        let (mut there, mut here) = pair(net).await;
        let mut seen = vec![write(net, &mut here, "ping").await];
        seen.push(read(net, &mut there, 8).await);
        seen.push(write(net, &mut there, "pong").await);
        seen.push(read(net, &mut here, 8).await);
        seen.push(read(net, &mut here, 8).await);
        seen
    }

    pub async fn partial_reads<N: Network>(net: &N) -> Vec<String> {
        let (mut there, mut here) = pair(net).await;
        write(net, &mut here, "one two").await;
        let mut seen = vec![read(net, &mut there, 4).await];
        net.wait(A_MOMENT).await;
        write(net, &mut here, " three").await;
        net.wait(A_MOMENT).await;
        // what arrived in two pieces is one stream
        seen.push(read(net, &mut there, 64).await);
        seen
    }

    pub async fn end_of_stream<N: Network>(net: &N) -> Vec<String> {
        let (mut there, mut here) = pair(net).await;
        write(net, &mut here, "bye").await;
        drop(here);
        let mut seen = vec![read(net, &mut there, 8).await];
        seen.push(read(net, &mut there, 8).await);
        seen.push(read(net, &mut there, 8).await);
        seen
    }

    pub async fn half_close<N: Network>(net: &N) -> Vec<String> {
        let (mut there, mut here) = pair(net).await;
        write(net, &mut here, "question").await;
        here.shutdown().await.expect("shutdown");
        let mut seen = vec![read(net, &mut there, 64).await, read(net, &mut there, 64).await];
        seen.push(write(net, &mut here, "more").await);
        seen.push(write(net, &mut there, "answer").await);
        drop(there);
        seen.push(read(net, &mut here, 64).await);
        seen.push(read(net, &mut here, 64).await);
        seen
    }

    pub async fn refusal<N: Network>(net: &N) -> Vec<String> {
        let (listener, address) = net.listen().await;
        drop(listener);
        let outcome = net.connect(address).await.map(|_| "connected");
        vec![format!("{:?}", outcome.map_err(|error| error.kind()))]
    }

    pub async fn reset_by_abort<N: Network>(net: &N) -> Vec<String> {
        let (mut there, mut here) = pair(net).await;
        write(net, &mut here, "first").await;
        net.wait(A_MOMENT).await;
        net.abort(here);
        net.wait(A_MOMENT).await;
        let mut seen = Vec::new();
        for _ in 0..3 {
            seen.push(read(net, &mut there, 8).await);
        }
        seen.push(write(net, &mut there, "x").await);
        seen
    }

    pub async fn reset_seen_by_a_writer<N: Network>(net: &N) -> Vec<String> {
        let (mut there, here) = pair(net).await;
        net.abort(here);
        net.wait(A_MOMENT).await;
        let mut seen = vec![write(net, &mut there, "x").await, write(net, &mut there, "x").await];
        seen.push(read(net, &mut there, 8).await);
        seen
    }

    pub async fn unread_bytes_reset<N: Network>(net: &N) -> Vec<String> {
        let (mut there, here) = pair(net).await;
        write(net, &mut there, "never read").await;
        net.wait(A_MOMENT).await;
        drop(here);
        net.wait(A_MOMENT).await;
        vec![read(net, &mut there, 8).await, read(net, &mut there, 8).await]
    }

    pub async fn write_to_a_closed_peer<N: Network>(net: &N) -> Vec<String> {
        let (mut there, here) = pair(net).await;
        drop(here);
        net.wait(A_MOMENT).await;
        let mut seen = vec![read(net, &mut there, 8).await, write(net, &mut there, "a").await];
        net.wait(A_MOMENT).await;
        seen.push(write(net, &mut there, "b").await);
        seen.push(read(net, &mut there, 8).await);
        seen
    }

    pub async fn pending_bytes_survive_a_close<N: Network>(net: &N) -> Vec<String> {
        let (mut there, mut here) = pair(net).await;
        // more than the reader's side holds, and the writer is gone before anything is read
        let data = pattern(100_000);
        let written = net.within(A_MOMENT, here.write_all(&data)).await.is_some();
        drop(here);
        let mut heard = Vec::new();
        let end = net.within(Duration::from_secs(10), there.read_to_end(&mut heard)).await;
        vec![format!("{written} {:?} {}", end.map(|end| end.ok()), heard == data)]
    }

    pub async fn back_pressure<N: Network>(net: &N) -> Vec<String> {
        let (mut there, mut here) = pair(net).await;
        let chunk = pattern(32 * 1024);
        let mut written = Vec::new();
        let mut blocked = false;
        // loopback buffers grow to some megabytes
        while !blocked && written.len() < 64 << 20 {
            match net.within(A_MOMENT, here.write(&chunk)).await {
                Some(n) => written.extend_from_slice(&chunk[..n.expect("write")]),
                None => blocked = true,
            }
        }
        drop(here);
        let mut heard = Vec::new();
        net.within(Duration::from_secs(10), there.read_to_end(&mut heard)).await;
        vec![format!("blocked {blocked}, intact {}", heard == written)]
    }

    pub async fn a_full_writer_wakes_up<N: Network>(net: &N) -> Vec<String> {
        let (mut there, mut here) = pair(net).await;
        let chunk = vec![7; 32 * 1024];
        while net.within(A_MOMENT, here.write(&chunk)).await.is_some() {}
        let mut sink = vec![0; 1 << 20];
        let mut seen = Vec::new();
        for _ in 0..16 {
            let _nothing_left = net.within(A_MOMENT, there.read(&mut sink)).await;
        }
        let again = net.within(A_MOMENT, here.write(&chunk)).await;
        seen.push(format!("{:?}", again.map(|n| n.is_ok())));
        seen
    }

    pub async fn a_cancelled_read_loses_nothing<N: Network>(net: &N) -> Vec<String> {
        let (mut there, mut here) = pair(net).await;
        let mut seen = vec![read(net, &mut there, 8).await];
        // a cancelled read loses nothing
        write(net, &mut here, "late").await;
        seen.push(read(net, &mut there, 8).await);
        seen
    }
}

parity!(echo, ["written", "ping", "written", "pong", "nothing yet"]);
parity!(partial_reads, ["one ", "two three"]);
parity!(end_of_stream, ["bye", "end", "end"]);
parity!(half_close, ["question", "end", "BrokenPipe", "written", "answer", "end"]);
parity!(refusal, [format!("{:?}", Err::<&str, _>(ErrorKind::ConnectionRefused))]);
parity!(reset_by_abort, ["first", "ConnectionReset", "end", "BrokenPipe"]);
parity!(reset_seen_by_a_writer, ["ConnectionReset", "BrokenPipe", "end"]);
parity!(unread_bytes_reset, ["ConnectionReset", "end"]);
parity!(write_to_a_closed_peer, ["end", "written", "BrokenPipe", "end"]);
parity!(pending_bytes_survive_a_close, ["true Some(Some(100000)) true"]);
parity!(back_pressure, ["blocked true, intact true"]);
parity!(a_full_writer_wakes_up, ["Some(true)"]);
parity!(a_cancelled_read_loses_nothing, ["nothing yet", "late"]);
