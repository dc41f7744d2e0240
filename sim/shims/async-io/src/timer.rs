//! Timers on simulated time.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use madsim::time::{Sleep, TimeHandle};

/// The longest sleep: far beyond any story, and small enough not to overflow an `Instant`.
const LONGEST: Duration = Duration::from_secs(86_400 * 365 * 100);

/// A future that completes once, after a duration of *simulated* time.
///
/// Outside a simulation there is no simulated time, so there it never completes.
#[derive(Debug)]
pub struct Timer(Option<Sleep>);

impl Timer {
    /// A timer that fires `duration` from now (madsim rounds up to one millisecond).
    pub fn after(duration: Duration) -> Timer {
        Timer(TimeHandle::try_current().map(|time| time.sleep(duration.min(LONGEST))))
    }
}

impl Future for Timer {
    type Output = Instant;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Instant> {
        match &mut self.0 {
            // madsim answers `Instant::now` with simulated time
            Some(sleep) => Pin::new(sleep).poll(cx).map(|()| Instant::now()),
            None => Poll::Pending,
        }
    }
}

/// Never usable in a simulation, whose single thread must not block: sqlx calls it only from `#[sqlx::test]` and from
/// the compile-time checks of `query!`, neither of which this build supports.
///
/// # Panics
/// Always.
pub fn block_on<T>(_future: impl Future<Output = T>) -> T {
    panic!(
        "async_io::block_on was called in a build whose async-io is the simulation's stand-in: `query!` and \
         `#[sqlx::test]` do not work here, run the future on the simulation instead"
    )
}
