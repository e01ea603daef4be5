//! One client: its counters, its runs, and the steps it takes. Pure: a step returns what to send.

use domain::{AnnounceEvent, InfoHash, Passkey, PeerId};
use fastrand::Rng;

use super::{Identities, Plan};
use crate::announce::Announce;
use crate::transport::Transport;
use crate::truth::Moved;

/// More in one step would exceed the tracker's rate limit (10 Gbit/s, with ten seconds of slack).
const STEP_BYTES_MAX: u64 = 6_000_000_000;

/// What a client sends in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Repeated until it is accepted.
    Deliver(Announce),
    /// Sent once; its reply is not read.
    LoseReply(Announce),
    /// Over both address families at once, so that the newer totals overtake the older ones.
    Overtake { newer: Announce, older: Announce },
}

/// A client of one user on one torrent.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) user: u64,
    pub(super) torrent: u64,
    /// None over both address families, as clients with two addresses announce.
    pub(super) transport: Option<Transport>,
    pub(super) is_running: bool,
    pub(super) has_announced: bool,
    pub(super) completions: u64,
    serial: u32,
    passkey: Passkey,
    info_hash: InfoHash,
    /// Kept over restarts; some clients send none.
    key: Option<u32>,
    /// Raised when it changes its peer id.
    generation: u32,
    left: u64,
    uploaded: u64,
    downloaded: u64,
    /// Transfers of earlier runs.
    settled: Moved,
}

impl Client {
    pub(super) fn new(serial: u32, plan: &Plan, identities: &Identities, random: &mut Rng) -> Self {
        let key = (random.u8(..10) > 0).then(|| random.u32(1..));
        let transport = match random.u8(..10) {
            0..=3 => Some(Transport::Http4),
            4 => Some(Transport::Http6),
            5 => Some(Transport::Udp4),
            6 => Some(Transport::Udp6),
            _ => None,
        };
        let is_seeder = random.bool();
        let (user, torrent) = (1 + u64::from(serial) % plan.users, random.u64(1..=plan.torrents));
        Client {
            serial,
            user,
            torrent,
            passkey: (identities.passkey_of)(user),
            info_hash: (identities.info_hash_of)(torrent),
            key,
            transport,
            generation: 0,
            left: if is_seeder { 0 } else { random.u64(1..20_000_000_000) },
            uploaded: 0,
            downloaded: 0,
            is_running: false,
            has_announced: false,
            settled: Moved::default(),
            completions: 0,
        }
    }

    pub(super) fn is_seeder(&self) -> bool {
        self.left == 0
    }

    /// Between steps, all counters have been accepted.
    pub(super) fn moved(&self) -> Moved {
        let mut moved = self.settled;
        moved.add(Moved { uploaded: self.uploaded.into(), downloaded: self.downloaded.into() });
        moved
    }

    /// Takes one random step.
    pub(super) fn step(&mut self, crashes: bool, random: &mut Rng) -> Vec<Request> {
        if !self.is_running {
            return vec![self.start()];
        }
        match random.u8(..100) {
            0..=9 => return self.stop().into_iter().collect(),
            10..=17 if self.left > 0 => return self.complete(),
            18..=23 if self.key.is_some() => {
                self.generation += 1;
                self.move_bytes(random);
            }
            24..=31 => {
                self.move_bytes(random);
                let heartbeat = self.announce(AnnounceEvent::None);
                return vec![Request::LoseReply(heartbeat), Request::Deliver(heartbeat)];
            }
            32..=35 if crashes && self.key.is_some() => {
                self.end_run();
                return vec![self.start()];
            }
            36..=43 => {}
            44..=59 if self.transport.is_none() => {
                self.move_bytes(random);
                let older = self.announce(AnnounceEvent::None);
                self.move_bytes(random);
                return vec![Request::Overtake { newer: self.announce(AnnounceEvent::None), older }];
            }
            _ => self.move_bytes(random),
        }
        vec![self.deliver(AnnounceEvent::None)]
    }

    fn start(&mut self) -> Request {
        self.generation += 1;
        (self.is_running, self.has_announced) = (true, true);
        self.deliver(AnnounceEvent::Started)
    }

    /// Announces `stopped`, if it runs.
    pub(super) fn stop(&mut self) -> Option<Request> {
        let stopped = self.is_running.then(|| self.deliver(AnnounceEvent::Stopped));
        self.end_run();
        stopped
    }

    fn end_run(&mut self) {
        self.settled = self.moved();
        (self.uploaded, self.downloaded) = (0, 0);
        self.is_running = false;
    }

    fn complete(&mut self) -> Vec<Request> {
        let mut requests = Vec::new();
        while self.left > STEP_BYTES_MAX {
            self.download(STEP_BYTES_MAX);
            requests.push(self.deliver(AnnounceEvent::None));
        }
        self.download(self.left);
        self.completions += 1;
        requests.push(self.deliver(AnnounceEvent::Completed));
        requests
    }

    fn deliver(&self, event: AnnounceEvent) -> Request {
        Request::Deliver(self.announce(event))
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
        self.uploaded += random.u64(..most);
        self.download(random.u64(..most).min(self.left.saturating_sub(1)));
    }

    fn download(&mut self, bytes: u64) {
        self.downloaded += bytes;
        self.left -= bytes;
    }

    fn announce(&self, event: AnnounceEvent) -> Announce {
        let mut peer_id = *b"-TR3000-............";
        peer_id[8..].copy_from_slice(format!("{:06x}{:06x}", self.serial, self.generation).as_bytes());
        Announce {
            passkey: self.passkey,
            info_hash: self.info_hash,
            peer_id: PeerId(peer_id),
            agent: "Transmission/3.00",
            key: self.key,
            // Replies are matched by port, so each client has its own.
            port: 20_000 + (self.serial % 10_000) as u16,
            uploaded: self.uploaded,
            downloaded: self.downloaded,
            left: self.left,
            event,
            numwant: 0,
        }
    }
}
