//! A site's webhook endpoint that can be slow, broken or down.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value as Json;

/// How often an idle connection checks whether the receiver has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookReply {
    Accept,
    /// Takes it, after a while.
    Slow(Duration),
    Status(u16),
    /// Answers with this status for this user, and accepts the others.
    StatusFor(u64, u16),
    /// Closes the connection without an answer.
    Close,
}

/// A received webhook.
#[derive(Clone, Debug)]
pub struct Hook {
    /// Request line and headers.
    pub head: Vec<String>,
    /// The body, byte by byte.
    pub body: String,
    pub taken: bool,
}

impl Hook {
    pub fn json(&self) -> Json {
        serde_json::from_str(&self.body).expect("webhooks are JSON")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.iter().filter_map(|line| line.split_once(':'));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }

    pub fn user(&self) -> u64 {
        self.json()["user"].as_u64().expect("a webhook is about a user")
    }
}

struct Shared {
    reply: Mutex<HookReply>,
    hooks: Mutex<Vec<Hook>>,
    under_way: AtomicUsize,
    under_way_max: AtomicUsize,
    stop: AtomicBool,
}

/// The receiver. Dropping it closes its port.
pub struct HookReceiver {
    shared: Arc<Shared>,
    address: SocketAddr,
    accepting: Option<JoinHandle<()>>,
}

impl HookReceiver {
    /// Accepts everything, on a free port.
    pub fn start() -> Self {
        Self::start_on(0)
    }

    pub fn start_on(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared {
            reply: Mutex::new(HookReply::Accept),
            hooks: Mutex::default(),
            under_way: AtomicUsize::new(0),
            under_way_max: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        });
        let accepting = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || accept(&listener, &shared))
        };
        HookReceiver { shared, address, accepting: Some(accepting) }
    }

    /// Its address, as the configuration takes it.
    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// From now on it does this.
    pub fn behave(&self, reply: HookReply) {
        *self.shared.reply.lock().unwrap_or_else(PoisonError::into_inner) = reply;
    }

    /// All webhooks so far, in the order of the answers.
    pub fn hooks(&self) -> Vec<Hook> {
        self.shared.hooks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What it took so far.
    pub fn taken(&self) -> Vec<Hook> {
        self.hooks().into_iter().filter(|hook| hook.taken).collect()
    }

    /// The most concurrent requests.
    pub fn at_once_max(&self) -> usize {
        self.shared.under_way_max.load(Ordering::SeqCst)
    }
}

impl Drop for HookReceiver {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // Unblocks the accept loop.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            // A caller may disconnect at any time.
            let _ = stream.set_read_timeout(Some(POLL_INTERVAL));
            let _ = serve(stream, &shared);
        });
    }
}

/// Reads that block until data arrives or the receiver has ended.
struct BlockingReader<'s> {
    stream: TcpStream,
    shared: &'s Shared,
}

impl Read for BlockingReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(buffer) {
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    if self.shared.stop.load(Ordering::SeqCst) {
                        return Ok(0);
                    }
                }
                outcome => return outcome,
            }
        }
    }
}

fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let mut stream = BufReader::new(BlockingReader { stream, shared });
    while let Some((head, body)) = read_request(&mut stream)? {
        let now = shared.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        shared.under_way_max.fetch_max(now, Ordering::SeqCst);
        let status = answer(head, body, shared);
        shared.under_way.fetch_sub(1, Ordering::SeqCst);
        let Some(status) = status else { return Ok(()) };
        let reply = format!("HTTP/1.1 {status} Whatever\r\nContent-Length: 2\r\n\r\nok");
        stream.get_mut().stream.write_all(reply.as_bytes())?;
    }
    Ok(())
}

fn read_request(stream: &mut BufReader<BlockingReader<'_>>) -> io::Result<Option<(Vec<String>, String)>> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let length = head.iter().filter_map(|line| line.split_once(':'));
    let length = length.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.filter_map(|(_, value)| value.trim().parse().ok()).next().unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(Some((head, String::from_utf8(body).map_err(io::Error::other)?)))
}

/// The status of the reply; none for no reply at all.
fn answer(head: Vec<String>, body: String, shared: &Shared) -> Option<u16> {
    let reply = shared.reply.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut hook = Hook { head, body, taken: false };
    let status = match reply {
        HookReply::Accept => Some(200),
        HookReply::Slow(delay) => {
            thread::sleep(delay);
            Some(200)
        }
        HookReply::Status(status) => Some(status),
        HookReply::StatusFor(user, status) => Some(if hook.user() == user { status } else { 200 }),
        HookReply::Close => None,
    };
    hook.taken = status.is_some_and(|status| (200..300).contains(&status));
    shared.hooks.lock().unwrap_or_else(PoisonError::into_inner).push(hook);
    status
}
