//! The name of a client program by its peer id: `qBittorrent/5.0.2` for `-qB5020-…`.

use domain::PeerId;

const PROGRAMS: [(&str, &str); 14] = [
    ("AZ", "Azureus"),
    ("BC", "BitComet"),
    ("BI", "BiglyBT"),
    ("BT", "BitTorrent"),
    ("DE", "Deluge"),
    ("KT", "KTorrent"),
    ("LT", "libtorrent"),
    ("TR", "Transmission"),
    ("TX", "Tixati"),
    ("UT", "uTorrent"),
    ("UM", "uTorrent Mac"),
    ("XL", "Xunlei"),
    ("lt", "rTorrent"),
    ("qB", "qBittorrent"),
];

/// The program and its version; the plain prefix of an unknown program; none if the peer id does not name one.
pub fn agent_of(peer_id: &PeerId) -> Option<String> {
    let prefix = ledger::client_of(peer_id);
    let Some(inner) = prefix.strip_prefix('-').and_then(|rest| rest.strip_suffix('-')) else {
        return Some(prefix).filter(|prefix| !prefix.is_empty());
    };
    let (code, version) = inner.split_at_checked(2)?;
    let Some((_, program)) = PROGRAMS.iter().find(|(known, _)| *known == code) else { return Some(prefix) };
    // Azureus style: one digit per part, and letters for more than nine. A last zero or letter is left out.
    let digits: Vec<String> =
        version.chars().filter_map(|digit| digit.to_digit(36)).map(|part| part.to_string()).collect();
    let length = digits.iter().take(3).rposition(|part| part != "0").map_or(1, |last| last + 1);
    Some(format!("{program}/{}", digits[..length.max(2).min(digits.len())].join(".")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_named_with_their_version() {
        for (peer_id, name) in [
            (b"-qB5020-abcdefghijkl", Some("qBittorrent/5.0.2")),
            (b"-TR3000-abcdefghijkl", Some("Transmission/3.0")),
            (b"-DE13F0-abcdefghijkl", Some("Deluge/1.3.15")),
            (b"-ZZ1234-abcdefghijkl", Some("-ZZ1234-")),
            (b"M7-9-2--abcdefghijkl", Some("M7-9-2")),
            (b"\0\0\0\0\0\0\0\0abcdefghijkl", None),
        ] {
            assert_eq!(agent_of(&PeerId(*peer_id)).as_deref(), name);
        }
    }
}
