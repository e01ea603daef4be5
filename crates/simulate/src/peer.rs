//! One BitTorrent client: its runs, and when it announces what.

use std::net::Ipv4Addr;
use std::time::Duration;

use domain::{AnnounceEvent, Passkey, PeerId};
use fastrand::Rng;

use crate::announce::Announce;
use crate::catalogue::{Purpose, passkey_of, rng_for};
use crate::clients::{ClientProgram, FORBIDDEN};
use crate::plan::Plan;
use crate::population::{SEEDERS_PERCENT, Torrents};
use crate::reply::AnnounceOutcome;
use crate::transport::Transport;
use crate::truth::{Moved, Truth};

/// Percentage of clients that choose another torrent after they left as seeders, while there are too few downloads.
const NEXT_TORRENT_PERCENT: u8 = 90;
/// Percentage of runs that end without `stopped`.
const VANISH_PERCENT: u8 = 25;
/// Upload rate that a cheating client claims, above any real bandwidth.
const CLAIMED_BYTES_PER_S: f64 = 900e6;
/// Delay before an announce without a reply is repeated.
const REPEAT_DELAY: Duration = Duration::from_secs(3);
/// Delay before a refused client tries another torrent.
const REFUSAL_DELAY: Duration = Duration::from_secs(20);

const SECOND: Duration = Duration::from_secs(1);
/// Every client has its own address, as far as loopback has them.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 16, 0, 1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behaviour {
    Honest,
    /// Claims uploads that did not happen.
    Cheating,
    /// Always refused: a forbidden client program or an unknown passkey.
    Refused,
    /// Seeds one torrent permanently.
    Uploader,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunEnd {
    Stop,
    Vanish,
}

/// The counters of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    uploaded: u64,
    downloaded: u64,
}

impl From<Totals> for Moved {
    fn from(totals: Totals) -> Moved {
        Moved { uploaded: totals.uploaded.into(), downloaded: totals.downloaded.into() }
    }
}

#[derive(Clone, Copy, Debug)]
struct Run {
    /// Whether its `started` was accepted.
    is_known: bool,
    counted_at: Duration,
    transferred: Totals,
    /// Totals that the server has accepted.
    accepted: Totals,
    /// The last announce has no reply, so the server may have accepted more.
    is_unconfirmed: bool,
    has_to_complete: bool,
    /// When the next announce is due.
    heartbeat_at: Duration,
    ends_at: Duration,
    run_end: RunEnd,
}

/// A client of one user, on one torrent at a time.
#[derive(Debug)]
pub(crate) struct Peer {
    user: u32,
    passkey: Passkey,
    program: ClientProgram,
    behaviour: Behaviour,
    transport: Transport,
    /// Its source address, over IPv4.
    address: Ipv4Addr,
    key: u32,
    port: u16,
    down_bytes_per_s: f64,
    up_bytes_per_s: f64,
    random: Rng,
    torrent: u32,
    left: u64,
    peer_id: PeerId,
    run: Option<Run>,
    asked: AnnounceEvent,
}

impl Peer {
    pub(crate) fn new(serial: u32, plan: &Plan, torrents: &mut Torrents) -> Peer {
        let mut random = rng_for(plan.seed, Purpose::Peer, serial);
        let behaviour = behaviour_of(serial, plan);
        let user = 1 + serial % plan.users();
        let program =
            if behaviour == Behaviour::Refused { FORBIDDEN } else { ClientProgram::choose(&mut random) };
        let torrent = match behaviour {
            Behaviour::Uploader => plan.torrents,
            _ => torrents.choose_torrent(user, &mut random),
        };
        let total = torrents.total_bytes(torrent);
        let seeds = behaviour != Behaviour::Honest || random.u8(..100) < SEEDERS_PERCENT;
        if !seeds {
            torrents.downloads += 1;
        }
        Peer {
            user,
            passkey: passkey_of(plan.seed, user),
            program,
            behaviour,
            transport: choose_transport(&mut random),
            address: Ipv4Addr::from_bits(FIRST_ADDRESS.to_bits() + serial),
            key: random.u32(1..),
            port: random.u16(10_000..60_000),
            down_bytes_per_s: log_uniform(0.4e6, 18e6, &mut random),
            up_bytes_per_s: log_uniform(0.2e6, 14e6, &mut random),
            // Initial downloads have any progress.
            left: if seeds { 0 } else { (total as f64 * random.f64()) as u64 + 1 },
            peer_id: program.peer_id(&mut random),
            random,
            torrent,
            run: None,
            asked: AnnounceEvent::None,
        }
    }

    pub(crate) fn begins_at(&mut self, ramp: Duration) -> Duration {
        ramp.mul_f64(self.random.f64())
    }

    pub(crate) fn route(&self) -> (Transport, Ipv4Addr) {
        (self.transport, self.address)
    }

