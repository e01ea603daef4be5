//! The keys of the tracker's Redis layout (M1 to M10), each from a template that a site may spell otherwise.
//!
//! On a single Redis the defaults are exactly the names of the requirements. On a cluster, what one script touches
//! shares a slot: all keys of a torrent by `{<torrent>}`, all statistics and indexes by one tag. A template that would
//! scatter them is refused at the start, with what to write instead.
//!
//! Private keys, which only we read and write, begin with `t:m:`.

mod template;

use std::fmt::Display;

use domain::{InfoHash, Passkey, PeerId, TorrentId, UserId};

use crate::error::Trouble;
use crate::settings::Mode;
use crate::slots::{slot_of, tag_of};
use template::{Blank, Template};

/// A kind of key that has a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MirrorKey {
    /// String: a torrent's number (M1).
    InfoHash,
    /// String: a client's name (M2).
    Whitelist,
    /// Hash: `user_id` (M3).
    User,
    /// Hash: `announces leechers seeders snatches` (M4).
    Torrent,
    /// Hash: what is known of a peer (M5).
    Peer,
    /// String that expires with the peer (M6).
    PeerTimeout,
    /// Set: the peers of a torrent that are there (M7).
    TorrentPeers,
    /// Set: the torrents that a peer is on (M7).
    PeerTorrents,
    /// Set: the torrents that a user is on (M8).
    UserActive,
    /// Set: the torrents that a user has (M8).
    UserComplete,
    /// Set: the torrents that a user has not got yet (M8).
    UserIncomplete,
    /// Set: the torrents that a user left too early (M8).
    UserHitAndRun,
    /// String: how many leech, over all torrents (M9).
    StatsLeechers,
    /// String: how many seed, over all torrents (M9).
    StatsSeeders,
    /// String: announces (M9).
    StatsAnnounces,
    /// String: scrapes (M9).
    StatsScrapes,
    /// String: requests of any kind (M9).
    StatsRequests,
    /// Sorted set: torrents by leechers (M10).
    IndexLeechers,
    /// Sorted set: torrents by seeders (M10).
    IndexSeeders,
    /// Sorted set: torrents by snatches (M10).
    IndexSnatches,
}

/// What is written where: the kind, its name in settings, the default on a single Redis and on a cluster.
const TABLE: [(MirrorKey, &str, &str, &str); 20] = [
    (MirrorKey::InfoHash, "info_hash", "t:info_hash:<infohash>", "t:info_hash:<infohash>"),
    (MirrorKey::Whitelist, "whitelist", "t:whitelist:<prefix>", "t:whitelist:<prefix>"),
    (MirrorKey::User, "user", "t:user:<passkey>", "t:user:<passkey>"),
    (MirrorKey::Torrent, "torrent", "t:t:<infohash>", "t:t:{<torrent>}:<infohash>"),
    (MirrorKey::Peer, "peer", "t:p:<torrent>:<peer_id>", "t:p:{<torrent>}:<peer_id>"),
    (
        MirrorKey::PeerTimeout,
        "peer_timeout",
        "t:ptimeout:<torrent>:<peer_id>",
        "t:ptimeout:{<torrent>}:<peer_id>",
    ),
    (MirrorKey::TorrentPeers, "torrent_peers", "t:tpeers:<infohash>", "t:tpeers:{<torrent>}:<infohash>"),
    (MirrorKey::PeerTorrents, "peer_torrents", "t:p:<peer_id>:torrents", "t:p:{<peer_id>}:torrents"),
    (MirrorKey::UserActive, "user_active", "t:u:<user>:active", "t:u:{<user>}:active"),
    (MirrorKey::UserComplete, "user_complete", "t:u:<user>:complete", "t:u:{<user>}:complete"),
    (MirrorKey::UserIncomplete, "user_incomplete", "t:u:<user>:incomplete", "t:u:{<user>}:incomplete"),
    (MirrorKey::UserHitAndRun, "user_hnr", "t:u:<user>:hnr", "t:u:{<user>}:hnr"),
    (MirrorKey::StatsLeechers, "stats_leechers", "t:stats:leechers", "{t}:stats:leechers"),
    (MirrorKey::StatsSeeders, "stats_seeders", "t:stats:seeders", "{t}:stats:seeders"),
    (MirrorKey::StatsAnnounces, "stats_announces", "t:stats:announces", "{t}:stats:announces"),
    (MirrorKey::StatsScrapes, "stats_scrapes", "t:stats:scrapes", "{t}:stats:scrapes"),
    (MirrorKey::StatsRequests, "stats_requests", "t:stats:requests", "{t}:stats:requests"),
    (MirrorKey::IndexLeechers, "index_leechers", "t:i:leechers", "{t}:i:leechers"),
    (MirrorKey::IndexSeeders, "index_seeders", "t:i:seeders", "{t}:i:seeders"),
    (MirrorKey::IndexSnatches, "index_snatches", "t:i:snatches", "{t}:i:snatches"),
];

