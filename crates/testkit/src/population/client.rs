//! One client: its counters, its runs, and the steps it takes.

use std::time::Duration;

use domain::{AnnounceEvent, Passkey, PeerId};
use fastrand::Rng;

use super::connections::Connections;
use super::truth::Moved;
use super::{info_hash_of, passkey_of};
use crate::Family;
use crate::announce::Announce;

/// More in one step would exceed the tracker's rate limit (10 Gbit/s, with ten seconds of slack).
const STEP_BYTES_MAX: u64 = 6_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Http(Family),
    Udp(Family),
    /// Over both address families at once, as clients with two addresses do.
    DualStack,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SharedState {
    pub(super) crashes: bool,
    pub(super) pause: Duration,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    uploaded: u64,
    downloaded: u64,
}

/// A client of one user on one torrent.
#[derive(Debug)]
pub(super) struct Client {
    serial: u32,
    user: u64,
    torrent: u64,
    /// Kept over restarts; some clients send none.
    key: Option<u32>,
    transport: Transport,
    /// Raised when it changes its peer id.
    generation: u32,
    left: u64,
    counters: Counters,
    is_running: bool,
    has_announced: bool,
    /// Transfers of earlier runs.
    settled: Moved,
    completions: u64,
}

impl Client {
    pub(super) fn new(serial: u32, users: u64, torrents: u64, random: &mut Rng) -> Self {
        let key = (random.u8(..10) > 0).then(|| random.u32(1..));
        let transport = match random.u8(..10) {
            0..=3 => Transport::Http(Family::V4),
            4 => Transport::Http(Family::V6),
            5 => Transport::Udp(Family::V4),
            6 => Transport::Udp(Family::V6),
            _ => Transport::DualStack,
        };
        let is_seeder = random.bool();
        Client {
            serial,
            user: 1 + u64::from(serial) % users,
            torrent: random.u64(1..=torrents),
            key,
            transport,
            generation: 0,
            left: if is_seeder { 0 } else { random.u64(1..20_000_000_000) },
            counters: Counters::default(),
            is_running: false,
            has_announced: false,
            settled: Moved::default(),
            completions: 0,
        }
    }

    pub(super) fn user(&self) -> u64 {
        self.user
    }

    pub(super) fn torrent(&self) -> u64 {
        self.torrent
    }

    pub(super) fn is_running(&self) -> bool {
        self.is_running
    }

    pub(super) fn is_seeder(&self) -> bool {
        self.left == 0
    }

    pub(super) fn has_announced(&self) -> bool {
        self.has_announced
    }

    pub(super) fn completions(&self) -> u64 {
        self.completions
    }

    /// Between steps, all counters have been accepted.
    pub(super) fn moved(&self) -> Moved {
        let mut moved = self.settled;
        moved.add(Moved {
            uploaded: self.counters.uploaded.into(),
            downloaded: self.counters.downloaded.into(),
        });
        moved
    }

    /// Takes one random step.
    pub(super) fn step(&mut self, connections: &mut Connections, shared: &SharedState, random: &mut Rng) {
        if !self.is_running {
            return self.start(connections);
        }
        match random.u8(..100) {
            0..=9 => self.stop(connections),
            10..=17 if self.left > 0 => self.complete(connections),
            18..=23 if self.key.is_some() => {
                self.generation += 1;
                self.move_bytes(random);
                self.heartbeat(connections);
            }
            24..=31 => {
                self.move_bytes(random);
                self.heartbeat_whose_reply_is_lost(connections);
            }
            32..=35 if shared.crashes && self.key.is_some() => {
                self.end_run();
                self.start(connections);
            }
            36..=43 => self.heartbeat(connections),
            44..=59 if self.transport == Transport::DualStack => {
                self.move_bytes(random);
                let older = self.announce(AnnounceEvent::None);
                self.move_bytes(random);
                connections.overtake(&self.passkey(), &self.announce(AnnounceEvent::None), &older);
            }
            _ => {
                self.move_bytes(random);
                self.heartbeat(connections);
            }
        }
    }

    fn start(&mut self, connections: &mut Connections) {
        self.generation += 1;
        self.counters = Counters::default();
        self.send(connections, AnnounceEvent::Started);
        self.is_running = true;
        self.has_announced = true;
    }

    /// Announces `stopped`, if it runs.
    pub(super) fn stop(&mut self, connections: &mut Connections) {
        if self.is_running {
            self.send(connections, AnnounceEvent::Stopped);
            self.end_run();
        }
    }

    fn end_run(&mut self) {
        self.settled = self.moved();
        self.counters = Counters::default();
        self.is_running = false;
    }

    fn complete(&mut self, connections: &mut Connections) {
        while self.left > STEP_BYTES_MAX {
            self.download(STEP_BYTES_MAX);
            self.heartbeat(connections);
        }
        self.download(self.left);
        self.send(connections, AnnounceEvent::Completed);
        self.completions += 1;
    }

    fn heartbeat(&self, connections: &mut Connections) {
        self.send(connections, AnnounceEvent::None);
    }

    fn heartbeat_whose_reply_is_lost(&self, connections: &mut Connections) {
        connections.lose_reply(&self.passkey(), &self.announce(AnnounceEvent::None), self.transport);
        self.heartbeat(connections);
    }

    fn send(&self, connections: &mut Connections, event: AnnounceEvent) {
        connections.deliver(&self.passkey(), &self.announce(event), self.transport);
    }

    /// Mostly much, sometimes little. The last byte comes with `completed`, whose reply waits for the journal: a
    /// heartbeat alone never makes a seeder.
    fn move_bytes(&mut self, random: &mut Rng) {
        let most = match random.u8(..4) {
            0 => 1_000,
            1 => 50_000_000,
            // An announce may contain two transfers.
            _ => STEP_BYTES_MAX / 2,
        };
        self.counters.uploaded += random.u64(..most);
        self.download(random.u64(..most).min(self.left.saturating_sub(1)));
    }

    fn download(&mut self, bytes: u64) {
        self.counters.downloaded += bytes;
        self.left -= bytes;
    }

    fn passkey(&self) -> Passkey {
        passkey_of(self.user)
    }

    fn announce(&self, event: AnnounceEvent) -> Announce {
        let mut peer_id = *b"-TR3000-............";
        peer_id[8..].copy_from_slice(format!("{:06x}{:06x}", self.serial, self.generation).as_bytes());
        Announce {
            peer_id: PeerId(peer_id),
            uploaded: self.counters.uploaded,
            downloaded: self.counters.downloaded,
            left: Some(self.left),
            event,
            numwant: Some(0),
            key: self.key,
            ..Announce::leecher(info_hash_of(self.torrent), self.serial)
        }
    }
}
