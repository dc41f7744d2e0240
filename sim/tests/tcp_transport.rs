//! Goal: bytes arrive intact and in order, whatever the network does, and a caller learns in time when they cannot.
//! Method: two simulated machines; loss, reordering and one-way cuts come from madsim.

mod tcp_support;

use std::io::ErrorKind;
use std::time::Duration;

use async_io::{SimTcpListener, SimTcpStream, TcpOptions, sim};
use madsim::time::{sleep, timeout};
use tcp_support::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[test]
fn what_is_sent_comes_back() {
    run(1, || async {
        let (server, client) = server_and_client();
        server.spawn(serve_echo(addr(SERVER)));
        sleep(seconds(1)).await;
        let talk = client.spawn(async {
            let mut stream = SimTcpStream::connect(addr(SERVER)).await.expect("connect");
            stream.write_all(b"hello").await.expect("write");
            let mut buf = [0; 5];
            stream.read_exact(&mut buf).await.expect("read");
            (buf, stream.local_addr().ip(), stream.peer_addr())
        });
        let (echo, local, peer) = talk.await.expect("client lives");
        assert_eq!(&echo, b"hello");
        assert_eq!(local, addr(CLIENT).ip());
        assert_eq!(peer, addr(SERVER));
    });
}

/// One megabyte there and back over a network that loses `loss` of all datagrams and shuffles the rest.
fn megabyte(seed: u64, loss: f64, latency_ms: std::ops::Range<u64>) -> Duration {
    let mut config = madsim::Config::default();
    config.net.packet_loss_rate = loss;
    config.net.send_latency = Duration::from_millis(latency_ms.start)..Duration::from_millis(latency_ms.end);
    run_with(seed, config, || async {
        let (server, client) = server_and_client();
        server.spawn(serve_echo(addr(SERVER)));
        sleep(seconds(1)).await;
        let began = now();
        let talk = client.spawn(async {
            let data = pattern(1 << 20);
            let stream = SimTcpStream::connect(addr(SERVER)).await.expect("connect");
            let (mut read, mut write) = tokio::io::split(stream);
            let sent = data.clone();
            let writing = madsim::task::spawn(async move {
                write.write_all(&sent).await.expect("write");
                write.shutdown().await.expect("shutdown");
            });
            let mut back = Vec::new();
            read.read_to_end(&mut back).await.expect("read");
            writing.await.expect("writer lives");
            assert!(back == data, "{} bytes came back, changed", back.len());
        });
        talk.await.expect("client lives");
        now() - began
    })
}

#[test]
fn a_megabyte_survives_loss_and_reordering() {
    for seed in 0..5 {
        let took = megabyte(seed, 0.1, 1..200);
        assert!(took > seconds(1), "a lossy network is slow: {took:?}");
    }
}

#[test]
fn a_megabyte_is_fast_on_a_clean_network() {
    let took = megabyte(7, 0.0, 1..2);
    assert!(took < seconds(2), "{took:?}");
}

#[test]
fn a_one_way_cut_loses_replies_and_heals() {
    run(3, || async {
        let (server, client) = server_and_client();
        let (mut there, mut here) = connected(&server, &client).await;
        cut(&server, &client);
        here.write_all(b"ask").await.expect("write");
        let mut buf = [0; 16];
        assert_eq!(there.read(&mut buf).await.expect("requests still arrive"), 3);
        there.write_all(b"reply").await.expect("write");
        assert!(timeout(seconds(60), here.read(&mut buf)).await.is_err(), "the reply cannot arrive");
        heal(&server, &client);
        let n = timeout(seconds(130), here.read(&mut buf)).await.expect("sent again").expect("read");
        assert_eq!(&buf[..n], b"reply");
    });
}

#[test]
fn a_cut_longer_than_the_give_up_time_fails_the_sender_only() {
    run(4, || async {
        let (server, client) = server_and_client();
        let (there, mut here) = connected(&server, &client).await;
        cut(&client, &server);
        let began = now();
        here.write_all(b"lost").await.expect("taken by the send buffer");
        let error = here.read(&mut [0; 1]).await.expect_err("nobody acknowledges");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        let took = (now() - began).as_secs();
        assert!((924..=925).contains(&took), "Linux gives up after 924.6 s, this after {took} s");
        assert_eq!(states(client.id()), [""; 0]);
        assert_eq!(states(server.id()), ["ESTAB"], "an idle receiver cannot know");
        drop(there);
    });
}

