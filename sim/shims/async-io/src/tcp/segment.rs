//! What travels: one segment per madsim datagram.

use std::net::IpAddr;

use bytes::Bytes;

/// Payload bytes a segment carries at most: Ethernet's 1500 less the IP and TCP headers.
pub(crate) const MSS: usize = 1460;

/// What a segment says beside its payload. A plain segment carries data, an acknowledgement, or a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flag {
    Plain,
    Syn,
    Fin,
    Rst,
}

/// A TCP segment. Sequence numbers are 64 bits wide, so that they never wrap.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub src_port: u16,
    pub dst_port: u16,
    /// The address it was sent to: how a machine learns its own address, which madsim does not tell.
    pub dst_ip: IpAddr,
    pub flag: Flag,
    pub seq: u64,
    /// The next sequence number the sender expects; absent on the first SYN and on some RSTs.
    pub ack: Option<u64>,
    /// Bytes the sender can take beyond `ack`.
    pub window: u64,
    pub payload: Bytes,
}

impl Segment {
    /// Room the segment takes in sequence space: SYN and FIN count as one byte.
    pub fn len(&self) -> u64 {
        self.payload.len() as u64 + u64::from(matches!(self.flag, Flag::Syn | Flag::Fin))
    }

    /// The RST that answers this segment when no connection knows it (RFC 9293, 3.10.7.1).
    pub fn refusal(&self, sender: IpAddr) -> Segment {
        Segment {
            src_port: self.dst_port,
            dst_port: self.src_port,
            dst_ip: sender,
            flag: Flag::Rst,
            seq: self.ack.unwrap_or(0),
            ack: Some(self.seq + self.len()),
            window: 0,
            payload: Bytes::new(),
        }
    }
}
