//! The socket of a connection, with or without TLS.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::tls::TlsStream;

/// The socket beneath HTTP, without HTTP's buffers.
#[derive(Debug)]
pub enum Socket {
    Plain(TcpStream),
    /// With TLS, which holds buffers of its own.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Socket {
    /// Enables TCP keepalive: after 30 s, every 10 s, three times (P6).
    pub fn keep_alive(&self) -> io::Result<()> {
        let keepalive = TcpKeepalive::new()
            .with_time(Duration::from_secs(30))
            .with_interval(Duration::from_secs(10))
            .with_retries(3);
        SockRef::from(self.tcp()).set_tcp_keepalive(&keepalive)
    }

    fn tcp(&self) -> &TcpStream {
        match self {
            Socket::Plain(stream) => stream,
            Socket::Tls(stream) => stream.get_ref().0,
        }
    }

    /// Reads into a buffer of the caller's; zero means that the peer has ended.
    pub fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        let read = match self {
            Socket::Plain(stream) => Pin::new(stream).poll_read(context, &mut buffer),
            Socket::Tls(stream) => Pin::new(&mut **stream).poll_read(context, &mut buffer),
        };
        read.map_ok(|()| buffer.filled().len())
    }

    pub fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Socket::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Socket::Tls(stream) => Pin::new(&mut **stream).poll_write(context, bytes),
        }
    }

    pub fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Plain(_) => Poll::Ready(Ok(())),
            Socket::Tls(stream) => Pin::new(&mut **stream).poll_flush(context),
        }
    }

    pub fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Socket::Tls(stream) => Pin::new(&mut **stream).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn p6_the_system_asks_after_30_s_every_10_s_three_times() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = Socket::Plain(TcpStream::connect(listener.local_addr().unwrap()).await.unwrap());
        socket.keep_alive().unwrap();
        let set = SockRef::from(socket.tcp());
        assert!(set.keepalive().unwrap());
        assert_eq!(set.tcp_keepalive_time().unwrap(), Duration::from_secs(30));
        assert_eq!(set.tcp_keepalive_interval().unwrap(), Duration::from_secs(10));
        assert_eq!(set.tcp_keepalive_retries().unwrap(), 3);
    }
}
