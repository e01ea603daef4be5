//! One BitTorrent client: its line, its runs, and what it says when.

use std::net::Ipv4Addr;
use std::time::Duration;

use domain::{AnnounceEvent, Passkey, PeerId};
use fastrand::Rng;

use crate::announce::Announce;
use crate::cast::Stage;
use crate::clients::{FORBIDDEN, Family};
use crate::plan::Plan;
use crate::register::{Purpose, dice, passkey_of};
use crate::truth::{Moved, Truth};

/// Of a hundred clients, how many have everything when the world begins.
const SEEDERS_PERCENT: u8 = 82;
/// Of a hundred clients that left, how many come back for something else.
const SOMETHING_ELSE_PERCENT: u8 = 45;
/// Of a hundred runs, how many end without a word.
const VANISH_PERCENT: u8 = 25;
/// What a cheat claims to upload, beyond what any line can carry.
const CLAIMED_BYTES_PER_S: f64 = 900e6;
/// How long before an announce that was not answered is repeated.
const BEFORE_REPEAT: Duration = Duration::from_secs(3);
/// How long before one that was refused tries something else.
const AFTER_REFUSAL: Duration = Duration::from_secs(20);

const SECOND: Duration = Duration::from_secs(1);

/// How a client reaches the tracker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Road {
    /// Over HTTP, from an address of its own.
    Http4(Ipv4Addr),
    /// Over UDP, from an address of its own.
    Udp4(Ipv4Addr),
    /// Over HTTP and IPv6; loopback has but one address.
    Http6,
    /// Over UDP and IPv6.
    Udp6,
}

/// What the server made of an announce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It counts.
    Accepted {
        /// When to come back.
        interval: Duration,
        /// When to come back at the earliest.
        min_interval: Duration,
    },
    /// It was refused, for this reason.
    Refused(String),
    /// Nobody knows: there was no answer.
    Lost,
}

/// Whether a client behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conduct {
    Honest,
    /// Claims what it did not upload.
    Cheats,
    /// Is refused whatever it says: its program is forbidden, or its passkey is nobody's.
    Unwelcome,
    /// Seeds one torrent for ever.
    Uploader,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Farewell {
    Stop,
    Vanish,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    /// Whether its `started` was accepted.
    is_known: bool,
    counted_at: Duration,
    moved: Moved,
    /// What the server has accepted of it.
    accepted: Moved,
    /// The last announce was not answered, so that the server may know more than we know it does.
    is_unsure: bool,
    has_to_complete: bool,
    /// When the server wants to hear of it again.
    heartbeat_at: Duration,
    ends_at: Duration,
    farewell: Farewell,
}

/// A client of one user, on one torrent at a time.
#[derive(Debug)]
pub(crate) struct Peer {
    user: u32,
    passkey: Passkey,
    family: Family,
    conduct: Conduct,
    road: Road,
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
    pub(crate) fn new(serial: u32, plan: &Plan, stage: &mut Stage) -> Peer {
        let mut random = dice(plan.seed, Purpose::Peer, serial);
        let conduct = conduct_of(serial, plan);
        let user = 1 + serial % plan.users();
        let family = if conduct == Conduct::Unwelcome { FORBIDDEN } else { Family::choose(&mut random) };
        let torrent = match conduct {
            Conduct::Uploader => plan.torrents,
            _ => stage.choose_torrent(user, &mut random),
        };
        let total = stage.total_bytes(torrent);
        let seeds = conduct != Conduct::Honest || random.u8(..100) < SEEDERS_PERCENT;
        Peer {
            user,
            passkey: passkey_of(plan.seed, user),
            family,
            conduct,
            road: road_of(serial, &mut random),
            key: random.u32(1..),
            port: random.u16(10_000..60_000),
            down_bytes_per_s: log_uniform(0.4e6, 18e6, &mut random),
            up_bytes_per_s: log_uniform(0.2e6, 14e6, &mut random),
            // Downloads are found at every stage of theirs.
            left: if seeds { 0 } else { (total as f64 * random.f64()) as u64 + 1 },
            peer_id: family.peer_id(&mut random),
            random,
            torrent,
            run: None,
            asked: AnnounceEvent::None,
        }
    }

    /// When it first does anything.
    pub(crate) fn begins_at(&mut self, ramp: Duration) -> Duration {
        ramp.mul_f64(self.random.f64())
    }

    pub(crate) fn road(&self) -> Road {
        self.road
    }

