//! Round trips per wall second over the simulated TCP, beside madsim's own stream, in the shape of a query and its
//! reply: `cargo run --release -p leaseproof-benches --bin tcp`.

use std::future::Future;
use std::time::Instant;

use async_io::{SimTcpListener, SimTcpStream, sim};
use madsim::net::{NetSim, TcpListener, TcpStream};
use madsim::runtime::{Handle, NodeHandle, Runtime};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const ROUND_TRIPS: u32 = 20_000;
const REQUEST: usize = 120;
const REPLY: usize = 300;
const ADDRESS: &str = "10.0.0.1:5432";

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut buf = [0; REQUEST];
    while stream.read_exact(&mut buf).await.is_ok() {
        if stream.write_all(&[1; REPLY]).await.is_err() || stream.flush().await.is_err() {
            break;
        }
    }
}

async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut buf = [0; REPLY];
    for trip in 0..ROUND_TRIPS {
        stream.write_all(&[2; REQUEST]).await.expect("request");
        stream.flush().await.expect("request");
        stream.read_exact(&mut buf).await.expect("reply");
        // a worker thinks now and then, which is when acknowledgements travel alone
        if trip % 10 == 0 {
            madsim::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    }
}

async fn ours(server: NodeHandle, clients: Vec<NodeHandle>) {
    server.spawn(async {
        let address = ADDRESS.parse::<std::net::SocketAddr>().expect("an address");
        let listener = SimTcpListener::bind(address).await.expect("bind");
        while let Ok((stream, _)) = listener.accept().await {
            madsim::task::spawn(serve(stream));
        }
    });
    madsim::time::sleep(std::time::Duration::from_secs(1)).await;
    let connect = || async {
        let address = ADDRESS.parse::<std::net::SocketAddr>().expect("an address");
        ask(SimTcpStream::connect(address).await.expect("connect")).await;
    };
    let asking: Vec<_> = clients.iter().map(|client| client.spawn(connect())).collect();
    for client in asking {
        client.await.expect("client lives");
    }
}

async fn madsims(server: NodeHandle, clients: Vec<NodeHandle>) {
    server.spawn(async {
        let listener = TcpListener::bind(ADDRESS).await.expect("bind");
        while let Ok((stream, _)) = listener.accept().await {
            madsim::task::spawn(serve(stream));
        }
    });
    madsim::time::sleep(std::time::Duration::from_secs(1)).await;
    let connect = || async { ask(TcpStream::connect(ADDRESS).await.expect("connect")).await };
    let asking: Vec<_> = clients.iter().map(|client| client.spawn(connect())).collect();
    for client in asking {
        client.await.expect("client lives");
    }
}

fn measure<F: Future<Output = ()> + 'static>(
    name: &'static str,
    clients: u32,
    story: fn(NodeHandle, Vec<NodeHandle>) -> F,
) {
    let simulation = move || {
        let runtime = Runtime::with_seed_and_config(1, madsim::Config::default());
        sim::install(&runtime);
        let began = Instant::now();
        let (datagrams, virtual_time) = runtime.block_on(async {
            let machine = |name: String, last: u32| {
                let ip = std::net::Ipv4Addr::from(0x0a00_0000 + last).into();
                Handle::current().create_node().name(name).ip(ip).build()
            };
            let server = machine("server".into(), 1);
            let clients = (0..clients).map(|n| machine(format!("client {n}"), 2 + n)).collect();
            story(server, clients).await;
            let seen = (NetSim::current().stat().msg_count, madsim::time::TimeHandle::current().elapsed());
            sim::shut_down().await.expect("installed");
            seen
        });
        // read outside the simulation, where the clock is real
        let wall = began.elapsed();
        let trips = f64::from(ROUND_TRIPS * clients);
        println!(
            "{name:>8}, {clients} clients: {:>7.0} round trips/s, {:.2} messages a trip, {:.1} ms virtual a trip",
            trips / wall.as_secs_f64(),
            datagrams as f64 / trips,
            virtual_time.as_secs_f64() * 1000.0 / f64::from(ROUND_TRIPS),
        );
    };
    std::thread::spawn(simulation).join().expect("the simulation ran");
}

fn main() {
    for clients in [1, 3] {
        measure("ours", clients, ours);
        measure("madsim's", clients, madsims);
    }
}
