//! The new process: connects to the running server and requests its sockets.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use net::descriptors::{Channel, Message};
use serde_json::{Value as Json, json};
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout};
use tracing::{info, warn};
use tracker::ConnectionIds;

use super::{InheritedState, PROTOCOL, socket_path};
use crate::node;

/// It replies immediately, unless it hangs.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait for an offer while a server runs, and the delay between attempts.
const OFFER_TIMEOUT: Duration = Duration::from_secs(5);
const OFFER_PAUSE: Duration = Duration::from_millis(100);
/// Bounds the shutdown time that the predecessor states.
const EXIT_TIMEOUT_MAX: Duration = Duration::from_secs(3600);

#[derive(Debug)]
pub struct Predecessor {
    data: PathBuf,
    channel: Channel,
    pid: Option<u32>,
    exit_timeout: Duration,
    /// None while it serves.
    exit_deadline: Option<Instant>,
}

impl Predecessor {
    /// None if no server runs on the data folder.
    pub async fn find(data: &Path) -> anyhow::Result<Option<Predecessor>> {
        let Some(stream) = connect(data).await? else {
            info!("no server runs on this data folder; starting without a take-over");
            return Ok(None);
        };
        let mut channel = Channel::new(stream);
        let hello = json!({
            "say": "hello",
            "protocol": PROTOCOL,
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
        });
        channel.send(&hello, &[]).await.context("the running server closed the connection")?;
        let welcome = receive_reply(&mut channel).await?;
        let welcome = welcome.context("the running server closed the connection; try again")?;
        if welcome.message_type() != "welcome" {
            bail!(
                "the running server refused the take-over: {}",
                welcome.text["reason"].as_str().unwrap_or("no reason given")
            );
        }
        info!(
            version = welcome.text["version"].as_str(),
            pid = welcome.text["pid"].as_u64(),
            "taking over from the running server"
        );
        let exit_timeout = Duration::from_secs(welcome.text["ends_within_s"].as_u64().unwrap_or(0));
        let exit_timeout = exit_timeout.min(EXIT_TIMEOUT_MAX);
        let pid = welcome.text["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        Ok(Some(Predecessor { data: data.to_owned(), channel, pid, exit_timeout, exit_deadline: None }))
    }

    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// None if it has ended meanwhile. It pauses, but does not stop.
    pub async fn hand_over(&mut self) -> anyhow::Result<Option<InheritedState>> {
        if self.channel.send(&json!({"say": "hand_over"}), &[]).await.is_err() {
            return Ok(None);
        }
        let mut inherited = InheritedState::default();
        loop {
            let Some(message) = receive_reply(&mut self.channel).await? else { return Ok(None) };
            match message.message_type() {
                "sockets" => {
                    let kind = message.text["kind"].as_str().unwrap_or_default();
                    for socket in message.sockets {
                        inherited
                            .add(kind, socket)
                            .context("the running server sent an unexpected socket")?;
                    }
                }
                "all" => {
                    inherited.ids = ids_of(&message.text["connection_secret"]);
                    return Ok(Some(inherited));
                }
                other => bail!("the running server sent an unexpected message {other:?}"),
            }
        }
    }

    /// Reports that this process serves. False without a confirmation: the predecessor is ending, or it gave up on
    /// this process and continues (see [`Predecessor::has_ended`]).
    pub async fn confirm(&mut self) -> bool {
        if self.channel.send(&json!({"say": "taken"}), &[]).await.is_err() {
            return false;
        }
        self.exit_deadline = Some(Instant::now() + self.exit_timeout);
        match receive_reply(&mut self.channel).await {
            Ok(answer) => answer.is_some_and(|message| message.message_type() == "goodbye"),
            // The message was sent, and a process that hangs serves no one.
            Err(error) => {
                warn!(
                    reason = crate::one_line(&error),
                    "no confirmation from the running server; continuing"
                );
                true
            }
        }
    }

    /// After the channel was closed: waits until the predecessor releases the data folder. On a stop request it
    /// closes the channel first and drains afterwards. False if it continues, because its offer still exists, or if
    /// it does not end in time.
    pub async fn has_ended(&mut self) -> bool {
        let deadline = Instant::now() + self.exit_timeout;
        while node::is_taken(&self.data) {
            if Instant::now() >= deadline {
                return false;
            }
            // Sleep first: the offer is withdrawn shortly after the channel is closed.
            tokio::time::sleep(OFFER_PAUSE).await;
            if UnixStream::connect(socket_path(&self.data)).await.is_ok() {
                return false;
            }
        }
        true
    }

    /// Waits for its end or its deadline. Cancel-safe.
    pub async fn ended(&mut self) {
        let deadline = *self.exit_deadline.get_or_insert_with(|| Instant::now() + self.exit_timeout);
        // Messages are ignored; only the end of the channel counts.
        let closed = async { while let Ok(Some(_)) = self.channel.receive().await {} };
        if tokio::time::timeout_at(deadline, closed).await.is_err() {
            warn!("the previous server has not ended in time; continuing without it");
        }
    }
}

/// Retries for a moment if the server is just starting or ending.
async fn connect(data: &Path) -> anyhow::Result<Option<UnixStream>> {
    let path = socket_path(data);
    let deadline = Instant::now() + OFFER_TIMEOUT;
    loop {
        match UnixStream::connect(&path).await {
            Ok(stream) => return Ok(Some(stream)),
            Err(error) if !is_not_listening(&error) => {
                return Err(error)
                    .with_context(|| format!("cannot connect to the running server at {}", path.display()));
            }
            Err(_) if !node::is_taken(data) => return Ok(None),
            Err(_) if Instant::now() >= deadline => bail!(
                "a server runs on {}, but offers no take-over: it is shutting down, or it is an older version; \
                 stop it first, or try again",
                data.display()
            ),
            Err(_) => tokio::time::sleep(OFFER_PAUSE).await,
        }
    }
}

fn is_not_listening(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Including a disconnect in the middle of a message.
fn is_disconnect(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), ConnectionReset | UnexpectedEof | BrokenPipe)
}

async fn receive_reply(channel: &mut Channel) -> anyhow::Result<Option<Message>> {
    match timeout(REPLY_TIMEOUT, channel.receive()).await {
        Ok(Ok(message)) => Ok(message),
        Ok(Err(error)) if is_disconnect(&error) => Ok(None),
        Ok(Err(error)) => Err(error).context("cannot parse the running server's message"),
        Err(_) => Err(anyhow!("the running server does not reply; stop it, then start without --take-over")),
    }
}

fn ids_of(secret: &Json) -> Option<ConnectionIds> {
    let word = |index: usize| secret.get(index)?.as_str()?.parse::<u64>().ok();
    Some(ConnectionIds::new([word(0)?, word(1)?]))
}
