//! A small world for the tests of the simulated TCP: fresh thread, fresh runtime, named machines, an event log.
#![allow(dead_code)] // each test binary uses its part

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_io::{SimTcpListener, SimTcpStream, sim};
use madsim::net::NetSim;
use madsim::runtime::{Handle, NodeHandle, Runtime};
use madsim::task::NodeId;
use madsim::time::{TimeHandle, sleep};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

pub const SERVER: &str = "10.0.0.1:5432";
pub const CLIENT: &str = "10.0.0.2:0";

pub fn addr(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

pub fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

pub fn now() -> Duration {
    TimeHandle::current().elapsed()
}

/// Runs a story on a thread of its own, shuts the world down properly and gives the story's result.
pub fn run<F>(seed: u64, story: impl FnOnce() -> F + Send + 'static) -> F::Output
where
    F: Future,
    F::Output: Send + 'static,
{
    run_with(seed, madsim::Config::default(), story)
}

pub fn run_with<F>(seed: u64, config: madsim::Config, story: impl FnOnce() -> F + Send + 'static) -> F::Output
where
    F: Future,
    F::Output: Send + 'static,
{
    let simulation = move || {
        let runtime = Runtime::with_seed_and_config(seed, config);
        sim::install(&runtime);
        runtime.block_on(async {
            let result = story().await;
            sim::shut_down().await.expect("installed");
            result
        })
    };
    match std::thread::spawn(simulation).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// A machine with an address and no initial task.
pub fn machine(name: &str, address: &str) -> NodeHandle {
    Handle::current().create_node().name(name).ip(addr(address).ip()).build()
}

/// The usual pair.
pub fn server_and_client() -> (NodeHandle, NodeHandle) {
    (machine("server", SERVER), machine("client", CLIENT))
}

/// The node as it is after a restart: an older handle belongs to the dead process.
pub fn again(node: &NodeHandle) -> NodeHandle {
    Handle::current().get_node(node.id()).expect("the node exists")
}

/// Accepts one connection on the server and gives both ends' streams, each opened by a task of its node.
pub async fn connected(server: &NodeHandle, client: &NodeHandle) -> (SimTcpStream, SimTcpStream) {
    let accepting = server.spawn(async {
        let listener = SimTcpListener::bind(addr(SERVER)).await.expect("bind");
        listener.accept().await.expect("accept").0
    });
    sleep(Duration::from_millis(50)).await;
    let connecting = client.spawn(async { SimTcpStream::connect(addr(SERVER)).await.expect("connect") });
    (accepting.await.expect("server lives"), connecting.await.expect("client lives"))
}

/// Echoes everything back, on every connection, for ever.
pub async fn serve_echo(address: SocketAddr) {
    let listener = SimTcpListener::bind(address).await.expect("bind");
    loop {
        let (mut stream, _) = listener.accept().await.expect("accept");
        madsim::task::spawn(async move {
            let mut buf = [0; 4096];
            loop {
                match stream.read(&mut buf).await {
                    Ok(0) | Err(_) => break,
                    Ok(n) => {
                        if stream.write_all(&buf[..n]).await.is_err() {
                            break;
                        }
                    }
                }
            }
        });
    }
}

/// Cuts or heals one direction of the link between two machines.
pub fn cut(from: &NodeHandle, to: &NodeHandle) {
    NetSim::current().clog_link(from.id(), to.id());
}

pub fn heal(from: &NodeHandle, to: &NodeHandle) {
    NetSim::current().unclog_link(from.id(), to.id());
}

/// The states of a machine's connections, as `ss` would print them.
pub fn states(node: NodeId) -> Vec<&'static str> {
    sim::connections(node).expect("installed").into_iter().map(|conn| conn.state).collect()
}

/// Bytes that differ at every place that matters.
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// What happened, with times: equal seeds must give equal logs.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn note(&self, what: impl AsRef<str>) {
        self.0.lock().expect("log").push(format!("{:?} {}", now(), what.as_ref()));
    }

    pub fn lines(&self) -> Vec<String> {
        self.0.lock().expect("log").clone()
    }
}
