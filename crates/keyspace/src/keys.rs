//! Every key name, with the requirement it serves.
//!
//! On a single Redis the names are exactly those of the requirements, so that other programs find them. On a cluster,
//! keys that are touched together share a slot by a hash tag: `{tracker:traffic}:dlq` lies where `tracker:traffic`
//! lies, since the tag is that whole name; so the stream itself keeps its name for every other producer.

pub mod gateways;
pub mod mirror;
pub mod presence;
pub mod site;

use domain::Passkey;

use crate::error::RedisError;
use crate::settings::Mode;
use crate::slots::slot_of;

/// The names that can be configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseNames {
    /// The stream of every accepted announce (`TRACKER_STREAM_KEY`).
    pub stream: String,
    /// Entries to be tried again (`TRACKER_DLQ_KEY`).
    pub dead: String,
    /// Entries that were tried as often as allowed (`TRACKER_FAILED_KEY`).
    pub failed: String,
    /// The set of passkeys that may announce although no user has them.
    pub whitelist: String,
}

impl Default for BaseNames {
    fn default() -> Self {
        BaseNames {
            stream: "tracker:traffic".to_owned(),
            dead: "tracker:traffic:dlq".to_owned(),
            failed: "tracker:traffic:failed".to_owned(),
            whitelist: "pt:passkeys".to_owned(),
        }
    }
}

/// Where everything is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyNames {
    traffic: String,
    dead: String,
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
    /// The names on a Redis of this kind. On a cluster, names that do not share the stream's slot are refused.
    pub fn new(base: &BaseNames, mode: Mode) -> Result<KeyNames, RedisError> {
        check_distinct(base)?;
        let place = |name: &str| match mode {
            Mode::Cluster => in_slot_of(&base.stream, name),
            Mode::Single | Mode::Sentinel => Ok(name.to_owned()),
        };
        let whitelist = &base.whitelist;
        let of_whitelist = |ending: &str| match mode {
            Mode::Cluster => tagged(whitelist, ending),
            Mode::Single | Mode::Sentinel => Ok(format!("{whitelist}{ending}")),
        };
        Ok(KeyNames {
            whitelist: whitelist.clone(),
            whitelist_old: of_whitelist(":old")?,
            whitelist_new: of_whitelist(":new")?,
            whitelist_last_change: of_whitelist(":note")?,
            traffic: base.stream.clone(),
            dead: place(&base.dead)?,
            failed: place(&base.failed)?,
            risk: place(&format!("{}:risk", base.stream))?,
            control: place(&format!("{}:control", base.stream))?,
            producer: place(&format!("{}:producer", base.stream))?,
            is_cluster: mode == Mode::Cluster,
        })
    }

    /// Stream: every accepted announce (J1).
    pub fn traffic(&self) -> &str {
        &self.traffic
    }

    /// Stream: entries that a view could not take, to be tried again (J5).
    pub fn dead(&self) -> &str {
        &self.dead
    }

    /// Stream: letters that were tried as often as allowed (J6).
    pub fn failed(&self) -> &str {
        &self.failed
    }

    /// Stream: announces that claim more than is plausible (J8).
    pub fn risk(&self) -> &str {
        &self.risk
    }

    /// Hash: the notes of the journal, such as which views are paused (J9).
    pub fn control(&self) -> &str {
        &self.control
    }

    /// String: the number of the last batch a producer stored in a lane, so that none is stored twice. It expires
    /// some days after the producer's end.
    pub fn producer(&self, lane: &str, producer: &str) -> String {
        format!("{}:{producer}:{lane}", self.producer)
    }

    /// Sorted set: the torrents a user seeds, by the time of the last announce (A1).
    pub fn user_seed(&self, passkey: &Passkey) -> String {
        self.of_user("tracker:user:seed", passkey)
    }

    /// Sorted set: the torrents a user leeches, likewise (A1).
    pub fn user_leech(&self, passkey: &Passkey) -> String {
        self.of_user("tracker:user:leech", passkey)
    }

    /// Hash: which of a user's clients are on a torrent, so that one that stops does not hide another (A2).
    pub fn user_clients(&self, passkey: &Passkey) -> String {
        self.of_user("tracker:user:clients", passkey)
    }

    /// Sorted set: the torrents a user left lately, so that no older entry brings them back (A2).
    pub fn user_stopped(&self, passkey: &Passkey) -> String {
        self.of_user("tracker:user:stopped", passkey)
    }

    /// Sorted set: the users that have anything in their sets, for the sweep (A4).
    pub fn users_active(&self) -> &'static str {
        "tracker:users:active"
    }

    /// Set: the passkeys that may announce although no user has them (W2).
    pub fn whitelist(&self) -> &str {
        &self.whitelist
    }

    /// Set: what the last refresh replaced, for one step back (W2).
    pub fn whitelist_old(&self) -> &str {
        &self.whitelist_old
    }

    /// Set: one that is being built, told from others by a token. It expires when its builder falls silent (W2).
    pub fn whitelist_new(&self, token: &str) -> String {
        format!("{}:{token}", self.whitelist_new)
    }

    /// Hash: what the last refresh or step back did, so that none is done twice (W2).
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
    let BaseNames { stream, dead, failed, whitelist } = base;
    if whitelist.is_empty() || [stream, dead, failed].contains(&whitelist) {
        return Err(RedisError::settings(format!(
            "access.whitelist_key ({whitelist}) must be a name of its own: leave it out for pt:passkeys"
        )));
    }
    if [stream, dead, failed].iter().any(|name| name.is_empty()) {
        return Err(RedisError::settings(
            "TRACKER_STREAM_KEY, TRACKER_DLQ_KEY and TRACKER_FAILED_KEY must not be empty: leave them out for the \
             usual names",
        ));
    }
    if stream == dead || stream == failed || dead == failed {
        return Err(RedisError::settings(format!(
            "TRACKER_STREAM_KEY ({stream}), TRACKER_DLQ_KEY ({dead}) and TRACKER_FAILED_KEY ({failed}) must be three \
             different names"
        )));
    }
    Ok(())
}