    /// The announce that is due, or when the next one is.
    pub(crate) fn turn(&mut self, now: Duration, torrents: &mut Torrents) -> Result<Announce, Duration> {
        let Some(run) = &self.run else {
            self.start(now, torrents);
            return Ok(self.announce(AnnounceEvent::Started, torrents));
        };
        if !run.is_known {
            return Ok(self.announce(AnnounceEvent::Started, torrents));
        }
        let is_over = now >= run.ends_at;
        if is_over && run.run_end == RunEnd::Vanish && !run.is_unconfirmed {
            return Err(now + self.end_run(torrents));
        }
        self.count(now, torrents);
        let (has_to_complete, is_early) = match &self.run {
            Some(run) => (run.has_to_complete, now < run.heartbeat_at && !run.is_unconfirmed),
            None => (false, false),
        };
        let event = match (has_to_complete, is_over) {
            (true, _) => AnnounceEvent::Completed,
            (false, true) if self.run_end() == Some(RunEnd::Stop) => AnnounceEvent::Stopped,
            // The download was expected to be complete by now, and is not.
            (false, false) if is_early => return Err(self.next_action_at(now)),
            (false, _) => AnnounceEvent::None,
        };
        Ok(self.announce(event, torrents))
    }

    /// Applies the outcome of its announce. Returns when it acts next.
    pub(crate) fn handle_reply(
        &mut self,
        outcome: &AnnounceOutcome,
        now: Duration,
        torrents: &mut Torrents,
    ) -> Duration {
        let Some(run) = &mut self.run else { return now + REFUSAL_DELAY };
        match outcome {
            AnnounceOutcome::Lost => {
                run.is_unconfirmed = true;
                now + REPEAT_DELAY
            }
            AnnounceOutcome::Refused(_) => {
                let is_lasting = self.behaviour != Behaviour::Refused;
                self.end_run(torrents);
                if is_lasting {
                    self.choose_next_torrent(torrents);
                }
                now + REFUSAL_DELAY.mul_f64(0.5 + self.random.f64())
            }
            AnnounceOutcome::Accepted { interval, min_interval } => {
                run.accepted = run.transferred;
                run.is_unconfirmed = false;
                match self.asked {
                    AnnounceEvent::Started => self.is_known(now, (*interval, *min_interval), torrents),
                    AnnounceEvent::Stopped => now + self.end_run(torrents),
                    AnnounceEvent::Completed => {
                        self.has_completed(now, torrents);
                        self.next_turn(now, *interval)
                    }
                    AnnounceEvent::None => self.next_turn(now, *interval),
                }
            }
        }
    }

    /// Adds what the server has accepted of the current run.
    pub(crate) fn add_to(&self, truth: &mut Truth) {
        if let Some(run) = self.run.filter(|run| run.is_known)
            && self.behaviour != Behaviour::Cheating
        {
            truth.add(self.user.into(), self.torrent.into(), run.accepted.into());
        }
    }

    /// Whether the server may have accepted more than it replied to.
    pub(crate) fn is_unconfirmed(&self) -> bool {
        self.run.is_some_and(|run| run.is_unconfirmed)
    }

    fn run_end(&self) -> Option<RunEnd> {
        self.run.map(|run| run.run_end)
    }

    fn start(&mut self, now: Duration, torrents: &Torrents) {
        let run_end = if self.random.u8(..100) < VANISH_PERCENT { RunEnd::Vanish } else { RunEnd::Stop };
        let length = match self.behaviour {
            Behaviour::Uploader | Behaviour::Cheating => Duration::MAX / 4,
            // Most downloading clients stay until they are complete.
            _ if self.left > 0 && self.random.u8(..10) > 0 => Duration::MAX / 4,
            _ => torrents.paced(SECOND.mul_f64(log_uniform(120.0, 1_500.0, &mut self.random))),
        };
        self.peer_id = self.program.peer_id(&mut self.random);
        self.run = Some(Run {
            is_known: false,
            counted_at: now,
            transferred: Totals::default(),
            accepted: Totals::default(),
            is_unconfirmed: false,
            has_to_complete: false,
            heartbeat_at: now,
            ends_at: now.saturating_add(length),
            run_end,
        });
    }

    fn is_known(
        &mut self,
        now: Duration,
        (interval, min_interval): (Duration, Duration),
        torrents: &mut Torrents,
    ) -> Duration {
        let seeds = self.left == 0;
        torrents.swarm(self.torrent).join(seeds);
        let Some(run) = &mut self.run else { return now };
        (run.is_known, run.counted_at) = (true, now);
        // Leechers announce again as soon as they may; seeders are spread.
        let pause = match seeds {
            false => min_interval + SECOND.mul_f64(2.0 * self.random.f64()),
            true => min_interval + interval.saturating_sub(min_interval).mul_f64(self.random.f64()),
        };
        self.next_turn(now, pause.min(interval))
    }

