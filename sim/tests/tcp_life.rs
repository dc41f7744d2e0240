//! Goal: peers see of a crash, a pause, a power loss and a reboot what real machines show them, no less and no more.
//! Method: two simulated machines; madsim kills, pauses and restarts processes, the TCP's controls cut the power.

mod tcp_support;

use std::io::ErrorKind;
use std::sync::{Arc, Mutex};

use async_io::{Keepalive, SimTcpListener, SimTcpStream, TcpOptions, sim};
use madsim::runtime::Handle;
use madsim::time::{sleep, timeout};
use tcp_support::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A pair of streams whose client end lives in a task of the client, as a process's sockets do.
async fn client_process(server: &madsim::runtime::NodeHandle, client: &madsim::runtime::NodeHandle) -> SimTcpStream {
    let (there, here) = connected(server, client).await;
    client.spawn(async move {
        std::future::pending::<()>().await;
        drop(here);
    });
    there
}

#[test]
fn a_crashed_process_is_told_to_its_peer_by_its_kernel() {
    run(1, || async {
        let (server, client) = server_and_client();
        let mut there = client_process(&server, &client).await;
        Handle::current().kill(client.id());
        let began = now();
        let n = timeout(seconds(1), there.read(&mut [0; 8])).await.expect("FIN").expect("read");
        assert_eq!(n, 0, "end of stream");
        assert!(now() - began > std::time::Duration::from_millis(1), "a FIN travels");
        // the kernel lives on: it answers what nobody can read any more
        there.write_all(b"too late").await.expect("not known yet");
        sleep(seconds(1)).await;
        let error = there.write_all(b"x").await.expect_err("reset");
        assert_eq!(error.kind(), ErrorKind::BrokenPipe, "as Linux says after FIN and RST");
        assert_eq!(states(client.id()), [""; 0]);
    });
}

