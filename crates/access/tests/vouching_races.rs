//! Strangers while things change: what was on its way, what fails half-way, and who gets another passkey (W4, W5).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod fixture;
#[path = "vouching/rig.rs"]
mod rig;

use std::sync::Arc;
use std::time::Duration;

use access::vouching::BreakerState;
use access::{Passkeys, Refusal, SqlWhitelist, VouchingSettings};
use domain::Seconds;
use fixture::{passkey, user_id};
use rig::{KEY, Rig, Wishes, settings, until};
use testkit::{Behaviour, RedisServer, VerifyEndpoint};

/// Tells of changes that another writer made before whatever we wrote: their set is not ours.
fn overtaken(rig: &Rig) -> Passkeys {
    Passkeys::new(Arc::new(SqlWhitelist::new(rig.store.clone())), rig.store.clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w4_a_write_back_that_raced_with_a_removal_does_not_survive() {
    let redis = RedisServer::start();
    let endpoint = VerifyEndpoint::plain(KEY);
    endpoint.accept_passkey(passkey(1));
    let rig = Rig::new(Wishes { redis: Some(&redis), ..Wishes::with(&endpoint) }).await;
    let user = rig.judge(passkey(1)).await.unwrap();
    until("the write-back", async || rig.is_listed(passkey(1)).await).await;
    endpoint.reject_passkey(&passkey(1));
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
    endpoint.accept_passkey(passkey(1));
    endpoint.behave(Behaviour::Slow(Duration::from_millis(500)));
    let rig = Arc::new(Rig::new(Wishes { redis: Some(&redis), ..Wishes::with(&endpoint) }).await);
    let judged = {
        let rig = Arc::clone(&rig);
        tokio::spawn(async move { rig.judge(passkey(1)).await })
    };
    until("the call", async || endpoint.calls() == 1).await;
    redis.freeze();
    let user = judged.await.unwrap().unwrap();
    endpoint.reject_passkey(&passkey(1));
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
    endpoint.accept_passkey(passkey(1));
    let rig = Rig::new(Wishes { redis: Some(&redis), ..Wishes::with(&endpoint) }).await;
    let user = rig.judge(passkey(1)).await.unwrap();
    until("the write-back", async || rig.is_listed(passkey(1)).await).await;
    endpoint.reject_passkey(&passkey(1));
    let upload = overtaken(&rig).upload().await.unwrap();
    upload.finish(true).await.unwrap();
    until("it to be taken back", async || !rig.is_listed(passkey(1)).await).await;
    until("the site's no", async || rig.judge(passkey(1)).await == Err(Refusal::UnknownPasskey)).await;
    until("its peers to go", async || rig.shut_out() == [user]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w5_a_no_of_the_endpoint_is_none_while_the_whitelist_cannot_be_asked() {
    let redis = RedisServer::start();
    let endpoint = VerifyEndpoint::plain(KEY);
    endpoint.accept_passkey(passkey(2));
    let rig = Rig::new(Wishes { redis: Some(&redis), ..Wishes::with(&endpoint) }).await;
    rig.whitelist.add(&[passkey(1), passkey(3)]).await.unwrap();
    let first = rig.judge(passkey(1)).await.unwrap();
    assert!(rig.judge(passkey(2)).await.is_ok());
    until("the write-back", async || rig.counters().write_backs.get() == 1).await;
    endpoint.reject_passkey(&passkey(2));
    rig.clock.advance(Seconds(301));
    redis.freeze();
    assert_eq!(rig.judge(passkey(1)).await, Ok(first), "the whitelist vouched, and cannot be asked");
    assert_eq!(rig.judge(passkey(2)).await, Err(Refusal::CannotCheck), "who vouched has taken it back");
    assert_eq!(rig.judge(passkey(3)).await, Err(Refusal::CannotCheck), "may be listed, for all we know");
    redis.thaw();
    until("the whitelist to be asked", async || rig.judge(passkey(3)).await.is_ok()).await;
    assert!(rig.judge(passkey(2)).await.is_ok(), "listed, and not remembered as unknown");
    assert!(rig.counters().calls.invalid.get() >= 3, "the endpoint did say no");
    assert_eq!(rig.shut_out(), [], "nobody's peers had to go");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w5_a_probe_decides_nothing_about_its_passkey() {
    let endpoint = VerifyEndpoint::plain(KEY);
    let pause = Duration::from_millis(200);
    let settings = VouchingSettings { pause, failures_max: 1, ..settings() };
    let rig = Rig::new(Wishes { settings, ..Wishes::with(&endpoint) }).await;
    endpoint.accept_passkey(passkey(1));
    endpoint.behave(Behaviour::Status(500));
    assert_eq!(rig.judge(passkey(1)).await, Err(Refusal::CannotCheck));
    endpoint.behave(Behaviour::Answers);
    until("a probe", async || rig.counters().breaker_state() == BreakerState::Closed).await;
    assert_eq!(rig.counters().calls.valid.get(), 1, "the probe was answered with yes");
    assert_eq!(rig.store.count_users().await.unwrap(), 0, "nobody asks, nobody is taken in");
    assert_eq!((rig.counters().cache_entries.get(), rig.is_listed(passkey(1)).await), (0, false));

    // Listed meanwhile: what the endpoint says to a probe is no reason to shut anybody out.
    let user = rig.judge(passkey(1)).await.unwrap();
    until("the write-back", async || rig.is_listed(passkey(1)).await).await;
    rig.passkeys.remove(&[passkey(1)]).await.unwrap();
    until("the removal", async || rig.shut_out() == [user]).await;
    endpoint.behave(Behaviour::Status(500));
    until("the pause", async || {
        let _ = rig.judge(passkey(1)).await;
        rig.counters().breaker_openings.get() == 2
    })
    .await;
    endpoint.reject_passkey(&passkey(1));
    rig.passkeys.add(&[passkey(1)]).await.unwrap();
    until("the addition", async || rig.judge(passkey(1)).await == Ok(user)).await;
    endpoint.behave(Behaviour::Answers);
    until("another probe", async || rig.counters().calls.invalid.get() == 1).await;
    assert_eq!(rig.judge(passkey(1)).await, Ok(user));
    assert_eq!(rig.shut_out(), [user], "once, by the removal");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w4_after_a_refresh_a_no_of_the_endpoint_turns_peers_out() {
    let endpoint = VerifyEndpoint::plain(KEY);
    let rig = Rig::new(Wishes::with(&endpoint)).await;
    rig.passkeys.add(&[passkey(1), passkey(2), passkey(3)]).await.unwrap();
    let mut users = Vec::new();
    for number in 1..=3 {
        users.push(rig.judge(passkey(number)).await.unwrap());
    }
    endpoint.accept_passkey(passkey(2));
    let mut upload = rig.passkeys.upload().await.unwrap();
    upload.push(format!("{}\n", passkey(3)).as_bytes()).await.unwrap();
    upload.finish(false).await.unwrap();
    until("who is gone", async || rig.judge(passkey(1)).await == Err(Refusal::UnknownPasskey)).await;
    until("its peers to go", async || rig.shut_out() == users[..1]).await;
    assert_eq!(rig.judge(passkey(2)).await, Ok(users[1]), "the endpoint vouches");
    assert_eq!(rig.judge(passkey(3)).await, Ok(users[2]), "listed");
    assert_eq!(rig.shut_out(), users[..1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w4_a_ban_goes_on_when_the_site_gives_somebody_another_passkey() {
    let redis = RedisServer::start();
    let endpoint = VerifyEndpoint::plain(KEY);
    endpoint.accept_passkey_of(passkey(1), 77);
    endpoint.accept_passkey_of(passkey(2), 78);
    let rig = Rig::new(Wishes { redis: Some(&redis), ..Wishes::with(&endpoint) }).await;
    assert_eq!(rig.judge(passkey(1)).await, Ok(user_id(77)));
    assert_eq!(rig.judge(passkey(2)).await, Ok(user_id(78)));
    until("the write-backs", async || rig.counters().write_backs.get() == 2).await;
    rig.store.set_user_enabled(user_id(77), false).await.unwrap();
    until("the ban", async || rig.judge(passkey(1)).await == Err(Refusal::UserDisabled)).await;
    for number in [1, 2] {
        endpoint.reject_passkey(&passkey(number));
    }
    endpoint.accept_passkey_of(passkey(11), 77);
    endpoint.accept_passkey_of(passkey(12), 78);
    assert!(rig.judge(passkey(11)).await.is_err(), "the ban goes on");
    assert_eq!(rig.judge(passkey(12)).await, Ok(user_id(78)), "and so does the account");
    until("the ban to be known", async || rig.judge(passkey(11)).await == Err(Refusal::UserDisabled)).await;
    for number in [1, 2] {
        until("the old passkey to be unknown", async || {
            rig.judge(passkey(number)).await == Err(Refusal::UnknownPasskey)
        })
        .await;
        assert!(!rig.is_listed(passkey(number)).await);
    }
    assert_eq!(rig.judge(passkey(12)).await, Ok(user_id(78)));
    assert_eq!(rig.store.count_users().await.unwrap(), 2, "nobody got a second account");
}