/// The keys that one script of a torrent touches.
const OF_TORRENT: [MirrorKey; 4] =
    [MirrorKey::Torrent, MirrorKey::Peer, MirrorKey::PeerTimeout, MirrorKey::TorrentPeers];

/// The keys that one script of all torrents touches.
const OF_ALL: [MirrorKey; 8] = [
    MirrorKey::StatsLeechers,
    MirrorKey::StatsSeeders,
    MirrorKey::StatsAnnounces,
    MirrorKey::StatsScrapes,
    MirrorKey::StatsRequests,
    MirrorKey::IndexLeechers,
    MirrorKey::IndexSeeders,
    MirrorKey::IndexSnatches,
];

impl MirrorKey {
    /// Every kind, in the order of the requirements.
    pub const ALL: [MirrorKey; TABLE.len()] = {
        let mut all = [MirrorKey::InfoHash; TABLE.len()];
        let mut position = 0;
        while position < TABLE.len() {
            all[position] = TABLE[position].0;
            position += 1;
        }
        all
    };

    /// Its name in settings.
    pub const fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// Its template unless a site has its own.
    pub const fn default_template(self, mode: Mode) -> &'static str {
        match mode {
            Mode::Single | Mode::Sentinel => TABLE[self as usize].2,
            Mode::Cluster => TABLE[self as usize].3,
        }
    }

    /// What a template must have: of each group at least one. Without it, different things would be one key.
    fn needs(self) -> &'static [&'static [Blank]] {
        const TORRENT: &[Blank] = &[Blank::InfoHash, Blank::Torrent];
        match self {
            MirrorKey::InfoHash => &[&[Blank::InfoHash]],
            MirrorKey::Whitelist => &[&[Blank::Prefix]],
            MirrorKey::User => &[&[Blank::Passkey]],
            MirrorKey::Torrent | MirrorKey::TorrentPeers => &[TORRENT],
            // An expired key is all that is known of whom it was.
            MirrorKey::PeerTimeout => &[&[Blank::Torrent], &[Blank::PeerId]],
            MirrorKey::Peer => &[TORRENT, &[Blank::PeerId]],
            MirrorKey::PeerTorrents => &[&[Blank::PeerId]],
            MirrorKey::UserActive
            | MirrorKey::UserComplete
            | MirrorKey::UserIncomplete
            | MirrorKey::UserHitAndRun => &[&[Blank::User]],
            _ => &[],
        }
    }

    /// What a template may have: whatever is known where the key is written.
    fn allows(self, blank: Blank) -> bool {
        match self {
            MirrorKey::Torrent | MirrorKey::TorrentPeers => {
                matches!(blank, Blank::InfoHash | Blank::Torrent)
            }
            MirrorKey::Peer => matches!(blank, Blank::InfoHash | Blank::Torrent | Blank::PeerId),
            _ => self.needs().iter().any(|group| group.contains(&blank)),
        }
    }
}

/// Where a site spells keys otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirrorTemplates(Vec<(MirrorKey, String)>);

impl MirrorTemplates {
    /// The usual names, but for these. An empty template means the usual one.
    pub fn new(templates: impl IntoIterator<Item = (MirrorKey, String)>) -> Self {
        MirrorTemplates(templates.into_iter().filter(|(_, text)| !text.is_empty()).collect())
    }

    fn of(&self, key: MirrorKey, mode: Mode) -> &str {
        let own = self.0.iter().rev().find(|(other, _)| *other == key);
        own.map_or(key.default_template(mode), |(_, text)| text.as_str())
    }
}

/// Where everything of the layout is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorNames {
    templates: Vec<Template>,
    /// What stands around a torrent's number in a private key.
    braces: (&'static str, &'static str),
    /// Sorted set, private: torrents by announces; every torrent that was ever announced is in it.
    index_announces: String,
    /// String, private: who works on the mirror.
    lease: String,
}

