//! The journal as other programs write and read it.

/// The fourteen fields of an entry, in the order of J2.
pub const JOURNAL_FIELDS: [&str; 14] = [
    "passkey",
    "infohash",
    "peer_id",
    "port",
    "ip",
    "af",
    "du",
    "dd",
    "left",
    "event",
    "ts",
    "dt",
    "interval",
    "min_interval",
];