    /// It is its turn: what it announces, or when its next turn is.
    pub(crate) fn turn(&mut self, now: Duration, stage: &mut Stage) -> Result<Announce, Duration> {
        let Some(run) = &self.run else {
            self.start(now, stage);
            return Ok(self.announce(AnnounceEvent::Started, stage));
        };
        if !run.is_known {
            return Ok(self.announce(AnnounceEvent::Started, stage));
        }
        let is_over = now >= run.ends_at;
        if is_over && run.farewell == Farewell::Vanish && !run.is_unsure {
            return Err(now + self.end_run(stage));
        }
        self.count(now, stage);
        let (has_to_complete, is_early) = match &self.run {
            Some(run) => (run.has_to_complete, now < run.heartbeat_at && !run.is_unsure),
            None => (false, false),
        };
        let event = match (has_to_complete, is_over) {
            (true, _) => AnnounceEvent::Completed,
            (false, true) if self.farewell() == Some(Farewell::Stop) => AnnounceEvent::Stopped,
            // It hoped to be done by now, and is not.
            (false, false) if is_early => return Err(self.rest(now)),
            (false, _) => AnnounceEvent::None,
        };
        Ok(self.announce(event, stage))
    }

    /// What came of its announce; when its next turn is.
    pub(crate) fn hear(&mut self, heard: &Heard, now: Duration, stage: &mut Stage) -> Duration {
        let Some(run) = &mut self.run else { return now + AFTER_REFUSAL };
        match heard {
            Heard::Lost => {
                run.is_unsure = true;
                now + BEFORE_REPEAT
            }
            Heard::Refused(_) => {
                let is_lasting = self.conduct != Conduct::Unwelcome;
                self.end_run(stage);
                if is_lasting {
                    self.find_something_else(stage);
                }
                now + AFTER_REFUSAL.mul_f64(0.5 + self.random.f64())
            }
            Heard::Accepted { interval, min_interval } => {
                run.accepted = run.moved;
                run.is_unsure = false;
                match self.asked {
                    AnnounceEvent::Started => self.is_known(now, (*interval, *min_interval), stage),
                    AnnounceEvent::Stopped => now + self.end_run(stage),
                    AnnounceEvent::Completed => {
                        self.has_completed(now, stage);
                        self.next_turn(now, *interval)
                    }
                    AnnounceEvent::None => self.next_turn(now, *interval),
                }
            }
        }
    }

    /// Adds what the server has accepted of the run that goes on.
    pub(crate) fn add_to(&self, truth: &mut Truth) {
        if let Some(run) = self.run.filter(|run| run.is_known)
            && self.conduct != Conduct::Cheats
        {
            truth.add(self.user.into(), self.torrent.into(), run.accepted);
        }
    }

    /// Whether the server may know of more than was answered.
    pub(crate) fn is_unsure(&self) -> bool {
        self.run.is_some_and(|run| run.is_unsure)
    }

    fn farewell(&self) -> Option<Farewell> {
        self.run.map(|run| run.farewell)
    }

    fn start(&mut self, now: Duration, stage: &Stage) {
        let farewell = if self.random.u8(..100) < VANISH_PERCENT { Farewell::Vanish } else { Farewell::Stop };
        let length = match self.conduct {
            Conduct::Uploader | Conduct::Cheats => Duration::MAX / 4,
            // Whoever downloads mostly stays to the end.
            _ if self.left > 0 && self.random.u8(..10) > 0 => Duration::MAX / 4,
            _ => stage.paced(SECOND.mul_f64(log_uniform(120.0, 1_500.0, &mut self.random))),
        };
        self.peer_id = self.family.peer_id(&mut self.random);
        self.run = Some(Run {
            is_known: false,
            counted_at: now,
            moved: Moved::default(),
            accepted: Moved::default(),
            is_unsure: false,
            has_to_complete: false,
            heartbeat_at: now,
            ends_at: now.saturating_add(length),
            farewell,
        });
    }

    fn is_known(
        &mut self,
        now: Duration,
        (interval, min_interval): (Duration, Duration),
        stage: &mut Stage,
    ) -> Duration {
        let seeds = self.left == 0;
        stage.swarm(self.torrent).join(seeds);
        let Some(run) = &mut self.run else { return now };
        (run.is_known, run.counted_at) = (true, now);
        // Whoever wants something asks again as soon as it may; the others spread out.
        let pause = match seeds {
            false => min_interval + SECOND.mul_f64(2.0 * self.random.f64()),
            true => min_interval + interval.saturating_sub(min_interval).mul_f64(self.random.f64()),
        };
        self.next_turn(now, pause.min(interval))
    }

