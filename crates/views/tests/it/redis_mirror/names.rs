//! Torrents that change their infohash, are removed, or return with another id.

use std::sync::Arc;

use journal::ViewError;
use views::RedisMirror;

use super::fixture::{
    Announce, Backend, Fixture, MutableDirectory, apply_to, info_hash, leeches, mirror_with_directory,
    peer_id, seeds,
};

struct Site {
    fixture: Fixture,
    directory: Arc<MutableDirectory>,
    mirror: RedisMirror,
}

impl Site {
    fn on(backend: Backend) -> Site {
        let fixture = Fixture::on(backend);
        let directory = Arc::new(MutableDirectory::default());
        let mirror = mirror_with_directory(&fixture, directory.clone());
        Site { fixture, directory, mirror }
    }

    async fn apply(&self, announces: &[Announce]) -> Result<(), ViewError> {
        apply_to(&self.mirror, &self.fixture.arrivals(announces)).await
    }

    async fn sweep(&self) {
        while !self.mirror.reconcile_step().await.unwrap().is_round_complete {}
    }

    async fn counts(&self, named: u64) -> Vec<String> {
        self.fixture.value_of(&format!("t:t:{}", info_hash(named))).await
    }

    async fn members(&self, named: u64) -> usize {
        self.fixture.value_of(&format!("t:tpeers:{}", info_hash(named))).await.len()
    }
}

#[tokio::test]
async fn m4_a_reused_infohash_belongs_to_the_new_torrent() {
    let site = Site::on(Backend::single());
    site.directory.put(1, info_hash(1));
    site.apply(&[leeches(1, 1, 0), seeds(2, 1, 0)]).await.unwrap();
    assert_eq!(site.counts(1).await, ["announces=2", "leechers=1", "seeders=1", "snatches=0"]);
    site.directory.remove(1);
    site.directory.put(9, info_hash(1));
    let again = leeches(3, 9, 10).with_info_hash(1);
    site.apply(&[again]).await.unwrap();
    assert_eq!(site.counts(1).await, ["announces=1", "leechers=1", "seeders=0", "snatches=0"]);
    assert_eq!(
        site.fixture.value_of(&format!("t:tpeers:{}", info_hash(1))).await,
        [peer_id(again.peer).to_string()]
    );
    // Further entries of the old torrent do not affect the new one.
    site.apply(&[seeds(2, 1, 20), leeches(1, 1, 20).is_removed()]).await.unwrap();
    assert_eq!(site.counts(1).await[1..], ["leechers=1", "seeders=0", "snatches=0"]);
    site.apply(&[seeds(2, 1, 30).is_removed()]).await.unwrap();
    site.sweep().await;
    assert_eq!(site.counts(1).await[1..], ["leechers=1", "seeders=0", "snatches=0"]);
    assert_eq!(site.members(1).await, 1);
    assert_eq!(site.fixture.value_of("t:i:leechers").await, ["9=1"], "the old torrent is removed");
    assert_eq!(site.fixture.value_of("t:stats:announces").await, ["4"], "announces stay counted");
    assert_eq!(site.fixture.value_of("t:u:1:incomplete").await, [""; 0]);
}

#[tokio::test]
async fn m4_a_torrent_with_another_infohash_has_keys_under_that_one_only() {
    for backend in [Backend::single(), Backend::cluster()] {
        let site = Site::on(backend);
        site.directory.put(1, info_hash(1));
        site.apply(&[leeches(1, 1, 0), seeds(2, 1, 0)]).await.unwrap();
        site.directory.put(1, info_hash(7));
        site.apply(&[leeches(3, 1, 10).with_info_hash(7), leeches(1, 1, 20).is_removed()]).await.unwrap();
        assert_eq!(site.counts(1).await, [""; 0]);
        assert_eq!(site.counts(7).await, ["announces=3", "leechers=1", "seeders=1", "snatches=0"]);
        assert_eq!(site.members(7).await, 2);
        site.apply(&[seeds(2, 1, 20).is_removed()]).await.unwrap();
        assert_eq!(site.counts(7).await, ["announces=3", "leechers=1", "seeders=0", "snatches=0"]);
        assert_eq!((site.members(1).await, site.members(7).await), (0, 1));
    }
}

#[tokio::test]
async fn m8_removal_by_the_site_is_no_hit_and_run_and_removes_the_torrent_from_all_sets() {
    for backend in [Backend::single(), Backend::cluster()] {
        let site = Site::on(backend);
        site.directory.put(1, info_hash(1));
        site.directory.put(2, info_hash(2));
        let population = [leeches(1, 1, 0), leeches(1, 2, 0), seeds(2, 1, 0), leeches(3, 2, 0)];
        site.apply(&population).await.unwrap();
        site.directory.remove(1);
        site.sweep().await;
        assert_eq!(site.fixture.value_of("t:i:leechers").await, ["1=1", "2=2"], "not while a peer is active");
        site.apply(&[leeches(1, 1, 5).is_removed(), seeds(2, 1, 5).is_removed()]).await.unwrap();
        assert_eq!(site.fixture.value_of("t:u:1:hnr").await, [""; 0]);
        site.apply(&[leeches(3, 2, 5).is_removed()]).await.unwrap();
        assert_eq!(site.fixture.value_of("t:u:3:hnr").await, [""; 0], "a disabled user");
        site.sweep().await;
        assert_eq!(site.mirror.counters().removed_torrents.get(), 1);
        assert_eq!(site.fixture.value_of("t:u:1:incomplete").await, ["2"]);
        assert_eq!(site.fixture.value_of("t:u:2:complete").await, [""; 0]);
        assert_eq!(site.fixture.value_of("t:i:leechers").await, ["2=1"]);
        assert_eq!((site.counts(1).await.len(), site.members(1).await), (0, 0));
        assert_eq!(site.fixture.value_of("t:stats:seeders").await, ["0"]);
        // A user who returns after a removal and then stops is a hit and run.
        site.apply(&[leeches(3, 2, 50), leeches(3, 2, 60).stops()]).await.unwrap();
        assert_eq!(site.fixture.value_of("t:u:3:hnr").await, ["2"]);
    }
}
