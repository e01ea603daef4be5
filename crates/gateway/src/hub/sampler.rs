//! Estimates how many connections are dead (P14) by probing a sample.
//!
//! # Guarantees
//!
//! - Each minute one in `sample_one_in` connections is probed, at least one. Those that do not answer within
//!   `probe_s` are counted; their share times all connections is the estimate.
//! - No user goes offline because of it: only the probes of `presence` decide that.
//! - The sample is drawn at random, without a full pass.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hashbrown::HashSet;
use parking_lot::Mutex;
use presence::ConnId;

use super::ConnRef;
use super::users::Users;

const EVERY: Duration = Duration::from_secs(60);

pub(super) struct Sampler {
    users: Arc<Users>,
    random: Mutex<fastrand::Rng>,
    /// Probed connections without an answer yet.
    asked: Mutex<HashSet<ConnId, foldhash::fast::RandomState>>,
    /// Whether a sample is running: answers to other probes take no lock.
    is_asking: AtomicBool,
}

impl Sampler {
    pub(super) fn new(users: Arc<Users>, seed: u64) -> Sampler {
        Sampler {
            users,
            random: Mutex::new(fastrand::Rng::with_seed(seed)),
            asked: Mutex::default(),
            is_asking: AtomicBool::new(false),
        }
    }

    pub(super) fn answered(&self, conn: ConnId) {
        if self.is_asking.load(Ordering::Acquire) {
            self.asked.lock().remove(&conn);
        }
    }

    pub(super) async fn run(&self) {
        loop {
            tokio::time::sleep(EVERY).await;
            self.sample().await;
        }
    }

    /// Probes a sample and waits for the answers.
    pub(super) async fn sample(&self) {
        let settings = &self.users.settings;
        let (one_in, patience_s) = (settings.limits.sample_one_in as usize, settings.policy.probe.0);
        if one_in == 0 {
            return;
        }
        let sample = self.ask_sample(one_in);
        if sample.is_empty() {
            self.users.context.counters.hub.falsely_online.set(0);
            return;
        }
        tokio::time::sleep(Duration::from_secs(patience_s.into())).await;
        self.count_silent(&sample);
    }

    fn ask_sample(&self, one_in: usize) -> Vec<ConnRef> {
        let table = self.users.context.table.read();
        let sample = table.sample(table.len().div_ceil(one_in), &mut self.random.lock());
        // Set before the first answer can arrive.
        *self.asked.lock() = sample.iter().map(|conn| conn.conn).collect();
        self.is_asking.store(true, Ordering::Release);
        for outbox in sample.iter().filter_map(|conn| table.outbox(conn.conn)) {
            outbox.sample();
        }
        sample
    }

    fn count_silent(&self, sample: &[ConnRef]) {
        let counters = &self.users.context.counters.hub;
        self.is_asking.store(false, Ordering::Release);
        let asked = std::mem::take(&mut *self.asked.lock());
        let table = self.users.context.table.read();
        // Connections closed meanwhile do not count.
        let is_there = |conn: &&ConnRef| table.user(conn.conn) == Some(conn.user);
        let (there, all) = (sample.iter().filter(is_there).count(), table.len());
        let silent = sample.iter().filter(is_there).filter(|conn| asked.contains(&conn.conn)).count();
        counters.sampled.add(there as u64);
        counters.sampled_silent.add(silent as u64);
        counters.falsely_online.set((silent * all).checked_div(there).unwrap_or(0));
    }
}
