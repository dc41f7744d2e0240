//! The observer: the one place where events of a run are collected.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use madsim::time::TimeHandle;

use crate::event::{Actor, Event, What};

/// Collects the events of one run. Outside the simulated world: it sees everything and disturbs nothing.
#[derive(Default)]
pub struct Observer {
    /// Simulated time at the beginning of story time.
    begin: OnceLock<Duration>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    events: Vec<Event>,
    defects: Vec<String>,
}

/// Simulated time since the runtime was made.
pub(crate) fn elapsed() -> Duration {
    TimeHandle::try_current().map_or(Duration::ZERO, |time| time.elapsed())
}

impl Observer {
    /// An observer whose story has not begun.
    pub fn new() -> Arc<Observer> {
        Arc::default()
    }

    /// Story time begins now. Events before are dated 0.
    pub fn begin(&self) {
        let _ = self.begin.set(elapsed());
    }

    /// Simulated time at the beginning of story time.
    pub fn begun_at(&self) -> Duration {
        self.begin.get().copied().unwrap_or_else(elapsed)
    }

    /// Story time. Zero before it has begun.
    pub fn now(&self) -> Duration {
        elapsed().saturating_sub(self.begun_at())
    }

    /// Records an event at the current moment.
    pub fn record(&self, actor: Actor, what: What) {
        let at_ns = self.now().as_nanos() as u64;
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).events.push(Event { at_ns, actor, what });
    }

    /// Records that the observer can not make sense of what it sees: a defect of the simulator or of the queue.
    pub fn defect(&self, what: impl Into<String>) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).defects.push(what.into());
    }

    /// Looks at the events so far.
    pub fn look<T>(&self, look: impl FnOnce(&[Event]) -> T) -> T {
        look(&self.seen.lock().unwrap_or_else(PoisonError::into_inner).events)
    }

    /// Takes out events and defects.
    pub fn take(&self) -> (Vec<Event>, Vec<String>) {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner));
        (seen.events, seen.defects)
    }
}
