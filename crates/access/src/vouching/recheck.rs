//! Remembered answers compared with a whitelist that was replaced, a part at a time.

use domain::Passkey;

use super::verdicts::{Verdict, Verdicts};

/// Passkeys asked about at a time.
const PART_MAX: usize = 1000;

/// What is still to be compared.
#[derive(Debug, Default)]
pub(super) struct Recheck {
    left: Vec<Passkey>,
    is_running: bool,
    /// The whitelist was replaced again while a part was on its way, whose answer is worth nothing.
    is_outdated: bool,
}

/// Passkeys with the answers that were remembered when the whitelist was asked.
pub(super) type Part = Vec<(Passkey, Verdict)>;

impl Recheck {
    /// Begins, or begins again.
    pub(super) fn begin(&mut self, verdicts: &Verdicts) {
        self.left = verdicts.passkeys();
        self.is_outdated = self.is_running;
    }

    /// The next part to ask about, unless one is on its way.
    pub(super) fn next(&mut self, verdicts: &Verdicts) -> Option<Part> {
        if self.is_running || self.left.is_empty() {
            return None;
        }
        let from = self.left.len().saturating_sub(PART_MAX);
        let part: Part = self
            .left
            .drain(from..)
            .filter_map(|passkey| verdicts.get(&passkey).map(|verdict| (passkey, verdict)))
            .collect();
        self.is_running = !part.is_empty();
        self.is_running.then_some(part)
    }

    /// A part was answered. Tells whether the answer counts.
    pub(super) fn hear_answer(&mut self) -> bool {
        self.is_running = false;
        !std::mem::take(&mut self.is_outdated)
    }

    /// A part could not be asked about: it is asked about again.
    pub(super) fn hear_failure(&mut self, part: Part) {
        self.is_running = false;
        if !std::mem::take(&mut self.is_outdated) {
            self.left.extend(part.into_iter().map(|(passkey, _)| passkey));
        }
    }
}
