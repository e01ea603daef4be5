//! A person's device: a WebSocket in the Centrifuge protocol, from the upgrade to the last word.
//!
//! It answers pings and probes at once, as clients and browsers do, and does not look at what else it is told.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use fastrand::Rng;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::error::WorldError;
use crate::frames::{self, Frame, Opcode};
use crate::line;
use crate::person::Line;

/// How long the server may take to let somebody in.
const PATIENCE: Duration = Duration::from_secs(10);
/// The head of an answer to the upgrade is not longer.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// A normal goodbye (RFC 6455).
const NORMAL: u16 = 1000;

/// Who connects, and where to.
pub(crate) struct Call {
    pub(crate) site: SocketAddr,
    pub(crate) from: Ipv4Addr,
    pub(crate) token: String,
    pub(crate) name: String,
    pub(crate) platform: &'static str,
}

/// What a device is told to do. No more orders means goodbye.
pub(crate) enum Order {
    Say(Line),
    Freeze(Duration),
    Crash,
}

/// Lives until it is told to end, or until its connection does. True if it ended as it was told.
pub(crate) async fn live(call: Call, mut orders: mpsc::Receiver<Order>) -> Result<bool, WorldError> {
    let mut connection =
        timeout(PATIENCE, Connection::open(&call)).await.map_err(|_| WorldError::Silence)??;
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                Some(Order::Say(line)) => connection.say(&line).await?,
                Some(Order::Freeze(length)) => {
                    // It still can be closed.
                    if let Ok(Some(Order::Crash) | None) = timeout(length, orders.recv()).await {
                        return Ok(true);
                    }
                }
                Some(Order::Crash) => return Ok(true),
                None => {
                    connection.send(Opcode::Close, &NORMAL.to_be_bytes()).await?;
                    return Ok(true);
                }
            },
            read = connection.stream.read_buf(&mut connection.inbox) => {
                if read? == 0 || connection.take_frames().await? {
                    return Ok(false);
                }
            }
        }
    }
}

struct Connection {
    stream: TcpStream,
    inbox: Vec<u8>,
    masks: Rng,
    command: u32,
}

impl Connection {
    /// Connects, upgrades, and says who it is.
    async fn open(call: &Call) -> Result<Connection, WorldError> {
        let stream = line::connect(call.from.into(), call.site).await?;
        let masks = Rng::with_seed(u64::from(call.from.to_bits()));
        let mut connection = Connection { stream, inbox: Vec::with_capacity(2048), masks, command: 1 };
        let request = format!(
            "GET /connection/websocket HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            call.site
        );
        connection.stream.write_all(request.as_bytes()).await?;
        connection.read_upgrade().await?;
        let data = json!({ "device": call.name, "platform": call.platform, "app_state": "foreground" });
        let connect = json!({ "id": 1, "connect": { "token": call.token, "data": data } });
        connection.send(Opcode::Text, connect.to_string().as_bytes()).await?;
        Ok(connection)
    }

    async fn read_upgrade(&mut self) -> Result<(), WorldError> {
        loop {
            if let Some(end) = self.inbox.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.inbox[..end]).into_owned();
                self.inbox.drain(..end + 4);
                return match head.split(' ').nth(1) {
                    Some("101") => Ok(()),
                    _ => Err(WorldError::Refused(head.lines().next().unwrap_or_default().to_owned())),
                };
            }
            if self.inbox.len() > HEAD_BYTES_MAX || self.stream.read_buf(&mut self.inbox).await? == 0 {
                return Err(WorldError::Refused("no answer to the upgrade".to_owned()));
            }
        }
    }

    /// Answers what wants an answer. True if the server has said goodbye.
    async fn take_frames(&mut self) -> Result<bool, WorldError> {
        let inbox = std::mem::take(&mut self.inbox);
        let mut done = 0;
        while let Some(frame) = Frame::find(&inbox[done..])? {
            done += frame.length;
            match frame.opcode {
                Opcode::Ping => self.send(Opcode::Pong, frame.payload).await?,
                Opcode::Close => return Ok(true),
                Opcode::Text if frame.payload.split(|byte| *byte == b'\n').any(|line| line == b"{}") => {
                    self.send(Opcode::Text, b"{}").await?;
                }
                _ => {}
            }
        }
        self.inbox = inbox;
        self.inbox.drain(..done);
        Ok(false)
    }

    async fn say(&mut self, line: &Line) -> Result<(), WorldError> {
        self.command += 1;
        let id = self.command;
        let rpc = |method: &str, data: serde_json::Value| json!({ "id": id, "rpc": { "method": method, "data": data } });
        let command = match line {
            Line::Status(status, text) => rpc("status.set", json!({ "status": status, "text": text })),
            Line::ClearStatus => rpc("status.clear", json!({})),
            Line::AppState(state) => rpc("app.state", json!({ "state": state })),
            Line::Type(to) => rpc("typing", json!({ "to": to.to_string(), "on": true })),
            Line::TypeInRoom(room) => rpc("typing", json!({ "room": room, "on": true })),
            Line::Enter(room) => json!({ "id": id, "subscribe": { "channel": format!("room:{room}") } }),
        };
        self.send(Opcode::Text, command.to_string().as_bytes()).await
    }

    async fn send(&mut self, opcode: Opcode, payload: &[u8]) -> Result<(), WorldError> {
        let mut out = Vec::with_capacity(payload.len() + 14);
        frames::write(opcode, payload, self.masks.u32(..), &mut out);
        timeout(PATIENCE, self.stream.write_all(&out)).await.map_err(|_| WorldError::Silence)??;
        Ok(())
    }
}
