//! Real servers, real clients and real files for tests.
//!
//! # Layout
//!
//! - [`server`]: the real binary with its own folder and ports
//! - [`companion`]: further processes of such a server, for other roles
//! - [`servers`]: Redis (alone, cluster, sentinel), PostgreSQL and MariaDB
//! - [`test_database`]: an empty database for each test, on each kind of server
//! - [`small_disk`]: a disk that can be filled
//! - [`announce`] and [`reply`]: announces and their replies
//! - [`http`] and [`udp`]: clients that send exactly the bytes they are given
//! - [`population`]: thousands of simulated clients with known totals
//! - [`torrent_file`]: random payloads and their private torrents
//! - [`clients`]: Transmission, aria2, libtorrent, qBittorrent, rTorrent
//! - [`verify_endpoint`]: a site's endpoint that can be slow, broken, wrong or down
//! - [`proxy`]: a TCP proxy that can delay, cut or drop
//! - [`hook_receiver`]: a site's webhook endpoint
//! - `journal_fields`: the fields of an entry
//! - [`process`], [`ports`], [`wait`]: child processes that end with their test, free ports, waiting with a timeout
//! - [`api`]: a client of the site's API; [`certificates`]: a certificate authority and a TLS client
//! - [`wall_clock`]: sets a process's clock by libfaketime
//! - [`bencode`]: an independent parser
//!
//! A failure here is a failed test, so most functions panic with a message that says what was expected. Results that a
//! test may examine, such as an error packet, are values.
//!
//! Nothing here skips: a missing program fails the test and says how to install it. What a machine may forbid is
//! reported ([`SmallDisk::unavailable`]), and the test decides.

pub mod announce;
pub mod api;
pub mod bencode;
pub mod certificates;
pub mod clients;
pub mod companion;
pub mod hook_receiver;
pub mod http;
mod journal_fields;
pub mod population;
pub mod ports;
pub mod process;
pub mod proxy;
pub mod reply;
pub mod server;
pub mod servers;
pub mod small_disk;
pub mod test_database;
pub mod torrent_file;
pub mod udp;
pub mod verify_endpoint;
pub mod wait;
mod wall_clock;

pub use announce::Announce;
pub use api::{Api, ApiReply};
pub use certificates::Authority;
pub use companion::Companion;
pub use hook_receiver::{Hook, HookReceiver, HookReply};
pub use http::{HttpReply, RawHttp};
pub use journal_fields::JOURNAL_FIELDS;
pub use population::{ActivityLists, Destination, Moved, Plan, Population, Truth};
pub use proxy::{NetworkState, Proxy};
pub use reply::{AnnounceReply, RetryIn, SwarmCounts};
pub use server::{Server, ServerBuilder};
pub use servers::{
    Fsync, MariaDbServer, PostgresServer, RedisBuilder, RedisCluster, RedisSentinel, RedisServer,
};
pub use small_disk::SmallDisk;
pub use test_database::{RawConnection, TestDatabase};
pub use torrent_file::TorrentFile;
pub use udp::RawUdp;
pub use verify_endpoint::{Behaviour, VerifyEndpoint};
pub use wait::{eventually, eventually_async, eventually_equal, is_held_to_promises, promised};

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Which internet protocol a test runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// 127.0.0.1
    V4,
    /// `::1`
    V6,
}

impl Family {
    /// This machine, in this family.
    pub const fn loopback(self) -> IpAddr {
        match self {
            Family::V4 => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Family::V6 => IpAddr::V6(Ipv6Addr::LOCALHOST),
        }
    }

    /// A port of this machine, in this family.
    pub const fn loopback_at(self, port: u16) -> SocketAddr {
        SocketAddr::new(self.loopback(), port)
    }
}
