//! Warm start: time to rebuild the swarms from the journal and from a snapshot.
//!
//! One node receives every peer once and stores the entries in Redis. A second one has only the journal. It writes a
//! snapshot, which a third one loads, with no journal entries after it.

use std::sync::Arc;
use std::time::Duration;

use access::Gate;
use anyhow::ensure;
use domain::clock::Stopwatch;
use journal::{EntryId, Lane};
use simulate::load::Peers;
use swarm::PeerLists;
use testkit::RedisServer;
use tracker::snapshot::{self, FILE_NAME};

use super::node::{self, Node};
use crate::load::BATCH;
use crate::progress::Stage;
use crate::run::{Figure, Run, new_folder};
use crate::store::StoreKind;
use crate::swarms::count_text;

/// Pause while the queue is full.
const QUEUE_PAUSE: Duration = Duration::from_millis(1);

pub fn warm_start(run: &mut Run<'_>) -> anyhow::Result<()> {
    StoreKind::Redis.need()?;
    let server = run.cores.on_server(RedisServer::start)?;
    let folder = new_folder()?;
    let file = folder.path().join(FILE_NAME);
    let peers = Peers::new(run.sizes.node_shape);
    let gate = node::gate_of(&peers);
    fill(&server, &gate, &peers)?;
    let stage = Stage::begin("warm start", 1);
    let from_journal = Node::open(&server, &gate)?;
    let journal_s = timed(|| from_journal.catch_up(None))?.0;
    must_have_all(&from_journal, &peers)?;
    let read_s = timed(|| read_and_drop(&from_journal))?.0;
    let (write_s, written) = timed(|| Ok(snapshot::write(&file, &from_journal.tracker)?))?;
    drop(from_journal);
    let from_snapshot = Node::open(&server, &gate)?;
    let snapshot_s = timed(|| {
        let found = snapshot::read(&file, &from_snapshot.tracker);
        from_snapshot.catch_up(found.map(|found| found.cursor))
    })?;
    let snapshot_s = snapshot_s.0;
    must_have_all(&from_snapshot, &peers)?;
    stage.end(&format!("{journal_s:.2} s from the journal, {snapshot_s:.2} s from a snapshot"));

    let per_s = |seconds: f64| f64::from(peers.count()) / seconds.max(1e-9);
    let count = count_text(peers.count());
    run.add("warm start from the journal, {} peers", Figure::of(journal_s).with(count.as_str()));
    run.add("warm start from the journal", Figure::of(per_s(journal_s)).over(per_s(read_s)));
    let note = format!(
        "read twice, first for its checksum; then the journal behind it, where nothing was; {:.1} bytes of file per peer",
        written.bytes as f64 / f64::from(peers.count().max(1))
    );
    let figure = Figure::of(snapshot_s).with(count.as_str());
    run.add("warm start from a snapshot, {} peers", figure.noting(note));
    run.add("warm start from a snapshot", Figure::of(per_s(snapshot_s)));
    let figure = Figure::of(write_s).with(count);
    run.add(
        "writing a snapshot, {} peers",
        figure.noting("until it is on the disk; announces go on meanwhile"),
    );
    Ok(())
}

fn timed<T>(act: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<(f64, T)> {
    let watch = Stopwatch::start();
    let outcome = act()?;
    Ok((watch.elapsed().as_secs_f64(), outcome))
}

fn fill(server: &RedisServer, gate: &Arc<Gate>, peers: &Peers) -> anyhow::Result<()> {
    let mut stage = Stage::begin("warm start: every peer announces once", peers.count().into());
    let (tracker, tasks) = Node::open(server, gate)?.run();
    let mut lists = PeerLists::default();
    let announced = (0..peers.count()).try_for_each(|number| {
        while !tasks.has_room() {
            std::thread::sleep(QUEUE_PAUSE);
        }
        stage.at(number.into());
        node::announce(&tracker, &peers.get(number), &mut lists)
    });
    tasks.end()?;
    announced?;
    stage.end(&format!("{} peers", peers.count()));
    Ok(())
}

/// The share of reading the journal.
fn read_and_drop(node: &Node) -> anyhow::Result<()> {
    let mut after = EntryId::ZERO;
    loop {
        match node.runtime.block_on(node.journal.list(Lane::Traffic, after, BATCH))?.last() {
            Some(last) => after = last.id,
            None => return Ok(()),
        }
    }
}

fn must_have_all(node: &Node, peers: &Peers) -> anyhow::Result<()> {
    let (found, expected) = (node.tracker.swarms().totals().peers, peers.count());
    ensure!(found == expected as usize, "a warm start brought back {found} of {expected} peers");
    Ok(())
}
