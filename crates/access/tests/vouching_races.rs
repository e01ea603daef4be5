//! Strangers while things change: what was on its way, what fails half-way, and who gets another passkey (W4, W5).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod fixture;
#[path = "vouching/rig.rs"]
mod rig;

use std::sync::Arc;
use std::time::Duration;

use access::{Passkeys, Refusal, SqlWhitelist};
use fixture::passkey;
use rig::{KEY, Rig, Wishes, until};
use testkit::{Behaviour, RedisServer, VerifyEndpoint};

/// Tells of changes that another writer made before whatever we wrote: their set is not ours.
fn overtaken(rig: &Rig) -> Passkeys {
    Passkeys::new(Arc::new(SqlWhitelist::new(rig.store.clone())), rig.store.clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w4_a_write_back_that_raced_with_a_removal_does_not_survive() {
    let redis = RedisServer::start();
    let endpoint = VerifyEndpoint::plain(KEY);
    endpoint.vouch_for(passkey(1));
    let rig = Rig::new(Wishes { redis: Some(&redis), ..Wishes::with(&endpoint) }).await;
    let user = rig.judge(passkey(1)).await.unwrap();
    until("the write-back", async || rig.is_listed(passkey(1)).await).await;
    endpoint.disown(&passkey(1));
    overtaken(&rig).remove(&[passkey(1)]).await.unwrap();
    until("it to be taken back", async || !rig.is_listed(passkey(1)).await).await;
    assert_eq!(rig.judge(passkey(1)).await, Err(Refusal::UnknownPasskey));
    assert_eq!(rig.shut_out(), [user]);
    until("it to be counted", async || rig.counters().take_backs.get() == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w4_a_write_back_that_is_under_way_during_a_removal_does_not_survive() {
    let redis = RedisServer::start();
    let endpoint = VerifyEndpoint::plain(KEY);
    endpoint.vouch_for(passkey(1));
    endpoint.behave(Behaviour::Slow(Duration::from_millis(500)));
    let rig = Arc::new(Rig::new(Wishes { redis: Some(&redis), ..Wishes::with(&endpoint) }).await);
    let judged = {
        let rig = Arc::clone(&rig);
        tokio::spawn(async move { rig.judge(passkey(1)).await })
    };
    until("the call", async || endpoint.calls() == 1).await;
    redis.freeze();
    let user = judged.await.unwrap().unwrap();
    endpoint.disown(&passkey(1));
    overtaken(&rig).remove(&[passkey(1)]).await.unwrap();
    until("the removal to be heard of", async || rig.shut_out() == [user]).await;
    redis.thaw();
    until("it to be taken back", async || rig.counters().take_backs.get() == 1).await;
    assert!(!rig.is_listed(passkey(1)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w4_a_write_back_that_raced_with_a_refresh_does_not_survive() {
    let redis = RedisServer::start();
    let endpoint = VerifyEndpoint::plain(KEY);
    endpoint.vouch_for(passkey(1));
    let rig = Rig::new(Wishes { redis: Some(&redis), ..Wishes::with(&endpoint) }).await;
    let user = rig.judge(passkey(1)).await.unwrap();
    until("the write-back", async || rig.is_listed(passkey(1)).await).await;
    endpoint.disown(&passkey(1));
    let upload = overtaken(&rig).upload().await.unwrap();
    upload.finish(true).await.unwrap();
    until("it to be taken back", async || !rig.is_listed(passkey(1)).await).await;
    until("the site's no", async || rig.judge(passkey(1)).await == Err(Refusal::UnknownPasskey)).await;
    until("its peers to go", async || rig.shut_out() == [user]).await;
}