#[test]
fn a_process_that_crashes_with_unread_bytes_resets_its_peer() {
    run(2, || async {
        let (server, client) = server_and_client();
        let mut there = client_process(&server, &client).await;
        there.write_all(b"unread").await.expect("write");
        sleep(seconds(1)).await;
        Handle::current().kill(client.id());
        let outcome = timeout(seconds(1), there.read(&mut [0; 8])).await.expect("told");
        assert_eq!(outcome.expect_err("reset").kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_crash_behind_a_cut_is_learned_after_the_cut() {
    run(3, || async {
        let (server, client) = server_and_client();
        let mut there = client_process(&server, &client).await;
        cut(&client, &server);
        Handle::current().kill(client.id());
        assert!(timeout(seconds(20), there.read(&mut [0; 8])).await.is_err(), "the FIN is lost");
        heal(&client, &server);
        let n = timeout(seconds(60), there.read(&mut [0; 8])).await.expect("sent again").expect("read");
        assert_eq!(n, 0);
    });
}

#[test]
fn a_crash_behind_a_long_cut_leaves_the_peer_half_open_until_it_writes() {
    run(4, || async {
        let (server, client) = server_and_client();
        let mut there = client_process(&server, &client).await;
        cut(&client, &server);
        Handle::current().kill(client.id());
        sleep(seconds(120)).await;
        assert_eq!(states(client.id()), [""; 0], "the kernel gave the FIN up after 102 s");
        heal(&client, &server);
        sleep(seconds(3600)).await;
        assert_eq!(states(server.id()), ["ESTAB"]);
        there.write_all(b"still there?").await.expect("not known yet");
        let outcome = timeout(seconds(1), there.read(&mut [0; 8])).await.expect("answered");
        assert_eq!(outcome.expect_err("reset").kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn after_a_crash_ports_refuse_until_the_restart() {
    run(5, || async {
        let client = machine("client", CLIENT);
        let server = Handle::current()
            .create_node()
            .name("server")
            .ip(addr(SERVER).ip())
            .init(|| serve_echo(addr(SERVER)))
            .build();
        sleep(seconds(1)).await;
        let attempt = || {
            let dial = async { SimTcpStream::connect(addr(SERVER)).await.map(drop) };
            let attempt = client.spawn(dial);
            async { attempt.await.expect("client lives").map_err(|error| error.kind()) }
        };
        assert_eq!(attempt().await, Ok(()));
        // the kernel must keep answering through several crashes in a row
        for crash in 0..5 {
            Handle::current().kill(server.id());
            sleep(seconds(1)).await;
            assert_eq!(attempt().await, Err(ErrorKind::ConnectionRefused), "crash {crash}");
            Handle::current().restart(server.id());
            sleep(seconds(1)).await;
            assert_eq!(attempt().await, Ok(()), "restart {crash}");
        }
    });
}

#[test]
fn a_restart_at_the_moment_of_the_crash_keeps_the_port() {
    for seed in 0..20 {
        run(seed, || async {
            let client = machine("client", CLIENT);
            let server = Handle::current()
                .create_node()
                .name("server")
                .ip(addr(SERVER).ip())
                .init(|| serve_echo(addr(SERVER)))
                .build();
            sleep(seconds(1)).await;
            let old = client.spawn(async { SimTcpStream::connect(addr(SERVER)).await });
            let mut old = old.await.expect("client lives").expect("connect");
            sleep(seconds(1)).await;
            Handle::current().kill(server.id());
            Handle::current().restart(server.id());
            sleep(seconds(1)).await;
            assert_eq!(old.read(&mut [0; 1]).await.expect("FIN"), 0);
            let talk = client.spawn(async {
                let mut stream = SimTcpStream::connect(addr(SERVER)).await?;
                stream.write_all(b"x").await?;
                stream.read(&mut [0; 1]).await
            });
            assert_eq!(talk.await.expect("client lives").expect("a new server"), 1);
        });
    }
}

#[test]
fn a_process_that_ends_or_is_restarted_without_a_kill_closes_its_connections() {
    run(6, || async {
        let (server, client) = server_and_client();
        let mut there = client_process(&server, &client).await;
        Handle::current().restart(client.id());
        let n = timeout(seconds(1), there.read(&mut [0; 8])).await.expect("FIN").expect("read");
        assert_eq!(n, 0);
        // and the machine still has its network
        let listener = server.spawn(SimTcpListener::bind(addr("10.0.0.1:81")));
        let _listener = listener.await.expect("server lives").expect("bind");
        let dial = again(&client).spawn(SimTcpStream::connect(addr("10.0.0.1:81")));
        dial.await.expect("client lives").expect("connect");
    });
}

#[test]
fn a_killed_and_paused_process_is_closed_like_any_other() {
    run(7, || async {
        let (server, client) = server_and_client();
        let (mut there, mut here) = connected(&server, &client).await;
        // a runnable task of a paused node is dropped inside the call to kill, on the killer's node
        client.spawn(async move {
            loop {
                sleep(seconds(1)).await;
                here.write_all(b"tick").await.expect("write");
            }
        });
        sleep(seconds(3)).await;
        Handle::current().pause(client.id());
        sleep(seconds(3)).await;
        Handle::current().kill(client.id());
        let mut heard = Vec::new();
        timeout(seconds(1), there.read_to_end(&mut heard)).await.expect("FIN").expect("read");
        assert_eq!(heard.len() % 4, 0);
        sleep(seconds(1)).await;
        assert_eq!(states(client.id()), ["FIN-WAIT-2"], "closed, and waiting for the peer");
    });
}

#[test]
fn a_stream_held_outside_its_dead_process_is_closed_all_the_same() {
    run(8, || async {
        let (server, client) = server_and_client();
        let (mut there, here) = connected(&server, &client).await;
        let held = Arc::new(Mutex::new(here));
        Handle::current().kill(client.id());
        let n = timeout(seconds(1), there.read(&mut [0; 8])).await.expect("FIN").expect("read");
        assert_eq!(n, 0);
        let error = held.lock().expect("lock").try_write(b"zombie").expect_err("dead");
        assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::NotConnected));
    });
}

/// A server that listens with keepalive, as PostgreSQL does, and a client machine that loses its power.
async fn powerless(
    keepalive: Option<Keepalive>,
) -> (SimTcpStream, madsim::runtime::NodeHandle, madsim::runtime::NodeHandle) {
    let (server, client) = server_and_client();
    let options = TcpOptions { keepalive, ..TcpOptions::default() };
    let accepting = server.spawn(async move {
        let listener = SimTcpListener::bind_with(addr(SERVER), options).await.expect("bind");
        listener.accept().await.expect("accept").0
    });
    sleep(seconds(1)).await;
    client.spawn(async {
        let _stream = SimTcpStream::connect(addr(SERVER)).await.expect("connect");
        std::future::pending::<()>().await;
    });
    let there = accepting.await.expect("server lives");
    sleep(seconds(1)).await;
    sim::power_loss(client.id()).expect("installed");
    (there, server, client)
}

#[test]
fn a_power_loss_is_found_by_keepalive_after_two_hours_and_eleven_minutes() {
    run(9, || async {
        let (mut there, server, _) = powerless(Some(Keepalive::default())).await;
        let began = now();
        sleep(seconds(7200)).await;
        assert_eq!(states(server.id()), ["ESTAB"], "half-open");
        let error = there.read(&mut [0; 8]).await.expect_err("found");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        let took = (now() - began).as_secs();
        assert!((7873..=7875).contains(&took), "7200 + 9 * 75 s after the last word, not {took}");
        assert_eq!(states(server.id()), [""; 0]);
    });
}

#[test]
fn without_keepalive_a_power_loss_is_never_found_by_an_idle_peer() {
    run(10, || async {
        let (there, server, _) = powerless(None).await;
        sleep(seconds(30 * 24 * 3600)).await;
        assert_eq!(states(server.id()), ["ESTAB"]);
        drop(there);
    });
}

#[test]
fn keepalive_can_be_tuned_and_a_living_peer_answers_it() {
    run(11, || async {
        let quick = Keepalive { idle: seconds(10), interval: seconds(2), probes: 3 };
        let (mut there, _, _) = powerless(Some(quick)).await;
        let began = now();
        assert_eq!(there.read(&mut [0; 8]).await.expect_err("found").kind(), ErrorKind::TimedOut);
        assert!((now() - began).as_secs() <= 16);
    });
    run(11, || async {
        let (server, client) = server_and_client();
        let (mut there, mut here) = connected(&server, &client).await;
        let quick = Keepalive { idle: seconds(10), interval: seconds(2), probes: 3 };
        there.set_keepalive(Some(quick)).expect("connected");
        sleep(seconds(24 * 3600)).await;
        here.write_all(b"alive").await.expect("write");
        assert_eq!(there.read(&mut [0; 8]).await.expect("alive"), 5);
    });
}

#[test]
fn a_rebooted_machine_resets_the_peers_of_its_former_life() {
    run(12, || async {
        let (mut there, _, client) = powerless(None).await;
        sleep(seconds(100)).await;
        sim::power_on(client.id()).expect("installed");
        sleep(seconds(3600)).await;
        there.write_all(b"remember me?").await.expect("not known yet");
        let outcome = timeout(seconds(1), there.read(&mut [0; 8])).await.expect("answered");
        assert_eq!(outcome.expect_err("reset").kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_write_to_a_powerless_machine_times_out() {
    run(13, || async {
        let (mut there, _, _) = powerless(None).await;
        let began = now();
        there.write_all(b"anybody?").await.expect("taken by the send buffer");
        let error = there.read(&mut [0; 8]).await.expect_err("nobody");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert_eq!((now() - began).as_secs(), 924);
    });
}

#[test]
fn power_can_fail_again_and_again() {
    run(14, || async {
        let (server, client) = server_and_client();
        sleep(seconds(1)).await;
        for round in 0..6 {
            sim::power_loss(server.id()).expect("installed");
            sleep(seconds(1)).await;
            sim::power_on(server.id()).expect("installed");
            again(&server).spawn(serve_echo(addr(SERVER)));
            sleep(seconds(1)).await;
            let talk = client.spawn(async {
                let mut stream = SimTcpStream::connect(addr(SERVER)).await?;
                stream.write_all(b"x").await?;
                stream.read(&mut [0; 1]).await
            });
            assert_eq!(talk.await.expect("client lives").expect("served"), 1, "round {round}");
        }
    });
}

#[test]
fn a_pause_keeps_the_connection_and_the_kernel_goes_on_acknowledging() {
    run(15, || async {
        let (server, client) = server_and_client();
        let (there, mut here) = connected(&server, &client).await;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let noted = heard.clone();
        server.spawn(async move {
            let mut stream = there;
            let mut buf = [0; 64];
            while let Ok(n) = stream.read(&mut buf).await {
                noted.lock().expect("lock").extend_from_slice(&buf[..n]);
            }
        });
        sleep(seconds(1)).await;
        Handle::current().pause(server.id());
        here.write_all(b"while you sleep").await.expect("write");
        // far beyond the time-out for data that nobody acknowledges
        here.set_give_up(seconds(5)).expect("connected");
        sleep(seconds(60)).await;
        assert!(heard.lock().expect("lock").is_empty(), "a paused process reads nothing");
        assert_eq!(states(client.id()), ["ESTAB"]);
        Handle::current().resume(server.id());
        sleep(seconds(1)).await;
        assert_eq!(*heard.lock().expect("lock"), b"while you sleep");
    });
}

#[test]
fn a_paused_server_still_completes_handshakes() {
    run(16, || async {
        let (server, client) = server_and_client();
        server.spawn(serve_echo(addr(SERVER)));
        sleep(seconds(1)).await;
        Handle::current().pause(server.id());
        let dial = client.spawn(SimTcpStream::connect(addr(SERVER)));
        let mut stream = dial.await.expect("client lives").expect("the kernel answers");
        stream.write_all(b"hello?").await.expect("write");
        let mut buf = [0; 8];
        assert!(timeout(seconds(60), stream.read(&mut buf)).await.is_err(), "nobody is at home");
        Handle::current().resume(server.id());
        let n = timeout(seconds(1), stream.read(&mut buf)).await.expect("resumed").expect("read");
        assert_eq!(&buf[..n], b"hello?");
    });
}

#[test]
fn a_paused_and_cut_off_process_learns_nothing_until_it_writes() {
    run(17, || async {
        let (server, client) = server_and_client();
        let quick = Keepalive { idle: seconds(60), interval: seconds(10), probes: 3 };
        let (mut there, mut here) = connected(&server, &client).await;
        there.set_keepalive(Some(quick)).expect("connected");
        Handle::current().pause(client.id());
        cut(&client, &server);
        cut(&server, &client);
        let error = there.read(&mut [0; 1]).await.expect_err("keepalive found nobody");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        heal(&client, &server);
        heal(&server, &client);
        Handle::current().resume(client.id());
        assert_eq!(states(client.id()), ["ESTAB"], "the zombie believes it is connected");
        here.write_all(b"COMMIT").await.expect("not known yet");
        let outcome = timeout(seconds(1), here.read(&mut [0; 1])).await.expect("answered");
        assert_eq!(outcome.expect_err("reset").kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn node_options_reach_connections_that_others_open() {
    run(18, || async {
        let (server, client) = server_and_client();
        let options = TcpOptions { give_up: seconds(30), ..TcpOptions::default() };
        sim::set_options(client.id(), options).expect("installed");
        let (_there, mut here) = connected(&server, &client).await;
        cut(&client, &server);
        let began = now();
        here.write_all(b"x").await.expect("write");
        assert_eq!(here.read(&mut [0; 1]).await.expect_err("lost").kind(), ErrorKind::TimedOut);
        assert_eq!((now() - began).as_secs(), 30);
    });
}

#[test]
fn a_listener_that_goes_away_resets_what_waits_there() {
    run(19, || async {
        let (server, client) = server_and_client();
        let listening = server.spawn(SimTcpListener::bind(addr(SERVER)));
        let listener = listening.await.expect("server lives").expect("bind");
        let dial = client.spawn(SimTcpStream::connect(addr(SERVER)));
        let mut stream = dial.await.expect("client lives").expect("queued");
        sleep(seconds(1)).await;
        drop(listener);
        let outcome = timeout(seconds(1), stream.read(&mut [0; 1])).await.expect("told");
        assert_eq!(outcome.expect_err("reset").kind(), ErrorKind::ConnectionReset);
    });
}
