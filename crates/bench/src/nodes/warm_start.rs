//! Warm start: time to rebuild the swarms from the journal and from a snapshot.
//!
//! One node receives every peer once and stores the entries in Redis. A second one has only the journal. It writes a
//! snapshot, which a third one loads, with no journal entries after it.

use std::sync::Arc;
use std::time::Duration;

use access::Gate;
use domain::clock::Stopwatch;
use journal::{EntryId, Lane};
use serde::Serialize;
use swarm::PeerLists;
use tempfile::TempDir;
use testkit::RedisServer;
use tracker::snapshot::{self, FILE_NAME};

use super::node::{self, Node};
use crate::error::BenchError;
use crate::population::{Population, Shape};
use crate::process::Cores;
use crate::progress::Stage;
use crate::report::Row;

/// Entries read at a time, as the reader does.
const BATCH: usize = 1_000;
/// Pause while the queue is full.
const QUEUE_PAUSE: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, Serialize)]
pub struct WarmStart {
    pub peers: u32,
    pub torrents: u32,
    pub journal_s: f64,
    /// Reading the same entries without applying them.
    pub journal_read_s: f64,
    /// Writing the snapshot to disk.
    pub snapshot_write_s: f64,
    /// Size of the snapshot.
    pub snapshot_bytes: u64,
    /// From the snapshot, and the journal after it.
    pub snapshot_s: f64,
}

/// Measures with so many peers.
pub(super) fn measure(shape: Shape, cores: Cores) -> Result<WarmStart, BenchError> {
    let server = cores.on_server(RedisServer::start)?;
    let folder = TempDir::with_prefix("loadgen-").map_err(BenchError::io("making a folder"))?;
    let file = folder.path().join(FILE_NAME);
    let population = Population::new(shape);
    let gate = node::gate_of(&population);
    fill(&server, &gate, &population)?;
    let mut stage = Stage::begin("warm start", 4);
    let from_journal = Node::open(&server, &gate)?;
    let watch = Stopwatch::start();
    from_journal.catch_up(None)?;
    let journal_s = watch.elapsed().as_secs_f64();
    must_have_all(&from_journal, &population)?;
    stage.at(1);
    let journal_read_s = read_and_drop(&from_journal)?.as_secs_f64();
    stage.at(2);
    let watch = Stopwatch::start();
    let written = snapshot::write(&file, &from_journal.tracker)
        .map_err(|error| BenchError::Unreadable { what: "a snapshot".to_owned(), why: error.to_string() })?;
    let snapshot_write_s = watch.elapsed().as_secs_f64();
    drop(from_journal);
    stage.at(3);
    let from_snapshot = Node::open(&server, &gate)?;
    let watch = Stopwatch::start();
    let found = snapshot::read(&file, &from_snapshot.tracker);
    from_snapshot.catch_up(found.map(|found| found.cursor))?;
    let snapshot_s = watch.elapsed().as_secs_f64();
    must_have_all(&from_snapshot, &population)?;
    stage.end(&format!("{journal_s:.2} s from the journal, {snapshot_s:.2} s from a snapshot"));
    Ok(WarmStart {
        peers: population.peers(),
        torrents: population.torrents(),
        journal_s,
        journal_read_s,
        snapshot_write_s,
        snapshot_bytes: written.bytes,
        snapshot_s,
    })
}

fn fill(server: &RedisServer, gate: &Arc<Gate>, population: &Population) -> Result<(), BenchError> {
    let mut stage = Stage::begin("warm start: every peer announces once", population.peers().into());
    let (tracker, tasks) = Node::open(server, gate)?.run();
    let mut lists = PeerLists::default();
    let announced = (0..population.peers()).try_for_each(|number| {
        while !tasks.has_room() {
            std::thread::sleep(QUEUE_PAUSE);
        }
        stage.at(number.into());
        node::announce(&tracker, &population.peer(number), &mut lists)
    });
    tasks.end()?;
    announced?;
    stage.end(&format!("{} peers on {} torrents", population.peers(), population.torrents()));
    Ok(())
}

/// The share of reading the journal.
fn read_and_drop(node: &Node) -> Result<Duration, BenchError> {
    let watch = Stopwatch::start();
    let mut after = EntryId::ZERO;
    loop {
        let entries = node
            .runtime
            .block_on(node.journal.list(Lane::Traffic, after, BATCH))
            .map_err(|error| BenchError::Database(error.to_string()))?;
        match entries.last() {
            Some(last) => after = last.id,
            None => return Ok(watch.elapsed()),
        }
    }
}

fn must_have_all(node: &Node, population: &Population) -> Result<(), BenchError> {
    let (found, expected) = (node.tracker.swarms().totals().peers, population.peers());
    if found == expected as usize {
        return Ok(());
    }
    Err(BenchError::Database(format!("a warm start brought back {found} of {expected} peers")))
}

impl WarmStart {
    /// The lines of the table.
    pub(super) fn rows(&self) -> [Row; 5] {
        let per_s = |seconds: f64| f64::from(self.peers) / seconds.max(1e-9);
        let (from_journal, read_only) = (per_s(self.journal_s), per_s(self.journal_read_s));
        let count = match self.peers {
            many if many >= 1_000_000 => format!("{} million", many / 1_000_000),
            few => format!("{} thousand", few / 1_000),
        };
        [
            Row::plain(format!("warm start from the journal, {count} peers"), self.journal_s, "s"),
            Row::plain("warm start from the journal", from_journal, "peers/s")
                .against(read_only, from_journal / read_only)
                .noting("limit = the same entries read from Redis in batches of a thousand, and dropped"),
            Row::plain(format!("warm start from a snapshot, {count} peers"), self.snapshot_s, "s").noting(
                format!(
                    "read twice, first for its checksum; then the journal behind it, where nothing was; {:.1} bytes of \
                     file per peer",
                    self.snapshot_bytes as f64 / f64::from(self.peers.max(1))
                ),
            ),
            Row::plain("warm start from a snapshot", per_s(self.snapshot_s), "peers/s"),
            Row::plain(format!("writing a snapshot, {count} peers"), self.snapshot_write_s, "s")
                .noting("until it is on the disk; announces go on meanwhile"),
        ]
    }
}
