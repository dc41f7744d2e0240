//! The leases that this process holds, as far as its own monotonic clock can tell.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leaseproof_rules::{Epoch, Policy};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::store::Beaten;

/// A lease whose row was held up is tried again so many times within its interval.
const HELD_UP_AGAIN: u32 = 4;

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

    fn is_lost(&self) -> bool {
        *self.lost.borrow()
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

    /// No more heartbeats: the worker has ended. Where it has ended without waiting for its runs, they are cancelled.
    pub(crate) fn stop(&self) {
        self.inner().stopped = true;
        self.lose();
        self.changed.notify_one();
    }

    /// All leases are lost: this process is to do nothing more for any task.
    pub(crate) fn lose(&self) {
        for held in self.inner().held.values() {
            held.lost.send_replace(true);
        }
    }

    /// Waits until leases have to be renewed, and returns them: all, as soon as one is due. `None`: stopped. Leases that
    /// nobody may act on any more are lost on the way.
    pub(crate) async fn due(&self) -> Option<Vec<Claim>> {
        loop {
            let wake = {
                let mut inner = self.inner();
                if inner.stopped {
                    return None;
                }
                let now = Instant::now();
                inner.fence(now);
                if inner.live().any(|(_, held)| held.next_beat <= now) {
                    let due: Vec<Claim> = inner.live().map(|(claim, _)| *claim).collect();
                    for claim in &due {
                        if let Some(held) = inner.held.get_mut(claim) {
                            held.next_beat = now + held.heartbeat;
                        }
                    }
                    return Some(due);
                }
                inner.live().map(|(_, held)| held.next_beat.min(held.fence_at())).min()
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

    /// How long a heartbeat for these may wait for its answer, at most `most`: a lost answer must leave the time for
    /// another heartbeat, for each of them. So it is half of what is left until one of them may not be acted on any
    /// more; but never less than half its interval, which [`Policy::validate`] leaves twice over.
    pub(crate) fn patience(&self, beaten: &[Claim], most: Duration) -> Duration {
        let (inner, now) = (self.inner(), Instant::now());
        let held = beaten.iter().filter_map(|claim| inner.held.get(claim)).filter(|held| !held.is_lost());
        let patience = |held: &Held| (held.fence_at().saturating_duration_since(now) / 2).max(held.heartbeat / 2);
        held.map(patience).min().map_or(most, |patience| patience.min(most))
    }

    /// Waits for ever, and loses leases as their time to act ends.
    pub(crate) async fn watch_fences(&self) -> Infallible {
        loop {
            let wake = {
                let mut inner = self.inner();
                inner.fence(Instant::now());
                inner.live().map(|(_, held)| held.fence_at()).min()
            };
            match wake {
                None => std::future::pending().await,
                Some(at) => tokio::time::sleep_until(at).await,
            }
        }
    }

    /// A heartbeat that was sent at `sent` for `sent_for` has been answered. Where a row is held up nothing is known: its
    /// lease is due again before its interval is over.
    pub(crate) fn answered(&self, sent_for: &[Claim], beaten: &Beaten, sent: Instant) {
        let mut inner = self.inner();
        for claim in sent_for {
            let Some(held) = inner.held.get_mut(claim) else { continue };
            if beaten.renewed.binary_search(claim).is_ok() {
                held.accepted = held.accepted.max(sent);
            } else if beaten.held_up.binary_search(claim).is_ok() {
                held.next_beat = held.next_beat.min(sent + held.heartbeat / HELD_UP_AGAIN);
            } else {
                held.lost.send_replace(true);
            }
        }
    }

    /// Nothing is known of a heartbeat for these. They are due again at `again` already, not only after their interval.
    pub(crate) fn unanswered(&self, beaten: &[Claim], again: Instant) {
        let mut inner = self.inner();
        for claim in beaten {
            if let Some(held) = inner.held.get_mut(claim) {
                held.next_beat = held.next_beat.min(again);
            }
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The leases that are not known to be lost.
    fn live(&self) -> impl Iterator<Item = (&Claim, &Held)> {
        self.held.iter().filter(|(_, held)| !held.is_lost())
    }

    fn fence(&mut self, now: Instant) {
        for held in self.held.values_mut() {
            if now >= held.fence_at() && !held.is_lost() {
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
        inner.held.get(&self.claim).is_some_and(|held| !held.is_lost())
    }

    /// Returns as soon as the lease is lost.
    pub(crate) async fn lost(&self) {
        let mut is_lost = self.is_lost.clone();
        // A sender that is gone says the same: the lease is out of the books.
        is_lost.wait_for(|lost| *lost).await.ok();
    }

    /// Out of the books: not renewed any more, and nobody may act on it.
    pub(crate) fn leave(&self) {
        self.leases.inner().held.remove(&self.claim);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// 30 s of lease, of which its owner uses 27, and a beat every 10.
    fn hold(leases: &Arc<Leases>, epoch: Epoch, sent: Instant) -> Lease {
        leases.hold((7, epoch), &Policy::default(), sent)
    }

    fn renewed(claims: &[Claim]) -> Beaten {
        Beaten { renewed: claims.to_vec(), held_up: Vec::new() }
    }

    /// Somebody else holds its row: no reason to stop its run, and one to try again soon.
    #[test]
    fn a_lease_whose_row_is_held_up_is_neither_lost_nor_renewed_and_due_again_soon() {
        let (leases, now) = (Arc::new(Leases::default()), Instant::now());
        let (held, other) = (hold(&leases, 1, now), hold(&leases, 2, now));
        let beaten = Beaten { renewed: vec![(7, 2)], held_up: vec![(7, 1)] };
        leases.answered(&[(7, 1), (7, 2)], &beaten, now);
        assert!(held.may_act() && other.may_act());
        let inner = leases.inner();
        assert_eq!(inner.held[&(7, 1)].next_beat, now + SECOND * 10 / 4);
        assert_eq!(inner.held[&(7, 2)].next_beat, now + SECOND * 10);
    }

    /// A moment so long ago.
    fn ago(seconds: u32) -> Instant {
        Instant::now().checked_sub(SECOND * seconds).expect("this machine has run for a minute")
    }

    /// The zombie of an overrun and its successor, in one worker: the answer to the one is none to the other.
    #[test]
    fn of_two_claims_of_one_task_only_the_renewed_one_lives_on() {
        let (leases, now) = (Arc::new(Leases::default()), Instant::now());
        let (zombie, successor) = (hold(&leases, 1, now), hold(&leases, 4, now));
        assert!(zombie.may_act() && successor.may_act());
        leases.answered(&[(7, 1), (7, 4)], &renewed(&[(7, 4)]), now);
        assert!(!zombie.may_act(), "lost");
        assert!(successor.may_act(), "renewed");
    }

    /// In the database the lease lives on for the margin: what its owner has begun until then can still be written.
    #[test]
    fn the_owner_stops_a_margin_before_its_lease_ends() {
        let leases = Arc::new(Leases::default());
        assert!(hold(&leases, 1, ago(26)).may_act());
        assert!(!hold(&leases, 2, ago(28)).may_act(), "28 s of 30, and the last 3 are the margin");
    }

    #[test]
    fn an_answer_to_an_earlier_heartbeat_takes_nothing_from_a_later_one() {
        let leases = Arc::new(Leases::default());
        let lease = hold(&leases, 1, ago(40));
        leases.answered(&[(7, 1)], &renewed(&[(7, 1)]), Instant::now());
        leases.answered(&[(7, 1)], &renewed(&[(7, 1)]), ago(35));
        assert!(lease.may_act());
    }

    #[test]
    fn a_heartbeat_waits_no_longer_than_leaves_time_for_another() {
        let leases = Arc::new(Leases::default());
        let long = SECOND * 100;
        let near = |waited: Duration, wanted: Duration| {
            assert!(waited <= wanted && waited + SECOND / 2 > wanted, "{waited:?}, wanted {wanted:?}");
        };
        let fresh = hold(&leases, 1, Instant::now());
        near(leases.patience(&[(7, 1)], long), SECOND * 27 / 2);
        assert_eq!(leases.patience(&[(7, 1)], SECOND * 3), SECOND * 3, "nor than a statement may take");
        // The one with the least time counts, and half an interval it always has.
        let old = hold(&leases, 2, ago(10));
        near(leases.patience(&[(7, 1), (7, 2)], long), SECOND * 17 / 2);
        let oldest = hold(&leases, 3, ago(20));
        near(leases.patience(&[(7, 1), (7, 2), (7, 3)], long), SECOND * 5);
        drop((fresh, old, oldest));
    }

    /// The tightest lease that a policy accepts: two beats fit, one lost answer must not end it.
    #[test]
    fn after_a_lost_answer_the_next_heartbeat_comes_before_the_owner_has_to_stop() {
        let policy = Policy { lease_ms: 8_000, heartbeat_ms: 3_000, fence_margin_ms: 2_000, ..Policy::default() };
        assert_eq!(policy.validate(), Ok(()));
        let leases = Arc::new(Leases::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let lease = leases.hold((7, 1), &policy, ago(3));
            let due = leases.due().await.expect("not stopped");
            let sent = Instant::now();
            let patience = leases.patience(&due, SECOND * 5);
            leases.unanswered(&due, sent + patience);
            let again = leases.inner().held[&(7, 1)].next_beat;
            assert!(again + SECOND <= leases.inner().held[&(7, 1)].fence_at(), "a second for the second answer");
            drop(lease);
        });
    }
}
