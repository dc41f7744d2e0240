//! The leases that this process holds, as far as its own monotonic clock can tell.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leaseproof_rules::{Epoch, Policy};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// A claim: task and epoch.
pub(crate) type Claim = (i64, Epoch);

/// All leases of one worker. Shared by its runs and its heartbeat.
#[derive(Default)]
pub(crate) struct Leases {
    inner: Mutex<Inner>,
    /// Somebody has to look again when to wake up.
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    held: BTreeMap<Claim, Held>,
    stopped: bool,
}

struct Held {
    heartbeat: Duration,
    act_for: Duration,
    /// When the last accepted heartbeat, or the claim, was *sent*. The database has seen it no earlier.
    accepted: Instant,
    next_beat: Instant,
    lost: watch::Sender<bool>,
}

impl Held {
    fn fence_at(&self) -> Instant {
        self.accepted + self.act_for
    }
}

impl Leases {
    /// Takes a claim into the books. `sent`: when the claim was sent.
    pub(crate) fn hold(self: &Arc<Leases>, claim: Claim, policy: &Policy, sent: Instant) -> Lease {
        let heartbeat = Duration::from_millis(policy.heartbeat_ms);
        let act_for = Duration::from_millis(policy.act_for_ms());
        let (lost, is_lost) = watch::channel(false);
        let held = Held { heartbeat, act_for, accepted: sent, next_beat: sent + heartbeat, lost };
        self.inner().held.insert(claim, held);
        self.changed.notify_one();
        Lease { leases: self.clone(), claim, is_lost }
    }

    /// No more heartbeats: the worker has ended.
    pub(crate) fn stop(&self) {
        self.inner().stopped = true;
        self.changed.notify_one();
    }

    /// Waits until leases have to be renewed, and returns them: all, as soon as one is due. `None`: stopped. Leases that
    /// nobody may act on any more are lost on the way.
    pub(crate) async fn due(&self) -> Option<(Vec<Claim>, Instant)> {
        loop {
            let wake = {
                let mut inner = self.inner();
                if inner.stopped {
                    return None;
                }
                let now = Instant::now();
                inner.fence(now);
                let live = |held: &&mut Held| !*held.lost.borrow();
                if inner.held.values_mut().filter(live).any(|held| held.next_beat <= now) {
                    let mut due = Vec::with_capacity(inner.held.len());
                    for (claim, held) in &mut inner.held {
                        if !*held.lost.borrow() {
                            held.next_beat = now + held.heartbeat;
                            due.push(*claim);
                        }
                    }
                    return Some((due, now));
                }
                inner.held.values_mut().filter(live).map(|held| held.next_beat.min(held.fence_at())).min()
            };
            match wake {
                None => self.changed.notified().await,
                Some(at) => tokio::select! {
                    biased;
                    () = self.changed.notified() => {}
                    () = tokio::time::sleep_until(at) => {}
                },
            }
        }
    }

    /// Waits for ever, and loses leases as their time to act ends.
    pub(crate) async fn watch_fences(&self) -> Infallible {
        loop {
            let wake = {
                let mut inner = self.inner();
                inner.fence(Instant::now());
                inner.held.values().filter(|held| !*held.lost.borrow()).map(Held::fence_at).min()
            };
            match wake {
                None => std::future::pending().await,
                Some(at) => tokio::time::sleep_until(at).await,
            }
        }
    }

    /// A heartbeat that was sent at `sent` for `beaten` has been answered with those it renewed, in order.
    pub(crate) fn answered(&self, beaten: &[Claim], renewed: &[Claim], sent: Instant) {
        let mut inner = self.inner();
        for claim in beaten {
            let Some(held) = inner.held.get_mut(claim) else { continue };
            if renewed.binary_search(claim).is_ok() {
                held.accepted = held.accepted.max(sent);
            } else {
                held.lost.send_replace(true);
            }
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn fence(&mut self, now: Instant) {
        for held in self.held.values_mut() {
            if now >= held.fence_at() && !*held.lost.borrow() {
                held.lost.send_replace(true);
            }
        }
    }
}

/// One claim of this process. Leaves the books when dropped.
pub(crate) struct Lease {
    leases: Arc<Leases>,
    claim: Claim,
    is_lost: watch::Receiver<bool>,
}

impl Lease {
    /// Whether the owner may still act: the lease is not known to be lost, and by the own clock it can not have ended.
    pub(crate) fn may_act(&self) -> bool {
        let mut inner = self.leases.inner();
        inner.fence(Instant::now());
        inner.held.get(&self.claim).is_some_and(|held| !*held.lost.borrow())
    }

    /// Returns as soon as the lease is lost.
    pub(crate) async fn lost(&self) {
        let mut is_lost = self.is_lost.clone();
        // The sender is in the books for as long as `self` lives.
        is_lost.wait_for(|lost| *lost).await.ok();
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.leases.inner().held.remove(&self.claim);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The zombie of an overrun and its successor, in one worker: the answer to the one is none to the other.
    #[test]
    fn of_two_claims_of_one_task_only_the_renewed_one_lives_on() {
        let (leases, now) = (Arc::new(Leases::default()), Instant::now());
        let hold = |epoch| leases.hold((7, epoch), &Policy::default(), now);
        let (zombie, successor) = (hold(1), hold(4));
        assert!(zombie.may_act() && successor.may_act());
        leases.answered(&[(7, 1), (7, 4)], &[(7, 4)], now);
        assert!(!zombie.may_act(), "lost");
        assert!(successor.may_act(), "renewed");
    }
}
