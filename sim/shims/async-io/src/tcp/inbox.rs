//! The receiving half of a connection: puts segments in order and holds bytes until they are read.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Buf, Bytes};

use super::segment::MSS;

/// Bytes received in order and ahead of order, and how much more the peer may send.
#[derive(Debug)]
pub(super) struct Inbox {
    /// The sequence number expected next: everything below has arrived.
    pub next: u64,
    /// The peer's FIN has been reached: nothing more will come.
    pub ended: bool,
    ready: VecDeque<Bytes>,
    ready_len: usize,
    early: BTreeMap<u64, Bytes>,
    fin_at: Option<u64>,
    capacity: usize,
    /// Right edge of the window last told to the peer. It never moves left.
    told: u64,
}

/// What a segment brought, for deciding how to acknowledge it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Nothing that asks for an acknowledgement.
    Nothing,
    /// Bytes in order: the acknowledgement may wait for company.
    InOrder,
    /// A duplicate, a gap, a probe, an overflow or the FIN: the peer must hear at once.
    AtOnce,
}

impl Inbox {
    /// `next` is the first byte's sequence number, known once the peer's SYN has come.
    pub fn new(next: u64, capacity: usize) -> Inbox {
        Inbox {
            next,
            ended: false,
            ready: VecDeque::new(),
            ready_len: 0,
            early: BTreeMap::new(),
            fin_at: None,
            capacity,
            told: next,
        }
    }

    /// Bytes the peer may send beyond `next`.
    pub fn window(&self) -> u64 {
        (self.capacity - self.ready_len.min(self.capacity)) as u64
    }

    fn edge(&self) -> u64 {
        self.next + self.window()
    }

    /// To be called when `next` and `window` are put into a segment.
    pub fn note_told(&mut self) {
        self.told = self.edge();
    }

    /// Reading has made so much room since the peer was last told that it should hear of it.
    pub fn worth_telling(&self) -> bool {
        self.edge() - self.told >= (2 * MSS).min(self.capacity / 2) as u64
    }

    /// Bytes that have arrived and not been acknowledged are worth an acknowledgement of their own: two full segments.
    pub fn owes_much(&self, acked: u64) -> bool {
        self.next - acked >= 2 * MSS as u64
    }

    /// Unread bytes that are in order.
    pub fn unread(&self) -> usize {
        self.ready_len
    }

    /// Takes in a segment's payload and FIN.
    pub fn accept(&mut self, seq: u64, mut payload: Bytes, fin: bool) -> Arrival {
        if fin {
            self.fin_at = Some(seq + payload.len() as u64);
        }
        if payload.is_empty() && !fin {
            // a probe for a sign of life repeats an old sequence number
            return if seq < self.next { Arrival::AtOnce } else { Arrival::Nothing };
        }
        let before = self.next;
        let stale = self.next.saturating_sub(seq).min(payload.len() as u64);
        payload.advance(stale as usize);
        let seq = seq + stale;
        let room = self.edge().saturating_sub(seq);
        let overflow = payload.len() as u64 > room;
        if overflow {
            payload.truncate(room as usize);
        }
        if !payload.is_empty() {
            if seq == self.next {
                self.push(payload);
                self.join_early();
            } else if self.early.get(&seq).is_none_or(|held| held.len() < payload.len()) {
                self.early.insert(seq, payload);
            }
        }
        if self.fin_at == Some(self.next) {
            self.next += 1;
            self.ended = true;
            self.fin_at = None;
        }
        if self.next > before && !overflow && !self.ended && self.early.is_empty() {
            Arrival::InOrder
        } else {
            Arrival::AtOnce
        }
    }

    fn push(&mut self, payload: Bytes) {
        self.next += payload.len() as u64;
        self.ready_len += payload.len();
        self.ready.push_back(payload);
    }

    fn join_early(&mut self) {
        while let Some(entry) = self.early.first_entry() {
            if *entry.key() > self.next {
                break;
            }
            let (seq, mut payload) = entry.remove_entry();
            let stale = self.next - seq;
            if stale < payload.len() as u64 {
                payload.advance(stale as usize);
                self.push(payload);
            }
        }
    }

    /// Moves unread bytes to `out`; 0 if there are none.
    pub fn read(&mut self, out: &mut [u8]) -> usize {
        let mut done = 0;
        while done < out.len() {
            let Some(chunk) = self.ready.front_mut() else { break };
            let n = chunk.len().min(out.len() - done);
            out[done..done + n].copy_from_slice(&chunk[..n]);
            done += n;
            if n == chunk.len() {
                self.ready.pop_front();
            } else {
                chunk.advance(n);
            }
        }
        self.ready_len -= done;
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(inbox: &mut Inbox) -> String {
        let mut buf = [0; 64];
        let n = inbox.read(&mut buf);
        String::from_utf8_lossy(&buf[..n]).into_owned()
    }

    #[test]
    fn bytes_come_out_in_order_whatever_the_segments_do() {
        let mut inbox = Inbox::new(100, 64);
        assert_eq!(inbox.accept(103, Bytes::from_static(b"def"), false), Arrival::AtOnce);
        assert_eq!(inbox.unread(), 0);
        // the FIN is ahead of the gap as well and must wait
        assert_eq!(inbox.accept(108, Bytes::from_static(b"i"), true), Arrival::AtOnce);
        assert!(!inbox.ended);
        inbox.accept(100, Bytes::from_static(b"abcd"), false);
        assert_eq!(text(&mut inbox), "abcdef");
        inbox.accept(105, Bytes::from_static(b"fgh"), false);
        assert_eq!(text(&mut inbox), "ghi");
        assert!(inbox.ended);
        assert_eq!(inbox.next, 110);
    }

    #[test]
    fn a_duplicate_changes_nothing_and_is_answered() {
        let mut inbox = Inbox::new(0, 64);
        assert_eq!(inbox.accept(0, Bytes::from_static(b"abc"), false), Arrival::InOrder);
        assert_eq!(inbox.accept(0, Bytes::from_static(b"abc"), false), Arrival::AtOnce);
        assert_eq!(text(&mut inbox), "abc");
        assert_eq!(inbox.accept(2, Bytes::new(), false), Arrival::AtOnce, "a keepalive probe");
        assert_eq!(inbox.accept(3, Bytes::new(), false), Arrival::Nothing, "a bare acknowledgement");
    }

    #[test]
    fn what_does_not_fit_the_window_is_not_taken() {
        let mut inbox = Inbox::new(0, 4);
        assert_eq!(inbox.accept(0, Bytes::from_static(b"abcdef"), true), Arrival::AtOnce);
        assert_eq!((inbox.next, inbox.window(), inbox.ended), (4, 0, false));
        assert_eq!(text(&mut inbox), "abcd");
        inbox.accept(4, Bytes::from_static(b"ef"), true);
        assert_eq!(text(&mut inbox), "ef");
        assert!(inbox.ended);
    }
}