/// The name on a cluster of a key that belongs to the stream: the name itself where it shares the slot, else with the
/// stream's name as its tag.
fn in_slot_of(stream: &str, name: &str) -> Result<String, RedisError> {
    let slot = slot_of(stream.as_bytes());
    let tagged = name.strip_prefix(stream).map(|rest| format!("{{{stream}}}{rest}"));
    [Some(name.to_owned()), tagged]
        .into_iter()
        .flatten()
        .find(|candidate| slot_of(candidate.as_bytes()) == slot)
        .ok_or_else(|| {
            RedisError::settings(format!(
                "on a Redis cluster, {name} must lie in the slot of {stream}, since entries move from one to the \
                 other: call it {{{stream}}}:dlq, or begin all three names with the same tag, such as {{pt}}:traffic"
            ))
        })
}

/// The name on a cluster of a key that belongs to a set: in its slot, by the set's own name as the tag, or by the tag
/// that the name has already.
fn tagged(set: &str, ending: &str) -> Result<String, RedisError> {
    let slot = slot_of(set.as_bytes());
    [format!("{{{set}}}{ending}"), format!("{set}{ending}")]
        .into_iter()
        .find(|candidate| slot_of(candidate.as_bytes()) == slot)
        .ok_or_else(|| {
            RedisError::settings(format!(
                "on a Redis cluster, no name in_slot_of {set} lies in its slot: give access.whitelist_key a name without \
                 braces, or with a tag such as {{pt}}:passkeys"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passkey() -> Passkey {
        "0123456789abcdef".parse().unwrap()
    }

    #[test]
    fn a1_names_on_a_single_redis_are_those_of_the_requirements() {
        let keys = KeyNames::new(&BaseNames::default(), Mode::Single).unwrap();
        assert_eq!(keys.traffic(), "tracker:traffic");
        assert_eq!(keys.dead(), "tracker:traffic:dlq");
        assert_eq!(keys.failed(), "tracker:traffic:failed");
        assert_eq!(keys.risk(), "tracker:traffic:risk");
        assert_eq!(keys.user_seed(&passkey()), "tracker:user:seed:0123456789abcdef");
        assert_eq!(keys.user_leech(&passkey()), "tracker:user:leech:0123456789abcdef");
    }

    #[test]
    fn on_a_cluster_what_is_touched_together_shares_a_slot() {
        let keys = KeyNames::new(&BaseNames::default(), Mode::Cluster).unwrap();
        assert_eq!(keys.traffic(), "tracker:traffic");
        assert_eq!(keys.dead(), "{tracker:traffic}:dlq");
        let slot = slot_of(b"tracker:traffic");
        let producer = keys.producer("traffic", "p1");
        for name in [keys.dead(), keys.failed(), keys.risk(), keys.control(), &producer] {
            assert_eq!(slot_of(name.as_bytes()), slot, "{name}");
        }
        let (seed, leech) = (keys.user_seed(&passkey()), keys.user_leech(&passkey()));
        assert_eq!(seed, "tracker:user:seed:{0123456789abcdef}");
        assert_eq!(slot_of(seed.as_bytes()), slot_of(leech.as_bytes()));
    }

    #[test]
    fn an_operators_own_tag_is_kept_and_a_foreign_slot_is_refused() {
        let own = BaseNames {
            stream: "{pt}:traffic".to_owned(),
            dead: "{pt}:dead".to_owned(),
            failed: "{pt}:traffic:failed".to_owned(),
            whitelist: "{pt}:passkeys".to_owned(),
        };
        let keys = KeyNames::new(&own, Mode::Cluster).unwrap();
        assert_eq!((keys.dead(), keys.failed()), ("{pt}:dead", "{pt}:traffic:failed"));
        assert_eq!(keys.risk(), "{pt}:traffic:risk");
        assert_eq!(keys.whitelist_old(), "{pt}:passkeys:old");

        let elsewhere = BaseNames { dead: "my:dead".to_owned(), ..BaseNames::default() };
        assert!(KeyNames::new(&elsewhere, Mode::Single).is_ok());
        let refused = KeyNames::new(&elsewhere, Mode::Cluster).unwrap_err().to_string();
        assert!(refused.contains("my:dead") && refused.contains("{tracker:traffic}:dlq"), "{refused}");
    }

    #[test]
    fn two_lanes_cannot_be_one_key() {
        let same = BaseNames { dead: "tracker:traffic".to_owned(), ..BaseNames::default() };
        assert!(KeyNames::new(&same, Mode::Single).is_err());
    }

    #[test]
    fn w2_the_sets_of_a_refresh_lie_beside_the_whitelist() {
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
        assert!(KeyNames::new(&odd, Mode::Cluster).unwrap_err().to_string().contains("braces"));
        let taken = BaseNames { whitelist: "tracker:traffic".to_owned(), ..BaseNames::default() };
        assert!(KeyNames::new(&taken, Mode::Single).is_err());
    }
}
