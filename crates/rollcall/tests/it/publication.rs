//! Publications of a user's feed, as clients receive them.

use serde::Deserialize;

#[derive(Deserialize)]
struct Line {
    push: Push,
}

#[derive(Deserialize)]
struct Push {
    #[serde(rename = "pub")]
    publication: Option<Envelope>,
}

#[derive(Deserialize)]
struct Envelope {
    data: Publication,
}

#[derive(Deserialize)]
pub struct Publication {
    /// `snapshot` or `changes`, or another one without users.
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub users: Vec<User>,
    #[serde(default)]
    pub removed: Vec<String>,
    /// The snapshot continues.
    #[serde(default)]
    pub more: bool,
}

#[derive(Deserialize)]
pub struct User {
    pub id: String,
    pub status: String,
    pub version: u64,
    #[serde(default)]
    pub last_seen: Option<u64>,
    #[serde(default, rename = "self")]
    pub is_self: bool,
}

impl Publication {
    /// The publication of a line, unless it is another push.
    pub fn of_line(line: &[u8]) -> Option<Publication> {
        let parsed = serde_json::from_slice::<Line>(line);
        let line = parsed.unwrap_or_else(|error| panic!("{}: {error}", String::from_utf8_lossy(line)));
        line.push.publication.map(|publication| publication.data)
    }
}
