//! Notes: named values shared by the processes on one journal.
//!
//! | name | value | written by |
//! |---|---|---|
//! | a view | `paused`, and the token of the pause | the command that pauses it |
//! | `held`, view, process | the token of the pause that it confirms | the process |
//! | `reach`, view | how many seconds beyond the usual silence its rebuild must read | the view in memory |
//! | `skipped`, group, process | how many entries, before which millisecond, when | the process |

use std::collections::BTreeMap;

pub type Notes = BTreeMap<String, String>;

/// Prefix of a paused view's note.
pub(crate) const PAUSED: &str = "paused";

/// Entries that a group skipped because they are older than the installation (J11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    pub count: u64,
    /// Upper bound of their append time, in milliseconds since 1970.
    pub before_ms: u64,
    /// When the last of them was skipped, likewise.
    pub at_ms: u64,
}

impl Skipped {
    pub(crate) fn name(group: &str, process: &str) -> String {
        format!("skipped {group} {process}")
    }

    pub(crate) fn to_text(self) -> String {
        format!("{} {} {}", self.count, self.before_ms, self.at_ms)
    }

    fn parse(text: &str) -> Option<Skipped> {
        let numbers = text.split(' ').map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
        let [count, before_ms, at_ms] = numbers.try_into().ok()?;
        Some(Skipped { count, before_ms, at_ms })
    }

    /// The sum over all processes of a group; none if nothing was skipped.
    pub fn of_group(notes: &Notes, group: &str) -> Option<Skipped> {
        let all = Skipped::notes_of(notes, group).filter_map(|(_, text)| Skipped::parse(text));
        all.reduce(|one, other| Skipped {
            count: one.count + other.count,
            before_ms: one.before_ms.max(other.before_ms),
            at_ms: one.at_ms.max(other.at_ms),
        })
    }

    pub(crate) fn notes_of<'n>(
        notes: &'n Notes,
        group: &str,
    ) -> impl Iterator<Item = (&'n String, &'n String)> {
        let prefix = Skipped::name(group, "");
        notes.iter().filter(move |(name, _)| name.starts_with(&prefix))
    }

    /// When any group last skipped an entry.
    pub(crate) fn latest_ms(notes: &Notes) -> Option<u64> {
        let skipped = notes.iter().filter(|(name, _)| name.starts_with("skipped "));
        skipped.filter_map(|(_, text)| Skipped::parse(text)).map(|skipped| skipped.at_ms).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j11_skipped_entries_of_several_processes_are_summed() {
        let note = |process, count| {
            let skipped = Skipped { count, before_ms: 1000, at_ms: 2000 + count };
            (Skipped::name("ztorrent", process), skipped.to_text())
        };
        let mut notes = Notes::from([note("a.1", 3), note("b.2", 4)]);
        notes.insert(Skipped::name("ztorrent2", "c.3"), "9 9 9".to_owned());
        notes.insert(Skipped::name("ztorrent", "d.4"), "something else".to_owned());
        let all = Skipped { count: 7, before_ms: 1000, at_ms: 2004 };
        assert_eq!(Skipped::of_group(&notes, "ztorrent"), Some(all));
        assert_eq!(Skipped::of_group(&notes, "activity"), None);
        assert_eq!(Skipped::latest_ms(&notes), Some(2004));
    }
}
