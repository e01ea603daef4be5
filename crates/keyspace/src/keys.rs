//! Every key name, with the requirement it serves.
//!
//! On a single Redis the names are exactly those of the requirements, for other programs. On a cluster, keys of one
//! script or transaction share a slot by a hash tag: `{tracker:traffic}:dlq` is in the slot of `tracker:traffic`, so
//! the stream keeps its name for other producers.

pub mod gateways;
pub mod presence;
pub mod redis_mirror;
pub mod redis_source;

use domain::Passkey;

use crate::error::RedisError;
use crate::hash_slots::slot_of;
use crate::settings::Mode;

/// The configurable names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseNames {
    /// Stream of accepted announces (`TRACKER_STREAM_KEY`).
    pub stream: String,
    /// Stream of dead letters (`TRACKER_DLQ_KEY`).
    pub dead_letters: String,
    /// Stream of dead letters after their last retry (`TRACKER_FAILED_KEY`).
    pub failed: String,
    /// Set of passkeys that may announce without a user in the database.
    pub whitelist: String,
}

impl Default for BaseNames {
    fn default() -> Self {
        BaseNames {
            stream: "tracker:traffic".to_owned(),
            dead_letters: "tracker:traffic:dlq".to_owned(),
            failed: "tracker:traffic:failed".to_owned(),
            whitelist: "pt:passkeys".to_owned(),
        }
    }
}

/// Names of journal, activity and whitelist keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyNames {
    traffic: String,
    dead_letters: String,
    failed: String,
    risk: String,
    control: String,
    producer: String,
    whitelist: String,
    whitelist_old: String,
    whitelist_new: String,
    whitelist_last_change: String,
    is_cluster: bool,
}

impl KeyNames {
    /// The names in this mode. On a cluster, configured names outside the stream's slot are refused.
    pub fn new(base: &BaseNames, mode: Mode) -> Result<KeyNames, RedisError> {
        check_distinct(base)?;
        let journal_key = |name: &str| match mode {
            Mode::Cluster => in_slot_of(&base.stream, name),
            Mode::Single | Mode::Sentinel => Ok(name.to_owned()),
        };
        let whitelist = &base.whitelist;
        let whitelist_key = |ending: &str| match mode {
            Mode::Cluster => tagged(whitelist, ending),
            Mode::Single | Mode::Sentinel => Ok(format!("{whitelist}{ending}")),
        };
        Ok(KeyNames {
            whitelist: whitelist.clone(),
            whitelist_old: whitelist_key(":old")?,
            whitelist_new: whitelist_key(":new")?,
            whitelist_last_change: whitelist_key(":note")?,
            traffic: base.stream.clone(),
            dead_letters: journal_key(&base.dead_letters)?,
            failed: journal_key(&base.failed)?,
            risk: journal_key(&format!("{}:risk", base.stream))?,
            control: journal_key(&format!("{}:control", base.stream))?,
            producer: journal_key(&format!("{}:producer", base.stream))?,
            is_cluster: mode == Mode::Cluster,
        })
    }

    /// Stream: accepted announces (J1).
    pub fn traffic(&self) -> &str {
        &self.traffic
    }

    /// Stream: dead letters, entries that a view rejected (J5).
    pub fn dead_letters(&self) -> &str {
        &self.dead_letters
    }

    /// Stream: dead letters after their last retry (J6).
    pub fn failed(&self) -> &str {
        &self.failed
    }

    /// Stream: risk events (J8).
    pub fn risk(&self) -> &str {
        &self.risk
    }

    /// Hash: control state of the journal, such as which views are paused (J9).
    pub fn control(&self) -> &str {
        &self.control
    }

    /// String: number of the last batch that a producer appended to a lane, so that none is appended twice. Expires
    /// some days after the last append.
    pub fn producer(&self, lane: &str, producer: &str) -> String {
        format!("{}:{producer}:{lane}", self.producer)
    }

    /// Sorted set: torrents that a user seeds, by the time of the last announce (A1).
    pub fn user_seed(&self, passkey: &Passkey) -> String {
        self.of_user("tracker:user:seed", passkey)
    }

    /// Sorted set: torrents that a user leeches, by the time of the last announce (A1).
    pub fn user_leech(&self, passkey: &Passkey) -> String {
        self.of_user("tracker:user:leech", passkey)
    }