    fn has_completed(&mut self, now: Duration, stage: &mut Stage) {
        stage.swarm(self.torrent).leave(false);
        stage.swarm(self.torrent).join(true);
        stage.truth.complete(self.user.into(), self.torrent.into());
        // Some are gone as soon as they have it.
        let longest = if self.random.u8(..100) < 15 { 20.0 } else { 1_200.0 };
        let stays = stage.paced(SECOND.mul_f64(log_uniform(10.0, longest, &mut self.random)));
        if let Some(run) = &mut self.run {
            run.has_to_complete = false;
            run.ends_at = now + stays;
        }
    }

    /// Brings its counters up to date.
    fn count(&mut self, now: Duration, stage: &mut Stage) {
        let Some(run) = &mut self.run else { return };
        let length = now.saturating_sub(std::mem::replace(&mut run.counted_at, now));
        let swarm = stage.swarm(self.torrent);
        if self.left > 0 {
            let got = swarm.download(self.down_bytes_per_s, length, self.left);
            self.left -= got;
            run.moved.downloaded += got;
            run.has_to_complete |= self.left == 0;
        }
        run.moved.uploaded += match self.conduct {
            Conduct::Cheats => (CLAIMED_BYTES_PER_S * length.as_secs_f64()) as u64,
            _ => swarm.upload(self.up_bytes_per_s, length, 0.2 + 0.6 * self.random.f64()),
        };
    }

    fn next_turn(&mut self, now: Duration, interval: Duration) -> Duration {
        let jitter = 0.97 + 0.03 * self.random.f64();
        if let Some(run) = &mut self.run {
            run.heartbeat_at = now + interval.mul_f64(jitter).max(SECOND);
        }
        self.rest(now)
    }

    /// Until when it has nothing to say: the next heartbeat, the end of its download if all goes well, or its own.
    fn rest(&self, now: Duration) -> Duration {
        let Some(run) = &self.run else { return now + SECOND };
        let done = match self.left {
            0 => Duration::MAX,
            left => now + SECOND.mul_f64(left as f64 / self.down_bytes_per_s) + SECOND,
        };
        run.heartbeat_at.min(run.ends_at).min(done).max(now + SECOND)
    }

    /// Settles what it moved, and tells how long it stays away.
    fn end_run(&mut self, stage: &mut Stage) -> Duration {
        if let Some(run) = self.run.take().filter(|run| run.is_known) {
            stage.swarm(self.torrent).leave(self.left == 0 && !run.has_to_complete);
            if self.conduct != Conduct::Cheats {
                stage.truth.add(self.user.into(), self.torrent.into(), run.accepted);
            }
        }
        if self.left == 0 && self.random.u8(..100) < SOMETHING_ELSE_PERCENT {
            self.find_something_else(stage);
        }
        stage.paced(SECOND.mul_f64(log_uniform(8.0, 120.0, &mut self.random)))
    }

    fn find_something_else(&mut self, stage: &mut Stage) {
        if self.conduct == Conduct::Honest {
            stage.give_back(self.user, self.torrent);
            self.torrent = stage.choose_torrent(self.user, &mut self.random);
            self.left = stage.total_bytes(self.torrent);
        }
    }

    fn announce(&mut self, event: AnnounceEvent, stage: &Stage) -> Announce {
        self.asked = event;
        let moved = self.run.map(|run| run.moved).unwrap_or_default();
        Announce {
            passkey: self.passkey,
            info_hash: stage.info_hash(self.torrent),
            peer_id: self.peer_id,
            agent: self.family.agent,
            key: self.key,
            port: self.port,
            uploaded: moved.uploaded,
            downloaded: moved.downloaded,
            left: self.left,
            event,
            numwant: if event == AnnounceEvent::Stopped { 0 } else { self.family.numwant },
        }
    }
}

/// The first peer uploads what awaits approval; with mischief, the next ones are the cheat and the unwelcome.
fn conduct_of(serial: u32, plan: &Plan) -> Conduct {
    match serial {
        0 if crate::register::pending_torrent(plan).is_some() => Conduct::Uploader,
        1 if plan.mischief => Conduct::Cheats,
        2 | 3 if plan.mischief && plan.peers > 20 => Conduct::Unwelcome,
        _ => Conduct::Honest,
    }
}

/// Every client has an address of its own, as far as loopback has them.
fn road_of(serial: u32, random: &mut Rng) -> Road {
    let address = Ipv4Addr::from_bits(Ipv4Addr::new(127, 16, 0, 1).to_bits() + serial);
    match random.u8(..100) {
        0..55 => Road::Http4(address),
        55..88 => Road::Udp4(address),
        88..95 => Road::Http6,
        _ => Road::Udp6,
    }
}

/// Between the two, each order of magnitude as likely as any other.
fn log_uniform(least: f64, most: f64, random: &mut Rng) -> f64 {
    least * (most / least).powf(random.f64())
}
