//! Secrets of a process: keys of hashes that strangers must not foresee.

use crate::udp::ConnectionIds;

/// Secrets of a process, drawn at its start.
#[derive(Clone, Copy)]
pub struct Secrets {
    words: [u64; 10],
}

impl Secrets {
    /// Draws new ones.
    pub fn draw() -> Result<Self, getrandom::Error> {
        let mut words = [0; 10];
        for word in &mut words {
            *word = getrandom::u64()?;
        }
        Ok(Secrets { words })
    }

    pub(crate) fn pair(&self, which: usize) -> [u64; 2] {
        [self.words[2 * which], self.words[2 * which + 1]]
    }

    /// Gives and checks connection ids over UDP.
    pub fn connection_ids(&self) -> ConnectionIds {
        ConnectionIds::new(self.pair(0))
    }
}