impl MirrorNames {
    /// The names on a Redis of this kind.
    pub fn new(templates: &MirrorTemplates, mode: Mode) -> Result<MirrorNames, Trouble> {
        let mut parsed = Vec::with_capacity(TABLE.len());
        for key in MirrorKey::ALL {
            let text = templates.of(key, mode);
            check_blanks(key, text)?;
            let template = Template::parse(text).ok_or_else(|| unknown_blank(key, text))?;
            if !template.is_readable() {
                return Err(unreadable(key, text));
            }
            parsed.push(template);
        }
        check_distinct(templates, mode)?;
        let stats = templates.of(MirrorKey::StatsLeechers, mode);
        let (braces, all) = match mode {
            Mode::Single | Mode::Sentinel => (("", ""), String::new()),
            Mode::Cluster => {
                check_slots(templates)?;
                let tag = String::from_utf8_lossy(tag_of(stats.as_bytes())).into_owned();
                (("{", "}"), format!("{{{tag}}}:"))
            }
        };
        Ok(MirrorNames {
            templates: parsed,
            braces,
            index_announces: format!("t:m:{all}announces"),
            lease: "t:m:lease".to_owned(),
        })
    }

    fn fill(&self, key: MirrorKey, values: &[(Blank, &dyn Display)]) -> String {
        self.templates[key as usize].fill(values)
    }

    /// String: the number of the torrent with this infohash (M1).
    pub fn info_hash(&self, info_hash: &InfoHash) -> String {
        self.fill(MirrorKey::InfoHash, &[(Blank::InfoHash, info_hash)])
    }

    /// String: the name of the client with this prefix (M2).
    pub fn whitelist(&self, prefix: &str) -> String {
        self.fill(MirrorKey::Whitelist, &[(Blank::Prefix, &prefix)])
    }

    /// Hash: `user_id` of whoever has this passkey (M3).
    pub fn user(&self, passkey: &Passkey) -> String {
        self.fill(MirrorKey::User, &[(Blank::Passkey, passkey)])
    }

    /// Hash: counts of a torrent (M4).
    pub fn torrent(&self, torrent: TorrentId, info_hash: &InfoHash) -> String {
        self.fill(MirrorKey::Torrent, &[(Blank::Torrent, &torrent), (Blank::InfoHash, info_hash)])
    }

    /// Set: the peers of a torrent that are there (M7).
    pub fn torrent_peers(&self, torrent: TorrentId, info_hash: &InfoHash) -> String {
        self.fill(MirrorKey::TorrentPeers, &[(Blank::Torrent, &torrent), (Blank::InfoHash, info_hash)])
    }

    /// Hash: what is known of a peer (M5).
    pub fn peer(&self, torrent: TorrentId, info_hash: &InfoHash, peer: &PeerId) -> String {
        let values: [(Blank, &dyn Display); 3] =
            [(Blank::Torrent, &torrent), (Blank::InfoHash, info_hash), (Blank::PeerId, peer)];
        self.fill(MirrorKey::Peer, &values)
    }

    /// String that expires with the peer (M6).
    pub fn peer_timeout(&self, torrent: TorrentId, peer: &PeerId) -> String {
        self.fill(MirrorKey::PeerTimeout, &[(Blank::Torrent, &torrent), (Blank::PeerId, peer)])
    }

    /// Whose timeout a key was (M6); none if it is another key.
    pub fn parse_peer_timeout(&self, key: &str) -> Option<(TorrentId, PeerId)> {
        let found = self.templates[MirrorKey::PeerTimeout as usize].read(key)?;
        let value = |blank| found.iter().find(|(other, _)| *other == blank).map(|(_, text)| *text);
        Some((value(Blank::Torrent)?.parse().ok()?, value(Blank::PeerId)?.parse().ok()?))
    }

    /// The pattern, as Redis understands patterns, that all timeouts of peers fit (M6).
    pub fn peer_timeout_pattern(&self) -> String {
        self.templates[MirrorKey::PeerTimeout as usize].pattern()
    }

    /// The pattern that all keys of a kind fit, for `SCAN`.
    pub fn pattern(&self, key: MirrorKey) -> String {
        self.templates[key as usize].pattern()
    }

