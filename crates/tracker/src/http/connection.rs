//! One HTTP connection.
//!
//! The deadline is checked lazily: one timer per connection, which is reset when it fires if the deadline has moved
//! since. So a request costs no timer.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};

use access::verification::RequestOutcome;
use domain::Passkey;
use net::accept_gate::Phase;
use net::{ShutdownMode, TlsAcceptor, proxy_protocol};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use super::receipts::Receipt;
use super::request::{self, Progress, RequestContext};
use super::response::{self, After, Status};
use super::{HttpServer, drain_started};
use crate::pipeline::Attempt;

/// Enough for most requests; grows up to the configured maximum.
const READ_BUFFER_BYTES: usize = 1024;
/// Replies are written at this size, so that a long pipeline does not accumulate them.
const WRITE_AT_BYTES: usize = 64 << 10;

thread_local! {
    /// One write buffer per thread: idle connections hold none.
    static WRITE_BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

pub(super) async fn serve(
    mut stream: TcpStream,
    from: SocketAddr,
    tls: Option<TlsAcceptor>,
    server: &HttpServer,
) {
    // Replies are small and complete: waiting to fill a segment would only delay them.
    let _ = stream.set_nodelay(true);
    let (time_limit, has_proxy_header) = {
        let live = server.tracker.live();
        let proxied = live.proxies.proxy_protocol && live.proxies.is_trusted(from.ip());
        (live.limits.header_timeout, proxied)
    };
    let from = if has_proxy_header {
        match timeout(time_limit, proxy_protocol::read(&mut stream, from)).await {
            Ok(Some(client)) => client,
            _ => return server.tracker.counters().refused.count("bad_proxy_header"),
        }
    } else {
        from
    };
    match tls {
        None => Connection::new(stream, from, server).run().await,
        Some(acceptor) => match timeout(time_limit, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => Connection::new(stream, from, server).run().await,
            _ => server.tracker.counters().refused.count("tls_handshake"),
        },
    }
}

struct Connection<'s, S> {
    stream: S,
    from: SocketAddr,
    server: &'s HttpServer,
    received: Vec<u8>,
    /// When bytes last arrived, or a reply no longer had to wait. Deadlines count from here.
    active_at: Instant,
    deadline: Instant,
}

enum End {
    Disconnected,
    NotReading,
    /// Closed by the reply (`Connection: close`).
    Closed,
    /// The last reply was an error, and the client may still be sending.
    Refused,
    TimedOut,
    Draining,
}

impl<'s, S: AsyncRead + AsyncWrite + Unpin> Connection<'s, S> {
    fn new(stream: S, from: SocketAddr, server: &'s HttpServer) -> Self {
        let active_at = Instant::now();
        let deadline = active_at + server.tracker.live().limits.header_timeout;
        Connection { stream, from, server, received: Vec::new(), active_at, deadline }
    }

    async fn run(mut self) {
        let mut timer = pin!(sleep_until(self.deadline));
        let mut phase = self.server.phase.clone();
        // Created once: registering a waiter per request would cost too much.
        let mut draining = pin!(drain_started(&mut phase, self.server.drain_timeout));
        let end = loop {
            if let Some(end) = self.answer_received().await {
                break end;
            }
            match self.read(timer.as_mut(), draining.as_mut()).await {
                None => {}
                Some(End::TimedOut) if !self.received.is_empty() => break self.refuse_slow_head().await,
                Some(end) => break end,
            }
        };
        // Closing TLS writes an alert, which a client that does not read can block.
        let time_limit = self.server.tracker.live().limits.header_timeout;
        let _ = timeout(time_limit, self.close(end)).await;
    }

    async fn close(&mut self, end: End) {
        if matches!(end, End::NotReading) {
            return;
        }
        let _ = self.stream.shutdown().await;
        if matches!(end, End::Refused) {
            // Closing now would reset the connection of a client that is still sending, and the error would be lost.
            self.received.clear();
            while let Ok(1..) = self.stream.read_buf(&mut self.received).await {
                self.received.clear();
            }
        }
    }

