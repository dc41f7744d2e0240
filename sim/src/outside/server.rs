//! The third party's process.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use leaseproof_rules::Answer;
use leaseproof_scenarios::{Node, Op, Phase, Point};
use madsim::rand::Rng;

use super::ledger::Called;
use super::wire::{self, Request, Response};
use crate::event::{Actor, What};
use crate::net::{self, Listener, Stream};
use crate::world::World;

/// How long a request takes, in µs.
const LATENCY_US: std::ops::Range<u64> = 1_000..10_000;

/// Serves on the calling task's node until it dies.
///
/// # Errors
/// The port is taken, or the machine's kernel is gone.
pub async fn serve(world: Arc<World>) -> io::Result<Infallible> {
    let listener = Listener::bind(net::third_party()).await?;
    loop {
        let (stream, peer) = listener.accept().await?;
        let world = world.clone();
        let sender = world.node_at(peer.ip());
        // a task of its own: what has arrived is executed, whatever becomes of the connection
        madsim::task::spawn(async move {
            // a connection that breaks has nobody to be told
            let _ = exchange(&world, stream, sender).await;
        });
    }
}

async fn exchange(world: &World, mut stream: Stream, sender: Option<Node>) -> io::Result<()> {
    let request: Request = wire::receive(&mut stream).await?;
    let half = Duration::from_micros(madsim::rand::thread_rng().gen_range(LATENCY_US) / 2);
    madsim::time::sleep(half).await;
    let (op, response) = execute(world, &request);
    madsim::time::sleep(half).await;
    let point = Point { op, phase: Phase::Reply };
    if sender.is_some_and(|sender| world.faults.replied(sender, point)) {
        // A lost reply is silence. Closing the connection would tell the sender at once.
        std::future::pending::<()>().await;
    }
    wire::send(&mut stream, &response).await
}

/// Takes no time: the ledger and the record of it are one.
fn execute(world: &World, request: &Request) -> (Op, Response) {
    let record = |what| world.observer.record(Actor::Node(Node::ThirdParty), what);
    match request {
        Request::Call { task, effect, idempotency_key, token } => {
            let called = world.ledger(|ledger| ledger.call(*task, effect, idempotency_key, *token));
            let (task, token) = (world.task_index(*task), *token);
            match called {
                Called::Done(count) => record(What::Effect { task, token, count }),
                Called::Repeated => record(What::Repeat { task, token }),
                Called::Refused(newest) => {
                    record(What::RefuseCall { task, token, newest });
                    return (Op::Call, Response::Refused(newest));
                }
            }
            (Op::Call, Response::Done)
        }
        Request::Ask { task, effect, token } => {
            let Some(done) = world.ledger(|ledger| ledger.ask(*task, effect, *token)) else {
                return (Op::Query, Response::Unsupported);
            };
            let answer = if done { Answer::Done } else { Answer::NotDone };
            record(What::Ask { task: world.task_index(*task), token: *token, answer });
            (Op::Query, Response::Status(done))
        }
    }
}
