//! `rollcall serve --take-over`: a new process takes the place of the one that runs, and no client notices.
//!
//! # How
//!
//! ```text
//!  the server that runs (offer)                      the new process (predecessor)
//!  listens on take-over.sock in the data folder
//!                                   ◀── hello ───    finds it
//!                                    ── welcome ─▶   opens its stores, rebuilds its swarms
//!                                   ◀── hand_over ─  is ready
//!  accepts nothing for now           ── sockets ──▶  the listeners themselves (SCM_RIGHTS)
//!                                    ── all ──────▶  the secret of connection ids over UDP
//!                                   ◀── taken ────   serves
//!  answers, flushes, ends            ── goodbye ──▶
//!                                    ── (closed) ─▶  starts its views, offers the same to the next
//! ```
//!
//! # Guarantees
//!
//! - Until `taken`, nothing is decided: whatever becomes of the new process, also if it is told to stop, the old one goes
//!   on. If it is the old one that is told to stop, the new one waits for its end and serves. After `taken`, nothing
//!   but being told so ends the new one.
//! - The sockets are the very same ones: what waits in their queues waits for the new process, and no connection is
//!   reset. (Two listeners on one port by `SO_REUSEPORT` alone would not do: what is in the queue of the one that
//!   closes is reset.)
//! - At no time do both take announces from the sockets. A client that announced to one and then to the other is heard
//!   by them in this order, so the ledger sees counters that go on.
//! - Connection ids that clients have from the old process are good with the new one.
//! - Views begin when the old process has ended, or has had more than its time. So do webhooks. People may come to the
//!   new process as soon as it serves: it knows who was here as far as it was written shortly before, and reads what the
//!   old one wrote last when that has ended. Who came within the last second before may be told of twice.
//!
//! # Deliberately absent
//!
//! Handing over swarms: the new process knows them from the snapshot and the journal, as after any other start. Handing
//! over open connections: the old process answers what is asked on them, says that they end, and ends them.

mod channel;
mod offer;
mod predecessor;

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tracker::bound_sockets::{BoundSockets, InheritedSockets};
use tracker::udp::ConnectionIds;

pub use offer::{HandedOver, Offer};
pub use predecessor::Predecessor;

use crate::config::Config;
use crate::roles::{Role, Roles};

/// Raised when the two sides would no longer understand each other.
const PROTOCOL: u64 = 1;

/// Every socket that a process serves.
pub struct ServerSockets {
    /// Those of the tracker, if this process is one.
    pub tracker: Option<BoundSockets>,
    /// Those of the site.
    pub site: Vec<TcpListener>,
}

/// What a server hands over.
#[derive(Debug, Default)]
pub struct InheritedState {
    /// The sockets of the tracker.
    pub tracker: InheritedSockets,
    /// The sockets of the site.
    pub site: Vec<TcpListener>,
    /// Under which connection ids over UDP were given.
    pub ids: Option<ConnectionIds>,
}

impl std::fmt::Debug for ServerSockets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerSockets").field("site", &self.site.len()).finish_non_exhaustive()
    }
}

impl ServerSockets {
    /// Takes what was handed over of the configured addresses, and opens the rest. All or nothing.
    pub fn open(config: &Config, roles: &Roles, inherited: InheritedState) -> anyhow::Result<ServerSockets> {
        let tracker = match roles.include(Role::Tracker) {
            true => Some(BoundSockets::inherit(&config.tracker_settings(), inherited.tracker)?),
            false => None,
        };
        let site = match roles.include(Role::Site) {
            true => site::listen(&config.site_settings(), inherited.site)?,
            false => Vec::new(),
        };
        Ok(ServerSockets { tracker, site })
    }

    /// The same once more, for whoever takes over later. To be dropped before this process drains.
    pub fn duplicates(&self, ids: Option<ConnectionIds>) -> anyhow::Result<InheritedState> {
        let tracker = self
            .tracker
            .as_ref()
            .map(BoundSockets::duplicates)
            .transpose()
            .context("cannot copy a socket")?;
        let site = self.site.iter().map(TcpListener::try_clone).collect::<std::io::Result<_>>();
        let site = site.context("cannot copy a socket")?;
        Ok(InheritedState { tracker: tracker.unwrap_or_default(), site, ids })
    }
}

impl InheritedState {
    /// Adds a socket that came over the channel, after a look at what it is.
    fn add(&mut self, kind: &str, socket: OwnedFd) -> std::io::Result<()> {
        let socket = socket2::Socket::from(socket);
        let is_listening = socket.is_listener()?;
        let is_stream = socket.r#type()? == socket2::Type::STREAM;
        match (kind, is_stream && is_listening) {
            ("udp", false) if !is_stream => self.tracker.udp.push(socket.into()),
            ("http", true) => self.tracker.http.push(socket.into()),
            ("https", true) => self.tracker.https.push(socket.into()),
            ("site", true) => self.site.push(socket.into()),
            _ => return Err(std::io::Error::other(format!("not a socket for {kind}"))),
        }
        Ok(())
    }
}

/// Where the running server of a data folder can be asked.
fn socket_path(data: &Path) -> PathBuf {
    data.join("take-over.sock")
}
