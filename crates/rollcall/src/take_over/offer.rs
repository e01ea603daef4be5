//! The running server: offers its sockets to a successor.

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
use net::AcceptGate;
use net::descriptors::{Channel, SOCKETS_PER_MESSAGE};
use serde_json::json;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tracing::{info, warn};

use super::{InheritedState, PROTOCOL, socket_path};

/// Until the successor's `hello`.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest startup of a successor; afterwards another may try.
const READY_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// Until the successor's `taken`, normally milliseconds. No process accepts meanwhile.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(5);
/// Delay after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct Offer {
    path: PathBuf,
    taken: oneshot::Receiver<HandedOver>,
    task: JoinHandle<()>,
}

/// Kept until this process exits: the successor detects the exit by the closed channel.
#[derive(Debug)]
pub struct HandedOver {
    _channel: Channel,
}

struct OfferState {
    inherited: InheritedState,
    /// None without a tracker.
    accept_gate: Option<AcceptGate>,
    /// Longest duration of this process's shutdown.
    exit_timeout: Duration,
    /// One successor at a time.
    slot: Semaphore,
    /// Zero if unknown.
    successor_pid: AtomicU64,
}

impl Offer {
    /// The data folder must be held by this process.
    pub fn open(
        data: &Path,
        inherited: InheritedState,
        accept_gate: Option<AcceptGate>,
        exit_timeout: Duration,
    ) -> anyhow::Result<Offer> {
        let path = socket_path(data);
        // Left by a killed process, or by the predecessor.
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
        let (taken_sender, taken) = oneshot::channel();
        let state = Arc::new(OfferState {
            inherited,
            accept_gate,
            exit_timeout,
            slot: Semaphore::new(1),
            successor_pid: AtomicU64::new(0),
        });
        let task = tokio::spawn(async move {
            let channel = accept_successor(listener, state).await;
            let _ = taken_sender.send(HandedOver { _channel: channel });
        });
        Ok(Offer { path, taken, task })
    }

    /// Cancel-safe.
    pub async fn taken(&mut self) -> HandedOver {
        match (&mut self.taken).await {
            Ok(handed_over) => handed_over,
            // The task always sends before it ends.
            Err(_) => std::future::pending().await,
        }
    }

    /// Withdraws the offer and drops the duplicates of the sockets. A successor that waits is disconnected; one that
    /// has just taken over is returned.
    pub async fn withdraw(mut self) -> Option<HandedOver> {
        self.task.abort();
        let _ = (&mut self.task).await;
        let taken = self.taken.try_recv().ok();
        // After a take-over the file may already be the successor's.
        if taken.is_none() {
            let _ = fs::remove_file(&self.path);
        }
        taken
    }
}

