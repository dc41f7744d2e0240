//! Where the machines of the simulated world are, and the sockets they talk over.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

pub use async_io::{Keepalive, SimTcpListener as Listener, SimTcpStream as Stream, TcpOptions};

/// The database's machine.
pub const DATABASE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// PostgreSQL's port.
pub const DATABASE_PORT: u16 = 5432;
/// The third party's machine.
pub const THIRD_PARTY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// The third party's port.
pub const THIRD_PARTY_PORT: u16 = 443;
/// The sweeper's machine.
pub const SWEEPER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
/// The desk at which a person decides.
pub const PERSON: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 4);

/// The machine of an executor, by its index in the story.
pub fn executor(index: usize) -> IpAddr {
    let [high, low] = (index as u16 + 1).to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(10, 1, high, low))
}

/// The index of the executor whose machine this is.
pub fn executor_at(ip: IpAddr) -> Option<usize> {
    match ip {
        IpAddr::V4(v4) => match v4.octets() {
            [10, 1, high, low] => usize::from(u16::from_be_bytes([high, low])).checked_sub(1),
            _ => None,
        },
        IpAddr::V6(_) => None,
    }
}

/// The database's address.
pub fn database() -> SocketAddr {
    SocketAddr::from((DATABASE, DATABASE_PORT))
}

/// The third party's address.
pub fn third_party() -> SocketAddr {
    SocketAddr::from((THIRD_PARTY, THIRD_PARTY_PORT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_executors_machine_is_found_again_by_its_address() {
        for index in [0, 1, 254, 255, 300] {
            assert_eq!(executor_at(executor(index)), Some(index));
        }
        assert_eq!(executor_at(IpAddr::V4(DATABASE)), None);
    }
}
