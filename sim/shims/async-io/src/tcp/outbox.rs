//! The sending half of a connection: what is written, what is in flight, when to send it again.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Buf, Bytes};

use super::options::{RTO_FIRST, RTO_MAX, RTO_MIN};
use super::segment::{Flag, MSS};

/// A segment sent and not yet acknowledged.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub seq: u64,
    pub flag: Flag,
    pub payload: Bytes,
    at: Duration,
    /// Sent more than once, so its round trip says nothing (Karn's rule).
    again: bool,
}

impl Sent {
    fn end(&self) -> u64 {
        self.seq + self.payload.len() as u64 + u64::from(self.flag != Flag::Plain)
    }
}

/// Bytes written by the application on their way to the peer.
#[derive(Debug)]
pub(super) struct Outbox {
    /// Everything below has been acknowledged.
    pub acked: u64,
    /// The next new sequence number.
    pub next: u64,
    /// Right edge of the peer's window.
    limit: u64,
    unsent: VecDeque<Bytes>,
    unsent_len: usize,
    flight: VecDeque<Sent>,
    capacity: usize,
    fin: Fin,
    /// When the oldest segment in flight is sent again.
    pub resend_at: Option<Duration>,
    /// Since when the oldest segment in flight has waited without any progress.
    stalled_since: Duration,
    /// Up to here a retransmission is in progress: each partial acknowledgement shows the next hole.
    recover: u64,
    rto: Duration,
    backoff: u32,
    smoothed: Option<(Duration, Duration)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fin {
    No,
    Wanted,
    Sent,
    Acked,
}

impl Outbox {
    /// `first` is the sequence number of the SYN.
    pub fn new(first: u64, capacity: usize) -> Outbox {
        Outbox {
            acked: first,
            next: first,
            limit: first,
            unsent: VecDeque::new(),
            unsent_len: 0,
            flight: VecDeque::new(),
            capacity,
            fin: Fin::No,
            resend_at: None,
            stalled_since: Duration::ZERO,
            recover: first,
            rto: RTO_FIRST,
            backoff: 0,
            smoothed: None,
        }
    }

    /// Bytes a write can take now.
    pub fn room(&self) -> usize {
        self.capacity.saturating_sub((self.next - self.acked) as usize + self.unsent_len)
    }

    /// Takes as many bytes as fit and gives their number.
    pub fn write(&mut self, data: &[u8]) -> usize {
        let n = data.len().min(self.room());
        for chunk in data[..n].chunks(MSS) {
            self.unsent.push_back(Bytes::copy_from_slice(chunk));
        }
        self.unsent_len += n;
        n
    }

    /// Asks for a FIN after the last byte.
    pub fn finish(&mut self) {
        if self.fin == Fin::No {
            self.fin = Fin::Wanted;
        }
    }

    /// A FIN was asked for: nothing more can be written.
    pub fn finishing(&self) -> bool {
        self.fin != Fin::No
    }

    /// The FIN has left.
    pub fn fin_left(&self) -> bool {
        matches!(self.fin, Fin::Sent | Fin::Acked)
    }

    /// The peer has acknowledged the FIN.
    pub fn fin_acked(&self) -> bool {
        self.fin == Fin::Acked
    }

    /// Nothing is in flight.
    pub fn quiet(&self) -> bool {
        self.flight.is_empty()
    }

    /// Nothing is in flight although bytes wait: the peer's window is shut.
    pub fn shut_out(&self) -> bool {
        self.flight.is_empty() && !self.unsent.is_empty()
    }

    /// The peer can take bytes up to `edge`; late news of a smaller window are ignored, edges do not move left.
    pub fn open_to(&mut self, edge: u64) {
        self.limit = self.limit.max(edge);
    }

    /// Puts a SYN in flight.
    pub fn launch_syn(&mut self, now: Duration) -> Sent {
        self.launch(Flag::Syn, Bytes::new(), now)
    }

    /// The next new segment that may leave now, put in flight; a FIN comes after the last byte.
    pub fn launch_next(&mut self, now: Duration) -> Option<Sent> {
        if let Some(front) = self.unsent.front_mut() {
            let room = self.limit.saturating_sub(self.next);
            let payload = if front.len() as u64 <= room {
                self.unsent.pop_front()?
            } else if room > 0 && self.flight.is_empty() {
                front.split_to(room as usize)
            } else {
                return None;
            };
            self.unsent_len -= payload.len();
            return Some(self.launch(Flag::Plain, payload, now));
        }
        if self.fin == Fin::Wanted {
            self.fin = Fin::Sent;
            return Some(self.launch(Flag::Fin, Bytes::new(), now));
        }
        None
    }

