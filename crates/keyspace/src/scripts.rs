//! The Lua scripts: files in `lua/`, each with its KEYS and ARGV in a header.
//!
//! Scripts are called with `EVALSHA`. If Redis does not have a script (after a restart, a failover or `SCRIPT FLUSH`),
//! the call is repeated with `EVAL`. In a pipeline such calls are repeated in order, after the other commands.

use std::sync::LazyLock;

use redis::{Arg, Cmd};

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
    /// Records the number of a producer's appended batch.
    MARK_APPENDED,
    "mark_appended"
);
script!(
    /// Claims pending entries of one consumer for another (J4).
    TAKE_OVER,
    "take_over"
);
script!(
    /// Deletes a consumer without pending entries.
    DELETE_CONSUMER,
    "delete_consumer"
);
script!(
    /// Moves entries from one stream to another (J5, J6).
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
    /// Removes expired activity of a user, then reads counts and a page (A4, A5).
    ACTIVITY_READ,
    "activity_read"
);
script!(
    /// Executes commands in one slot of a cluster, unless another writer has claimed it.
    FENCED_WRITE,
    "fenced_write"
);
script!(
    /// Replaces the whitelist by a newly built set (W2).
    WHITELIST_SWITCH,
    "whitelist_switch"
);
script!(
    /// Exchanges the whitelist and the set that the last refresh replaced (W2).
    WHITELIST_UNDO,
    "whitelist_undo"
);
script!(
    /// Takes or renews a lease.
    LEASE_TAKE,
    "lease_take"
);
script!(
    /// Releases a lease.
    LEASE_RELEASE,
    "lease_release"
);
script!(
    /// Changes the infohash of a torrent of the mirror.
    REDIS_MIRROR_RENAME,
    "redis_mirror_rename"
);
script!(
    /// Repairs keys of one torrent of the mirror, unless entries were applied meanwhile.
    REDIS_MIRROR_REPAIR,
    "redis_mirror_repair"
);
script!(
    /// Removes torrents from the indexes and statistics of the mirror (M9, M10).
    REDIS_MIRROR_REMOVE,
    "redis_mirror_remove"
);
script!(
    /// Writes one gateway's members of a room.
    ROOM_PUT,
    "room_put"
);

script!(
    /// Writes one gateway's node entry of a user (P3, P13).
    PRESENCE_PUBLISH,
    "presence_publish",
    on "presence"
);
script!(
    /// Removes a due node entry, or ends a due pending period (P15).
    PRESENCE_REAP,
    "presence_reap",
    on "presence"
);
script!(
    /// Registers a gateway as watcher of a user, then reads the record (P4).
    PRESENCE_WATCH,
    "presence_watch",
    on "presence"
);
script!(
    /// A gateway joins, renews its lease or leaves; expired ones are declared dead (P15).
    PRESENCE_NODES,
    "presence_nodes"
);
script!(
    /// Adds users to a deadline set, moves their deadlines, or removes them (P13).
    PRESENCE_DUE_UPDATE,
    "presence_due_update"
);
script!(
    /// Reads the due users of a shard (P13).
    PRESENCE_DUE_READ,
    "presence_due_read"
);

/// Searched by hash when Redis does not have a script.
pub static ALL: [&Script; 22] = [
    &ROOM_PUT,
    &MARK_APPENDED,
    &TAKE_OVER,
    &DELETE_CONSUMER,
    &TRANSFER,
    &DELETE_ENTRIES,
    &TRIM,
    &ACTIVITY_READ,
    &FENCED_WRITE,
    &WHITELIST_SWITCH,
    &WHITELIST_UNDO,
    &LEASE_TAKE,
    &LEASE_RELEASE,
    &REDIS_MIRROR_RENAME,
    &REDIS_MIRROR_REPAIR,
    &REDIS_MIRROR_REMOVE,
    &PRESENCE_PUBLISH,
    &PRESENCE_REAP,
    &PRESENCE_WATCH,
    &PRESENCE_NODES,
    &PRESENCE_DUE_UPDATE,
    &PRESENCE_DUE_READ,
];

impl Script {
    /// File name without `.lua`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn source(&self) -> &'static str {
        self.source
    }

    /// `EVALSHA` with these keys, for [`crate::Redis::query`] and pipelines. Append ARGV to it.
    pub fn call(&self, keys: &[&str]) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(self.hash.as_str()).arg(keys.len()).arg(keys);
        command
    }

    /// `EVAL` with these keys, for transactions, in which an unknown hash cannot be repeated.
    pub fn call_by_text(&self, keys: &[&str]) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(self.source).arg(keys.len()).arg(keys);
        command
    }
}

/// The same call as `EVAL`; none if it is not an `EVALSHA` of one of these scripts.
pub(crate) fn as_eval(call: &Cmd) -> Option<Cmd> {
    let mut args = call.args_iter().filter_map(|arg| match arg {
        Arg::Simple(arg) => Some(arg),
        _ => None,
    });
    let _evalsha = args.next().filter(|name| name.eq_ignore_ascii_case(b"EVALSHA"))?;
    let hash = args.next()?;
    let script = ALL.iter().find(|script| script.hash.as_bytes() == hash)?;
    let mut command = redis::cmd("EVAL");
    command.arg(script.source);
    args.for_each(|arg| {
        command.arg(arg);
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
    fn evalsha_is_converted_to_eval() {
        let mut call = TRANSFER.call(&["a", "b"]);
        call.arg("x");
        let mut expected = TRANSFER.call_by_text(&["a", "b"]);
        expected.arg("x");
        assert_eq!(as_eval(&call).unwrap().get_packed_command(), expected.get_packed_command());
        assert!(as_eval(&redis::cmd("PING")).is_none());
    }

    #[test]
    fn every_script_documents_its_keys_and_arguments() {
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
