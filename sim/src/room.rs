//! The room a simulation runs in: a thread of its own, a seeded runtime, the simulated TCP.

use std::any::Any;
use std::future::Future;
use std::time::Duration;

use madsim::runtime::Runtime;

/// The latency of a datagram on every link, before the about two milliseconds that madsim's own sender and receiver
/// take. Real networks within a data centre.
pub const LATENCY: std::ops::Range<Duration> = Duration::from_micros(200)..Duration::from_millis(3);

/// A simulation that did not come to its end.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RoomError {
    /// sqlx would use real sockets: it takes tokio's whenever the thread has a tokio context.
    #[error("a simulation can not start on a thread with a tokio context: sqlx would leave the simulation")]
    TokioContext,
    /// The system has no thread for it.
    #[error("no thread for a simulation: {0}")]
    Thread(String),
    /// Something in the simulation panicked: a defect of the simulator or of the code under test.
    #[error("the simulation with seed {seed} panicked: {message}")]
    Panicked {
        /// The seed that brings it about again.
        seed: u64,
        /// What it said.
        message: String,
    },
}

/// Runs a future as the main task of a fresh simulation, to its end, and then kills all nodes.
///
/// # Errors
/// See [`RoomError`]. A panic inside is an error here, so that a sweep over seeds survives it.
pub fn simulate<T, F, Fut>(seed: u64, main: F) -> Result<T, RoomError>
where
    T: Send + 'static,
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future<Output = T>,
{
    let room = std::thread::Builder::new().name(format!("simulation {seed}")).stack_size(8 << 20).spawn(move || {
        // A new thread has none; the check stays because the consequence, real sockets, would be silent.
        if real_tokio::runtime::Handle::try_current().is_ok() {
            return Err(RoomError::TokioContext);
        }
        let mut config = madsim::Config::default();
        config.net.send_latency = LATENCY;
        let runtime = Runtime::with_seed_and_config(seed, config);
        async_io::sim::install(&runtime);
        Ok(runtime.block_on(async move {
            let out = main().await;
            // a run that leaves tasks pending keeps its memory for good
            let _ = async_io::sim::shut_down().await;
            out
        }))
    });
    match room.map_err(|error| RoomError::Thread(error.to_string()))?.join() {
        Ok(result) => result,
        Err(panic) => Err(RoomError::Panicked { seed, message: message(panic.as_ref()) }),
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_inside_is_an_error_with_the_seed() {
        let result: Result<(), _> = simulate(7, || async { panic!("told you") });
        assert_eq!(result, Err(RoomError::Panicked { seed: 7, message: "told you".into() }));
    }

    #[test]
    fn time_is_virtual() {
        let begun = std::time::Instant::now();
        let seen = simulate(1, || async {
            madsim::time::sleep(Duration::from_secs(86_400)).await;
            madsim::time::TimeHandle::current().elapsed().as_secs()
        });
        assert_eq!(seen, Ok(86_400));
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}
