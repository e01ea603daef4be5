//! Malformed journal entries at intervals, as a faulty producer would write them: dead letters to inspect, replay and
//! drop.

use std::time::Duration;

use domain::clock::{Clock, SystemClock};
use fastrand::Rng;
use journal::{AppendToken, Fields, Lane};
use simulate::{Plan, catalogue};

use crate::command::CommandContext;

/// Delay of the first entry, and the interval at normal pace.
const FIRST_DELAY: Duration = Duration::from_secs(2);
const INTERVAL: Duration = Duration::from_secs(50);

/// Runs until cancelled. A failed append is retried.
pub(super) async fn write_periodically(context: &CommandContext, plan: &Plan) {
    let Ok(journal) = context.open_journal().await else { return std::future::pending().await };
    let mut random = Rng::with_seed(plan.seed);
    let producer = format!("demo-{}", std::process::id());
    tokio::time::sleep(FIRST_DELAY).await;
    let mut number = 1;
    loop {
        let token = AppendToken { producer: producer.clone(), number };
        if journal.append(Lane::Traffic, &[malformed_entry(plan, &mut random)], &token).await.is_ok() {
            number += 1;
        }
        tokio::time::sleep(plan.paced(INTERVAL)).await;
    }
}

/// The fourteen fields of an entry, one of them invalid.
fn malformed_entry(plan: &Plan, random: &mut Rng) -> Fields {
    let user = random.u32(1..=plan.users());
    let torrent = random.u32(1..=plan.torrents);
    let (wrong, value) =
        [("du", "-1"), ("ts", "yesterday"), ("left", "almost nothing"), ("event", "paused?")]
            [random.usize(..4)];
    let values = [
        ("passkey", catalogue::passkey_of(plan.seed, user).to_string()),
        ("infohash", catalogue::info_hash_of(plan.seed, torrent).to_string()),
        ("peer_id", "2d5243303030312d6f6464206f6e652020202020".to_owned()),
        ("port", "51413".to_owned()),
        ("ip", "127.0.0.9".to_owned()),
        ("af", "IPv4".to_owned()),
        ("du", "1048576".to_owned()),
        ("dd", "0".to_owned()),
        ("left", "0".to_owned()),
        ("event", "none".to_owned()),
        ("ts", SystemClock.now().0.to_string()),
        ("dt", "30".to_owned()),
        ("interval", "30".to_owned()),
        ("min_interval", "5".to_owned()),
    ];
    let mut fields = Fields::with_entry_capacity();
    for (name, right) in &values {
        fields.push(name, if *name == wrong { value } else { right.as_str() });
    }
    fields
}
