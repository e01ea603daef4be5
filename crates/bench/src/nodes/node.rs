//! A tracker without listeners: gate, swarms, queue, journal, reader.

use std::sync::Arc;
use std::thread::JoinHandle;

use access::Gate;
use anyhow::{anyhow, bail};
use domain::clock::SystemClock;
use domain::{Announce, Families};
use journal::{EntryId, Flusher, Journal, Queue};
use simulate::load::{Peer, Peers};
use swarm::PeerLists;
use testkit::RedisServer;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tracker::settings::LiveSettings;
use tracker::{Replication, Secrets, Tracker};

use crate::journal::{QUEUE_MAX, connect};
use crate::load::{address_of, key_of};
use crate::server::new_runtime;

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

/// A gate that knows all peers.
pub(super) fn gate_of(peers: &Peers) -> Arc<Gate> {
    let gate = Gate::default();
    for (user, passkey) in peers.users() {
        gate.put_user(user, passkey, true);
    }
    for (torrent, info_hash) in peers.torrents() {
        gate.put_torrent(torrent, info_hash, None, true);
    }
    Arc::new(gate)
}

impl Node {
    pub(super) fn open(server: &RedisServer, gate: &Arc<Gate>) -> anyhow::Result<Node> {
        let runtime = new_runtime()?;
        let journal = Arc::new(runtime.block_on(connect(server))?);
        let queue = Arc::new(Queue::new(QUEUE_MAX));
        let secrets = Secrets::draw()?;
        let sink = Arc::clone(&queue);
        let tracker =
            Tracker::new(Arc::clone(gate), Arc::new(SystemClock), sink, LiveSettings::default(), &secrets);
        Ok(Node { tracker: Arc::new(tracker), journal, runtime, queue })
    }

    /// Replays the journal after the cursor, as far back as live peers reach. Returns the number of entries.
    pub(super) fn catch_up(&self, cursor: Option<EntryId>) -> anyhow::Result<u64> {
        let mut replication = self.replication(cursor);
        let caught_up = self.runtime.block_on(replication.catch_up());
        if !caught_up.is_all {
            bail!("the journal was unreachable during a warm start");
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
    pub(super) fn end(self) -> anyhow::Result<()> {
        self.queue.close();
        let _ = self.stop.send(true);
        self.thread.join().map_err(|_| anyhow!("the tasks of a node ended early"))
    }
}

/// The first announce of a peer.
pub(super) fn announce(tracker: &Tracker, peer: &Peer, lists: &mut PeerLists) -> anyhow::Result<()> {
    let sent = &peer.announce;
    let announce = Announce {
        passkey: Some(sent.passkey),
        info_hash: sent.info_hash,
        peer_id: sent.peer_id,
        key: key_of(peer),
        ip: address_of(peer.number),
        port: sent.port,
        uploaded: 0,
        downloaded: 0,
        left: Some(sent.left),
        event: sent.event,
        numwant: None,
        families: Families::Both,
        now: tracker.now(),
    };
    let accepted = tracker.announce(&announce, lists).map_err(|halt| anyhow!("refused: {halt:?}"))?;
    if let Some(unrecorded) = accepted.unrecorded {
        unrecorded.record(None);
        tracker.hand_over();
    }
    Ok(())
}
