//! One connection, from its first byte to its last.
//!
//! The deadline is looked at lazily: a timer is set once and, when it fires, set again if the connection has been
//! busy since. So a request costs no timer.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::time::Duration;

use access::verification::RequestOutcome;
use domain::Passkey;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

use super::proxy;
use super::proxy_protocol::{self, Parsed};
use super::request::{self, Attempt, Progress, Setting};
use super::response::{self, After, Status};
use super::{HttpServer, last_call};
use crate::ending::{Ending, Phase};

/// What a request usually needs; grows up to the configured maximum.
const READ_BUFFER_BYTES: usize = 1024;
/// Answers are written when there are this many bytes of them, so that a long pipeline cannot pile them up.
const WRITE_AT_BYTES: usize = 64 << 10;

thread_local! {
    /// An idle connection holds no write buffer: whoever answers borrows the thread's.
    static WRITE_BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Serves a connection until it ends.
pub(super) async fn serve(
    mut stream: TcpStream,
    from: SocketAddr,
    tls: Option<TlsAcceptor>,
    server: &HttpServer,
) {
    // Replies are small and complete: waiting to fill a segment would only delay them.
    let _ = stream.set_nodelay(true);
    let (patience, proxy_protocol) = {
        let live = server.tracker.live();
        let proxied = live.proxies.proxy_protocol && proxy::is_trusted(from.ip(), &live.proxies);
        (live.limits.header_timeout, proxied)
    };
    let from = if proxy_protocol {
        match timeout(patience, read_proxy_header(&mut stream, from)).await {
            Ok(Some(client)) => client,
            _ => return server.tracker.counters().refused.count("bad_proxy_header"),
        }
    } else {
        from
    };
    match tls {
        None => Connection::new(stream, from, server).run().await,
        Some(acceptor) => match timeout(patience, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => Connection::new(stream, from, server).run().await,
            _ => server.tracker.counters().refused.count("tls_handshake"),
        },
    }
}

/// Takes the PROXY header off the stream, and nothing behind it: TLS may follow.
async fn read_proxy_header(stream: &mut TcpStream, from: SocketAddr) -> Option<SocketAddr> {
    let mut buffer = [0; proxy_protocol::HEADER_MAX];
    let mut seen = 0;
    loop {
        let peeked = stream.peek(&mut buffer).await.ok()?;
        match proxy_protocol::parse(&buffer[..peeked]) {
            Parsed::Complete(header) => {
                stream.read_exact(&mut buffer[..header.length]).await.ok()?;
                return Some(header.client.unwrap_or(from));
            }
            Parsed::Invalid => return None,
            // A closed connection shows the same bytes for ever.
            Parsed::Partial if peeked == 0 => return None,
            Parsed::Partial if peeked == seen => tokio::time::sleep(Duration::from_millis(5)).await,
            Parsed::Partial => seen = peeked,
        }
    }
}

struct Connection<'s, S> {
    stream: S,
    from: SocketAddr,
    server: &'s HttpServer,
    received: Vec<u8>,
    /// When the connection has to have gone on.
    deadline: Instant,
}

/// Why a connection ends.
enum End {
    /// The client closed it, or it broke.
    Gone,
    /// The client does not take what is written.
    Stuck,
    /// A reply said that it would.
    Closed,
    /// The last reply was a refusal, and the client may still be sending.
    Refused,
    /// Nothing came in time.
    TimedOut,
    /// The server drains.
    Draining,
}

impl<'s, S: AsyncRead + AsyncWrite + Unpin> Connection<'s, S> {
    fn new(stream: S, from: SocketAddr, server: &'s HttpServer) -> Self {
        let deadline = Instant::now() + server.tracker.live().limits.header_timeout;
        Connection { stream, from, server, received: Vec::new(), deadline }
    }

    async fn run(mut self) {
        let mut alarm = pin!(sleep_until(self.deadline));
        let mut phase = self.server.phase.clone();
        // Made once: joining and leaving the queue of those who wait would cost every request.
        let mut draining = pin!(last_call(&mut phase, self.server.drain_timeout));
        let end = loop {
            if let Some(end) = self.answer_received().await {
                break end;
            }
            match self.read(alarm.as_mut(), draining.as_mut()).await {
                None => {}
                Some(End::TimedOut) if !self.received.is_empty() => break self.refuse_slow_head().await,
                Some(end) => break end,
            }
        };
        // Over TLS a goodbye is written, which a client that does not read can hold up for ever.
        let patience = self.server.tracker.live().limits.header_timeout;
        let _ = timeout(patience, self.part(end)).await;
    }

    /// Says goodbye in the way that the end asks for.
    async fn part(&mut self, end: End) {
        if matches!(end, End::Stuck) {
            return;
        }
        let _ = self.stream.shutdown().await;
        if matches!(end, End::Refused) {
            // Closing now would reset the connection under a client that is still sending, and the reason that it
            // was given would be lost with it.
            self.received.clear();
            while let Ok(1..) = self.stream.read_buf(&mut self.received).await {
                self.received.clear();
            }
        }
    }