    fn launch(&mut self, flag: Flag, payload: Bytes, now: Duration) -> Sent {
        let sent = Sent { seq: self.next, flag, payload, at: now, again: false };
        self.next = sent.end();
        if self.flight.is_empty() {
            self.stalled_since = now;
            self.resend_at = Some(now + self.timeout());
        }
        self.flight.push_back(sent.clone());
        sent
    }

    /// Takes an acknowledgement up to `ack`. Gives the segment to send again if it uncovered another hole.
    pub fn on_ack(&mut self, ack: u64, now: Duration) -> Option<Sent> {
        if ack <= self.acked {
            return None;
        }
        self.acked = ack;
        while let Some(front) = self.flight.front_mut() {
            if front.end() > ack {
                let part = ack.saturating_sub(front.seq);
                front.payload.advance(part as usize);
                front.seq += part;
                break;
            }
            let (at, again, flag) = (front.at, front.again, front.flag);
            self.flight.pop_front();
            if !again {
                self.measure(now.saturating_sub(at));
            }
            if flag == Flag::Fin {
                self.fin = Fin::Acked;
            }
        }
        self.backoff = 0;
        self.stalled_since = now;
        self.resend_at = (!self.flight.is_empty()).then(|| now + self.timeout());
        if ack < self.recover { self.flight.front().cloned() } else { None }
    }

    /// The retransmission timer has fired. Gives the segment to send again, or `None` after `give_up` without progress.
    pub fn on_timeout(&mut self, now: Duration, give_up: Duration) -> Option<Sent> {
        let end = self.stalled_since + give_up;
        if now >= end {
            return None;
        }
        self.backoff += 1;
        self.recover = self.next;
        for sent in &mut self.flight {
            sent.again = true;
        }
        self.resend_at = Some((now + self.timeout()).min(end));
        self.flight.front().cloned()
    }

    /// The owner went away: a retransmission that would come after the shorter patience comes at its end.
    pub fn hurry(&mut self, give_up: Duration) {
        self.resend_at = self.resend_at.map(|at| at.min(self.stalled_since + give_up));
    }

    /// The current retransmission timeout, doubled for each attempt without progress.
    pub fn timeout(&self) -> Duration {
        (self.rto * 2u32.saturating_pow(self.backoff.min(16))).min(RTO_MAX)
    }

    /// RFC 6298: a smoothed round trip and its variation.
    fn measure(&mut self, trip: Duration) {
        let (mean, spread) = match self.smoothed {
            None => (trip, trip / 2),
            Some((mean, spread)) => ((mean * 7 + trip) / 8, (spread * 3 + mean.abs_diff(trip)) / 4),
        };
        self.smoothed = Some((mean, spread));
        self.rto = (mean + spread * 4).clamp(RTO_MIN, RTO_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn unacknowledged_bytes_are_sent_again_with_growing_pauses_until_the_end() {
        let mut outbox = Outbox::new(0, 100);
        outbox.open_to(1000);
        outbox.write(b"abc");
        assert_eq!(outbox.launch_next(MS).map(|s| s.payload), Some(Bytes::from_static(b"abc")));
        let mut pauses = Vec::new();
        let mut now = MS;
        while let Some(at) = outbox.resend_at {
            pauses.push((at - now).as_secs());
            now = at;
            if outbox.on_timeout(now, Duration::from_secs(10)).is_none() {
                break;
            }
        }
        assert_eq!(pauses, [1, 2, 4, 3], "the last pause is cut at the give-up time");
    }

    #[test]
    fn a_partial_acknowledgement_shows_the_next_hole() {
        let mut outbox = Outbox::new(0, 10_000);
        outbox.open_to(10_000);
        outbox.write(&[7; 2 * MSS + 10]);
        while outbox.launch_next(MS).is_some() {}
        assert_eq!(outbox.on_timeout(1000 * MS, Duration::from_secs(100)).map(|s| s.seq), Some(0));
        assert_eq!(outbox.on_ack(MSS as u64, 1001 * MS).map(|s| s.seq), Some(MSS as u64));
        assert!(outbox.on_ack(2 * MSS as u64 + 10, 1002 * MS).is_none());
        assert!(outbox.quiet());
        assert_eq!(outbox.resend_at, None, "no timer runs when nothing is in flight");
    }

    #[test]
    fn a_shut_window_stops_new_bytes_and_room_runs_out() {
        let mut outbox = Outbox::new(0, 8);
        outbox.open_to(4);
        assert_eq!(outbox.write(b"abcdefghij"), 8);
        assert_eq!(outbox.room(), 0);
        assert_eq!(outbox.launch_next(MS).map(|s| s.payload), Some(Bytes::from_static(b"abcd")));
        assert!(outbox.launch_next(MS).is_none());
        outbox.on_ack(4, 2 * MS);
        assert!(outbox.shut_out());
        assert_eq!(outbox.room(), 4);
    }
}
