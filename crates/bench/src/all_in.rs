//! Announces all in: a server with everything it uses on one core, the load on the other. A round ends when every view
//! has applied the last entry, so that all the work of an announce is in its round. Joins (first announces, answered
//! after they are stored) and heartbeats apart, each against a fixed-response server in alternating rounds.
//!
//! Also the time of the listener threads alone, without views, and other trackers under the same load (`--against`).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use domain::clock::Stopwatch;
use serde::Serialize;
use simulate::announce::PasskeyIn;
use simulate::load::{LoadResult, Peers, Shape, Until};

use crate::against::{self, PeerTracker};
use crate::baseline::{self, FixedReply};
use crate::measure::median;
use crate::process::ThreadTimes;
use crate::progress::Stage;
use crate::run::{Figure, Run, new_folder};
use crate::server::{Metrics, Server, ServerPlan, fill_database};
use crate::sockets::{Announcer, Protocol, Target};
use crate::store::{Store, StoreKind};

/// Timeout of the views after a round.
const DRAIN_LIMIT: Duration = Duration::from_secs(120);
/// Interval of looks at the metrics while views catch up.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// A server, and what it is measured with.
struct Variant {
    name: &'static str,
    store: StoreKind,
    settings: &'static str,
    protocol: Protocol,
}

const fn over_http(name: &'static str, store: StoreKind, settings: &'static str) -> Variant {
    Variant { name, store, settings, protocol: Protocol::Http }
}

const VARIANTS: [Variant; 6] = [
    over_http("embedded", StoreKind::Embedded, ""),
    Variant { protocol: Protocol::Udp, ..over_http("embedded over UDP", StoreKind::Embedded, "") },
    over_http("Redis without mirror", StoreKind::Redis, "mirror.enabled = false\n"),
    over_http("Redis with mirror", StoreKind::Redis, ""),
    over_http("PostgreSQL", StoreKind::PostgreSql, ""),
    over_http("MariaDB", StoreKind::MariaDb, ""),
];

/// The peers of a run: each announces for the first time in one round of joins.
fn population(run: &Run<'_>) -> Peers {
    let Shape { torrents, peers } = run.sizes.all_in_shape;
    Peers::new(Shape { torrents: torrents * run.sizes.all_in_rounds, peers: peers * run.sizes.all_in_rounds })
}

pub fn measure(run: &mut Run<'_>) -> anyhow::Result<()> {
    let peers = population(run);
    for variant in &VARIANTS {
        measure_variant(run, variant, &peers).with_context(|| variant.name.to_owned())?;
    }
    Ok(())
}

fn measure_variant(run: &mut Run<'_>, variant: &Variant, peers: &Peers) -> anyhow::Result<()> {
    let Some(binary) = run.binary().map(Path::to_owned) else { return Ok(()) };
    let store = variant.store.start(run.cores)?;
    let folder = new_folder()?;
    let plan = ServerPlan {
        binary: &binary,
        data: folder.path(),
        cores: run.cores,
        roles: None,
        settings: store.settings() + variant.settings,
    };
    let mut side = Side::start(&plan, &store, variant, peers)?;
    for kind in ["joins", "heartbeats"] {
        let name = format!("all in, {}, {kind}", variant.name);
        let rounds = side.rounds(run, &name)?;
        run.add(&name, rounds.figure().noting(rounds.note()));
        run.detail(&name, rounds);
    }
    Ok(())
}

/// The time of the listener's thread alone, of a server that runs no view.
pub fn listener(run: &mut Run<'_>) -> anyhow::Result<()> {
    let Some(binary) = run.binary().map(Path::to_owned) else { return Ok(()) };
    let peers = population(run);
    for protocol in [Protocol::Http, Protocol::Udp] {
        let variant = Variant { protocol, ..over_http("listener", StoreKind::Embedded, "") };
        let name = format!("{} listener", protocol.name());
        let store = variant.store.start(run.cores)?;
        let folder = new_folder()?;
        let roles = Some("tracker,site");
        let (data, cores, settings) = (folder.path(), run.cores, String::new());
        let plan = ServerPlan { binary: &binary, data, cores, roles, settings };
        let mut side = Side::start(&plan, &store, &variant, &peers)?;
        side.join_all(run, &name)?;
        let rounds = side.rounds(run, &name)?;
        let thread = protocol.name().to_lowercase();
        let of_thread = |round: &Round| round.part_ns(&thread);
        let limit = rounds.limit_ns();
        let ours = median(rounds.ours.iter().map(of_thread));
        let note = format!(
            "by processor time: {ours:.0} ns of the thread `{thread}`, {limit:.0} ns of the limit; replies of {:.0} bytes \
             on average",
            rounds.reply_bytes
        );
        let figure = Figure::of(1e9 / ours.max(1.0)).against(1e9 / limit.max(1.0), limit / ours.max(1.0));
        run.add(&format!("{name}, announces per second of its thread"), figure.noting(note));
        run.detail(&name, rounds);
    }
    Ok(())
}

