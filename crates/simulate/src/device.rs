//! A user's device: a WebSocket connection in the Centrifuge protocol.
//!
//! It answers pings and probes at once, as clients and browsers do, and ignores everything else it receives.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use fastrand::Rng;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::error::SimulationError;
use crate::frames::{self, Frame, Opcode};
use crate::transport;
use crate::user::Command;

/// Timeout of connecting, and of each write.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Longest head of an upgrade response.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Close code of RFC 6455.
const NORMAL: u16 = 1000;

pub(crate) struct DeviceSettings {
    pub(crate) site: SocketAddr,
    pub(crate) from: Ipv4Addr,
    pub(crate) token: String,
    pub(crate) name: String,
    pub(crate) platform: &'static str,
}

/// Commands to a device. It closes its connection when the channel closes.
pub(crate) enum DeviceCommand {
    Send(Command),
    Freeze(Duration),
    Crash,
}

/// Runs until its command channel or its connection closes. True for the former.
pub(crate) async fn run(
    settings: DeviceSettings,
    mut commands: mpsc::Receiver<DeviceCommand>,
) -> Result<bool, SimulationError> {
    let mut connection =
        timeout(TIMEOUT, Connection::open(&settings)).await.map_err(|_| SimulationError::Timeout)??;
    loop {
        tokio::select! {
            command = commands.recv() => match command {
                Some(DeviceCommand::Send(command)) => connection.send_command(&command).await?,
                Some(DeviceCommand::Freeze(length)) => {
                    // A frozen device can still be closed.
                    if let Ok(Some(DeviceCommand::Crash) | None) = timeout(length, commands.recv()).await {
                        return Ok(true);
                    }
                }
                Some(DeviceCommand::Crash) => return Ok(true),
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
    /// Connects, upgrades, and sends `connect`.
    async fn open(settings: &DeviceSettings) -> Result<Connection, SimulationError> {
        let stream = transport::connect(settings.from.into(), settings.site).await?;
        let masks = Rng::with_seed(u64::from(settings.from.to_bits()));
        let mut connection = Connection { stream, inbox: Vec::with_capacity(2048), masks, command: 1 };
        let request = format!(
            "GET /connection/websocket HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            settings.site
        );
        connection.stream.write_all(request.as_bytes()).await?;
        connection.read_upgrade().await?;
        let data =
            json!({ "device": settings.name, "platform": settings.platform, "app_state": "foreground" });
        let connect = json!({ "id": 1, "connect": { "token": settings.token, "data": data } });
        connection.send(Opcode::Text, connect.to_string().as_bytes()).await?;
        Ok(connection)
    }

    async fn read_upgrade(&mut self) -> Result<(), SimulationError> {
        loop {
            if let Some(end) = self.inbox.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.inbox[..end]).into_owned();
                self.inbox.drain(..end + 4);
                return match head.split(' ').nth(1) {
                    Some("101") => Ok(()),
                    _ => Err(SimulationError::Refused(head.lines().next().unwrap_or_default().to_owned())),
                };
            }
            if self.inbox.len() > HEAD_BYTES_MAX || self.stream.read_buf(&mut self.inbox).await? == 0 {
                return Err(SimulationError::Refused("no answer to the upgrade".to_owned()));
            }
        }
    }

    /// Answers pings. True if the server has closed the connection.
    async fn take_frames(&mut self) -> Result<bool, SimulationError> {
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

    async fn send_command(&mut self, command: &Command) -> Result<(), SimulationError> {
        self.command += 1;
        let id = self.command;
        let rpc = |method: &str, data: serde_json::Value| json!({ "id": id, "rpc": { "method": method, "data": data } });
        let command = match command {
            Command::Status(status, text) => rpc("status.set", json!({ "status": status, "text": text })),
            Command::ClearStatus => rpc("status.clear", json!({})),
            Command::AppState(state) => rpc("app.state", json!({ "state": state })),
            Command::Type(to) => rpc("typing", json!({ "to": to.to_string(), "on": true })),
            Command::TypeInRoom(room) => rpc("typing", json!({ "room": room, "on": true })),
            Command::Enter(room) => json!({ "id": id, "subscribe": { "channel": format!("room:{room}") } }),
        };
        self.send(Opcode::Text, command.to_string().as_bytes()).await
    }

    async fn send(&mut self, opcode: Opcode, payload: &[u8]) -> Result<(), SimulationError> {
        let mut out = Vec::with_capacity(payload.len() + 14);
        frames::write(opcode, payload, self.masks.u32(..), &mut out);
        timeout(TIMEOUT, self.stream.write_all(&out)).await.map_err(|_| SimulationError::Timeout)??;
        Ok(())
    }
}
