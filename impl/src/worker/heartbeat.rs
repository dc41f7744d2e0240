//! The heartbeat: one statement for all leases of the worker, from a place where no handler can keep it waiting.

use std::sync::Arc;

use super::lease::Leases;
use crate::Store;
use crate::store::HEARTBEAT_BATCH;

/// Where a worker's heartbeat runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HeartbeatMode {
    /// On a thread, a runtime and a connection of its own: a handler that blocks its thread can not starve it.
    #[default]
    Thread,
    /// As a task beside the handlers. Only for handlers that never block, and where threads are not to be had.
    Task,
}

/// Beats until the leases are stopped.
async fn beat(store: Store, leases: Arc<Leases>) {
    while let Some((due, sent)) = leases.due().await {
        // One statement each: what a later one comes to does not undo what an earlier one has renewed.
        for batch in due.chunks(HEARTBEAT_BATCH) {
            // A beat may wait for its answer as long as a deadline; a lease can come to its end meanwhile.
            let answer = tokio::select! {
                biased;
                answer = store.heartbeat(batch, store.deadline()) => answer,
                never = leases.watch_fences() => match never {},
            };
            match answer {
                Ok(renewed) => leases.answered(batch, &renewed, sent),
                // Not renewed as far as we know; the next beat may still be in time.
                Err(error) => tracing::warn!(leases = batch.len(), %error, "heartbeat"),
            }
        }
    }
}

/// Starts beating.
pub(super) fn start(mode: HeartbeatMode, store: Store, leases: Arc<Leases>) {
    let own = match mode {
        HeartbeatMode::Task => None,
        HeartbeatMode::Thread => match on_a_thread(store.clone(), leases.clone()) {
            Ok(()) => return,
            Err(error) => Some(error),
        },
    };
    if let Some(error) = own {
        tracing::warn!(%error, "no thread for the heartbeat: it runs beside the handlers");
    }
    tokio::spawn(beat(store, leases));
}

fn on_a_thread(store: Store, leases: Arc<Leases>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("leaseproof heartbeat".into()).spawn(move || {
        runtime.block_on(async move {
            let store = store.own_connection();
            beat(store.clone(), leases).await;
            store.close().await;
        });
    })?;
    Ok(())
}
