//! The side of the new process: it finds the server that runs, and asks it for its sockets.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use serde_json::{Value as Json, json};
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout};
use tracing::{info, warn};
use tracker::udp::ConnectionIds;

use super::channel::{Channel, Message};
use super::{InheritedState, PROTOCOL, socket_path};
use crate::node;

/// How long the running server may take to answer. It answers at once, unless it hangs.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to look for an offer where a server runs; between two looks, a pause.
const OFFER_TIMEOUT: Duration = Duration::from_secs(5);
const OFFER_PAUSE: Duration = Duration::from_millis(100);
/// A bound on what it says about its own end.
const EXIT_TIMEOUT_MAX: Duration = Duration::from_secs(3600);

/// The server that runs, and whose place this process is to take.
#[derive(Debug)]
pub struct Predecessor {
    data: PathBuf,
    channel: Channel,
    pid: Option<u32>,
    exit_timeout: Duration,
    /// When it should have ended; none as long as it serves.
    exit_deadline: Option<Instant>,
}

impl Predecessor {
    /// Finds the running server of a data folder; none if there is none.
    pub async fn find(data: &Path) -> anyhow::Result<Option<Predecessor>> {
        let Some(stream) = connect(data).await? else {
            info!("no server runs on this data folder: there is nothing to take over");
            return Ok(None);
        };
        let mut channel = Channel::new(stream);
        let hello = json!({
            "say": "hello",
            "protocol": PROTOCOL,
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
        });
        channel.send(&hello, &[]).await.context("the running server hung up")?;
        let welcome = receive_reply(&mut channel).await?;
        let welcome = welcome.context("the running server hung up; try again")?;
        if welcome.message_type() != "welcome" {
            bail!(
                "the running server refuses: {}",
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

    /// Its process id, as it says itself.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Asks for everything it serves; none if it has ended meanwhile. It goes on serving.
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
                            .context("the running server handed over something else")?;
                    }
                }
                "all" => {
                    inherited.ids = ids_of(&message.text["connection_secret"]);
                    return Ok(Some(inherited));
                }
                other => bail!("the running server said {other:?}, which nobody expected"),
            }
        }
    }

    /// Tells it that this process serves now. False if it did not take notice: it ends, or it has given us up and serves
    /// on ([`Predecessor::has_ended`] tells which).
    pub async fn confirm(&mut self) -> bool {
        if self.channel.send(&json!({"say": "taken"}), &[]).await.is_err() {
            return false;
        }
        self.exit_deadline = Some(Instant::now() + self.exit_timeout);
        match receive_reply(&mut self.channel).await {
            Ok(answer) => answer.is_some_and(|message| message.message_type() == "goodbye"),
            // It was told, and whoever is so slow serves nobody.
            Err(error) => {
                warn!(reason = crate::one_line(&error), "going on: it was told that its place is taken");
                true
            }
        }
    }

    /// After it has closed the channel: waits until it has let go of the data folder. One that was told to stop closes
    /// the channel first, and drains then. False if it serves on, since it still makes its offer, or if it does not end
    /// in its time.
    pub async fn has_ended(&mut self) -> bool {
        let deadline = Instant::now() + self.exit_timeout;
        while node::is_taken(&self.data) {
            if Instant::now() >= deadline {
                return false;
            }
            // First, since it takes its offer back a moment after it has closed the channel.
            tokio::time::sleep(OFFER_PAUSE).await;
            if UnixStream::connect(socket_path(&self.data)).await.is_ok() {
                return false;
            }
        }
        true
    }

    /// Waits until it has ended, or has had its time. Can be given up and called again.
    pub async fn ended(&mut self) {
        let deadline = *self.exit_deadline.get_or_insert_with(|| Instant::now() + self.exit_timeout);
        // Whatever it says now, only the end counts.
        let closed = async { while let Ok(Some(_)) = self.channel.receive().await {} };
        if tokio::time::timeout_at(deadline, closed).await.is_err() {
            warn!(
                "the server that was taken over from should have ended by now; going on without waiting for it"
            );
        }
    }
}

/// A connection to the server that runs. One that has just started, or is just about to end, is given a moment.
async fn connect(data: &Path) -> anyhow::Result<Option<UnixStream>> {
    let path = socket_path(data);
    let deadline = Instant::now() + OFFER_TIMEOUT;
    loop {
        match UnixStream::connect(&path).await {
            Ok(stream) => return Ok(Some(stream)),
            Err(error) if !is_not_listening(&error) => {
                return Err(error)
                    .with_context(|| format!("cannot ask the running server at {}", path.display()));
            }
            Err(_) if !node::is_taken(data) => return Ok(None),
            Err(_) if Instant::now() >= deadline => bail!(
                "a server runs on {}, but it cannot be taken over from: it is just ending, or it is an older version; \
                 stop it first, or try again",
                data.display()
            ),
            Err(_) => tokio::time::sleep(OFFER_PAUSE).await,
        }
    }
}

/// Whether the error says that nobody listens there.
fn is_not_listening(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Whether the error says that the other process has ended, be it in the middle of a message.
fn is_disconnect(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), ConnectionReset | UnexpectedEof | BrokenPipe)
}

async fn receive_reply(channel: &mut Channel) -> anyhow::Result<Option<Message>> {
    match timeout(REPLY_TIMEOUT, channel.receive()).await {
        Ok(Ok(message)) => Ok(message),
        Ok(Err(error)) if is_disconnect(&error) => Ok(None),
        Ok(Err(error)) => Err(error).context("cannot understand the running server"),
        Err(_) => Err(anyhow!("the running server does not answer; stop it, then start without --take-over")),
    }
}

fn ids_of(secret: &Json) -> Option<ConnectionIds> {
    let word = |index: usize| secret.get(index)?.as_str()?.parse::<u64>().ok();
    Some(ConnectionIds::new([word(0)?, word(1)?]))
}
