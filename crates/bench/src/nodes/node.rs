//! A tracker without listeners: gate, swarms, queue, journal, reader.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::thread::JoinHandle;

use access::Gate;
use domain::clock::SystemClock;
use domain::{Announce, AnnounceEvent, Families};
use journal::{EntryId, Flusher, Journal, Queue};
use swarm::PeerLists;
use testkit::RedisServer;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tracker::settings::LiveSettings;
use tracker::{Replication, Secrets, Tracker};

use crate::error::BenchError;
use crate::journal_append::{connect, new_runtime};
use crate::population::{self, Peer, Population};

/// The tracker's default.
const QUEUE_MAX: usize = 100_000;

/// One node with its own runtime.
pub(super) struct Node {
    pub(super) tracker: Arc<Tracker>,
    pub(super) journal: Arc<dyn Journal>,
    pub(super) runtime: Runtime,
    queue: Arc<Queue>,
}

/// The node's tasks, on their own thread.
pub(super) struct Tasks {
    queue: Arc<Queue>,
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

/// A gate that knows the whole population.
pub(super) fn gate_of(population: &Population) -> Arc<Gate> {
    let gate = Gate::default();
    for peer in 0..population.peers() {
        gate.put_user(population::user_id(peer), population::passkey(peer), true);
    }
    for torrent in 0..population.torrents() {
        gate.put_torrent(population::torrent_id(torrent), population::info_hash(torrent), None, true);
    }
    Arc::new(gate)
}

impl Node {
    pub(super) fn open(server: &RedisServer, gate: &Arc<Gate>) -> Result<Node, BenchError> {
        let runtime = new_runtime()?;
        let journal = Arc::new(runtime.block_on(connect(server))?);
        let queue = Arc::new(Queue::new(QUEUE_MAX));
        let secrets = Secrets::draw().map_err(|error| BenchError::Unreadable {
            what: "random bytes".to_owned(),
            why: error.to_string(),
        })?;
        let sink = Arc::clone(&queue);
        let tracker =
            Tracker::new(Arc::clone(gate), Arc::new(SystemClock), sink, LiveSettings::default(), &secrets);
        Ok(Node { tracker: Arc::new(tracker), journal, runtime, queue })
    }

    /// Replays the journal after the cursor, as far back as live peers reach. Returns the number of entries.
    pub(super) fn catch_up(&self, cursor: Option<EntryId>) -> Result<u64, BenchError> {
        let mut replication = self.replication(cursor);
        let caught_up = self.runtime.block_on(replication.catch_up());
        if !caught_up.is_all {
            return Err(BenchError::Database("the journal was away during a warm start".to_owned()));
        }
        Ok(caught_up.entries)
    }

    /// Stores its own entries and reads those of other nodes.
    pub(super) fn run(self) -> (Arc<Tracker>, Tasks) {
        let tracker = Arc::clone(&self.tracker);
        let queue = Arc::clone(&self.queue);
        let (stop, stopped) = watch::channel(false);
        let thread = std::thread::spawn(move || {
            let replication = self.replication(None);
            let name = self.tracker.node().0.to_string();
            let flusher = Flusher::new(self.queue, self.journal, name);
            self.runtime.block_on(async {
                let storing = tokio::spawn(flusher.run());
                replication.run(stopped).await;
                // The panic message is on the terminal already.
                let _ = storing.await;
            });
        });
        (tracker, Tasks { queue, stop, thread })
    }

    fn replication(&self, cursor: Option<EntryId>) -> Replication {
        Replication::new(Arc::clone(&self.tracker), Arc::clone(&self.journal), cursor)
    }
}

impl Tasks {
    /// Whether the queue is less than half full.
    pub(super) fn has_room(&self) -> bool {
        self.queue.occupied() < QUEUE_MAX / 2
    }

    /// Ends the tasks after everything is stored.
    pub(super) fn end(self) -> Result<(), BenchError> {
        self.queue.close();
        let _ = self.stop.send(true);
        self.thread.join().map_err(|_| BenchError::Database("the tasks of a node ended early".to_owned()))
    }
}

/// The first announce of a peer.
pub(super) fn announce(tracker: &Tracker, peer: &Peer, lists: &mut PeerLists) -> Result<(), BenchError> {
    let announce = Announce {
        passkey: Some(peer.passkey),
        info_hash: peer.info_hash,
        peer_id: peer.peer_id,
        key: peer.key,
        ip: IpAddr::V4(Ipv4Addr::from(0x0a00_0000 | peer.number)),
        port: peer.port,
        uploaded: 0,
        downloaded: 0,
        left: Some(peer.left),
        event: AnnounceEvent::Started,
        numwant: None,
        families: Families::Both,
        now: tracker.now(),
    };
    let accepted = tracker.announce(&announce, lists).map_err(|halt| BenchError::Refused {
        failures: 1,
        replies: 1,
        example: format!("{halt:?}"),
    })?;
    if let Some(unrecorded) = accepted.unrecorded {
        unrecorded.record(None);
    }
    Ok(())
}
