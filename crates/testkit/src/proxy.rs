//! A stretch of network between a program and a server, that can be slow, cut or dead.
//!
//! It carries TCP connections, so whoever connects through it sees what a real network does: delays, connections that
//! break, and connections that stay open while nothing arrives any more. What was held back arrives in order afterwards,
//! as TCP has it.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often a connection looks at the weather.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// What one call reads at the most.
const READ_BYTES: usize = 64 * 1024;

/// What the network does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    /// It works.
    Clear,
    /// Everything takes this much longer, each way.
    Slow(Duration),
    /// Connections break, and new ones are closed at once.
    Cut,
    /// Connections stay, new ones are taken, and nothing arrives.
    BlackHole,
}

struct Shared {
    weather: Mutex<Weather>,
    target: Mutex<SocketAddr>,
    connections: AtomicU64,
    is_over: AtomicBool,
}

impl Shared {
    fn weather(&self) -> Weather {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Weather> {
        self.weather.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// The network. Dropping it breaks every connection and closes its port.
pub struct Proxy {
    shared: Arc<Shared>,
    address: SocketAddr,
    acceptor: Option<JoinHandle<()>>,
}

impl Proxy {
    /// A network that works, from a free port of 127.0.0.1 to `target`.
    #[track_caller]
    pub fn start(target: SocketAddr) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("a listener has an address");
        listener.set_nonblocking(true).expect("a listener need not block");
        let shared = Arc::new(Shared {
            weather: Mutex::new(Weather::Clear),
            target: Mutex::new(target),
            connections: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        let of_acceptor = shared.clone();
        let acceptor = thread::spawn(move || accept(&listener, &of_acceptor));
        Proxy { shared, address, acceptor: Some(acceptor) }
    }

    /// Where to connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the network does from now on.
    pub fn set(&self, weather: Weather) {
        *self.shared.lock() = weather;
    }

    /// New connections go there from now on, as with a load balancer; those that are open stay where they are.
    pub fn lead_to(&self, target: SocketAddr) {
        *self.shared.target.lock().unwrap_or_else(PoisonError::into_inner) = target;
    }

    /// What it does now.
    pub fn weather(&self) -> Weather {
        self.shared.weather()
    }

    /// Connections taken so far.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(acceptor) = self.acceptor.take() {
            // A thread that panicked has said so.
            let _ = acceptor.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while !shared.is_over() {
        match listener.accept() {
            Ok((client, _)) => {
                shared.connections.fetch_add(1, Ordering::Relaxed);
                let shared = shared.clone();
                thread::spawn(move || carry(client, &shared));
            }
            // Nobody yet, or somebody who has gone again.
            Err(_) => thread::sleep(LOOK_EVERY),
        }
    }
}

/// Carries one connection until either side ends it or the network does.
fn carry(client: TcpStream, shared: &Arc<Shared>) {
    // Behind a dead network nobody answers; the client cannot know.
    while shared.weather() == Weather::BlackHole && !shared.is_over() {
        thread::sleep(LOOK_EVERY);
    }
    if shared.weather() == Weather::Cut || shared.is_over() {
        return;
    }
    let target = *shared.target.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(server) = TcpStream::connect(target) else { return };
    let pairs = [(&client, &server), (&server, &client)];
    thread::scope(|scope| {
        for (from, to) in pairs {
            scope.spawn(move || {
                // However it ended, it has ended for both sides.
                let _ = pump(from, to, shared);
                let _ = from.shutdown(Shutdown::Both);
                let _ = to.shutdown(Shutdown::Both);
            });
        }
    });
}

fn pump(mut from: &TcpStream, mut to: &TcpStream, shared: &Shared) -> std::io::Result<()> {
    to.set_nodelay(true)?;
    from.set_nonblocking(false)?;
    from.set_read_timeout(Some(LOOK_EVERY))?;
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match shared.weather() {
            _ if shared.is_over() => return Ok(()),
            Weather::Cut => return Ok(()),
            Weather::BlackHole => {
                thread::sleep(LOOK_EVERY);
                continue;
            }
            Weather::Clear | Weather::Slow(_) => {}
        }
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        // What is on its way when the network dies arrives when it is back, or never.
        loop {
            match shared.weather() {
                _ if shared.is_over() => return Ok(()),
                Weather::Cut => return Ok(()),
                Weather::BlackHole => thread::sleep(LOOK_EVERY),
                Weather::Slow(longer) => {
                    thread::sleep(longer);
                    break;
                }
                Weather::Clear => break,
            }
        }
        to.write_all(&buffer[..count])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::eventually;
    use domain::clock::Stopwatch;

    const PATIENCE: Duration = Duration::from_secs(10);
    /// How long nothing may arrive to be believed.
    const NOTHING: Duration = Duration::from_millis(150);

    /// A server that sends back what it gets.
    fn echo() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || std::io::copy(&mut &stream, &mut &stream));
            }
        });
        address
    }

    fn connect(proxy: &Proxy) -> TcpStream {
        let stream = TcpStream::connect(proxy.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn exchange(mut stream: &TcpStream, word: &[u8; 4]) -> Option<[u8; 4]> {
        stream.write_all(word).ok()?;
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).ok()?;
        Some(answer)
    }

    #[test]
    fn what_is_said_arrives_at_once_or_later() {
        let proxy = Proxy::start(echo());
        let stream = connect(&proxy);
        assert_eq!(exchange(&stream, b"ping").as_ref(), Some(b"ping"));
        let watch = Stopwatch::start();
        proxy.set(Weather::Slow(Duration::from_millis(50)));
        assert_eq!(exchange(&stream, b"pong").as_ref(), Some(b"pong"));
        assert!(watch.elapsed() >= Duration::from_millis(100), "{:?}", watch.elapsed());
        assert_eq!(proxy.connections(), 1);
        // The open connection stays where it is.
        proxy.lead_to(SocketAddr::from(([127, 0, 0, 1], 1)));
        assert!(exchange(&stream, b"ping").is_some() && exchange(&connect(&proxy), b"ping").is_none());
    }

    #[test]
    fn a_cut_breaks_connections_and_takes_none_until_it_is_mended() {
        let proxy = Proxy::start(echo());
        let stream = connect(&proxy);
        assert!(exchange(&stream, b"ping").is_some());
        proxy.set(Weather::Cut);
        assert_eq!((&stream).read(&mut [0; 4]).unwrap_or(0), 0, "the end, however it is told");
        assert_eq!(exchange(&connect(&proxy), b"ping"), None);
        proxy.set(Weather::Clear);
        eventually("the network to work again", PATIENCE, || exchange(&connect(&proxy), b"ping"));
    }

    #[test]
    fn in_a_black_hole_nothing_arrives_and_afterwards_everything_in_order() {
        let proxy = Proxy::start(echo());
        let stream = connect(&proxy);
        assert!(exchange(&stream, b"ping").is_some());
        proxy.set(Weather::BlackHole);
        stream.set_read_timeout(Some(NOTHING)).unwrap();
        assert_eq!(exchange(&stream, b"one."), None);
        let newcomer = connect(&proxy);
        newcomer.set_read_timeout(Some(NOTHING)).unwrap();
        assert_eq!(exchange(&newcomer, b"two."), None);
        proxy.set(Weather::Clear);
        for (stream, word) in [(&stream, b"one."), (&newcomer, b"two.")] {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut answer = [0; 4];
            let mut stream = stream;
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, word);
        }
    }
}
