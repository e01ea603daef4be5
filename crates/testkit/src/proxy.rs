//! A TCP proxy between a program and a server that can delay, cut or drop.
//!
//! Clients see what a real network does: delays, broken connections, and open connections on which nothing arrives.
//! Held-back data arrives in order afterwards.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often a connection reads the network state.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// What one call reads at the most.
const READ_BYTES: usize = 64 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkState {
    Working,
    /// Adds this delay in each direction.
    Slow(Duration),
    /// Connections break, and new ones are closed at once.
    Cut,
    /// Connections stay open, new ones are accepted, and nothing arrives.
    BlackHole,
}

struct Shared {
    state: Mutex<NetworkState>,
    /// See [`Proxy::cut_after`].
    cut_after: Mutex<Option<&'static [u8]>>,
    target: Mutex<SocketAddr>,
    connections: AtomicU64,
    is_over: AtomicBool,
}

impl Shared {
    fn state(&self) -> NetworkState {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, NetworkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_cut_by(&self, data: &[u8]) -> bool {
        let mut cut_after = self.cut_after.lock().unwrap_or_else(PoisonError::into_inner);
        let is_cut = cut_after.is_some_and(|text| data.windows(text.len()).any(|part| part == text));
        if is_cut {
            *cut_after = None;
        }
        is_cut
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// Dropping it breaks every connection and closes its port.
pub struct Proxy {
    shared: Arc<Shared>,
    address: SocketAddr,
    acceptor: Option<JoinHandle<()>>,
}

impl Proxy {
    /// A working network, from a free port of 127.0.0.1 to `target`.
    #[track_caller]
    pub fn start(target: SocketAddr) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("a listener has an address");
        listener.set_nonblocking(true).expect("a listener need not block");
        let shared = Arc::new(Shared {
            state: Mutex::new(NetworkState::Working),
            cut_after: Mutex::new(None),
            target: Mutex::new(target),
            connections: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        let of_acceptor = shared.clone();
        let acceptor = thread::spawn(move || accept(&listener, &of_acceptor));
        Proxy { shared, address, acceptor: Some(acceptor) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn set(&self, state: NetworkState) {
        *self.shared.lock() = state;
    }

    /// Cuts the next connection whose client sends this text: the server receives it, and its reply is lost. Once.
    pub fn cut_after(&self, text: &'static [u8]) {
        *self.shared.cut_after.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }

    /// Whether the connection of [`Proxy::cut_after`] is yet to come.
    pub fn is_to_be_cut(&self) -> bool {
        self.shared.cut_after.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// New connections go to `target`, as with a load balancer; open ones are not affected.
    pub fn redirect_to(&self, target: SocketAddr) {
        *self.shared.target.lock().unwrap_or_else(PoisonError::into_inner) = target;
    }

    pub fn state(&self) -> NetworkState {
        self.shared.state()
    }

    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(acceptor) = self.acceptor.take() {
            // A panic is reported by the thread.
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
            // No connection yet, or one that is gone.
            Err(_) => thread::sleep(POLL_INTERVAL),
        }
    }
}

/// Forwards one connection until either side or the network ends it.
fn carry(client: TcpStream, shared: &Arc<Shared>) {
    // The client cannot know that nothing answers.
    while shared.state() == NetworkState::BlackHole && !shared.is_over() {
        thread::sleep(POLL_INTERVAL);
    }
    if shared.state() == NetworkState::Cut || shared.is_over() {
        return;
    }
    let target = *shared.target.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(server) = TcpStream::connect(target) else { return };
    let is_reply_lost = &AtomicBool::new(false);
    let pairs = [(&client, &server, true), (&server, &client, false)];
    thread::scope(|scope| {
        for (from, to, is_request) in pairs {
            scope.spawn(move || {
                let inspect = |data: &[u8]| match is_request {
                    true => {
                        if shared.is_cut_by(data) {
                            is_reply_lost.store(true, Ordering::SeqCst);
                        }
                        true
                    }
                    false => !is_reply_lost.load(Ordering::SeqCst),
                };
                // It ends for both sides.
                let _ = pump(from, to, shared, inspect);
                let _ = from.shutdown(Shutdown::Both);
                let _ = to.shutdown(Shutdown::Both);
            });
        }
    });
}

/// Ends at data that `inspect` does not pass.
fn pump(
    mut from: &TcpStream,
    mut to: &TcpStream,
    shared: &Shared,
    inspect: impl Fn(&[u8]) -> bool,
) -> std::io::Result<()> {
    to.set_nodelay(true)?;
    from.set_nonblocking(false)?;
    from.set_read_timeout(Some(POLL_INTERVAL))?;
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match shared.state() {
            _ if shared.is_over() => return Ok(()),
            NetworkState::Cut => return Ok(()),
            NetworkState::BlackHole => {
                thread::sleep(POLL_INTERVAL);
                continue;
            }
            NetworkState::Working | NetworkState::Slow(_) => {}
        }
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if !inspect(&buffer[..count]) {
            return Ok(());
        }
        // Data in flight when the network fails arrives when it is back, or never.
        loop {
            match shared.state() {
                _ if shared.is_over() => return Ok(()),
                NetworkState::Cut => return Ok(()),
                NetworkState::BlackHole => thread::sleep(POLL_INTERVAL),
                NetworkState::Slow(longer) => {
                    thread::sleep(longer);
                    break;
                }
                NetworkState::Working => break,
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

    const TIMEOUT: Duration = Duration::from_secs(10);
    /// Silence that counts as nothing arriving.
    const NOTHING: Duration = Duration::from_millis(150);

    /// A server that echoes.
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
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
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
        proxy.set(NetworkState::Slow(Duration::from_millis(50)));
        assert_eq!(exchange(&stream, b"pong").as_ref(), Some(b"pong"));
        assert!(watch.elapsed() >= Duration::from_millis(100), "{:?}", watch.elapsed());
        assert_eq!(proxy.connections(), 1);
        // The open connection is not affected.
        proxy.redirect_to(SocketAddr::from(([127, 0, 0, 1], 1)));
        assert!(exchange(&stream, b"ping").is_some() && exchange(&connect(&proxy), b"ping").is_none());
    }

    #[test]
    fn a_cut_breaks_connections_and_takes_none_until_it_is_mended() {
        let proxy = Proxy::start(echo());
        let stream = connect(&proxy);
        assert!(exchange(&stream, b"ping").is_some());
        proxy.set(NetworkState::Cut);
        assert_eq!((&stream).read(&mut [0; 4]).unwrap_or(0), 0, "the end, however it is told");
        assert_eq!(exchange(&connect(&proxy), b"ping"), None);
        proxy.set(NetworkState::Working);
        eventually("the network to work again", TIMEOUT, || exchange(&connect(&proxy), b"ping"));
    }

    #[test]
    fn a_reply_is_lost_after_a_text() {
        let proxy = Proxy::start(echo());
        proxy.cut_after(b"kill");
        let (stream, other) = (connect(&proxy), connect(&proxy));
        assert!(exchange(&stream, b"ping").is_some());
        assert_eq!(exchange(&stream, b"kill"), None);
        assert!(!proxy.is_to_be_cut() && exchange(&other, b"kill").is_some());
    }

    #[test]
    fn in_a_black_hole_nothing_arrives_and_afterwards_everything_in_order() {
        let proxy = Proxy::start(echo());
        let stream = connect(&proxy);
        assert!(exchange(&stream, b"ping").is_some());
        proxy.set(NetworkState::BlackHole);
        stream.set_read_timeout(Some(NOTHING)).unwrap();
        assert_eq!(exchange(&stream, b"one."), None);
        let newcomer = connect(&proxy);
        newcomer.set_read_timeout(Some(NOTHING)).unwrap();
        assert_eq!(exchange(&newcomer, b"two."), None);
        proxy.set(NetworkState::Working);
        for (stream, word) in [(&stream, b"one."), (&newcomer, b"two.")] {
            stream.set_read_timeout(Some(TIMEOUT)).unwrap();
            let mut answer = [0; 4];
            let mut stream = stream;
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, word);
        }
    }
}
