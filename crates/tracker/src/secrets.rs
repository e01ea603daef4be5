//! Random keys of hashes, so that clients cannot predict them.

use crate::udp::ConnectionIds;

/// Drawn once per process.
#[derive(Clone, Copy)]
pub struct Secrets {
    words: [u64; 10],
}

impl Secrets {
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

    pub fn connection_ids(&self) -> ConnectionIds {
        ConnectionIds::new(self.pair(0))
    }
}
