//! The side of the server that runs: it offers its sockets to whoever may have them.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use domain::counted;
use serde_json::json;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tracing::{info, warn};
use tracker::ending::Valve;

use super::channel::{Channel, SOCKETS_PER_MESSAGE};
use super::{Goods, PROTOCOL, socket_path};

/// How long the other side may take to say who it is.
const HELLO_PATIENCE: Duration = Duration::from_secs(5);
/// How long it may take to warm up. After that it is not alive, and another may try.
const READY_PATIENCE: Duration = Duration::from_secs(15 * 60);
/// How long it may take to serve what it was given. Nobody is served meanwhile; what it does takes some milliseconds.
const TAKEN_PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait when the system gives no more connections.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// An offer that stands until somebody takes it.
#[derive(Debug)]
pub struct Offer {
    path: PathBuf,
    taken: oneshot::Receiver<HandedOver>,
    standing: JoinHandle<()>,
}

/// Somebody has taken over. Kept until this process ends: the other one sees by it that we have.
#[derive(Debug)]
pub struct HandedOver {
    _channel: Channel,
}

/// What is told to everybody who asks.
struct Terms {
    goods: Goods,
    /// In front of the tracker, if there is one.
    valve: Option<Valve>,
    /// How long this process may take to end.
    ends_within: Duration,
    /// One taker at a time.
    turn: Semaphore,
    /// Its process id; zero if it did not say.
    taker: AtomicU64,
}

impl Offer {
    /// Makes the offer. The data folder must be ours.
    pub fn open(
        data: &Path,
        goods: Goods,
        valve: Option<Valve>,
        ends_within: Duration,
    ) -> anyhow::Result<Offer> {
        let path = socket_path(data);
        // Left by one that was killed, or by the one whose place we took.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {}", path.display()));
            }
            _ => {}
        }
        let listener =
            UnixListener::bind(&path).with_context(|| format!("cannot listen on {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))
            .with_context(|| format!("cannot protect {}", path.display()))?;
        let (tell, taken) = oneshot::channel();
        let terms =
            Arc::new(Terms { goods, valve, ends_within, turn: Semaphore::new(1), taker: AtomicU64::new(0) });
        let standing = tokio::spawn(async move {
            let channel = stand(listener, terms).await;
            let _ = tell.send(HandedOver { _channel: channel });
        });
        Ok(Offer { path, taken, standing })
    }

    /// Waits until somebody has taken over. Can be given up and called again.
    pub async fn taken(&mut self) -> HandedOver {
        match (&mut self.taken).await {
            Ok(handed_over) => handed_over,
            // The task ends in no other way.
            Err(_) => std::future::pending().await,
        }
    }

    /// Takes the offer back, and gives up the copies of the sockets. Whoever was about to take over hears of it; who has
    /// done so in this very moment is returned.
    pub async fn withdraw(mut self) -> Option<HandedOver> {
        self.standing.abort();
        let _ = (&mut self.standing).await;
        let taken = self.taken.try_recv().ok();
        // The file of an offer that was taken is left to who took it: by now it may be theirs.
        if taken.is_none() {
            let _ = fs::remove_file(&self.path);
        }
        taken
    }
}

