//! Free ports.
//!
//! Some programs cannot bind port 0 and report the port, so one is chosen for them. Ports are below the range for
//! outgoing connections, so that the kernel does not assign one between choice and use. Each is reserved by one process
//! until it ends: a killed server returns to the same port. The reservation is an abstract socket, which vanishes with
//! the process.

use std::net::{Ipv6Addr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

const FIRST: u32 = 10_000;
const COUNT: u32 = 22_000;

static GIVEN: AtomicU32 = AtomicU32::new(0);
static MARKS: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());

/// A port that is free for TCP and UDP, over IPv4 and IPv6, and reserved while this process runs.
pub fn free_port() -> u16 {
    // Neighbouring process ids start far apart.
    let start = std::process::id().wrapping_mul(7_919);
    for _ in 0..COUNT {
        let step = GIVEN.fetch_add(1, Ordering::Relaxed);
        let port = (FIRST + start.wrapping_add(step) % COUNT) as u16;
        // Reserved first: the check itself binds the port for a moment.
        if let Some(mark) = mark(port).filter(|_| is_free(port)) {
            MARKS.lock().unwrap_or_else(PoisonError::into_inner).push(mark);
            return port;
        }
    }
    panic!("none of the ports {FIRST} to {} is free", FIRST + COUNT - 1);
}

/// None if another process has reserved it.
fn mark(port: u16) -> Option<UnixListener> {
    let name = SocketAddr::from_abstract_name(format!("rollcall-test-port-{port}")).ok()?;
    UnixListener::bind_addr(&name).ok()
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
        assert!(mark(first).is_none(), "no other caller gets it");
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).expect("a free port can be taken");
        assert!(!is_free(taken.local_addr().expect("it is bound").port()));
    }
}