    /// Reads more, or says why there is no more to read.
    async fn read(
        &mut self,
        mut alarm: Pin<&mut Sleep>,
        mut draining: Pin<&mut impl Future<Output = ()>>,
    ) -> Option<End> {
        // A deadline that has moved away is noticed when the alarm goes off; one that has come nearer is not.
        if alarm.deadline() > self.deadline {
            alarm.as_mut().reset(self.deadline);
        }
        self.received.reserve(READ_BUFFER_BYTES);
        loop {
            let idle = self.received.is_empty();
            tokio::select! {
                biased;
                read = self.stream.read_buf(&mut self.received) => {
                    return match read {
                        Ok(bytes) if bytes > 0 => {
                            if idle {
                                self.expect_within(self.server.tracker.live().limits.header_timeout);
                            }
                            None
                        }
                        _ => Some(End::Gone),
                    };
                }
                () = alarm.as_mut() => {
                    if Instant::now() >= self.deadline {
                        return Some(End::TimedOut);
                    }
                    alarm.as_mut().reset(self.deadline);
                }
                () = draining.as_mut(), if idle => return Some(End::Draining),
            }
        }
    }

    fn expect_within(&mut self, patience: Duration) {
        self.deadline = Instant::now() + patience;
    }

    /// Answers every whole request that has arrived.
    async fn answer_received(&mut self) -> Option<End> {
        let mut out = WRITE_BUFFER.take();
        out.clear();
        let mut start = 0;
        let mut end = None;
        let mut attempt = Attempt::First;
        while end.is_none() && start < self.received.len() {
            let setting = Setting {
                from: self.from,
                tracker: &self.server.tracker,
                attempt,
                is_last: self.server.orders.phase() == Phase::End(Ending::HandOver),
            };
            let answers_before = out.len();
            attempt = Attempt::First;
            match request::answer_first(&self.received[start..], setting, &mut out) {
                Progress::Answered { consumed, after, receipt } => {
                    start += consumed;
                    if let Some(receipt) = receipt
                        && !self.is_stored(receipt).await
                    {
                        out.truncate(answers_before);
                        request::refuse_unstored(&self.server.tracker, after, &mut out);
                    }
                    if after == After::Close {
                        end = Some(End::Closed);
                    }
                }
                Progress::Ask(passkey, client) => {
                    // Answers to what came before need not wait for this one.
                    if !out.is_empty() && self.write(&mut out).await.is_err() {
                        end = Some(End::Stuck);
                    }
                    self.ask(passkey, client).await;
                    attempt = Attempt::AfterAsking;
                }
                Progress::Incomplete => {
                    end = self.check_head_size(start, &mut out);
                    break;
                }
                Progress::Refused => end = Some(End::Refused),
            }
            if out.len() >= WRITE_AT_BYTES && self.write(&mut out).await.is_err() {
                end = Some(End::Stuck);
            }
        }
        self.forget_answered(start);
        if !out.is_empty() && self.write(&mut out).await.is_err() {
            end = Some(End::Stuck);
        }
        WRITE_BUFFER.set(out);
        end
    }

    /// Waits until somebody was asked about a passkey, or nobody can be, or it takes too long; the gate knows which.
    async fn ask(&self, passkey: Passkey, client: IpAddr) {
        let tracker = &self.server.tracker;
        let (answered, answer) = oneshot::channel();
        // Nobody waits any more if the client is gone.
        let on_answer = Box::new(move || {
            let _ = answered.send(());
        });
        if tracker.ask(passkey, client, on_answer) == RequestOutcome::Queued {
            let _ = timeout(tracker.ask_patience(), answer).await;
        }
    }

    /// Waits until an announce is stored; false if it is not, in time.
    async fn is_stored(&self, receipt: request::Receipt) -> bool {
        let patience = self.server.tracker.live().acknowledge_timeout;
        matches!(timeout(patience, receipt).await, Ok(Ok(true)))
    }

    /// A head that is not whole by now must not grow for ever.
    fn check_head_size(&self, start: usize, out: &mut Vec<u8>) -> Option<End> {
        let tracker = &self.server.tracker;
        if self.received.len() - start <= tracker.live().limits.header_bytes_max {
            return None;
        }
        request::refuse_too_large(tracker, out);
        Some(End::Refused)
    }

    fn forget_answered(&mut self, answered: usize) {
        if answered == 0 {
            return;
        }
        self.received.drain(..answered);
        let limits = &self.server.tracker.live().limits;
        let patience = if self.received.is_empty() { limits.idle_timeout } else { limits.header_timeout };
        self.deadline = Instant::now() + patience;
    }

    /// Writes all answers; a client that does not take them loses its connection.
    async fn write(&mut self, out: &mut Vec<u8>) -> std::io::Result<()> {
        let patience = self.server.tracker.live().limits.header_timeout;
        let write = async {
            self.stream.write_all(out).await?;
            // TLS may hold back the end of what it was given.
            self.stream.flush().await
        };
        let written = timeout(patience, write).await;
        out.clear();
        match written {
            Ok(result) => result,
            Err(_) => {
                self.server.tracker.counters().refused.count("slow_reader");
                Err(std::io::ErrorKind::TimedOut.into())
            }
        }
    }

    async fn refuse_slow_head(&mut self) -> End {
        self.server.tracker.counters().refused.count("slow_head");
        let mut out = Vec::new();
        response::write_final_failure(&mut out, Status::RequestTimeout, "the request did not arrive in time");
        match self.write(&mut out).await {
            Ok(()) => End::Refused,
            Err(_) => End::Stuck,
        }
    }
}
