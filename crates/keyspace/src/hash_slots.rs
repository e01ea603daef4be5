//! The slot of a key and the first key of a command, for routing on a cluster.

use redis::{Arg, Cmd};

/// Hash slots of a cluster.
pub const SLOTS: u16 = 16384;

/// The slot of a key, by its hash tag if it has one.
pub fn slot_of(key: &[u8]) -> u16 {
    crc16(tag_of(key)) % SLOTS
}

/// The hash tag: what is between the first `{` and the next `}`; the whole key if that is empty or missing.
pub(crate) fn tag_of(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|&byte| byte == b'{') else {
        return key;
    };
    let rest = &key[open + 1..];
    match rest.iter().position(|&byte| byte == b'}') {
        None | Some(0) => key,
        Some(close) => &rest[..close],
    }
}

/// CRC-16/XMODEM, as in the Redis Cluster specification.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| (crc << 8) ^ CRC_TABLE[usize::from((crc >> 8) as u8 ^ byte)])
}

const CRC_TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { (crc << 1) ^ 0x1021 } else { crc << 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// Whether a command only reads, so that it may be sent again.
pub(crate) fn is_read_only(command: &Cmd) -> bool {
    const READ_ONLY: [&[u8]; 23] = [
        b"PING",
        b"GET",
        b"MGET",
        b"EXISTS",
        b"TYPE",
        b"HGET",
        b"HMGET",
        b"HGETALL",
        b"HKEYS",
        b"HLEN",
        b"XLEN",
        b"XRANGE",
        b"XREVRANGE",
        b"XINFO",
        b"XPENDING",
        b"ZCARD",
        b"ZCOUNT",
        b"ZRANGE",
        b"ZSCORE",
        b"SISMEMBER",
        b"SMISMEMBER",
        b"SMEMBERS",
        b"SCARD",
    ];
    let name = match command.args_iter().next() {
        Some(Arg::Simple(name)) => name,
        _ => return false,
    };
    READ_ONLY.iter().any(|reading| name.eq_ignore_ascii_case(reading))
}

/// The first key of a command; none if it has no key (`PING`), so that any server can execute it.
pub(crate) fn key_of(command: &Cmd) -> Option<&[u8]> {
    let mut args = command.args_iter().filter_map(|arg| match arg {
        Arg::Simple(arg) => Some(arg),
        _ => None,
    });
    let name = args.next()?.to_ascii_uppercase();
    match name.as_slice() {
        b"PING" | b"TIME" | b"INFO" | b"CONFIG" | b"SCRIPT" | b"CLUSTER" | b"CLIENT" | b"WAIT"
        | b"DBSIZE" | b"ROLE" | b"MULTI" | b"EXEC" | b"DISCARD" | b"UNWATCH" | b"ASKING" | b"PUBLISH" => None,
        b"XGROUP" | b"XINFO" | b"OBJECT" => args.nth(1),
        b"EVAL" | b"EVALSHA" => args.nth(2),
        b"XREAD" | b"XREADGROUP" => {
            args.by_ref().find(|arg| arg.eq_ignore_ascii_case(b"STREAMS"))?;
            args.next()
        }
        _ => args.next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_match_redis() {
        // From the Redis Cluster specification and CLUSTER KEYSLOT.
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(slot_of(b"foo"), 12182);
        assert_eq!(slot_of(b"{user1000}.following"), slot_of(b"user1000"));
        assert_eq!(slot_of(b"foo{}{bar}"), crc16(b"foo{}{bar}") % SLOTS);
        assert_eq!(slot_of(b"foo{{bar}}zap"), crc16(b"{bar") % SLOTS);
        assert_eq!(slot_of(b"foo{bar}{zap}"), slot_of(b"bar"));
    }

    #[test]
    fn the_first_key_of_a_command_is_found() {
        let key = |args: &[&str]| {
            let mut command = Cmd::new();
            args.iter().for_each(|arg| {
                command.arg(*arg);
            });
            key_of(&command).map(|key| String::from_utf8_lossy(key).into_owned())
        };
        assert_eq!(key(&["XADD", "k", "*", "a", "b"]).as_deref(), Some("k"));
        assert_eq!(key(&["xgroup", "CREATE", "k", "g", "0"]).as_deref(), Some("k"));
        assert_eq!(key(&["EVALSHA", "abc", "1", "k", "x"]).as_deref(), Some("k"));
        assert_eq!(key(&["XREADGROUP", "GROUP", "g", "c", "streams", "k", ">"]).as_deref(), Some("k"));
        assert_eq!(key(&["PING"]), None);
        assert_eq!(key(&["EVAL", "return 1", "0"]), None);
    }
}
