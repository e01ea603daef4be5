//! `rollcall serve --take-over`: a new process replaces the running one without losing a request.
//!
//! # Protocol
//!
//! ```text
//!  the running server (offer)                        the new process (predecessor)
//!  listens on take-over.sock in the data folder
//!                                   ◀── hello ───    connects
//!                                    ── welcome ─▶   opens its stores, rebuilds its swarms
//!                                   ◀── hand_over ─  is ready to serve
//!  stops accepting                   ── sockets ──▶  the listening sockets (SCM_RIGHTS)
//!                                    ── all ──────▶  the secret of UDP connection ids
//!                                   ◀── taken ────   serves
//!  drains, exits                     ── goodbye ──▶
//!                                    ── (closed) ─▶  starts its views, offers a take-over
//! ```
//!
//! # Guarantees
//!
//! - Until `taken`, the old process continues if the new one fails or is stopped. If the old one is stopped, the new
//!   one waits for its end and serves. After `taken`, only a stop request ends the new one.
//! - The sockets are the same kernel objects: connections queued in them wait for the new process, and none is reset.
//!   (With two listeners by `SO_REUSEPORT`, closing one resets its queue.)
//! - At most one process accepts from the sockets at any time, so announces of a client are received in order, and
//!   the ledger sees counters that continue.
//! - UDP connection ids issued by the old process are valid with the new one.
//! - Views and webhooks start when the old process has ended, or its time is over. Presence clients may connect as
//!   soon as the new process serves: it has the stored presence, and reads what the old one stored last after its
//!   end. A user who connected within the last second may be announced twice.
//!
//! # Deliberately absent
//!
//! Handing over swarms: the new process restores them from snapshot and journal, as after any start. Handing over
//! open connections: the old process answers the requests on them, then closes them.

mod offer;
mod predecessor;

use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use anyhow::Context;
use net::listen::ListeningSocket;
use tracker::{BoundSockets, ConnectionIds, InheritedSockets};

pub use offer::{HandedOver, Offer};
pub use predecessor::Predecessor;

use crate::config::Config;
use crate::roles::{Role, Roles};

/// Raised on incompatible changes.
const PROTOCOL: u64 = 1;

pub struct ServerSockets {
    /// None without the role tracker.
    pub tracker: Option<BoundSockets>,
    pub site: Vec<TcpListener>,
}

#[derive(Debug, Default)]
pub struct InheritedState {
    pub tracker: InheritedSockets,
    pub site: Vec<TcpListener>,
    /// Issues and verifies UDP connection ids.
    pub ids: Option<ConnectionIds>,
}

impl std::fmt::Debug for ServerSockets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerSockets").field("site", &self.site.len()).finish_non_exhaustive()
    }
}

impl ServerSockets {
    /// Uses inherited sockets of configured addresses and binds the rest. All or nothing.
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

    /// For a later take-over. To be dropped before this process drains.
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
    /// Checks the type of a received socket and adds it.
    fn add(&mut self, kind: &str, socket: OwnedFd) -> std::io::Result<()> {
        match kind {
            "udp" => self.tracker.udp.push(UdpSocket::from_descriptor(socket)?),
            "http" => self.tracker.http.push(TcpListener::from_descriptor(socket)?),
            "https" => self.tracker.https.push(TcpListener::from_descriptor(socket)?),
            "site" => self.site.push(TcpListener::from_descriptor(socket)?),
            _ => return Err(std::io::Error::other(format!("unknown kind of socket: {kind}"))),
        }
        Ok(())
    }
}

fn socket_path(data: &Path) -> PathBuf {
    data.join("take-over.sock")
}
