//! Transfers within a swarm: only downloaded bytes are uploaded.

use std::time::Duration;

/// Without seeders, a swarm transfers at this fraction of its speed.
const WITHOUT_SEEDERS: f64 = 0.2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Swarm {
    seeders: u32,
    leechers: u32,
    /// Downloaded bytes that no peer has reported as uploaded yet.
    owed: u64,
}

impl Swarm {
    pub(crate) fn join(&mut self, seeds: bool) {
        *self.side(seeds) += 1;
    }

    pub(crate) fn leave(&mut self, seeds: bool) {
        let side = self.side(seeds);
        *side = side.saturating_sub(1);
    }

    /// Bytes that one peer downloads within this time.
    pub(crate) fn download(&mut self, bytes_per_s: f64, length: Duration, left: u64) -> u64 {
        let rate = match (self.seeders, self.leechers) {
            (0, 0 | 1) => 0.0,
            (0, _) => bytes_per_s * WITHOUT_SEEDERS,
            _ => bytes_per_s,
        };
        let bytes = ((rate * length.as_secs_f64()) as u64).min(left);
        self.owed += bytes;
        bytes
    }

    /// Bytes that one peer uploads within this time: a part of what others downloaded, up to its bandwidth.
    pub(crate) fn upload(&mut self, bytes_per_s: f64, length: Duration, part: f64) -> u64 {
        let bandwidth = (bytes_per_s * length.as_secs_f64()) as u64;
        let bytes = ((self.owed as f64 * part.clamp(0.0, 1.0)) as u64).min(bandwidth).min(self.owed);
        self.owed -= bytes;
        bytes
    }

    /// Seeders and leechers.
    #[cfg(test)]
    pub(crate) fn members(&self) -> (u32, u32) {
        (self.seeders, self.leechers)
    }

    fn side(&mut self, seeds: bool) -> &mut u32 {
        if seeds { &mut self.seeders } else { &mut self.leechers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn uploads_never_exceed_downloads() {
        let mut swarm = Swarm::default();
        swarm.join(true);
        swarm.join(false);
        assert_eq!(swarm.upload(1e9, SECOND, 1.0), 0);
        assert_eq!(swarm.download(1000.0, SECOND, 400), 400);
        assert_eq!(swarm.upload(100.0, SECOND, 1.0), 100);
        assert_eq!(swarm.upload(1e9, SECOND, 1.0), 300);
        assert_eq!(swarm.upload(1e9, SECOND, 1.0), 0);
    }

    #[test]
    fn a_swarm_of_one_moves_nothing_and_one_without_seeders_crawls() {
        let mut swarm = Swarm::default();
        swarm.join(false);
        assert_eq!(swarm.download(1000.0, SECOND, 5000), 0);
        swarm.join(false);
        assert_eq!(swarm.download(1000.0, SECOND, 5000), 200);
        swarm.join(true);
        assert_eq!(swarm.download(1000.0, SECOND, 5000), 1000);
    }
}