/// Other trackers, by the same load.
pub fn against(run: &mut Run<'_>) -> anyhow::Result<()> {
    if run.options.against.is_empty() {
        return Ok(());
    }
    let peers = population(run);
    for peer in &run.options.against {
        let folder = new_folder()?;
        against::write_data(&peers, folder.path())?;
        let mut tracker = PeerTracker::start(run, peer, folder.path())?;
        for target in tracker.targets(&peers)? {
            let name = format!("{} over {}", peer.name, target.protocol.name());
            let mut side = Side {
                announcer: Announcer::new(target, &peers, PasskeyIn::Query),
                peers: &peers,
                processes: vec![(tracker.process.pid(), None)],
                site: None,
                accepted: 0,
                _server: None,
            };
            side.join_all(run, &name)?;
            let rounds = side.rounds(run, &name)?;
            let closes = if target.keep_alive { "" } else { "; it closes each connection after its reply" };
            let figure = rounds.figure().with(name.as_str()).noting(rounds.note() + closes);
            run.add("{}, heartbeats", figure);
            run.detail(&name, rounds);
        }
    }
    Ok(())
}

/// A server and its clients.
struct Side<'a> {
    peers: &'a Peers,
    announcer: Announcer,
    /// Processes whose time counts, with the name of the part if it is not that of the thread.
    processes: Vec<(u32, Option<&'static str>)>,
    /// Where the views' progress is read; none if there is nothing to wait for.
    site: Option<SocketAddr>,
    /// Since the start of the server.
    accepted: u64,
    _server: Option<Server>,
}

impl<'a> Side<'a> {
    fn start(
        plan: &ServerPlan<'_>,
        store: &Store,
        variant: &Variant,
        peers: &'a Peers,
    ) -> anyhow::Result<Side<'a>> {
        fill_database(peers, &store.database_url(plan.data))?;
        let server = Server::start_without_limits(plan)?;
        let target = Target { server: server.tracker, protocol: variant.protocol, keep_alive: true };
        let of_store = match variant.store {
            StoreKind::Embedded => "",
            StoreKind::Redis => "redis-server",
            StoreKind::PostgreSql => "postgres",
            StoreKind::MariaDb => "mariadbd",
        };
        let store = store.pid.map(|pid| (pid, Some(of_store)));
        Ok(Side {
            announcer: Announcer::new(target, peers, PasskeyIn::Path),
            peers,
            processes: [(server.process.pid(), None)].into_iter().chain(store).collect(),
            site: Some(server.site),
            accepted: 0,
            _server: Some(server),
        })
    }

    /// Every peer announces once, outside of any round.
    fn join_all(&mut self, run: &Run<'_>, name: &str) -> anyhow::Result<()> {
        let peers = self.peers.count();
        let mut stage = Stage::begin(format!("{name}: every peer announces once"), peers.into());
        for done in 0..run.sizes.all_in_rounds {
            self.round(run)?;
            stage.at(u64::from(done * run.sizes.all_in_shape.peers));
        }
        stage.end(&format!("{peers} peers"));
        Ok(())
    }

    /// Rounds of both sides in turn, with replies of the same size.
    fn rounds(&mut self, run: &Run<'_>, name: &str) -> anyhow::Result<Rounds> {
        let rounds = u64::from(run.sizes.all_in_rounds);
        let mut stage = Stage::begin(name.to_owned(), rounds);
        let mut measured = Rounds::default();
        let mut fixed: Option<(FixedReply, Announcer)> = None;
        for number in 0..rounds {
            let (ours, seen) = self.round(run)?;
            let (_, limit) = match &mut fixed {
                Some(fixed) => fixed,
                none => {
                    measured.reply_bytes = seen.reply_bytes_mean();
                    let (reply_bytes, protocol) =
                        (measured.reply_bytes.round() as usize, self.announcer.target().protocol);
                    let server = FixedReply::start(run.cores.server, protocol, reply_bytes)?;
                    let mut limit = self.announcer.to_fixed_reply(server.address, self.peers);
                    // Warm-up, as the tracker had.
                    limit.announce(run, Until::Elapsed(run.sizes.round / 4))?;
                    none.insert((server, limit))
                }
            };
            measured.ours.push(ours);
            let times = ThreadTimes::of(&[(std::process::id(), None)]);
            let seen = limit.announce(run, Until::Elapsed(run.sizes.round))?;
            let mut times = times.since();
            times.retain(|thread, _| thread == baseline::THREAD);
            measured.limit.push(Round::new(&seen, seen.elapsed, times));
            stage.at(number + 1);
        }
        stage.end(&measured.summary());
        Ok(measured)
    }

    /// As many announces as one round has, and the views' work for them.
    fn round(&mut self, run: &Run<'_>) -> anyhow::Result<(Round, LoadResult)> {
        let announces = Until::Announces(run.sizes.all_in_shape.peers.into());
        let times = ThreadTimes::of(&self.processes);
        let seen = self.announcer.announce(run, announces)?;
        self.accepted += seen.accepted();
        let watch = Stopwatch::start();
        if let Some(site) = self.site {
            wait_for_views(site, self.accepted)?;
        }
        Ok((Round::new(&seen, seen.elapsed + watch.elapsed(), times.since()), seen))
    }
}

