//! The Lua scripts: each a file in `lua/` that begins with what its KEYS and ARGV are.
//!
//! A script is called by its hash. Where Redis does not know it (a restart, a failover, `SCRIPT FLUSH`) the call is
//! repeated with the whole text, from which Redis learns it. Inside a pipeline, the calls that met an unknown script are
//! repeated in their order, behind the other commands.

use std::sync::LazyLock;

use redis::{Arg, Cmd};

/// A script.
#[derive(Debug)]
pub struct Script {
    name: &'static str,
    source: &'static str,
    hash: LazyLock<String>,
}

macro_rules! script {
    ($(#[$doc:meta])* $constant:ident, $file:literal) => {
        $(#[$doc])*
        pub static $constant: Script = Script {
            name: $file,
            source: include_str!(concat!("lua/", $file, ".lua")),
            hash: LazyLock::new(|| hash_of(include_str!(concat!("lua/", $file, ".lua")))),
        };
    };
    ($(#[$doc:meta])* $constant:ident, $file:literal, on $base:literal) => {
        $(#[$doc])*
        pub static $constant: Script = Script {
            name: $file,
            source: concat!(
                include_str!(concat!("lua/", $base, ".lua")),
                include_str!(concat!("lua/", $file, ".lua"))
            ),
            hash: LazyLock::new(|| hash_of($constant.source)),
        };
    };
}

script!(
    /// Notes that a producer's batch was stored, if the stream is one (append).
    MARK_APPENDED,
    "mark_appended"
);
script!(
    /// Makes pending entries of one consumer those of another (J4).
    TAKE_OVER,
    "take_over"
);
script!(
    /// Forgets a consumer that has nothing pending.
    DELETE_CONSUMER,
    "delete_consumer"
);
script!(
    /// Moves letters from one stream to another (J5, J6).
    TRANSFER,
    "transfer"
);
script!(
    /// Deletes and acknowledges entries (J7).
    DELETE_ENTRIES,
    "delete_entries"
);
script!(
    /// Removes old entries that every group has acknowledged.
    TRIM,
    "trim"
);
script!(
    /// Takes what users' clients say about their torrents (A2).
    ACTIVITY_APPLY,
    "activity_apply",
    on "activity"
);
script!(
    /// Removes what is too old of a user's torrents and reads the rest (A4, A5).
    ACTIVITY_READ,
    "activity_read",
    on "activity"
);
script!(
    /// Takes users whose torrents are to be looked at (A4).
    ACTIVITY_CLAIM,
    "activity_claim"
);
script!(
    /// Says when to look at them again (A4).
    ACTIVITY_RESCHEDULE,
    "activity_reschedule"
);
script!(
    /// Makes a set that was built aside the whitelist (W2).
    WHITELIST_SWITCH,
    "whitelist_switch"
);
script!(
    /// Exchanges the whitelist and what the last refresh replaced (W2).
    WHITELIST_UNDO,
    "whitelist_undo"
);
script!(
    /// Takes a lease, or renews it.
    LEASE_TAKE,
    "lease_take"
);
script!(
    /// Gives a lease back.
    LEASE_RELEASE,
    "lease_release"
);
script!(
    /// Applies entries of the journal to one torrent of the mirror (M4 to M8).
    MIRROR_TORRENT,
    "mirror_torrent"
);
script!(
    /// Brings counts of torrents into the indexes and the statistics of the mirror (M9, M10).
    MIRROR_INDEX,
    "mirror_index"
);
script!(
    /// Notes that a torrent of the mirror has another infohash now.
    MIRROR_RENAME,
    "mirror_rename"
);
script!(
    /// Mends keys of one torrent of the mirror, if nothing was applied to it meanwhile.
    MIRROR_REPAIR,
    "mirror_repair"
);
script!(
    /// Takes torrents out of the indexes and the statistics of the mirror (M9, M10).
    MIRROR_REMOVE,
    "mirror_remove"
);
script!(
    /// Writes whom one gateway has in a room.
    ROOM_PUT,
    "room_put"
);

script!(
    /// Writes one gateway's part of a person (P3, P13).
    PRESENCE_PUBLISH,
    "presence_publish",
    on "presence"
);
script!(
    /// Clears up what is due of a person (P15).
    PRESENCE_REAP,
    "presence_reap",
    on "presence"
);
script!(
    /// Notes that a gateway is interested in a person, and reads what is known (P4).
    PRESENCE_WATCH,
    "presence_watch",
    on "presence"
);
script!(
    /// A gateway joins, stays or leaves; others are declared dead (P15).
    PRESENCE_NODES,
    "presence_nodes"
);
script!(
    /// Notes when people are due (P13).
    PRESENCE_DUE_UPDATE,
    "presence_due_update"
);
script!(
    /// Looks who is due (P13).
    PRESENCE_DUE_READ,
    "presence_due_read"
);

/// Every script there is.
pub static ALL: [&Script; 26] = [
    &ROOM_PUT,
    &MARK_APPENDED,
    &TAKE_OVER,
    &DELETE_CONSUMER,
    &TRANSFER,
    &DELETE_ENTRIES,
    &TRIM,
    &ACTIVITY_APPLY,
    &ACTIVITY_READ,
    &ACTIVITY_CLAIM,
    &ACTIVITY_RESCHEDULE,
    &WHITELIST_SWITCH,
    &WHITELIST_UNDO,
    &LEASE_TAKE,
    &LEASE_RELEASE,
    &MIRROR_TORRENT,
    &MIRROR_INDEX,
    &MIRROR_RENAME,
    &MIRROR_REPAIR,
    &MIRROR_REMOVE,
    &PRESENCE_PUBLISH,
    &PRESENCE_REAP,
    &PRESENCE_WATCH,
    &PRESENCE_NODES,
    &PRESENCE_DUE_UPDATE,
    &PRESENCE_DUE_READ,
];

impl Script {
    /// The name of its file.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The Lua text.
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// A call by hash, for [`crate::Redis::query`] and pipelines. Further arguments may be added to it.
    pub fn call(&self, keys: &[&str]) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(self.hash.as_str()).arg(keys.len()).arg(keys);
        command
    }

    /// A call with the whole text, for transactions, where an unknown hash would come out too late.
    pub fn call_by_text(&self, keys: &[&str]) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(self.source).arg(keys.len()).arg(keys);
        command
    }
}

/// The same call with the whole text; none if it is not a call of one of our scripts by its hash.
pub(crate) fn with_text(call: &Cmd) -> Option<Cmd> {
    let mut words = call.args_iter().filter_map(|arg| match arg {
        Arg::Simple(word) => Some(word),
        _ => None,
    });
    let _evalsha = words.next().filter(|name| name.eq_ignore_ascii_case(b"EVALSHA"))?;
    let hash = words.next()?;
    let script = ALL.iter().find(|script| script.hash.as_bytes() == hash)?;
    let mut command = redis::cmd("EVAL");
    command.arg(script.source);
    words.for_each(|word| {
        command.arg(word);
    });
    Some(command)
}

fn hash_of(source: &str) -> String {
    redis::Script::new(source).get_hash().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_by_hash_can_be_made_one_by_text() {
        let mut call = TRANSFER.call(&["a", "b"]);
        call.arg("x");
        let mut expected = TRANSFER.call_by_text(&["a", "b"]);
        expected.arg("x");
        assert_eq!(with_text(&call).unwrap().get_packed_command(), expected.get_packed_command());
        assert!(with_text(&redis::cmd("PING")).is_none());
    }

    #[test]
    fn every_script_says_what_its_keys_and_arguments_are() {
        for script in ALL {
            assert!(script.source().starts_with("-- "), "{}", script.name());
            assert!(
                script.source().contains("-- KEYS") && script.source().contains("-- ARGV"),
                "{}",
                script.name()
            );
        }
    }
}