    fn has_completed(&mut self, now: Duration, torrents: &mut Torrents) {
        torrents.swarm(self.torrent).leave(false);
        torrents.swarm(self.torrent).join(true);
        torrents.truth.complete(self.user.into(), self.torrent.into());
        // Some clients leave as soon as they are complete.
        let longest = if self.random.u8(..100) < 15 { 20.0 } else { 1_200.0 };
        let stays = torrents.paced(SECOND.mul_f64(log_uniform(10.0, longest, &mut self.random)));
        if let Some(run) = &mut self.run {
            run.has_to_complete = false;
            run.ends_at = now + stays;
        }
    }

    /// Updates its totals.
    fn count(&mut self, now: Duration, torrents: &mut Torrents) {
        let Some(run) = &mut self.run else { return };
        let length = now.saturating_sub(std::mem::replace(&mut run.counted_at, now));
        if self.left > 0 {
            let got = torrents.swarm(self.torrent).download(self.down_bytes_per_s, length, self.left);
            self.left -= got;
            run.transferred.downloaded += got;
            run.has_to_complete |= self.left == 0;
            if self.left == 0 {
                torrents.downloads = torrents.downloads.saturating_sub(1);
            }
        }
        let swarm = torrents.swarm(self.torrent);
        run.transferred.uploaded += match self.behaviour {
            Behaviour::Cheating => (CLAIMED_BYTES_PER_S * length.as_secs_f64()) as u64,
            _ => swarm.upload(self.up_bytes_per_s, length, 0.2 + 0.6 * self.random.f64()),
        };
    }

    fn next_turn(&mut self, now: Duration, interval: Duration) -> Duration {
        let jitter = 0.97 + 0.03 * self.random.f64();
        if let Some(run) = &mut self.run {
            run.heartbeat_at = now + interval.mul_f64(jitter).max(SECOND);
        }
        self.next_action_at(now)
    }

    /// When it acts next: the next announce, the expected end of its download, or the end of its run.
    fn next_action_at(&self, now: Duration) -> Duration {
        let Some(run) = &self.run else { return now + SECOND };
        let done = match self.left {
            0 => Duration::MAX,
            left => now + SECOND.mul_f64(left as f64 / self.down_bytes_per_s) + SECOND,
        };
        run.heartbeat_at.min(run.ends_at).min(done).max(now + SECOND)
    }

    /// Ends the run. Returns the pause before the next one.
    fn end_run(&mut self, torrents: &mut Torrents) -> Duration {
        if let Some(run) = self.run.take().filter(|run| run.is_known) {
            torrents.swarm(self.torrent).leave(self.left == 0 && !run.has_to_complete);
            if self.behaviour != Behaviour::Cheating {
                torrents.truth.add(self.user.into(), self.torrent.into(), run.accepted.into());
            }
        }
        if self.left == 0 && torrents.lacks_downloads() && self.random.u8(..100) < NEXT_TORRENT_PERCENT {
            self.choose_next_torrent(torrents);
        }
        torrents.paced(SECOND.mul_f64(log_uniform(8.0, 120.0, &mut self.random)))
    }

    fn choose_next_torrent(&mut self, torrents: &mut Torrents) {
        if self.behaviour == Behaviour::Honest {
            torrents.release(self.user, self.torrent);
            self.torrent = torrents.choose_torrent(self.user, &mut self.random);
            if self.left == 0 {
                torrents.downloads += 1;
            }
            self.left = torrents.total_bytes(self.torrent).max(1);
        }
    }

    fn announce(&mut self, event: AnnounceEvent, torrents: &Torrents) -> Announce {
        self.asked = event;
        let transferred = self.run.map(|run| run.transferred).unwrap_or_default();
        Announce {
            passkey: self.passkey,
            info_hash: torrents.info_hash(self.torrent),
            peer_id: self.peer_id,
            agent: self.program.agent,
            key: Some(self.key),
            port: self.port,
            uploaded: transferred.uploaded,
            downloaded: transferred.downloaded,
            left: self.left,
            event,
            numwant: if event == AnnounceEvent::Stopped { 0 } else { self.program.numwant },
        }
    }
}

/// The first peer uploads the torrent that awaits approval; with misbehaviour, the next ones cheat or are refused.
fn behaviour_of(serial: u32, plan: &Plan) -> Behaviour {
    match serial {
        0 if crate::catalogue::pending_torrent(plan).is_some() => Behaviour::Uploader,
        1 if plan.misbehaviour => Behaviour::Cheating,
        2 | 3 if plan.misbehaviour && plan.peers > 20 => Behaviour::Refused,
        _ => Behaviour::Honest,
    }
}

fn choose_transport(random: &mut Rng) -> Transport {
    match random.u8(..100) {
        0..55 => Transport::Http4,
        55..88 => Transport::Udp4,
        88..95 => Transport::Http6,
        _ => Transport::Udp6,
    }
}

/// Log-uniform between the two.
fn log_uniform(least: f64, most: f64, random: &mut Rng) -> f64 {
    least * (most / least).powf(random.f64())
}