/// Talks to everybody who comes, until somebody has taken over.
async fn stand(listener: UnixListener, terms: Arc<Terms>) -> Channel {
    let mut talks = JoinSet::new();
    loop {
        tokio::select! {
            Some(talk) = talks.join_next() => {
                if let Ok(Some(channel)) = talk {
                    return channel;
                }
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    talks.spawn(talk(stream, Arc::clone(&terms)));
                }
                Err(reason) => {
                    warn!(%reason, "a process that wants to take over could not be heard");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

/// One conversation; the channel, if it ended with a take-over.
async fn talk(stream: UnixStream, terms: Arc<Terms>) -> Option<Channel> {
    match converse(stream, &terms).await {
        Ok(channel) => channel,
        Err(reason) => {
            warn!(%reason, "a process that wanted to take over did not; this one goes on");
            None
        }
    }
}

async fn converse(stream: UnixStream, terms: &Terms) -> io::Result<Option<Channel>> {
    // The file is protected, but it was not in the moment in which it was made.
    let (theirs, ours) = (stream.peer_cred()?.uid(), rustix::process::geteuid().as_raw());
    if theirs != ours && theirs != 0 {
        return Err(io::Error::other("it runs as another user"));
    }
    let mut channel = Channel::new(stream);
    let hello = tokio::time::timeout(HELLO_PATIENCE, channel.receive()).await??;
    let Some(hello) = hello.filter(|hello| hello.says() == "hello") else { return Ok(None) };
    let refusal = if hello.text["protocol"] != PROTOCOL {
        Some("it speaks another version of the protocol: stop this server, then start the new one".to_owned())
    } else {
        None
    };
    let turn = terms.turn.try_acquire();
    let refusal = match (&turn, refusal) {
        (Err(_), None) => Some(format!(
            "another process is taking over already (process id {})",
            terms.taker.load(Ordering::Relaxed)
        )),
        (_, refusal) => refusal,
    };
    if let Some(reason) = refusal {
        channel.send(&json!({"say": "refused", "reason": reason}), &[]).await?;
        return Err(io::Error::other(reason));
    }
    let pid = hello.text["pid"].as_u64();
    terms.taker.store(pid.unwrap_or(0), Ordering::Relaxed);
    let welcome = json!({
        "say": "welcome",
        "protocol": PROTOCOL,
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "ends_within_s": terms.ends_within.as_secs(),
    });
    channel.send(&welcome, &[]).await?;
    info!(version = hello.text["version"].as_str(), pid, "a process prepares to take over");
    // It may take its time; if it dies, the channel ends.
    match tokio::time::timeout(READY_PATIENCE, channel.receive()).await {
        Ok(message) => match message? {
            Some(message) if message.says() == "hand_over" => {}
            _ => return Err(io::Error::other("it has ended")),
        },
        Err(_) => {
            let (pid, minutes) = (pid.unwrap_or(0), READY_PATIENCE.as_secs() / 60);
            let reason = format!(
                "process {pid} was not ready after {}: end it, and try again",
                counted(minutes, "minute")
            );
            return Err(io::Error::other(reason));
        }
    }
    let closed = Closed::now(terms.valve.clone()).await;
    send_goods(&mut channel, &terms.goods).await?;
    match tokio::time::timeout(TAKEN_PATIENCE, channel.receive()).await?? {
        Some(message) if message.says() == "taken" => {}
        _ => return Err(io::Error::other("it has ended")),
    }
    // From here on it is the other one that serves, whether it hears this or not.
    closed.for_good();
    let _ = channel.send(&json!({"say": "goodbye"}), &[]).await;
    Ok(Some(channel))
}

/// A valve that is closed; opened again when this is dropped.
struct Closed(Option<Valve>);

impl Closed {
    async fn now(valve: Option<Valve>) -> Closed {
        let closed = Closed(valve.clone());
        let closing = tokio::task::spawn_blocking(move || valve.is_none_or(|valve| valve.close()));
        if !closing.await.unwrap_or(false) {
            warn!("a listener did not stand still in time; some announces may be heard out of their order");
        }
        closed
    }

    /// The server is about to end.
    fn for_good(mut self) {
        self.0 = None;
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        if let Some(valve) = &self.0 {
            valve.open();
        }
    }
}

async fn send_goods(channel: &mut Channel, goods: &Goods) -> io::Result<()> {
    fn fds<T: AsFd>(sockets: &[T]) -> Vec<BorrowedFd<'_>> {
        sockets.iter().map(AsFd::as_fd).collect()
    }
    let tracker = &goods.tracker;
    for (kind, sockets) in [
        ("http", fds(&tracker.http)),
        ("https", fds(&tracker.https)),
        ("udp", fds(&tracker.udp)),
        ("site", fds(&goods.site)),
    ] {
        for some in sockets.chunks(SOCKETS_PER_MESSAGE) {
            channel.send(&json!({"say": "sockets", "kind": kind, "sockets": some.len()}), some).await?;
        }
    }
    // As text: not every reader of JSON keeps 64 bits of a number.
    let secret = goods.ids.map(|ids| ids.secret().map(|word| word.to_string()));
    channel.send(&json!({"say": "all", "connection_secret": secret}), &[]).await
}
