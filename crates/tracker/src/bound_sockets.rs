//! The sockets of a tracker: bound by itself, or inherited from the process that it replaces.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};

use net::BindError;
use net::listen::{self, BindOptions};

use crate::server::Addresses;
use crate::settings::Settings;

/// Sockets by address, then by worker.
#[derive(Debug)]
pub struct BoundSockets {
    pub(crate) http: Vec<Vec<TcpListener>>,
    pub(crate) https: Vec<Vec<TcpListener>>,
    pub(crate) udp: Vec<Vec<UdpSocket>>,
}

/// Sockets received from another process, in any order.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    pub http: Vec<TcpListener>,
    pub https: Vec<TcpListener>,
    pub udp: Vec<UdpSocket>,
}

impl BoundSockets {
    /// Binds all sockets, or none.
    pub fn open(settings: &Settings) -> Result<BoundSockets, BindError> {
        BoundSockets::inherit(settings, InheritedSockets::default())
    }

    /// Uses the inherited sockets of configured addresses, binds the missing ones, and closes those of addresses that
    /// are no longer configured.
    pub fn inherit(settings: &Settings, mut inherited: InheritedSockets) -> Result<BoundSockets, BindError> {
        let options =
            |listener| BindOptions { listener, count: settings.workers, share_ports: settings.share_ports };
        let sockets = BoundSockets {
            http: listen::open(&settings.http_addresses, &mut inherited.http, options("HTTP"))?,
            https: listen::open(&settings.https_addresses, &mut inherited.https, options("HTTPS"))?,
            udp: listen::open(&settings.udp_addresses, &mut inherited.udp, options("UDP"))?,
        };
        listen::close_unused(inherited.http);
        listen::close_unused(inherited.https);
        listen::close_unused(inherited.udp);
        Ok(sockets)
    }

    /// Duplicates for a later take-over. A socket lives as long as its duplicates: drop them before the tracker
    /// drains.
    pub fn duplicates(&self) -> io::Result<InheritedSockets> {
        Ok(InheritedSockets {
            http: self.http.iter().flatten().map(TcpListener::try_clone).collect::<io::Result<_>>()?,
            https: self.https.iter().flatten().map(TcpListener::try_clone).collect::<io::Result<_>>()?,
            udp: self.udp.iter().flatten().map(UdpSocket::try_clone).collect::<io::Result<_>>()?,
        })
    }

    pub(crate) fn count(&self) -> usize {
        let tcp = self.http.iter().chain(&self.https).map(Vec::len).sum::<usize>();
        tcp + self.udp.iter().map(Vec::len).sum::<usize>()
    }

    pub(crate) fn addresses(&self) -> io::Result<Addresses> {
        let tcp = |groups: &[Vec<TcpListener>]| -> io::Result<Vec<SocketAddr>> {
            groups.iter().flat_map(|group| group.first()).map(TcpListener::local_addr).collect()
        };
        let udp = self.udp.iter().flat_map(|group| group.first()).map(UdpSocket::local_addr);
        Ok(Addresses {
            http: tcp(&self.http)?,
            https: tcp(&self.https)?,
            udp: udp.collect::<io::Result<_>>()?,
        })
    }
}
