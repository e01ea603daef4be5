//! Servers that only reply: the limit that a real server is measured against.
//!
//! The announce servers find the end of a request and send a fixed reply of the given size. They parse nothing and
//! allocate nothing per request. Each is a thread of this process. The WebSocket server echoes; it is a process of its
//! own, whose memory is measured.

mod http;
mod udp;
pub mod websocket;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;

use crate::process::pin;
use crate::sockets::Protocol;

/// Longest lifetime of the WebSocket server, in case the process that started it has ended.
pub const LIFETIME_S_DEFAULT: u64 = 1800;
/// How often a waiting server looks whether it is over.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The thread of an announce server.
pub const THREAD: &str = "fixed-reply";

/// A fixed-response server. It ends when this is dropped.
pub struct FixedReply {
    pub address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

impl FixedReply {
    /// Serves replies of this size, HTTP headers included, from this core.
    pub fn start(core: usize, protocol: Protocol, reply_bytes: usize) -> anyhow::Result<FixedReply> {
        let is_over = Arc::new(AtomicBool::new(false));
        let of_thread = Arc::clone(&is_over);
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let (address, serve): (SocketAddr, Box<dyn FnOnce() -> anyhow::Result<()> + Send>) = match protocol {
            Protocol::Http => {
                let listener = mio::net::TcpListener::bind(any).context("listening")?;
                let address = listener.local_addr()?;
                (address, Box::new(move || http::serve(listener, reply_bytes, &of_thread)))
            }
            Protocol::Udp => {
                let socket = std::net::UdpSocket::bind(any).context("binding a UDP socket")?;
                let address = socket.local_addr()?;
                (address, Box::new(move || udp::serve(&socket, reply_bytes, &of_thread)))
            }
        };
        let thread = std::thread::Builder::new().name(THREAD.to_owned()).spawn(move || {
            pin(core)?;
            serve()
        })?;
        Ok(FixedReply { address, is_over, thread: Some(thread) })
    }
}

impl Drop for FixedReply {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // A failure has shown in the load already.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
