//! Announces over sockets, and the fixed-response servers that they are compared with.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::bail;
use simulate::announce::PasskeyIn;
use simulate::load::{
    HttpClient, HttpRequests, HttpShape, LoadClient, LoadResult, Peers, Schedule, UdpClient, UdpPackets,
    UdpShape, Until,
};

use crate::run::Run;

/// What fits into a receive buffer of the default size.
const UDP_BATCHES_IN_FLIGHT: usize = 4;
/// A refused announce costs less than an accepted one: with more refusals than this, a run is invalid.
const REFUSED_ONE_IN: u64 = 100;
/// Seeds the order of announces.
const SEED: u64 = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http,
    Udp,
}

impl Protocol {
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Http => "HTTP",
            Protocol::Udp => "UDP",
        }
    }
}

/// The server that announces are sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub server: SocketAddr,
    pub protocol: Protocol,
    /// HTTP only.
    pub keep_alive: bool,
}

/// Every peer's announce, rendered for one protocol. Two servers receive the same bytes.
#[derive(Clone)]
pub enum Rendered {
    Http(Arc<HttpRequests>),
    Udp(Arc<UdpPackets>),
}

impl Rendered {
    fn new(target: Target, peers: &Peers, passkey_in: PasskeyIn) -> Rendered {
        match target.protocol {
            Protocol::Http => {
                let host = target.server.to_string();
                Rendered::Http(Arc::new(HttpRequests::new(peers, &host, passkey_in)))
            }
            Protocol::Udp => Rendered::Udp(Arc::new(UdpPackets::new(peers))),
        }
    }

    /// A client with its connections open.
    fn client(&self, run: &Run<'_>, target: Target) -> anyhow::Result<Box<dyn LoadClient>> {
        let waiting = run.waiting();
        Ok(match self {
            Rendered::Http(requests) => {
                let (connections, pipeline) = (run.options.connections, run.options.pipeline);
                let shape = HttpShape { connections, pipeline, waiting, keep_alive: target.keep_alive };
                Box::new(HttpClient::connect(target.server, Arc::clone(requests), shape)?)
            }
            Rendered::Udp(packets) => {
                let shape = UdpShape { batches_in_flight: UDP_BATCHES_IN_FLIGHT, waiting };
                Box::new(UdpClient::bind(target.server, Arc::clone(packets), shape)?)
            }
        })
    }
}

/// Announces to one server.
pub struct Announcer {
    target: Target,
    rendered: Rendered,
    schedule: Schedule,
}

impl Announcer {
    pub fn new(target: Target, peers: &Peers, passkey_in: PasskeyIn) -> Announcer {
        let rendered = Rendered::new(target, peers, passkey_in);
        Announcer { target, rendered, schedule: Schedule::new(peers.count(), SEED) }
    }

    /// The same announces from the first one on, to a fixed-response server.
    pub fn to_fixed_reply(&self, server: SocketAddr, peers: &Peers) -> Announcer {
        let target = Target { server, keep_alive: true, ..self.target };
        let rendered = self.rendered.clone();
        Announcer { target, rendered, schedule: Schedule::new(peers.count(), SEED) }
    }

    pub fn target(&self) -> Target {
        self.target
    }

    /// Sends the next announces, over new connections: servers close idle ones.
    pub fn announce(&mut self, run: &Run<'_>, until: Until) -> anyhow::Result<LoadResult> {
        let mut client = self.rendered.client(run, self.target)?;
        let seen = client.run(&mut self.schedule, until)?;
        if let (true, Some(reason)) = (seen.failures * REFUSED_ONE_IN > seen.replies, &seen.first_failure) {
            bail!("{} of {} announces were refused, for example: {reason}", seen.failures, seen.replies);
        }
        Ok(seen)
    }
}
