//! Real servers, real clients and real files for tests.
//!
//! # Layout
//!
//! - [`server`]: the real binary in a folder of its own, on ports of its own
//! - [`companion`]: further processes of such a server, for other roles
//! - [`servers`]: Redis (alone, cluster, sentinel), PostgreSQL and MariaDB, likewise
//! - [`small_disk`]: a disk that can be filled
//! - [`announce`] and [`reply`]: what a client asks and what it is told
//! - [`http`] and [`udp`]: clients that send exactly the bytes they are given
//! - [`population`]: simulated clients by the thousand, whose truth is known
//! - [`torrent_file`]: random payloads and the private torrents that describe them
//! - [`clients`]: Transmission, aria2 and libtorrent
//! - [`verify_endpoint`]: a site's endpoint that can be slow, broken, lying or gone
//! - [`proxy`]: a stretch of network that can be slow, cut or dead
//! - [`hook_receiver`]: a site that takes webhooks, or does not
//! - [`process`], [`ports`], [`wait`]: children that never outlive their test, free ports, patience with a limit
//! - [`bencode`]: a second reading of the format, so that tests do not trust the code they check
//!
//! A failure here is a failed test, so most functions panic, with a message that says what was expected. Answers
//! that a test may want to look at, such as an error packet, are values.
//!
//! Nothing here skips: a program that is missing fails the test and says how to install it. What a machine may forbid
//! says so ([`SmallDisk::obstacle`]), and the test decides.

pub mod announce;
pub mod api;
pub mod bencode;
pub mod certificates;
pub mod clients;
pub mod companion;
pub mod hook_receiver;
pub mod http;
pub mod population;
pub mod ports;
pub mod process;
pub mod proxy;
pub mod reply;
pub mod server;
pub mod servers;
pub mod small_disk;
pub mod torrent_file;
pub mod udp;
pub mod verify_endpoint;
pub mod wait;
mod wall_clock;

pub use announce::Announce;
pub use api::{Api, ApiReply};
pub use certificates::Authority;
pub use companion::Companion;
pub use hook_receiver::{Hook, HookReceiver, Manner};
pub use http::{HttpReply, RawHttp};
pub use population::{Destination, Moved, Plan, Population, Standings, Truth};
pub use proxy::{Proxy, Weather};
pub use reply::{AnnounceReply, RetryIn, SwarmCounts};
pub use server::{Server, ServerBuilder};
pub use servers::{
    Fsync, MariaDbServer, PostgresServer, RedisBuilder, RedisCluster, RedisSentinel, RedisServer,
};
pub use small_disk::SmallDisk;
pub use torrent_file::TorrentFile;
pub use udp::RawUdp;
pub use verify_endpoint::{Behaviour, VerifyEndpoint};
pub use wait::{eventually, eventually_equal, is_held_to_promises, promised};

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