#[test]
fn a_dead_host_lets_connect_time_out_and_a_closed_port_refuses() {
    run(5, || async {
        let (server, client) = server_and_client();
        sleep(seconds(1)).await;
        let attempt = || async {
            let began = now();
            let error = SimTcpStream::connect(addr(SERVER)).await.expect_err("nobody listens");
            (error.kind(), now() - began)
        };
        let (kind, took) = client.spawn(attempt()).await.expect("client lives");
        assert_eq!(kind, ErrorKind::ConnectionRefused);
        assert!(took < seconds(1), "a refusal is one round trip, not {took:?}");
        sim::power_loss(server.id()).expect("installed");
        let (kind, took) = client.spawn(attempt()).await.expect("client lives");
        assert_eq!(kind, ErrorKind::TimedOut);
        assert_eq!(took.as_secs(), 127, "six SYNs more, like Linux");
        assert_eq!(states(client.id()), [""; 0]);
    });
}

#[test]
fn a_connect_through_a_passing_cut_succeeds_late() {
    run(6, || async {
        let (server, client) = server_and_client();
        server.spawn(serve_echo(addr(SERVER)));
        sleep(seconds(1)).await;
        cut(&server, &client);
        let began = now();
        let connecting = client.spawn(async { SimTcpStream::connect(addr(SERVER)).await.map(drop) });
        sleep(seconds(10)).await;
        heal(&server, &client);
        connecting.await.expect("client lives").expect("connected after the cut");
        assert!((now() - began) > seconds(10));
    });
}

#[test]
fn half_a_connection_can_be_closed() {
    run(7, || async {
        let (server, client) = server_and_client();
        let (mut there, mut here) = connected(&server, &client).await;
        here.write_all(b"last words").await.expect("write");
        here.shutdown().await.expect("shutdown");
        let mut heard = Vec::new();
        there.read_to_end(&mut heard).await.expect("read");
        assert_eq!(heard, b"last words");
        sleep(seconds(1)).await;
        assert_eq!(states(server.id()), ["CLOSE-WAIT"]);
        assert_eq!(states(client.id()), ["FIN-WAIT-2"]);
        let error = here.write_all(b"more").await.expect_err("that half is closed");
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        there.write_all(b"an answer").await.expect("the other half is open");
        drop(there);
        let mut answer = Vec::new();
        here.read_to_end(&mut answer).await.expect("read");
        assert_eq!(answer, b"an answer");
        sleep(seconds(1)).await;
        assert_eq!(states(client.id()), ["TIME-WAIT"], "who closed first waits");
        assert_eq!(states(server.id()), [""; 0]);
        drop(here);
        sleep(seconds(60)).await;
        assert_eq!(states(client.id()), [""; 0]);
    });
}

#[test]
fn a_writer_waits_for_a_reader_who_does_not_read() {
    run(8, || async {
        let (server, client) = server_and_client();
        let (mut there, mut here) = connected(&server, &client).await;
        let data = pattern(1 << 18);
        let expected = data.clone();
        let mut taken = 0;
        while let Ok(n) = timeout(seconds(5), here.write(&data[taken..])).await {
            taken += n.expect("write");
        }
        assert_eq!(taken, 128 * 1024, "a receive window and a send buffer of 64 KiB each");
        // a closed window is not a dead peer: probes are answered, for hours
        sleep(seconds(3 * 3600)).await;
        assert_eq!(states(client.id()), ["ESTAB"]);
        let writing = madsim::task::spawn(async move {
            here.write_all(&data[taken..]).await.expect("write");
        });
        let mut heard = Vec::new();
        there.read_to_end(&mut heard).await.expect("read");
        assert!(heard == expected, "{} bytes", heard.len());
        writing.await.expect("writer lives");
    });
}

#[test]
fn a_lost_window_update_does_not_stop_the_flow() {
    run(9, || async {
        let (server, client) = server_and_client();
        let (mut there, mut here) = connected(&server, &client).await;
        let data = pattern(128 * 1024);
        let sent = data.clone();
        let writing = madsim::task::spawn(async move {
            here.write_all(&sent).await.expect("write");
            here
        });
        sleep(seconds(5)).await;
        cut(&server, &client);
        let mut heard = vec![0; 64 * 1024];
        there.read_exact(&mut heard).await.expect("read");
        sleep(seconds(2)).await;
        heal(&server, &client);
        let mut rest = vec![0; 64 * 1024];
        timeout(seconds(300), there.read_exact(&mut rest)).await.expect("asked again").expect("read");
        heard.extend(rest);
        assert!(heard == data);
        writing.await.expect("writer lives");
    });
}