/// Serves successors until one has taken over.
async fn accept_successor(listener: UnixListener, state: Arc<OfferState>) -> Channel {
    let mut successors = JoinSet::new();
    loop {
        tokio::select! {
            Some(outcome) = successors.join_next() => {
                if let Ok(Some(channel)) = outcome {
                    return channel;
                }
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    successors.spawn(serve_successor(stream, Arc::clone(&state)));
                }
                Err(reason) => {
                    warn!(%reason, "cannot accept a take-over connection; retrying");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

/// The channel, if the successor took over.
async fn serve_successor(stream: UnixStream, state: Arc<OfferState>) -> Option<Channel> {
    match hand_over(stream, &state).await {
        Ok(channel) => channel,
        Err(reason) => {
            warn!(%reason, "take-over failed; this process continues to serve");
            None
        }
    }
}

async fn hand_over(stream: UnixStream, state: &OfferState) -> io::Result<Option<Channel>> {
    // The socket file was briefly unprotected after its creation.
    let (theirs, ours) = (stream.peer_cred()?.uid(), rustix::process::geteuid().as_raw());
    if theirs != ours && theirs != 0 {
        return Err(io::Error::other("the new process runs as another user"));
    }
    let mut channel = Channel::new(stream);
    let hello = tokio::time::timeout(HELLO_TIMEOUT, channel.receive()).await??;
    let Some(hello) = hello.filter(|hello| hello.message_type() == "hello") else { return Ok(None) };
    let refusal = if hello.text["protocol"] != PROTOCOL {
        Some("incompatible take-over protocol: stop this server, then start the new one".to_owned())
    } else {
        None
    };
    let slot = state.slot.try_acquire();
    let refusal = match (&slot, refusal) {
        (Err(_), None) => Some(format!(
            "another take-over is in progress (process {})",
            state.successor_pid.load(Ordering::Relaxed)
        )),
        (_, refusal) => refusal,
    };
    if let Some(reason) = refusal {
        channel.send(&json!({"say": "refused", "reason": reason}), &[]).await?;
        return Err(io::Error::other(reason));
    }
    let pid = hello.text["pid"].as_u64();
    state.successor_pid.store(pid.unwrap_or(0), Ordering::Relaxed);
    let welcome = json!({
        "say": "welcome",
        "protocol": PROTOCOL,
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "ends_within_s": state.exit_timeout.as_secs(),
    });
    channel.send(&welcome, &[]).await?;
    info!(version = hello.text["version"].as_str(), pid, "a process is preparing to take over");
    // If it exits, the channel is closed.
    match tokio::time::timeout(READY_TIMEOUT, channel.receive()).await {
        Ok(message) => match message? {
            Some(message) if message.message_type() == "hand_over" => {}
            _ => return Err(io::Error::other("the new process has ended")),
        },
        Err(_) => {
            let (pid, minutes) = (pid.unwrap_or(0), READY_TIMEOUT.as_secs() / 60);
            let reason = format!(
                "process {pid} was not ready after {}: stop it, and try again",
                counted(minutes, "minute")
            );
            return Err(io::Error::other(reason));
        }
    }
    let closed = ClosedGate::close(state.accept_gate.clone()).await;
    send_inherited(&mut channel, &state.inherited).await?;
    match tokio::time::timeout(CONFIRM_TIMEOUT, channel.receive()).await?? {
        Some(message) if message.message_type() == "taken" => {}
        _ => return Err(io::Error::other("the new process has ended")),
    }
    // From here on the successor serves, even if this message is lost.
    closed.keep_closed();
    let _ = channel.send(&json!({"say": "goodbye"}), &[]).await;
    Ok(Some(channel))
}

/// Closes the accept gate; opens it again on drop.
struct ClosedGate(Option<AcceptGate>);

impl ClosedGate {
    async fn close(accept_gate: Option<AcceptGate>) -> ClosedGate {
        let closed = ClosedGate(accept_gate.clone());
        let closing =
            tokio::task::spawn_blocking(move || accept_gate.is_none_or(|accept_gate| accept_gate.close()));
        if !closing.await.unwrap_or(false) {
            warn!("a listener did not pause in time; some announces may be received out of order");
        }
        closed
    }

    /// The server is about to stop.
    fn keep_closed(mut self) {
        self.0 = None;
    }
}

impl Drop for ClosedGate {
    fn drop(&mut self) {
        if let Some(accept_gate) = &self.0 {
            accept_gate.open();
        }
    }
}

async fn send_inherited(channel: &mut Channel, inherited: &InheritedState) -> io::Result<()> {
    fn fds<T: AsFd>(sockets: &[T]) -> Vec<BorrowedFd<'_>> {
        sockets.iter().map(AsFd::as_fd).collect()
    }
    let tracker = &inherited.tracker;
    for (kind, sockets) in [
        ("http", fds(&tracker.http)),
        ("https", fds(&tracker.https)),
        ("udp", fds(&tracker.udp)),
        ("site", fds(&inherited.site)),
    ] {
        for some in sockets.chunks(SOCKETS_PER_MESSAGE) {
            channel.send(&json!({"say": "sockets", "kind": kind, "sockets": some.len()}), some).await?;
        }
    }
    // As text: not every JSON parser keeps 64 bits of a number.
    let secret = inherited.ids.map(|ids| ids.secret().map(|word| word.to_string()));
    channel.send(&json!({"say": "all", "connection_secret": secret}), &[]).await
}
