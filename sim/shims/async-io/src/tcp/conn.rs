//! One connection's state machine (RFC 9293, simplified). Pure: segments, times and calls in; segments and wakers out.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;

use super::inbox::{Arrival, Inbox};
use super::options::{ACK_DELAY, LINGER, ORPHAN_GIVE_UP, RTO_MAX, SYN_ACK_GIVE_UP, TcpOptions};
use super::outbox::{Outbox, Sent};
use super::segment::{Flag, Segment};

/// Where a call to the state machine leaves what it causes.
pub(super) struct Effects<'a> {
    pub now: Duration,
    /// Segments to send, with the address of the machine they go to.
    pub out: &'a mut Vec<(IpAddr, Segment)>,
    /// Tasks to wake once no lock is held.
    pub wake: &'a mut Vec<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    SynSent,
    SynReceived,
    /// Everything from ESTABLISHED to the two last FINs; the boxes know how far each direction is.
    Open,
    TimeWait,
    /// The machine has forgotten the connection; only an owner may still look at what is left.
    Done,
}

#[derive(Debug)]
pub(super) struct Conn {
    pub local: SocketAddr,
    pub peer: SocketAddr,
    pub state: State,
    /// A listener's port while nobody has accepted the connection.
    pub listener: Option<u16>,
    /// A stream (or a listener's queue) holds it. Without an owner it only winds down.
    pub owned: bool,
    /// The process (counted per machine) that opened it.
    pub process: u64,
    pub options: TcpOptions,
    inbox: Inbox,
    outbox: Outbox,
    error: Option<ErrorKind>,
    read_shut: bool,
    /// Our FIN left before the peer's came: it is on us to wait in TIME_WAIT.
    fin_first: bool,
    ack_now: bool,
    ack_at: Option<Duration>,
    /// `inbox.next` as last told to the peer.
    acked: u64,
    heard_at: Duration,
    /// Keepalive probes sent since the peer was last heard, and when the next is due.
    probes: u32,
    probe_at: Duration,
    /// Probe of a shut window: when, and how many were sent (answers do not shorten the pauses).
    persist_at: Option<Duration>,
    persists: u32,
    linger_until: Option<Duration>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Conn {
    fn new(state: State, local: SocketAddr, peer: SocketAddr, first: u64, options: TcpOptions) -> Conn {
        Conn {
            local,
            peer,
            state,
            listener: None,
            owned: true,
            process: 0,
            options,
            inbox: Inbox::new(0, options.recv_buffer),
            outbox: Outbox::new(first, options.send_buffer),
            error: None,
            read_shut: false,
            fin_first: false,
            ack_now: false,
            ack_at: None,
            acked: 0,
            heard_at: Duration::ZERO,
            probes: 0,
            probe_at: Duration::ZERO,
            persist_at: None,
            persists: 0,
            linger_until: None,
            reader: None,
            writer: None,
        }
    }

    /// The active side: sends a SYN.
    pub fn connect(local: SocketAddr, peer: SocketAddr, first: u64, options: TcpOptions, fx: &mut Effects<'_>) -> Conn {
        let mut conn = Conn::new(State::SynSent, local, peer, first, options);
        let syn = conn.outbox.launch_syn(fx.now);
        conn.transmit(syn, fx);
        conn
    }

    /// The passive side: answers a SYN.
    pub fn answer(syn: &Segment, from: IpAddr, first: u64, options: TcpOptions, fx: &mut Effects<'_>) -> Conn {
        let local = SocketAddr::new(syn.dst_ip, syn.dst_port);
        let mut conn = Conn::new(State::SynReceived, local, SocketAddr::new(from, syn.src_port), first, options);
        conn.listener = Some(syn.dst_port);
        conn.heard(fx.now);
        conn.inbox = Inbox::new(syn.seq + 1, options.recv_buffer);
        conn.outbox.open_to(first + 1 + syn.window);
        let syn_ack = conn.outbox.launch_syn(fx.now);
        conn.transmit(syn_ack, fx);
        conn
    }

    // ---- what the application does ----

    /// Reads what is there: `Ok(0)` at the end of the stream, `WouldBlock` if nothing is there yet.
    /// An error is reported once, after the bytes that came before it, as Linux does.
    pub fn read(&mut self, out: &mut [u8], fx: &mut Effects<'_>) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        let n = self.inbox.read(out);
        if n > 0 {
            if self.state == State::Open && self.inbox.worth_telling() {
                self.ack_now = true;
                self.flush(fx);
            }
            return Ok(n);
        }
        match self.error.take() {
            Some(kind) => Err(kind.into()),
            None if self.at_end() => Ok(0),
            None => Err(ErrorKind::WouldBlock.into()),
        }
    }

    /// Takes as many bytes as the send buffer has room for, or `WouldBlock`.
    pub fn write(&mut self, data: &[u8], fx: &mut Effects<'_>) -> io::Result<usize> {
        if let Some(kind) = self.error.take() {
            return Err(kind.into());
        }
        if self.outbox.finishing() || !matches!(self.state, State::Open) {
            return Err(ErrorKind::BrokenPipe.into());
        }
        match self.outbox.write(data) {
            0 if !data.is_empty() => Err(ErrorKind::WouldBlock.into()),
            n => {
                self.flush(fx);
                Ok(n)
            }
        }
    }

    /// A read would not block. Otherwise `waker` is called when that changes.
    pub fn readable(&mut self, waker: &Waker) -> bool {
        let ready = self.inbox.unread() > 0 || self.error.is_some() || self.at_end();
        if !ready {
            note_waker(&mut self.reader, waker);
        }
        ready
    }

    /// A write would not block. Otherwise `waker` is called when that changes.
    pub fn writable(&mut self, waker: &Waker) -> bool {
        let opening = matches!(self.state, State::SynSent | State::SynReceived);
        let ready = self.error.is_some()
            || (!opening && (self.outbox.room() > 0 || self.outbox.finishing() || self.state != State::Open));
        if !ready {
            note_waker(&mut self.writer, waker);
        }
        ready
    }

    /// The error not yet reported, if any.
    pub fn take_error(&mut self) -> Option<ErrorKind> {
        self.error.take()
    }

    fn at_end(&self) -> bool {
        self.inbox.ended || self.read_shut || self.state == State::Done
    }

    /// Half-close: a FIN follows the bytes already written.
    pub fn shutdown_write(&mut self, fx: &mut Effects<'_>) {
        self.outbox.finish();
        self.flush(fx);
    }

    /// Reads end here; what still arrives is acknowledged and thrown away.
    pub fn shutdown_read(&mut self, fx: &mut Effects<'_>) {
        self.read_shut = true;
        fx.wake.extend(self.reader.take());
    }

    /// The owner is gone: a FIN after the written bytes; an RST if received bytes were left unread (RFC 1122, 4.2.2.13).
    pub fn close(&mut self, fx: &mut Effects<'_>) {
        self.owned = false;
        self.listener = None;
        match self.state {
            State::SynSent => self.state = State::Done,
            State::SynReceived => self.abort(fx),
            State::Open if self.inbox.unread() > 0 => self.abort(fx),
            State::Open => {
                self.outbox.finish();
                self.outbox.hurry(ORPHAN_GIVE_UP);
                self.settle(fx.now);
                self.flush(fx);
            }
            State::TimeWait | State::Done => {}
        }
    }

    /// Ends the connection at once and tells the peer by an RST.
    pub fn abort(&mut self, fx: &mut Effects<'_>) {
        if matches!(self.state, State::Open | State::SynReceived) {
            self.send(Flag::Rst, self.outbox.next, Bytes::new(), fx);
        }
        self.end(None, fx);
    }

    // ---- what the network does ----

    /// Takes a segment addressed to this connection.
    pub fn on_segment(&mut self, segment: Segment, fx: &mut Effects<'_>) {
        match self.state {
            State::SynSent => return self.on_answer(&segment, fx),
            State::Done => return,
            State::SynReceived | State::Open | State::TimeWait => {}
        }
        if segment.flag == Flag::Rst {
            // Any sequence number in the window will do: nobody forges segments here.
            if segment.seq >= self.inbox.next && segment.seq <= self.inbox.next + self.inbox.window() {
                self.reset(fx);
            }
            return;
        }
        if segment.flag == Flag::Syn {
            // A repeated SYN, or a rebooted peer's new one: say what we hold, its RST will tell (RFC 9293, 3.5.1).
            match self.state {
                State::SynReceived => self.resend_syn_ack(fx),
                _ => self.answer_at_once(fx),
            }
            return;
        }
        let Some(ack) = segment.ack else { return };
        if ack > self.outbox.next {
            return self.answer_at_once(fx);
        }
        self.heard(fx.now);
        if self.state == State::SynReceived && ack == self.outbox.next {
            self.state = State::Open;
        }
        let had_room = self.outbox.room() > 0;
        self.outbox.open_to(ack + segment.window);
        if let Some(hole) = self.outbox.on_ack(ack, fx.now) {
            self.transmit(hole, fx);
        }
        if !had_room && self.outbox.room() > 0 {
            fx.wake.extend(self.writer.take());
        }
        if !self.owned && self.state == State::Open && segment.seq + segment.payload.len() as u64 > self.inbox.next {
            // bytes for an owner who has gone: they cannot be delivered, and the peer must know
            return self.abort(fx);
        }
        self.take_payload(segment, fx);
        self.settle(fx.now);
        self.flush(fx);
    }

    fn take_payload(&mut self, segment: Segment, fx: &mut Effects<'_>) {
        let (before, ended) = (self.inbox.unread(), self.inbox.ended);
        match self.inbox.accept(segment.seq, segment.payload, segment.flag == Flag::Fin) {
            Arrival::Nothing => {}
            Arrival::InOrder if !self.inbox.owes_much(self.acked) => {
                self.ack_at.get_or_insert(fx.now + ACK_DELAY);
            }
            Arrival::InOrder | Arrival::AtOnce => self.ack_now = true,
        }
        if self.read_shut {
            let mut sink = [0; 1024];
            while self.inbox.read(&mut sink) > 0 {}
        }
        if self.inbox.unread() > before || self.inbox.ended != ended {
            fx.wake.extend(self.reader.take());
        }
        if self.state == State::TimeWait && self.ack_now {
            self.linger_until = Some(fx.now + LINGER);
        }
    }

    /// The answer to our SYN: SYN-ACK, a refusal, or a word from an older connection of the same addresses.
    fn on_answer(&mut self, segment: &Segment, fx: &mut Effects<'_>) {
        let meant = segment.ack == Some(self.outbox.next);
        match segment.flag {
            Flag::Rst if meant => self.fail(ErrorKind::ConnectionRefused, fx),
            Flag::Rst => {}
            Flag::Syn if meant => {
                self.heard(fx.now);
                self.local.set_ip(segment.dst_ip);
                self.inbox = Inbox::new(segment.seq + 1, self.options.recv_buffer);
                self.outbox.on_ack(self.outbox.next, fx.now);
                self.outbox.open_to(self.outbox.next + segment.window);
                self.state = State::Open;
                fx.wake.extend(self.writer.take());
                self.answer_at_once(fx);
            }
            _ if segment.ack.is_some() && !meant => fx.out.push((self.peer.ip(), segment.refusal(self.peer.ip()))),
            _ => {}
        }
    }

    fn resend_syn_ack(&mut self, fx: &mut Effects<'_>) {
        self.send(Flag::Syn, self.outbox.acked, Bytes::new(), fx);
    }

    fn answer_at_once(&mut self, fx: &mut Effects<'_>) {
        self.ack_now = true;
        self.flush(fx);
    }

    fn reset(&mut self, fx: &mut Effects<'_>) {
        let kind = if self.inbox.ended { ErrorKind::BrokenPipe } else { ErrorKind::ConnectionReset };
        // after both FINs nothing is left that could fail
        if self.state == State::TimeWait { self.end(None, fx) } else { self.fail(kind, fx) }
    }

    fn heard(&mut self, now: Duration) {
        self.heard_at = now;
        self.probes = 0;
        if let Some(keepalive) = self.options.keepalive {
            self.probe_at = now + keepalive.idle;
        }
    }

    /// Moves on once FINs have gone both ways.
    fn settle(&mut self, now: Duration) {
        if self.state != State::Open || !self.outbox.fin_acked() {
            return;
        }
        match (self.inbox.ended, self.fin_first) {
            (true, true) => {
                self.state = State::TimeWait;
                self.linger_until = Some(now + LINGER);
            }
            (true, false) => self.state = State::Done,
            (false, _) if !self.owned => {
                self.linger_until.get_or_insert(now + LINGER);
            }
            (false, _) => {}
        }
    }

    /// Ends the connection with an error for its owner.
    pub fn fail(&mut self, kind: ErrorKind, fx: &mut Effects<'_>) {
        self.end(Some(kind), fx);
    }

    fn end(&mut self, error: Option<ErrorKind>, fx: &mut Effects<'_>) {
        self.error = error;
        self.state = State::Done;
        self.outbox = Outbox::new(self.outbox.next, 0);
        fx.wake.extend(self.reader.take());
        fx.wake.extend(self.writer.take());
    }

    // ---- time ----

    /// When `on_time` has something to do next.
    pub fn due(&self) -> Option<Duration> {
        if self.state == State::Done {
            return None;
        }
        let probe = self.keepalive_runs().then_some(self.probe_at);
        [self.outbox.resend_at, self.ack_at, self.persist_at, self.linger_until, probe].into_iter().flatten().min()
    }

    /// Keepalive watches an idle connection only: bytes in flight have their own timer.
    fn keepalive_runs(&self) -> bool {
        self.options.keepalive.is_some() && self.state == State::Open && self.outbox.quiet() && !self.outbox.shut_out()
    }

    /// Does whatever is due.
    pub fn on_time(&mut self, fx: &mut Effects<'_>) {
        let now = fx.now;
        let past = |at: Option<Duration>| at.is_some_and(|at| at <= now);
        if self.state == State::Done {
            return;
        }
        if past(self.linger_until) {
            return self.end(None, fx);
        }
        if past(self.outbox.resend_at) {
            let give_up = match self.state {
                State::SynSent => self.options.connect_give_up,
                State::SynReceived => SYN_ACK_GIVE_UP,
                _ if !self.owned => ORPHAN_GIVE_UP.min(self.options.give_up),
                _ => self.options.give_up,
            };
            match self.outbox.on_timeout(fx.now, give_up) {
                Some(oldest) => self.transmit(oldest, fx),
                None => return self.fail(ErrorKind::TimedOut, fx),
            }
        }
        if past(self.persist_at) && self.ask_for_window(fx) {
            return;
        }
        if self.keepalive_runs() && self.probe_at <= fx.now && self.probe(fx) {
            return;
        }
        self.ack_now |= past(self.ack_at);
        self.flush(fx);
    }

    /// Asks whether a shut window has opened, since the news of it may have been lost. True if the peer is given up.
    fn ask_for_window(&mut self, fx: &mut Effects<'_>) -> bool {
        if fx.now >= self.heard_at + self.options.give_up {
            self.fail(ErrorKind::TimedOut, fx);
            return true;
        }
        self.persists += 1;
        self.persist_at = Some(fx.now + self.persist_pause());
        self.send(Flag::Plain, self.outbox.acked - 1, Bytes::new(), fx);
        false
    }

    fn persist_pause(&self) -> Duration {
        (self.outbox.timeout() * 2u32.saturating_pow(self.persists.min(16))).min(RTO_MAX)
    }

    /// Sends a keepalive probe. True if the peer is given up.
    fn probe(&mut self, fx: &mut Effects<'_>) -> bool {
        let Some(keepalive) = self.options.keepalive else { return false };
        if self.probes >= keepalive.probes {
            self.send(Flag::Rst, self.outbox.next, Bytes::new(), fx);
            self.fail(ErrorKind::TimedOut, fx);
            return true;
        }
        self.probes += 1;
        self.probe_at = fx.now + keepalive.interval;
        self.send(Flag::Plain, self.outbox.next - 1, Bytes::new(), fx);
        false
    }

    /// Switches keepalive on or off; the idle time counts from the peer's last word.
    pub fn set_keepalive(&mut self, keepalive: Option<super::Keepalive>) {
        self.options.keepalive = keepalive;
        self.probes = 0;
        self.probe_at = self.heard_at + keepalive.unwrap_or_default().idle;
    }

    // ---- sending ----

    /// Sends what may be sent now, and an acknowledgement by itself if nothing carried it.
    fn flush(&mut self, fx: &mut Effects<'_>) {
        if self.state == State::Open {
            while let Some(next) = self.outbox.launch_next(fx.now) {
                if next.flag == Flag::Fin {
                    self.fin_first = !self.inbox.ended;
                }
                self.transmit(next, fx);
            }
            if !self.outbox.shut_out() {
                self.persist_at = None;
                self.persists = 0;
            } else if self.persist_at.is_none() {
                self.persist_at = Some(fx.now + self.persist_pause());
            }
        }
        if self.ack_now {
            self.send(Flag::Plain, self.outbox.next, Bytes::new(), fx);
        }
    }

    fn transmit(&mut self, sent: Sent, fx: &mut Effects<'_>) {
        self.send(sent.flag, sent.seq, sent.payload, fx);
    }

    fn send(&mut self, flag: Flag, seq: u64, payload: Bytes, fx: &mut Effects<'_>) {
        let first_word = self.state == State::SynSent;
        self.ack_now = false;
        self.ack_at = None;
        self.acked = self.inbox.next;
        self.inbox.note_told();
        let segment = Segment {
            src_port: self.local.port(),
            dst_port: self.peer.port(),
            dst_ip: self.peer.ip(),
            flag,
            seq,
            ack: (!first_word).then_some(self.inbox.next),
            window: self.inbox.window(),
            payload,
        };
        fx.out.push((self.peer.ip(), segment));
    }

    /// The connection's state by its usual name, as `ss` and `netstat` print it.
    pub fn state_name(&self) -> &'static str {
        match (self.state, self.outbox.fin_left(), self.outbox.fin_acked(), self.inbox.ended) {
            (State::SynSent, ..) => "SYN-SENT",
            (State::SynReceived, ..) => "SYN-RECV",
            (State::Open, false, _, false) => "ESTAB",
            (State::Open, false, _, true) => "CLOSE-WAIT",
            (State::Open, true, false, false) => "FIN-WAIT-1",
            (State::Open, true, true, _) => "FIN-WAIT-2",
            (State::Open, true, false, true) if self.fin_first => "CLOSING",
            (State::Open, true, false, true) => "LAST-ACK",
            (State::TimeWait, ..) => "TIME-WAIT",
            (State::Done, ..) => "CLOSED",
        }
    }
}

fn note_waker(slot: &mut Option<Waker>, waker: &Waker) {
    if slot.as_ref().is_none_or(|held| !held.will_wake(waker)) {
        *slot = Some(waker.clone());
    }
}
