//! The parts of a feed that watchers need.

use crate::many_gateways::history::Shown;
use crate::many_gateways::spans::Ms;
use crate::publication::{Publication, User};

/// Reads the feed of one connection, which begins with a snapshot.
#[derive(Debug, Default)]
pub struct Feed {
    has_begun: bool,
    is_whole: bool,
}

impl Feed {
    /// Whether the snapshot has come, in all its parts.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// What a line shows of others.
    pub fn read(&mut self, line: &[u8], at: Ms) -> Vec<Shown> {
        let text = String::from_utf8_lossy(line);
        let Some(data) = Publication::of_line(line) else { return Vec::new() };
        match data.kind.as_str() {
            "snapshot" => assert!(!self.has_begun, "a second snapshot on one connection: {text}"),
            "changes" => assert!(self.has_begun, "changes before the snapshot: {text}"),
            _ => return Vec::new(),
        }
        let is_change = self.is_whole;
        self.has_begun = true;
        self.is_whole |= !data.more;
        let others = data.users.into_iter().filter(|user| !user.is_self);
        let shown = others.map(|User { id, status, version, .. }| Shown {
            at,
            user: id.parse().unwrap(),
            status,
            version,
            is_change,
        });
        shown.collect()
    }
}
