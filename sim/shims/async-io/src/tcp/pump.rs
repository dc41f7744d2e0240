//! The pump of one machine: carries segments between the kernel and madsim's datagrams, and watches the clock.
//!
//! It runs as a task of the *supervisor* node, so that a paused or killed process does not stop its machine's kernel;
//! its datagram socket belongs to the machine's node, so that packet loss and clogged links apply to the machine.

use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use madsim::net::Endpoint;

use super::kernel::Kernel;
use super::segment::Segment;

/// The datagram port of every machine's kernel: TCP's protocol number.
const PORT: u16 = 6;
/// Datagrams a machine can take in at the same moment. madsim holds each back for about a millisecond.
const RECEIVERS: usize = 16;
/// Bindings kept in reserve: madsim drops a node's sockets each time it kills the node.
const SPARES: usize = 3;

type Binding = Pin<Box<dyn Future<Output = io::Result<Endpoint>> + Send>>;

/// Bindings of one machine's datagram port that were begun and not finished.
///
/// madsim's `Endpoint::bind` takes the node of the task that polls it first; the rest may happen anywhere. Begun on the
/// machine's node, finished by the pump, they give the machine its socket back after the process was killed.
#[derive(Clone, Default)]
pub(crate) struct Spares(Arc<Mutex<Vec<Binding>>>);

impl Spares {
    /// Fills the reserve. Must be called by a task of the machine's node.
    pub fn fill(&self) {
        let mut spares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while spares.len() < SPARES {
            let mut binding: Binding = Box::pin(Endpoint::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT))));
            if let Poll::Ready(done) = binding.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                binding = Box::pin(std::future::ready(done));
            }
            spares.push(binding);
        }
    }

    fn take(&self) -> Option<Binding> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Drops the reserve.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

async fn receive(endpoint: Arc<Endpoint>) -> Option<(IpAddr, Segment)> {
    let (payload, from) = endpoint.recv_from_raw(0).await.ok()?;
    payload.downcast::<Segment>().ok().map(|segment| (from.ip(), *segment))
}

async fn send(endpoint: Arc<Endpoint>, to: IpAddr, segment: Segment) {
    // madsim's network has no errors to tell: what cannot be delivered is lost
    let _lost = endpoint.send_to_raw(SocketAddr::new(to, PORT), 0, Box::new(segment)).await;
}

/// Runs until the machine's power fails.
pub(crate) async fn run(kernel: Arc<Kernel>, spares: Spares) {
    let mut endpoint: Option<Arc<Endpoint>> = None;
    let mut binding: Option<Binding> = None;
    let mut receiving = FuturesUnordered::new();
    let mut sending = FuturesUnordered::new();
    let mut batch: Vec<(IpAddr, Segment)> = Vec::new();
    let mut armed: Option<Duration> = None;
    poll_fn(move |cx| {
        loop {
            while let Poll::Ready(Some(received)) = receiving.poll_next_unpin(cx) {
                if let Some((from, segment)) = received {
                    kernel.receive(from, segment);
                }
                receiving.extend(endpoint.clone().map(receive));
            }
            let (powered, unbound, now, due) = kernel.with(|net, now| {
                net.close_leftovers(now);
                net.on_time(now);
                if endpoint.is_some() {
                    batch.append(&mut net.out);
                }
                net.pump = Some(cx.waker().clone());
                (net.powered, net.unbound, now, net.due)
            });
            if !powered {
                return Poll::Ready(());
            }
            if unbound && binding.is_none() {
                binding = spares.take();
            }
            if let Some(Poll::Ready(bound)) = binding.as_mut().map(|binding| binding.as_mut().poll(cx)) {
                binding = None;
                match bound {
                    Ok(bound) => {
                        let bound = Arc::new(bound);
                        receiving.clear();
                        receiving.extend((0..RECEIVERS).map(|_| receive(bound.clone())));
                        endpoint = Some(bound);
                    }
                    // the process was restarted without being killed: the old socket is still in place
                    Err(error) if error.kind() == ErrorKind::AddrInUse && endpoint.is_some() => {}
                    Err(error) => kernel.with(|net, now| net.fail(error.kind(), now)),
                }
                kernel.with(|net, _| net.unbound = false);
                continue;
            }
            if let Some(endpoint) = &endpoint {
                sending.extend(batch.drain(..).map(|(to, segment)| send(endpoint.clone(), to, segment)));
            }
            while let Poll::Ready(Some(())) = sending.poll_next_unpin(cx) {}
            // madsim's timers cannot be taken back: none while an earlier one is still to come
            armed = armed.filter(|at| *at > now);
            if let Some(due) = due.filter(|due| armed.is_none_or(|at| *due < at)) {
                let pause = due.saturating_sub(now).max(Duration::from_millis(1));
                armed = Some(now + pause);
                let mut timer = kernel.time.sleep(pause);
                let _pending = Pin::new(&mut timer).poll(cx);
            }
            return Poll::Pending;
        }
    })
    .await;
}
