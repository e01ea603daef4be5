//! L6 with a killed database: nothing is lost, nothing counts twice, and no entry is rejected.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use journal::{Batch, DeliveredEntry, View, ViewError};
use ledger::Ledger;
use testkit::servers::{MariaDbServer, PostgresServer};

use crate::support::simulator::{Size, World, simulate};
use crate::support::{Place, apply, batch, everything, figures, open};

const SIZE: Size = Size { nodes: 2, users: 4, torrents: 5, clients_per_account: 2, announces_per_client: 40 };
const CONSUMERS: usize = 3;
const KILLS: u32 = 4;
/// Upper bound.
const PATIENCE: Duration = Duration::from_secs(120);
/// Of a consumer whose database does not answer.
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// Applies all its batches, with retries, until the kills are over and everything is applied.
async fn consume(ledger: Arc<Ledger>, name: String, share: Vec<DeliveredEntry>, pace: Duration) {
    for chunk in share.chunks(23) {
        let mut is_retry = false;
        loop {
            match ledger.apply(&Batch { is_retry, ..batch(&name, chunk) }).await {
                Ok(rejected) => {
                    assert_eq!(rejected, []);
                    break;
                }
                Err(ViewError::Transient { .. }) => {}
                Err(error) => panic!("{error:?}"),
            }
            is_retry = true;
            tokio::time::sleep(RETRY_DELAY).await;
        }
        // Slow enough that kills hit running work.
        tokio::time::sleep(pace).await;
    }
}

async fn survive(place: Place, mut kill_and_restart: impl FnMut() + Send + 'static) {
    let seed = 21;
    let world = simulate(seed, SIZE);
    let mut arrivals = world.arrivals.clone();
    fastrand::Rng::with_seed(seed).shuffle(&mut arrivals);
    let ledger = Arc::new(open(&place).await);
    let is_working = Arc::new(AtomicBool::new(true));
    let watched = Arc::clone(&is_working);
    let killer = tokio::task::spawn_blocking(move || {
        let met = kill_often(&mut kill_and_restart, &watched);
        // Keeps the server alive.
        (kill_and_restart, met)
    });
    let share = arrivals.len().div_ceil(CONSUMERS);
    let consumers = arrivals.chunks(share).enumerate().map(|(number, share)| {
        let name = format!("c{number}");
        tokio::spawn(consume(Arc::clone(&ledger), name, share.to_vec(), Duration::from_millis(40)))
    });
    for consumer in consumers.collect::<Vec<_>>() {
        tokio::time::timeout(PATIENCE, consumer).await.unwrap().unwrap();
    }
    is_working.store(false, Ordering::Relaxed);
    let (_server, met) = killer.await.unwrap();
    assert!(met > 0, "no kill met any work");
    check(&ledger, &world).await;
}

/// Kills at random times. Returns how many of them hit running work.
fn kill_often(kill_and_restart: &mut impl FnMut(), is_working: &AtomicBool) -> u32 {
    let mut random = fastrand::Rng::with_seed(21);
    let mut met = 0;
    for _ in 0..KILLS {
        std::thread::sleep(Duration::from_millis(random.u64(50..400)));
        met += u32::from(is_working.load(Ordering::Relaxed));
        kill_and_restart();
    }
    met
}

async fn check(ledger: &Ledger, world: &World) {
    for owner in 1..=SIZE.users {
        let moved = figures(ledger, owner).await;
        assert_eq!((moved.uploaded, moved.downloaded), world.credited_to_user(owner), "user {owner}");
    }
    let elsewhere = Place::sqlite();
    let expected = open(&elsewhere).await;
    for chunk in world.arrivals.chunks(500) {
        apply(&expected, "only", chunk).await;
    }
    assert_eq!(
        everything(ledger, SIZE.users, SIZE.torrents).await,
        everything(&expected, SIZE.users, SIZE.torrents).await
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn l6_postgres_may_be_killed_at_any_moment() {
    let mut server = PostgresServer::start();
    let place = Place::at(server.fresh_database());
    survive(place, move || {
        server.kill();
        server.restart();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l6_mariadb_may_be_killed_at_any_moment() {
    let mut server = MariaDbServer::start();
    let place = Place::at(server.fresh_database());
    survive(place, move || {
        server.kill();
        server.restart();
    })
    .await;
}
