//! The section of the tracker's Redis layout: a table of names, long enough for a file of its own.

use keyspace::{MirrorKey, MirrorNames, MirrorTemplates, Mode, SiteChannels, Trouble};

use super::names::Name;
use super::section::config_section;

const DAY_S: u32 = 24 * 60 * 60;

fn name(text: &str) -> Name {
    Name::new(text).expect("a default is a name")
}

config_section! {
    /// The tracker's layout in Redis, for programs that read it: docs/redis.md tells what each key holds. A key_… may
    /// spell a name otherwise, with <infohash>, <torrent>, <peer_id>, <user>, <passkey> or <prefix> in it; "" means the
    /// usual name. On a Redis cluster all keys of a torrent must have {<torrent>} in them.
    Mirror as "mirror" {
        /// Whether the layout is kept. Needs Redis; without it there is none.
        enabled: bool = true,
        /// The consumer group of the layout.
        group: Name = name("mirror"),
        /// Entries in a batch. Changes while the server runs.
        batch_max: u32 [1..=10_000] = 1000,
        /// A peer that did not announce for this long is gone. 0 means tracker.announce_interval_s +
        /// tracker.peer_grace_s + 10. One that was told a longer interval is waited for longer.
        reap_after_s: u32 [0..=7 * DAY_S] = 0,
        /// Hit and run: who left a torrent after less than this. 0 turns it off.
        hit_and_run_active_s: u32 [0..=3650 * DAY_S] = 14 * DAY_S,
        /// How long peers that left are remembered. 0 means for ever.
        inactive_keep_days: u32 [0..=3650] = 30,
        /// Torrents that are counted anew each second, so that no count stays wrong.
        reconcile_torrents_per_s: u32 [1..=100_000] = 100,
        /// The number of the torrent with an infohash (string). Its existence makes an infohash valid.
        key_info_hash: Option<Name> = None,
        /// The name of the client with a prefix (string).
        key_whitelist: Option<Name> = None,
        /// Who has a passkey (hash: user_id).
        key_user: Option<Name> = None,
        /// Counts of a torrent (hash: announces, leechers, seeders, snatches).
        key_torrent: Option<Name> = None,
        /// What is known of a peer (hash).
        key_peer: Option<Name> = None,
        /// Expires with the peer (string).
        key_peer_timeout: Option<Name> = None,
        /// The peers of a torrent that are there (set).
        key_torrent_peers: Option<Name> = None,
        /// The torrents that a peer is on (set).
        key_peer_torrents: Option<Name> = None,
        /// The torrents that a user is on (set).
        key_user_active: Option<Name> = None,
        /// The torrents that a user has (set).
        key_user_complete: Option<Name> = None,
        /// The torrents that a user has not got yet (set).
        key_user_incomplete: Option<Name> = None,
        /// The torrents that a user left too early (set).
        key_user_hnr: Option<Name> = None,
        /// How many leech (string).
        key_stats_leechers: Option<Name> = None,
        /// How many seed (string).
        key_stats_seeders: Option<Name> = None,
        /// Announces (string).
        key_stats_announces: Option<Name> = None,
        /// Scrapes (string).
        key_stats_scrapes: Option<Name> = None,
        /// Requests of any kind (string).
        key_stats_requests: Option<Name> = None,
        /// Torrents by leechers (sorted set).
        key_index_leechers: Option<Name> = None,
        /// Torrents by seeders (sorted set).
        key_index_seeders: Option<Name> = None,
        /// Torrents by snatches (sorted set).
        key_index_snatches: Option<Name> = None,
        /// The channel on which the site tells which infohash was added, changed or removed.
        channel_torrent: Name = name("t:ch:torrent"),
        /// The channel on which the site tells which passkey was added, changed or removed.
        channel_user: Name = name("t:ch:user"),
        /// The channel on which the site tells which prefix of clients was added or removed.
        channel_whitelist: Name = name("t:ch:whitelist"),
        /// The channel on which the tracker tells which peer fell silent.
        channel_expired: Name = name("t:ch:expired"),
    }
}

impl Mirror {
    /// The names of the layout on a Redis of this kind.
    pub fn names(&self, mode: Mode) -> Result<MirrorNames, Trouble> {
        let own = |key: MirrorKey| self.template(key).map(|name| (key, name.as_str().to_owned()));
        MirrorNames::new(&MirrorTemplates::new(MirrorKey::ALL.into_iter().filter_map(own)), mode)
    }

    /// The names of the channels.
    pub fn channels(&self) -> Result<SiteChannels, Trouble> {
        let channels = SiteChannels {
            torrent: self.channel_torrent.as_str().to_owned(),
            user: self.channel_user.as_str().to_owned(),
            whitelist: self.channel_whitelist.as_str().to_owned(),
            expired: self.channel_expired.as_str().to_owned(),
        };
        channels.check().map(|()| channels)
    }

    fn template(&self, key: MirrorKey) -> Option<&Name> {
        let template = match key {
            MirrorKey::InfoHash => &self.key_info_hash,
            MirrorKey::Whitelist => &self.key_whitelist,
            MirrorKey::User => &self.key_user,
            MirrorKey::Torrent => &self.key_torrent,
            MirrorKey::Peer => &self.key_peer,
            MirrorKey::PeerTimeout => &self.key_peer_timeout,
            MirrorKey::TorrentPeers => &self.key_torrent_peers,
            MirrorKey::PeerTorrents => &self.key_peer_torrents,
            MirrorKey::UserActive => &self.key_user_active,
            MirrorKey::UserComplete => &self.key_user_complete,
            MirrorKey::UserIncomplete => &self.key_user_incomplete,
            MirrorKey::UserHitAndRun => &self.key_user_hnr,
            MirrorKey::StatsLeechers => &self.key_stats_leechers,
            MirrorKey::StatsSeeders => &self.key_stats_seeders,
            MirrorKey::StatsAnnounces => &self.key_stats_announces,
            MirrorKey::StatsScrapes => &self.key_stats_scrapes,
            MirrorKey::StatsRequests => &self.key_stats_requests,
            MirrorKey::IndexLeechers => &self.key_index_leechers,
            MirrorKey::IndexSeeders => &self.key_index_seeders,
            MirrorKey::IndexSnatches => &self.key_index_snatches,
        };
        template.as_ref()
    }
}