/// Until the journal has so many entries at least, and every view has applied what the journal has.
pub fn wait_for_views(site: SocketAddr, accepted: u64) -> anyhow::Result<()> {
    let watch = Stopwatch::start();
    loop {
        let metrics = Metrics::read(site);
        let behind = behind(&metrics, accepted);
        if behind.is_empty() {
            return Ok(());
        }
        if watch.elapsed() > DRAIN_LIMIT {
            bail!("not applied within {DRAIN_LIMIT:?}: {behind:?}");
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Entries that the journal and each view still lack. A view of this process counts each entry in one of these.
fn behind(metrics: &Metrics, accepted: u64) -> BTreeMap<String, u64> {
    const TAKEN: [&str; 3] =
        ["rollcall_view_applied_total", "rollcall_view_dead_letters_total", "rollcall_view_skipped_total"];
    let stored = metrics.sum("rollcall_queue_stored_total") as u64;
    let mut taken = BTreeMap::from([("journal".to_owned(), stored)]);
    for (labels, value) in TAKEN.iter().flat_map(|name| metrics.series(name)) {
        *taken.entry(labels.to_owned()).or_default() += value as u64;
    }
    // An announce that was refused because the journal was slow may be stored after all.
    let all = accepted.max(stored);
    taken.into_iter().filter(|(_, taken)| *taken < all).map(|(view, taken)| (view, all - taken)).collect()
}

/// One round of one side.
#[derive(Clone, Debug, Default, Serialize)]
struct Round {
    /// Accepted announces per second.
    per_s: f64,
    /// Processor time for each of them, by part.
    parts_ns: BTreeMap<String, f64>,
    refused: u64,
    lost: u64,
}

impl Round {
    fn new(seen: &LoadResult, elapsed: Duration, times: BTreeMap<String, Duration>) -> Round {
        let each = |time: Duration| time.as_nanos() as f64 / seen.accepted().max(1) as f64;
        Round {
            per_s: seen.accepted() as f64 / elapsed.as_secs_f64().max(1e-9),
            parts_ns: times.into_iter().map(|(part, time)| (part, each(time))).collect(),
            refused: seen.failures,
            lost: seen.lost,
        }
    }

    fn part_ns(&self, part: &str) -> f64 {
        self.parts_ns.get(part).copied().unwrap_or_default()
    }

    fn total_ns(&self) -> f64 {
        self.parts_ns.values().sum()
    }
}

#[derive(Clone, Debug, Default, Serialize)]
struct Rounds {
    ours: Vec<Round>,
    limit: Vec<Round>,
    reply_bytes: f64,
}

impl Rounds {
    fn limit_ns(&self) -> f64 {
        median(self.limit.iter().map(Round::total_ns))
    }

    /// Announces per second, with the processor time of each part.
    fn figure(&self) -> Figure {
        let per_s = |rounds: &[Round]| median(rounds.iter().map(|round| round.per_s));
        let ratios =
            self.ours.iter().zip(&self.limit).map(|(ours, limit)| ours.per_s / limit.per_s.max(1e-9));
        let names: Vec<&String> =
            self.ours.first().into_iter().flat_map(|round| round.parts_ns.keys()).collect();
        let part =
            |name: &String| (name.clone(), median(self.ours.iter().map(|round| round.part_ns(name))) / 1e3);
        let figure = Figure::of(per_s(&self.ours)).against(per_s(&self.limit), median(ratios));
        figure.with_parts(names.into_iter().map(part).collect())
    }

    fn note(&self) -> String {
        let (limit_us, bytes) = (self.limit_ns() / 1e3, self.reply_bytes);
        let mut note = format!(
            "replies of {bytes:.0} bytes on average, for which the limit takes {limit_us:.1} us each"
        );
        let refused: u64 = self.ours.iter().map(|round| round.refused).sum();
        let lost: u64 = self.ours.iter().map(|round| round.lost).sum();
        for (count, what) in [(refused, "announces were told to retry"), (lost, "datagrams were lost")] {
            if count > 0 {
                note.push_str(&format!("; {count} {what}"));
            }
        }
        note
    }

    fn summary(&self) -> String {
        let ours_us = median(self.ours.iter().map(Round::total_ns)) / 1e3;
        let per_s = |rounds: &[Round]| median(rounds.iter().map(|round| round.per_s));
        format!(
            "{:.0}/s of {:.0}, {ours_us:.1} us of {:.1}",
            per_s(&self.ours),
            per_s(&self.limit),
            self.limit_ns() / 1e3
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_behind_until_each_has_taken_every_entry() {
        let page = "rollcall_queue_stored_total 5\nrollcall_view_applied_total{view=\"ledger\"} 4\n\
                    rollcall_view_dead_letters_total{view=\"ledger\"} 1\n\
                    rollcall_view_applied_total{view=\"activity\"} 2\n";
        let metrics = Metrics::parse(page);
        assert_eq!(behind(&metrics, 5), BTreeMap::from([("view=\"activity\"".to_owned(), 3)]));
        assert_eq!(behind(&metrics, 6).len(), 3);
        assert_eq!(behind(&metrics, 0).len(), 1);
    }
}
