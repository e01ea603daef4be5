//! A number with its noun in English, for texts.

use std::fmt::Display;

/// "1 user", "2 users", "2 entries", "2 days".
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    if count == N::from(1) {
        return format!("1 {noun}");
    }
    let stem = noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u']));
    match stem {
        Some(stem) => format!("{count} {stem}ies"),
        None => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_has_no_plural() {
        assert_eq!(counted(1_u64, "torrent"), "1 torrent");
        assert_eq!(counted(0_u32, "torrent"), "0 torrents");
        assert_eq!(counted(1_usize, "entry"), "1 entry");
        assert_eq!(counted(2_i64, "entry"), "2 entries");
        assert_eq!([counted(2_u8, "day"), counted(2_u8, "key")], ["2 days", "2 keys"]);
    }
}