#[test]
fn small_buffers_are_obeyed() {
    run(10, || async {
        let (server, client) = server_and_client();
        let options = TcpOptions { recv_buffer: 1000, send_buffer: 500, ..TcpOptions::default() };
        let accepting = server.spawn(async move {
            let listener = SimTcpListener::bind_with(addr(SERVER), options).await.expect("bind");
            listener.accept().await.expect("accept").0
        });
        sleep(seconds(1)).await;
        let connecting =
            client.spawn(async move { SimTcpStream::connect_with(addr(SERVER), options).await.expect("connect") });
        let mut here = connecting.await.expect("client lives");
        let mut there = accepting.await.expect("server lives");
        let mut taken = 0;
        while let Ok(n) = timeout(seconds(1), here.write(&[1; 4000])).await {
            taken += n.expect("write");
        }
        assert_eq!(taken, 1500);
        let mut buf = [0; 4000];
        assert_eq!(there.read(&mut buf).await.expect("read"), 1000, "a read takes what is there");
    });
}

#[test]
fn an_abandoned_connect_leaves_nothing_behind() {
    run(11, || async {
        let (server, client) = server_and_client();
        server.spawn(serve_echo(addr(SERVER)));
        sleep(seconds(1)).await;
        cut(&server, &client);
        let attempt = client.spawn(async { timeout(seconds(3), SimTcpStream::connect(addr(SERVER))).await.is_err() });
        assert!(attempt.await.expect("client lives"));
        assert_eq!(states(client.id()), [""; 0]);
        heal(&server, &client);
        sleep(seconds(70)).await;
        assert_eq!(states(server.id()), [""; 0], "the half-made connection was reset or given up");
    });
}

#[test]
fn without_an_installed_tcp_the_error_says_what_to_do() {
    let outcome = std::thread::spawn(|| {
        let runtime = madsim::runtime::Runtime::with_seed_and_config(1, madsim::Config::default());
        runtime.block_on(async { SimTcpStream::connect(addr(SERVER)).await.map(drop) })
    });
    let error = outcome.join().expect("no panic").expect_err("not installed");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("install"), "{error}");
}

/// A busy story whose every step is logged.
fn story(seed: u64) -> Vec<String> {
    let mut config = madsim::Config::default();
    config.net.packet_loss_rate = 0.05;
    run_with(seed, config, || async {
        let log = Log::default();
        let (server, first) = server_and_client();
        let second = machine("second", "10.0.0.3:0");
        server.spawn(serve_echo(addr(SERVER)));
        for (name, node) in [("first", &first), ("second", &second)] {
            let log = log.clone();
            node.spawn(async move {
                for round in 0..20 {
                    let mut stream = match SimTcpStream::connect(addr(SERVER)).await {
                        Ok(stream) => stream,
                        Err(error) => {
                            log.note(format!("{name} {round} {error}"));
                            continue;
                        }
                    };
                    let mut buf = [0; 3000];
                    for _ in 0..5 {
                        let outcome = match stream.write_all(&[round; 3000]).await {
                            Ok(()) => stream.read(&mut buf).await,
                            Err(error) => Err(error),
                        };
                        log.note(format!("{name} {round} {:?} {outcome:?}", stream.local_addr()));
                    }
                }
            });
        }
        sleep(seconds(2)).await;
        madsim::runtime::Handle::current().kill(server.id());
        sleep(seconds(1)).await;
        madsim::runtime::Handle::current().restart(server.id());
        again(&server).spawn(serve_echo(addr(SERVER)));
        sleep(seconds(3)).await;
        sim::power_loss(second.id()).expect("installed");
        cut(&first, &server);
        sleep(seconds(3)).await;
        heal(&first, &server);
        sleep(seconds(60)).await;
        log.note(format!("{:?}", sim::connections(server.id())));
        log.lines()
    })
}

#[test]
fn equal_seeds_give_equal_stories_and_others_differ() {
    let first = story(42);
    assert!(first.len() > 50, "{first:#?}");
    assert_eq!(first, story(42));
    let beside: Vec<_> = (0..4).map(|_| std::thread::spawn(|| story(42))).collect();
    for other in beside {
        assert_eq!(first, other.join().expect("story"), "a story does not see its neighbours");
    }
    assert_ne!(first, story(43));
}
