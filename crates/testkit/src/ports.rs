//! Free ports.
//!
//! Some programs cannot be told to take any port and say which, so one is chosen for them. Ports come from below the
//! range that the kernel gives to outgoing connections, so that none of those takes a port between the choice and its
//! use; each is given once per process, and processes begin at different places.

use std::net::{Ipv6Addr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

const FIRST: u32 = 10_000;
const COUNT: u32 = 22_000;

static GIVEN: AtomicU32 = AtomicU32::new(0);

/// A port that is free for TCP and UDP, over IPv4 and IPv6.
pub fn free_port() -> u16 {
    // Neighbouring process ids begin far apart.
    let start = std::process::id().wrapping_mul(7_919);
    for _ in 0..COUNT {
        let step = GIVEN.fetch_add(1, Ordering::Relaxed);
        let port = (FIRST + start.wrapping_add(step) % COUNT) as u16;
        if is_free(port) {
            return port;
        }
    }
    panic!("none of the ports {FIRST} to {} is free", FIRST + COUNT - 1);
}

fn is_free(port: u16) -> bool {
    // An IPv6 socket on every address takes IPv4 as well, so it collides with a holder of either family.
    let every_address = (Ipv6Addr::UNSPECIFIED, port);
    let tcp = TcpListener::bind(every_address);
    let udp = UdpSocket::bind(every_address);
    tcp.is_ok() && udp.is_ok()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn ports_are_distinct_and_free() {
        let first = free_port();
        let second = free_port();
        assert_ne!(first, second);
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).expect("a free port can be taken");
        assert!(!is_free(taken.local_addr().expect("it is bound").port()));
    }
}
