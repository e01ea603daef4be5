//! A connection with a write timeout and a count of the bytes read since the last response.
//!
//! hyper has a timeout for request heads, but none for writes: a client that never reads would hold its connection forever.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use net::Socket;
use net::tls::TlsStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// Bytes read from a connection.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    read_bytes: AtomicU64,
    read_bytes_at_answer: AtomicU64,
}

impl Traffic {
    pub(super) fn record_answer(&self) {
        let read_bytes = self.read_bytes.load(Ordering::Relaxed);
        self.read_bytes_at_answer.store(read_bytes, Ordering::Relaxed);
    }

    /// Whether a request was answered and nothing was read since.
    pub(super) fn is_idle(&self) -> bool {
        let at_answer = self.read_bytes_at_answer.load(Ordering::Relaxed);
        at_answer > 0 && at_answer == self.read_bytes.load(Ordering::Relaxed)
    }
}

pub(super) struct MonitoredStream<S> {
    inner: S,
    traffic: Arc<Traffic>,
    stall_max: Duration,
    /// Runs while a write is pending.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> MonitoredStream<S> {
    /// A write that is pending for `stall_max` fails.
    pub(super) fn new(inner: S, traffic: Arc<Traffic>, stall_max: Duration) -> Self {
        MonitoredStream { inner, traffic, stall_max, stalled: None }
    }

    /// Applies the timeout to a pending write.
    fn with_timeout<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stall_max = self.stall_max;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(stall_max)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "write timeout")))
    }
}

/// The socket of an upgraded connection, and the bytes that were read already. The timeout no longer applies.
pub(crate) fn into_socket(upgraded: Upgraded) -> Option<(Socket, Vec<u8>)> {
    let upgraded = match upgraded.downcast::<TokioIo<MonitoredStream<TcpStream>>>() {
        Ok(plain) => return Some((Socket::Plain(plain.io.into_inner().inner), plain.read_buf.to_vec())),
        Err(upgraded) => upgraded,
    };
    let secure = upgraded.downcast::<TokioIo<MonitoredStream<TlsStream<TcpStream>>>>().ok()?;
    Some((Socket::Tls(Box::new(secure.io.into_inner().inner)), secure.read_buf.to_vec()))
}

impl<S: AsyncRead + Unpin> AsyncRead for MonitoredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        let count = buffer.filled().len() - before;
        self.traffic.read_bytes.fetch_add(count as u64, Ordering::Relaxed);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MonitoredStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.with_timeout(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, bytes);
        self.with_timeout(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        self.with_timeout(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.inner).poll_shutdown(context);
        self.with_timeout(closed, context)
    }
}
