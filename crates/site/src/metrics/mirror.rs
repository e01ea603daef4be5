//! The tracker's layout in Redis on the page.

use std::sync::{Arc, OnceLock};

use keyspace::listen::ListenCounters;
use views::Mirror;

use super::site_keys::listening;
use super::{Page, Source};

/// The layout, and what was heard of peers that fell silent.
pub struct MirrorFigures {
    /// The layout.
    pub mirror: Arc<Mirror>,
    /// What was heard, once somebody listens.
    pub listening: Arc<OnceLock<Arc<ListenCounters>>>,
}

impl Source for MirrorFigures {
    fn encode(&self, page: &mut Page) {
        let counts = self.mirror.counters();
        page.gauge(
            "rollcall_mirror_active",
            "Whether this process keeps the layout in Redis. Of all processes one does; the others stand by.",
        )
        .is(u64::from(self.mirror.is_active()));
        page.counter(
            "rollcall_mirror_entries_total",
            "Entries that the layout was given, by what came of them.",
        )
        .with(&[("result", "applied")], counts.applied)
        .with(&[("result", "repeated")], counts.repeated)
        .with(&[("result", "unknown_torrent")], counts.unknown_torrent)
        .with(&[("result", "unknown_user")], counts.unknown_user)
        .with(&[("result", "ahead")], counts.ahead)
        .with(&[("result", "damaged")], counts.damaged);
        page.counter(
            "rollcall_mirror_reaped_total",
            "Peers that fell silent and were ended by an entry in the journal, by how they were found.",
        )
        .with(&[("found", "message")], counts.reaped_by_message)
        .with(&[("found", "sweep")], counts.reaped_by_sweep);
        page.gauge(
            "rollcall_mirror_last_round_timestamp_seconds",
            "When the sweep last finished a round over all torrents, in seconds since 1970. Zero before the first.",
        )
        .is(counts.last_round_at);
        for (name, help, count) in [
            (
                "rollcall_mirror_damaged_sets_total",
                "Keys of users and peers that hold something else, as often as they were to be written.",
                counts.damaged_sets,
            ),
            (
                "rollcall_mirror_checked_torrents_total",
                "Torrents that the sweep has counted anew.",
                counts.checked,
            ),
            (
                "rollcall_mirror_repaired_total",
                "Things in the layout that the sweep found wrong and mended; the log says which.",
                counts.mended,
            ),
            (
                "rollcall_mirror_reaping_deferred_total",
                "Peers whose silence could not be judged yet, because the layout was behind the journal.",
                counts.reaping_put_off,
            ),
            (
                "rollcall_mirror_watermarks_reset_total",
                "Torrents whose entries would have been taken for old ones, because the journal's ids went back.",
                counts.went_back,
            ),
            (
                "rollcall_mirror_removed_torrents_total",
                "Torrents that the site removed and whose keys were cleared away.",
                counts.forgotten,
            ),
            (
                "rollcall_mirror_rounds_total",
                "Rounds over all torrents that the sweep has finished.",
                counts.rounds,
            ),
        ] {
            page.counter(name, help).is(count);
        }
        if let Some(heard) = self.listening.get() {
            listening(&[("mirror", Arc::clone(heard))], page);
        }
    }
}
