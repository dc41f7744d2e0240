//! How handlers and the sweeper reach the third party.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use leaseproof_rules::{Answer, Epoch};
use leaseproof_scenarios::{Node, Op, Phase, Point};

use super::wire::{self, Request, Response};
use crate::event::{Actor, What};
use crate::net::{self, Stream};
use crate::world::World;

/// Why a call has no result.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallFailed {
    /// Nothing was sent: it surely did not happen.
    #[error("not sent: {0}")]
    NotSent(String),
    /// The third party says that it did not do it, and will not.
    #[error("refused: a newer execution token, {0}, was seen")]
    Refused(Epoch),
    /// It was sent and nothing was heard: it may have happened, and may still.
    #[error("no answer: {0}")]
    Unknown(String),
}

/// A process's way to the third party.
#[derive(Clone)]
pub struct Client {
    world: Arc<World>,
    node: Node,
    deadline: Duration,
}

impl Client {
    /// For the process on this node. `deadline` holds for connecting and, once more, for the answer.
    pub fn new(world: Arc<World>, node: Node, deadline: Duration) -> Client {
        Client { world, node, deadline }
    }

    /// Has the third party do it.
    ///
    /// # Errors
    /// See [`CallFailed`].
    pub async fn call(&self, task: i64, effect: &str, idempotency_key: &str, token: Epoch) -> Result<(), CallFailed> {
        let request =
            Request::Call { task, effect: effect.to_owned(), idempotency_key: idempotency_key.to_owned(), token };
        let index = self.world.task_index(task);
        let begins = || self.record(What::Call { task: index, token });
        let result = match self.exchange(Op::Call, &request, begins).await {
            Ok(Response::Done) => Ok(()),
            Ok(Response::Refused(newest)) => Err(CallFailed::Refused(newest)),
            Ok(other) => Err(CallFailed::Unknown(format!("unexpected answer {other:?}"))),
            Err(failed) => Err(failed),
        };
        if matches!(result, Err(CallFailed::Unknown(_))) {
            self.record(What::CallUnknown { task: index, token });
        }
        result
    }

    /// Asks whether it was done. With a token, older calls are refused from then on, if the third party checks tokens.
    pub async fn ask(&self, task: i64, effect: &str, token: Option<Epoch>) -> Answer {
        let request = Request::Ask { task, effect: effect.to_owned(), token };
        match self.exchange(Op::Query, &request, || {}).await {
            Ok(Response::Status(true)) => Answer::Done,
            Ok(Response::Status(false)) => Answer::NotDone,
            _ => Answer::Unavailable,
        }
    }

    fn record(&self, what: What) {
        self.world.observer.record(Actor::Node(self.node), what);
    }

    async fn exchange(&self, op: Op, request: &Request, begins: impl Fn()) -> Result<Response, CallFailed> {
        let not_sent = |error: io::Error| CallFailed::NotSent(error.to_string());
        let connecting = madsim::time::timeout(self.deadline, Stream::connect(net::third_party()));
        let mut stream = match connecting.await {
            Ok(connected) => connected.map_err(not_sent)?,
            Err(_) => return Err(CallFailed::NotSent("no connection in time".to_owned())),
        };
        let point = Point { op, phase: Phase::Request };
        let lost = self.world.faults.sending(self.node, point).await;
        begins();
        if lost {
            // lost on its way: the sender waits in vain
            madsim::time::sleep(self.deadline).await;
            return Err(CallFailed::Unknown("no answer in time".to_owned()));
        }
        let talking = async {
            wire::send(&mut stream, request).await?;
            wire::receive(&mut stream).await
        };
        match madsim::time::timeout(self.deadline, talking).await {
            Ok(answer) => answer.map_err(|error| CallFailed::Unknown(error.to_string())),
            Err(_) => {
                // what has not left the machine yet is not sent after the caller has given up
                stream.abort();
                Err(CallFailed::Unknown("no answer in time".to_owned()))
            }
        }
    }
}
