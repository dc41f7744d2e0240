//! The heartbeat: one statement for all leases of the worker, from a place where no handler can keep it waiting.

use std::sync::Arc;

use tokio::time::Instant;

use super::lease::Leases;
use crate::store::HEARTBEAT_BATCH;
use crate::{Error, Store};

/// Where a worker's heartbeat runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HeartbeatMode {
    /// On a thread, a runtime and a connection of its own: a handler that blocks its thread can not starve it. A worker that
    /// gets no thread does not start.
    #[default]
    Thread,
    /// As a task beside the handlers. Only for handlers that never block, and where threads are not to be had.
    Task,
}

/// Beats until the leases are stopped.
async fn beat(store: Store, leases: Arc<Leases>) {
    while let Some(due) = leases.due().await {
        // One statement each: what a later one comes to does not undo what an earlier one has renewed.
        for batch in due.chunks(HEARTBEAT_BATCH) {
            let sent = Instant::now();
            // Not the statement's deadline: a lease may be shorter, and one lost answer must not end it.
            let patience = leases.patience(batch, store.deadline());
            // A lease can come to its end meanwhile.
            let answer = tokio::select! {
                biased;
                answer = tokio::time::timeout(patience, store.beat(batch, patience)) => answer,
                never = leases.watch_fences() => match never {},
            };
            match answer {
                Ok(Ok(beaten)) => leases.answered(batch, &beaten, sent),
                // Not renewed as far as we know; the next beat may still be in time.
                Ok(Err(error)) => {
                    tracing::warn!(leases = batch.len(), %error, "heartbeat");
                    leases.unanswered(batch, sent + patience);
                }
                Err(_) => {
                    tracing::warn!(leases = batch.len(), "heartbeat: no answer within {patience:?}");
                    leases.unanswered(batch, sent + patience);
                }
            }
        }
    }
}

/// Starts beating.
///
/// # Errors
/// [`Error::NoThread`] if there is none to be had.
pub(super) fn start(mode: HeartbeatMode, store: Store, leases: Arc<Leases>) -> Result<(), Error> {
    match mode {
        HeartbeatMode::Task => {
            tokio::spawn(beat(store, leases));
            Ok(())
        }
        HeartbeatMode::Thread => on_a_thread(std::thread::Builder::new(), store, leases).map_err(no_thread),
    }
}

fn no_thread(error: std::io::Error) -> Error {
    Error::NoThread { why: error.to_string() }
}

fn on_a_thread(thread: std::thread::Builder, store: Store, leases: Arc<Leases>) -> std::io::Result<()> {
    // The runtime is made over there: one that is dropped here, because there is no thread, would panic.
    let (says, said) = std::sync::mpsc::sync_channel(1);
    thread.name("leaseproof heartbeat".into()).spawn(move || {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return says.send(Err(error)).unwrap_or_default(),
        };
        says.send(Ok(())).ok();
        runtime.block_on(async move {
            let store = store.own_connection();
            beat(store.clone(), leases).await;
            store.close().await;
        });
    })?;
    said.recv().unwrap_or_else(|_| Err(std::io::Error::other("the thread has ended")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It does not run beside the handlers instead, where one that blocks would starve it.
    #[test]
    fn without_a_thread_to_be_had_the_start_is_an_error() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let refused = runtime.block_on(async {
            let store = Store::open("sqlite:nobody-makes-this-file").expect("a URL");
            // More stack than there are addresses.
            let thread = std::thread::Builder::new().stack_size(1 << 47);
            on_a_thread(thread, store, Arc::default()).map_err(no_thread)
        });
        let error = refused.expect_err("no thread");
        assert!(matches!(&error, Error::NoThread { .. }), "{error:?}");
        assert!(error.to_string().contains("HeartbeatMode::Task"), "{error}");
    }
}
