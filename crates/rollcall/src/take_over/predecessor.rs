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
use super::{Goods, PROTOCOL, socket_path};
use crate::node;

/// How long the running server may take to answer. It answers at once, unless it hangs.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);
/// How long to look for an offer where a server runs; between two looks, a pause.
const OFFER_PATIENCE: Duration = Duration::from_secs(5);
const OFFER_PAUSE: Duration = Duration::from_millis(100);
/// A bound on what it says about its own end.
const END_PATIENCE_MAX: Duration = Duration::from_secs(3600);

/// The server that runs, and whose place this process is to take.
#[derive(Debug)]
pub struct Predecessor {
    data: PathBuf,
    channel: Channel,
    pid: Option<u32>,
    ends_within: Duration,
    /// When it should have ended; none as long as it serves.
    ends_before: Option<Instant>,
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
        let welcome = answer(&mut channel).await?;
        let welcome = welcome.context("the running server hung up; try again")?;
        if welcome.says() != "welcome" {
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
        let ends_within = Duration::from_secs(welcome.text["ends_within_s"].as_u64().unwrap_or(0));
        let ends_within = ends_within.min(END_PATIENCE_MAX);
        let pid = welcome.text["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        Ok(Some(Predecessor { data: data.to_owned(), channel, pid, ends_within, ends_before: None }))
    }

    /// Its process id, as it says itself.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Asks for everything it serves; none if it has ended meanwhile. It goes on serving.
    pub async fn hand_over(&mut self) -> anyhow::Result<Option<Goods>> {
        if self.channel.send(&json!({"say": "hand_over"}), &[]).await.is_err() {
            return Ok(None);
        }
        let mut goods = Goods::default();
        loop {
            let Some(message) = answer(&mut self.channel).await? else { return Ok(None) };
            match message.says() {
                "sockets" => {
                    let kind = message.text["kind"].as_str().unwrap_or_default();
                    for socket in message.sockets {
                        goods.add(kind, socket).context("the running server handed over something else")?;
                    }
                }
                "all" => {
                    goods.ids = ids_of(&message.text["connection_secret"]);
                    return Ok(Some(goods));
                }
                other => bail!("the running server said {other:?}, which nobody expected"),
            }
        }
    }

    /// Tells it that this process serves now. False if it did not take notice: it ends, or it has given us up and serves
    /// on ([`Predecessor::has_ended`] tells which).
    pub async fn relieve(&mut self) -> bool {
        if self.channel.send(&json!({"say": "taken"}), &[]).await.is_err() {
            return false;
        }
        self.ends_before = Some(Instant::now() + self.ends_within);
        match answer(&mut self.channel).await {
            Ok(answer) => answer.is_some_and(|message| message.says() == "goodbye"),
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
        let deadline = Instant::now() + self.ends_within;
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
        let deadline = *self.ends_before.get_or_insert_with(|| Instant::now() + self.ends_within);
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
    let deadline = Instant::now() + OFFER_PATIENCE;
    loop {
        match UnixStream::connect(&path).await {
            Ok(stream) => return Ok(Some(stream)),
            Err(error) if !is_nobody(&error) => {
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
fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Whether the error says that the other process has ended, be it in the middle of a message.
fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), ConnectionReset | UnexpectedEof | BrokenPipe)
}

async fn answer(channel: &mut Channel) -> anyhow::Result<Option<Message>> {
    match timeout(ANSWER_PATIENCE, channel.receive()).await {
        Ok(Ok(message)) => Ok(message),
        Ok(Err(error)) if is_end(&error) => Ok(None),
        Ok(Err(error)) => Err(error).context("cannot understand the running server"),
        Err(_) => Err(anyhow!("the running server does not answer; stop it, then start without --take-over")),
    }
}

fn ids_of(secret: &Json) -> Option<ConnectionIds> {
    let word = |index: usize| secret.get(index)?.as_str()?.parse::<u64>().ok();
    Some(ConnectionIds::new([word(0)?, word(1)?]))
}
