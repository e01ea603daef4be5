//! Faults of the journal, its store or the database: clients get `retry in`, the cause is logged, nothing is lost,
//! and service resumes by itself. And operating on backlogs (J9).

mod backlog;
mod damage;
mod disk;
mod redis_errors;
mod redis_unreachable;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use testkit::{Plan, Population};

use crate::site::Site;

const PLAN: Plan = Plan {
    seed: 77,
    users: 12,
    torrents: 6,
    clients: 120,
    at_once: 6,
    crashes: false,
    pause: Duration::from_millis(2),
};

/// Registers a small population.
fn populate(site: &Site) -> Population {
    let population = Population::new(PLAN);
    site.register(&population);
    population
}

/// Lets a population live while something happens to its site; it has the last word.
fn meanwhile<T>(population: &mut Population, site: &mut Site, happens: impl FnOnce(&mut Site) -> T) -> T {
    struct UntilDropped<'a>(&'a AtomicBool);
    impl Drop for UntilDropped<'_> {
        fn drop(&mut self) {
            self.0.store(false, Ordering::Relaxed);
        }
    }
    let is_on = AtomicBool::new(true);
    let destination = site.destination();
    std::thread::scope(|scope| {
        let _over = UntilDropped(&is_on);
        scope.spawn(|| population.live_while(destination, &is_on));
        happens(site)
    })
}

/// Everyone leaves; then the accounts must be right and nothing may have failed.
#[track_caller]
fn assert_nothing_lost(population: &mut Population, site: &Site) {
    population.stop(site.destination());
    let end = site.settle();
    site.assert_nothing_failed(&end);
    site.assert_books_equal(&population.truth());
    if site.redis.is_some() {
        assert_eq!(site.lists_in_redis(population), population.activity_lists());
    }
}