    /// The one thing that a key of M1, M2 or M3 is about: infohash, prefix or passkey, as text; none if it is another
    /// key.
    pub fn parse_subject<'k>(&self, kind: MirrorKey, key: &'k str) -> Option<&'k str> {
        let found = self.templates[kind as usize].read(key)?;
        found.first().map(|(_, text)| *text)
    }

    /// Set: the torrents that a peer is on (M7).
    pub fn peer_torrents(&self, peer: &PeerId) -> String {
        self.fill(MirrorKey::PeerTorrents, &[(Blank::PeerId, peer)])
    }

    /// The four sets of a user (M8): active, complete, incomplete, hit and run.
    pub fn user_sets(&self, user: UserId) -> [String; 4] {
        [MirrorKey::UserActive, MirrorKey::UserComplete, MirrorKey::UserIncomplete, MirrorKey::UserHitAndRun]
            .map(|key| self.fill(key, &[(Blank::User, &user)]))
    }

    /// A key that there is one of: statistics (M9) and indexes (M10).
    pub fn single(&self, key: MirrorKey) -> String {
        self.fill(key, &[])
    }

    /// Hash, private: what is known of a torrent beside what others read: up to where the journal was applied, what a
    /// goodbye of each peer would say, and the figures of each user.
    pub fn own(&self, torrent: TorrentId) -> String {
        format!("t:m:{}{torrent}{}", self.braces.0, self.braces.1)
    }

    /// String, private: the torrent whose counts and peers are under the names of this infohash. On a cluster every
    /// torrent has names of its own.
    pub fn owner(&self, torrent: TorrentId, info_hash: &InfoHash) -> String {
        match self.braces.0 {
            "" => format!("t:m:h:{info_hash}"),
            _ => format!("t:m:{{{torrent}}}:h:{info_hash}"),
        }
    }

    /// Sorted set, private: torrents by announces; every torrent that was ever announced is in it.
    pub fn index_announces(&self) -> &str {
        &self.index_announces
    }

    /// String, private: who works on the mirror.
    pub fn lease(&self) -> &str {
        &self.lease
    }
}

fn check_blanks(key: MirrorKey, text: &str) -> Result<(), Trouble> {
    let name = key.name();
    let Some(template) = Template::parse(text) else {
        return Err(unknown_blank(key, text));
    };
    if let Some(group) = key.needs().iter().find(|group| !group.iter().any(|blank| template.has(*blank))) {
        let missing = group.iter().map(|blank| blank.text()).collect::<Vec<_>>().join(" or ");
        return Err(Trouble::settings(format!(
            "mirror.key_{name} = \"{text}\" lacks {missing}: without it, different things would be one key"
        )));
    }
    if template.blanks().any(|blank| !key.allows(blank)) {
        return Err(unknown_blank(key, text));
    }
    if text.starts_with("t:m:") {
        return Err(Trouble::settings(format!("mirror.key_{name} = \"{text}\": t:m: is ours, take another")));
    }
    Ok(())
}

fn unknown_blank(key: MirrorKey, text: &str) -> Trouble {
    let known: Vec<&str> = Blank::ALL.into_iter().filter(|b| key.allows(*b)).map(Blank::text).collect();
    let name = key.name();
    let known = if known.is_empty() { "nothing".to_owned() } else { known.join(", ") };
    Trouble::settings(format!("mirror.key_{name} = \"{text}\" may have in angle brackets: {known}"))
}

fn unreadable(key: MirrorKey, text: &str) -> Trouble {
    let name = key.name();
    Trouble::settings(format!(
        "mirror.key_{name} = \"{text}\" cannot be read back: put something that is no digit between two values, and \
         <prefix> at the end"
    ))
}

fn check_distinct(templates: &MirrorTemplates, mode: Mode) -> Result<(), Trouble> {
    for (position, key) in MirrorKey::ALL.into_iter().enumerate() {
        let same = |other: &MirrorKey| templates.of(*other, mode) == templates.of(key, mode);
        if let Some(other) = MirrorKey::ALL[..position].iter().find(|other| same(other)) {
            let (name, other) = (key.name(), other.name());
            return Err(Trouble::settings(format!(
                "mirror.key_{other} and mirror.key_{name} are the same: each needs a name of its own"
            )));
        }
    }
    Ok(())
}

/// On a cluster, what is touched together must lie together.
fn check_slots(templates: &MirrorTemplates) -> Result<(), Trouble> {
    for key in OF_TORRENT {
        let text = templates.of(key, Mode::Cluster);
        if tag_of(text.as_bytes()) != b"<torrent>" {
            let (name, usual) = (key.name(), key.default_template(Mode::Cluster));
            return Err(Trouble::settings(format!(
                "on a Redis cluster, mirror.key_{name} = \"{text}\" must have {{<torrent>}} as its first braces, so \
                 that all keys of a torrent share a slot: \"{usual}\" for example"
            )));
        }
    }
    let slot = |key: MirrorKey| slot_of(templates.of(key, Mode::Cluster).as_bytes());
    let first = OF_ALL[0];
    if let Some(astray) = OF_ALL.into_iter().find(|key| slot(*key) != slot(first)) {
        let (name, first, usual) = (astray.name(), first.name(), astray.default_template(Mode::Cluster));
        return Err(Trouble::settings(format!(
            "on a Redis cluster, mirror.key_{name} must share a slot with mirror.key_{first}: begin both with the \
             same tag, such as \"{usual}\""
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