    /// Hash: a user's clients on each torrent, so that a client that stops does not hide another (A2).
    pub fn user_clients(&self, passkey: &Passkey) -> String {
        self.of_user("tracker:user:clients", passkey)
    }

    /// Sorted set: torrents that a user recently stopped, so that no older entry restores them (A2).
    pub fn user_stopped(&self, passkey: &Passkey) -> String {
        self.of_user("tracker:user:stopped", passkey)
    }

    /// Sorted set: users with stored activity, by the time of the next check, for the sweep (A4).
    pub fn users_active(&self) -> &'static str {
        "tracker:users:active"
    }

    /// String: lease of the process that writes the activity of users.
    pub fn users_lease(&self) -> &'static str {
        "tracker:users:lease"
    }

    /// String: fence of the activity of users; on a cluster the beginning of the fences.
    pub fn users_fence(&self) -> &'static str {
        "tracker:users:fence"
    }

    /// Set: passkeys that may announce without a user in the database (W2).
    pub fn whitelist(&self) -> &str {
        &self.whitelist
    }

    /// Set: the whitelist before the last refresh, for one undo (W2).
    pub fn whitelist_old(&self) -> &str {
        &self.whitelist_old
    }

    /// Set: a whitelist that is being built, identified by a token. Expires unless its builder renews it (W2).
    pub fn whitelist_new(&self, token: &str) -> String {
        format!("{}:{token}", self.whitelist_new)
    }

    /// Hash: the last refresh or undo, so that none is applied twice (W2).
    pub fn whitelist_last_change(&self) -> &str {
        &self.whitelist_last_change
    }

    fn of_user(&self, prefix: &str, passkey: &Passkey) -> String {
        match self.is_cluster {
            true => format!("{prefix}:{{{passkey}}}"),
            false => format!("{prefix}:{passkey}"),
        }
    }
}

fn check_distinct(base: &BaseNames) -> Result<(), RedisError> {
    let BaseNames { stream, dead_letters, failed, whitelist } = base;
    if whitelist.is_empty() || [stream, dead_letters, failed].contains(&whitelist) {
        return Err(RedisError::settings(format!(
            "TRACKER_STREAM_KEY, TRACKER_DLQ_KEY and TRACKER_FAILED_KEY must differ from {whitelist}, the whitelist"
        )));
    }
    if [stream, dead_letters, failed].iter().any(|name| name.is_empty()) {
        return Err(RedisError::settings(
            "TRACKER_STREAM_KEY, TRACKER_DLQ_KEY and TRACKER_FAILED_KEY must not be empty: leave them out for the \
             default names",
        ));
    }
    if stream == dead_letters || stream == failed || dead_letters == failed {
        return Err(RedisError::settings(format!(
            "TRACKER_STREAM_KEY ({stream}), TRACKER_DLQ_KEY ({dead_letters}) and TRACKER_FAILED_KEY ({failed}) must be three \
             different names"
        )));
    }
    Ok(())
}

/// The cluster name of a journal key: the name itself if it is in the stream's slot, else with the stream's name as
/// hash tag.
fn in_slot_of(stream: &str, name: &str) -> Result<String, RedisError> {
    let slot = slot_of(stream.as_bytes());
    let tagged = name.strip_prefix(stream).map(|rest| format!("{{{stream}}}{rest}"));
    [Some(name.to_owned()), tagged]
        .into_iter()
        .flatten()
        .find(|candidate| slot_of(candidate.as_bytes()) == slot)
        .ok_or_else(|| {
            RedisError::settings(format!(
                "on a Redis cluster, {name} must be in the slot of {stream}, because entries move from one to the \
                 other: name it {{{stream}}}:dlq, or begin all three names with the same tag, such as {{pt}}:traffic"
            ))
        })
}