    /// None if bytes were read.
    async fn read(
        &mut self,
        mut timer: Pin<&mut Sleep>,
        mut draining: Pin<&mut impl Future<Output = ()>>,
    ) -> Option<End> {
        // A later deadline is noticed when the timer fires; an earlier one would not be.
        if timer.deadline() > self.deadline {
            timer.as_mut().reset(self.deadline);
        }
        self.received.reserve(READ_BUFFER_BYTES);
        loop {
            let idle = self.received.is_empty();
            tokio::select! {
                biased;
                read = self.stream.read_buf(&mut self.received) => {
                    return match read {
                        Ok(bytes) if bytes > 0 => {
                            self.active_at = Instant::now();
                            if idle {
                                self.deadline = self.active_at + self.server.tracker.live().limits.header_timeout;
                            }
                            None
                        }
                        _ => Some(End::Disconnected),
                    };
                }
                () = timer.as_mut() => {
                    if Instant::now() >= self.deadline {
                        return Some(End::TimedOut);
                    }
                    timer.as_mut().reset(self.deadline);
                }
                () = draining.as_mut(), if idle => return Some(End::Draining),
            }
        }
    }

    /// Answers every complete request in the buffer.
    async fn answer_received(&mut self) -> Option<End> {
        let mut out = WRITE_BUFFER.take();
        out.clear();
        let mut start = 0;
        let mut end = None;
        let mut attempt = Attempt::First;
        while end.is_none() && start < self.received.len() {
            let context = RequestContext {
                from: self.from,
                tracker: &self.server.tracker,
                attempt,
                is_last: self.server.listener_state.phase() == Phase::ShuttingDown(ShutdownMode::HandOver),
            };
            let answers_before = out.len();
            attempt = Attempt::First;
            match request::answer_first(&self.received[start..], context, &mut out) {
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
                Progress::NeedsVerification(passkey, client) => {
                    // Replies to earlier requests do not wait for this one.
                    if !out.is_empty() && self.write(&mut out).await.is_err() {
                        end = Some(End::NotReading);
                    }
                    self.verify_passkey(passkey, client).await;
                    attempt = Attempt::AfterVerification;
                }
                Progress::Incomplete => {
                    end = self.check_head_size(start, &mut out);
                    break;
                }
                Progress::Refused => end = Some(End::Refused),
            }
            if out.len() >= WRITE_AT_BYTES && self.write(&mut out).await.is_err() {
                end = Some(End::NotReading);
            }
        }
        self.forget_answered(start);
        if !out.is_empty() && self.write(&mut out).await.is_err() {
            end = Some(End::NotReading);
        }
        WRITE_BUFFER.set(out);
        end
    }

    /// Waits for the verification of a passkey, if one starts, up to its timeout; the gate then has the result.
    async fn verify_passkey(&mut self, passkey: Passkey, client: IpAddr) {
        let tracker = &self.server.tracker;
        let (verified, verification) = oneshot::channel();
        // The receiver is gone if the client disconnected.
        let on_verified = Box::new(move || {
            let _ = verified.send(());
        });
        if tracker.verify_passkey(passkey, client, on_verified) == RequestOutcome::Queued {
            let _ = timeout(tracker.verify_timeout(), verification).await;
            self.active_at = Instant::now();
        }
    }

    /// False if the event is not stored within the timeout.
    async fn is_stored(&mut self, receipt: Receipt) -> bool {
        let time_limit = self.server.tracker.live().acknowledge_timeout;
        let stored = timeout(time_limit, receipt).await;
        self.active_at = Instant::now();
        matches!(stored, Ok(Ok(true)))
    }

    /// Bounds an incomplete request head.
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
        let time_limit = if self.received.is_empty() { limits.idle_timeout } else { limits.header_timeout };
        self.deadline = self.active_at + time_limit;
    }

    /// A client that does not read within the time limit loses its connection.
    async fn write(&mut self, out: &mut Vec<u8>) -> std::io::Result<()> {
        let time_limit = self.server.tracker.live().limits.header_timeout;
        let write = async {
            self.stream.write_all(out).await?;
            // TLS may buffer the last bytes.
            self.stream.flush().await
        };
        let written = timeout(time_limit, write).await;
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
            Err(_) => End::NotReading,
        }
    }
}
