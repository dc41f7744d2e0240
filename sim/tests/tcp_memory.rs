//! Goal: a run that is shut down leaves no memory behind, so that a sweep over thousands of seeds stays flat.
//! Method: many runs in one process, alone in this test binary; the resident set must not grow with them.

mod tcp_support;

use async_io::{SimTcpStream, sim};
use madsim::runtime::Handle;
use madsim::time::{sleep, timeout};
use tcp_support::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Connections in every state, a crash, a restart, a power loss, a pause and a cut.
fn busy_run(seed: u64) {
    run(seed, || async {
        let (server, client) = server_and_client();
        let second = machine("second", "10.0.0.3:0");
        server.spawn(serve_echo(addr(SERVER)));
        for node in [&client, &second] {
            node.spawn(async {
                sleep(seconds(1)).await;
                let mut kept = Vec::new();
                for _ in 0..10 {
                    let Ok(mut stream) = SimTcpStream::connect(addr(SERVER)).await else { continue };
                    if stream.write_all(&[1; 20_000]).await.is_ok() {
                        let _either = timeout(seconds(3), stream.read(&mut [0; 20_000])).await;
                    }
                    kept.push(stream);
                }
                std::future::pending::<()>().await;
                drop(kept);
            });
        }
        sleep(seconds(5)).await;
        Handle::current().kill(server.id());
        Handle::current().restart(server.id());
        again(&server).spawn(serve_echo(addr(SERVER)));
        sleep(seconds(5)).await;
        sim::power_loss(second.id()).expect("installed");
        cut(&client, &server);
        Handle::current().pause(client.id());
        sleep(seconds(20)).await;
    });
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("a resident set");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
}

#[test]
fn many_runs_need_no_more_memory_than_a_few() {
    const RUNS: u64 = 400;
    (0..100).for_each(busy_run);
    let before = resident_kib();
    (100..100 + RUNS).for_each(busy_run);
    let grown = resident_kib().saturating_sub(before);
    // a run that leaks its three kernels and their tasks costs some tens of KiB
    assert!(grown < 2 * RUNS, "{grown} KiB more after {RUNS} runs");
}