/// The cluster name of a key that belongs to a set: with the set's name as hash tag, or with the tag of that name.
fn tagged(set: &str, ending: &str) -> Result<String, RedisError> {
    let slot = slot_of(set.as_bytes());
    [format!("{{{set}}}{ending}"), format!("{set}{ending}")]
        .into_iter()
        .find(|candidate| slot_of(candidate.as_bytes()) == slot)
        .ok_or_else(|| {
            RedisError::settings(format!("on a Redis cluster, no name derived from {set} is in its slot"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passkey() -> Passkey {
        "0123456789abcdef".parse().unwrap()
    }

    #[test]
    fn a1_names_on_a_single_redis_match_the_requirements() {
        let keys = KeyNames::new(&BaseNames::default(), Mode::Single).unwrap();
        assert_eq!(keys.traffic(), "tracker:traffic");
        assert_eq!(keys.dead_letters(), "tracker:traffic:dlq");
        assert_eq!(keys.failed(), "tracker:traffic:failed");
        assert_eq!(keys.risk(), "tracker:traffic:risk");
        assert_eq!(keys.user_seed(&passkey()), "tracker:user:seed:0123456789abcdef");
        assert_eq!(keys.user_leech(&passkey()), "tracker:user:leech:0123456789abcdef");
    }

    #[test]
    fn on_a_cluster_journal_keys_share_a_slot() {
        let keys = KeyNames::new(&BaseNames::default(), Mode::Cluster).unwrap();
        assert_eq!(keys.traffic(), "tracker:traffic");
        assert_eq!(keys.dead_letters(), "{tracker:traffic}:dlq");
        let slot = slot_of(b"tracker:traffic");
        let producer = keys.producer("traffic", "p1");
        for name in [keys.dead_letters(), keys.failed(), keys.risk(), keys.control(), &producer] {
            assert_eq!(slot_of(name.as_bytes()), slot, "{name}");
        }
        let (seed, leech) = (keys.user_seed(&passkey()), keys.user_leech(&passkey()));
        assert_eq!(seed, "tracker:user:seed:{0123456789abcdef}");
        assert_eq!(slot_of(seed.as_bytes()), slot_of(leech.as_bytes()));
    }

    #[test]
    fn a_configured_hash_tag_is_kept_and_another_slot_is_refused() {
        let own = BaseNames {
            stream: "{pt}:traffic".to_owned(),
            dead_letters: "{pt}:dead".to_owned(),
            failed: "{pt}:traffic:failed".to_owned(),
            whitelist: "{pt}:passkeys".to_owned(),
        };
        let keys = KeyNames::new(&own, Mode::Cluster).unwrap();
        assert_eq!((keys.dead_letters(), keys.failed()), ("{pt}:dead", "{pt}:traffic:failed"));
        assert_eq!(keys.risk(), "{pt}:traffic:risk");
        assert_eq!(keys.whitelist_old(), "{pt}:passkeys:old");

        let elsewhere = BaseNames { dead_letters: "my:dead".to_owned(), ..BaseNames::default() };
        assert!(KeyNames::new(&elsewhere, Mode::Single).is_ok());
        let refused = KeyNames::new(&elsewhere, Mode::Cluster).unwrap_err().to_string();
        assert!(refused.contains("my:dead") && refused.contains("{tracker:traffic}:dlq"), "{refused}");
    }

    #[test]
    fn two_lanes_cannot_share_a_key() {
        let same = BaseNames { dead_letters: "tracker:traffic".to_owned(), ..BaseNames::default() };
        assert!(KeyNames::new(&same, Mode::Single).is_err());
    }

    #[test]
    fn w2_the_sets_of_a_refresh_share_the_whitelists_slot() {
        let keys = KeyNames::new(&BaseNames::default(), Mode::Single).unwrap();
        assert_eq!((keys.whitelist(), keys.whitelist_old()), ("pt:passkeys", "pt:passkeys:old"));
        assert_eq!(keys.whitelist_new("1f"), "pt:passkeys:new:1f");
        let keys = KeyNames::new(&BaseNames::default(), Mode::Cluster).unwrap();
        assert_eq!((keys.whitelist(), keys.whitelist_old()), ("pt:passkeys", "{pt:passkeys}:old"));
        assert_eq!(keys.whitelist_new("1f"), "{pt:passkeys}:new:1f");
        for name in [keys.whitelist_old(), keys.whitelist_last_change(), &keys.whitelist_new("1f")] {
            assert_eq!(slot_of(name.as_bytes()), slot_of(b"pt:passkeys"), "{name}");
        }
        let odd = BaseNames { whitelist: "{}x".to_owned(), ..BaseNames::default() };
        assert!(KeyNames::new(&odd, Mode::Cluster).unwrap_err().to_string().contains("slot"));
        let taken = BaseNames { whitelist: "tracker:traffic".to_owned(), ..BaseNames::default() };
        assert!(KeyNames::new(&taken, Mode::Single).is_err());
    }
}
