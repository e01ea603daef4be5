//! A bare WebSocket server: tokio-tungstenite on one thread, small buffers, no protocol on top.
//!
//! A message is echoed. A message that begins with [`TO_ALL`] is sent to all connections, the sender included.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

/// First character of a broadcast message.
pub const TO_ALL: char = '!';
/// Broadcast messages that a connection may lag behind.
const BEHIND_MAX: usize = 64;
/// Small: the default of 128 KiB per connection would make the comparison too easy.
const BUFFER_BYTES: usize = 1024;

/// Serves until `lifetime` is over.
pub fn serve(address: SocketAddr, lifetime: Duration) -> anyhow::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting a runtime")?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await.with_context(|| format!("listening on {address}"))?;
        // The timeout is the regular end.
        let _ = tokio::time::timeout(lifetime, accept(listener)).await;
        Ok(())
    })
}

async fn accept(listener: TcpListener) {
    let (to_all, _) = broadcast::channel(BEHIND_MAX);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(converse(stream, to_all.clone()))),
            // Out of file descriptors, most likely: existing connections are served on.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Serves one connection until it ends.
async fn converse(stream: TcpStream, to_all: broadcast::Sender<Utf8Bytes>) {
    let _ = stream.set_nodelay(true);
    let config = WebSocketConfig::default().read_buffer_size(BUFFER_BYTES).write_buffer_size(0);
    let Ok(mut socket) = tokio_tungstenite::accept_async_with_config(stream, Some(config)).await else {
        return;
    };
    let mut from_all = to_all.subscribe();
    loop {
        let answer = tokio::select! {
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) if text.starts_with(TO_ALL) => {
                    // There is at least one receiver: this connection.
                    let _ = to_all.send(text);
                    continue;
                }
                Some(Ok(text @ Message::Text(_))) => text,
                Some(Ok(_)) => continue,
                Some(Err(_)) | None => return,
            },
            broadcast = from_all.recv() => match broadcast {
                Ok(text) => Message::Text(text),
                Err(_) => continue,
            },
        };
        if socket.send(answer).await.is_err() {
            return;
        }
    }
}
