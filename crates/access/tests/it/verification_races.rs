//! Passkey verification during changes of the whitelist, failures, and changes of passkeys (W4, W5).

use std::sync::Arc;
use std::time::Duration;

use access::{Passkeys, Refusal, SqlWhitelist, VerificationSettings};
use domain::Seconds;
use testkit::{Behaviour, RedisServer, VerifyEndpoint};

use crate::fixture::{passkey, user_id};
use crate::verification::harness::{Harness, KEY, Options, settings, until};

/// Publishes changes without changing the harness's whitelist, as if another writer had changed it before.
fn earlier_writer(harness: &Harness) -> Passkeys {
    Passkeys::new(Arc::new(SqlWhitelist::new(harness.store.clone())), harness.store.clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w4_an_addition_that_raced_with_a_removal_is_undone() {
    let redis = RedisServer::start();
    let endpoint = VerifyEndpoint::plain(KEY);
    endpoint.accept_passkey(passkey(1));
    let harness = Harness::new(Options { redis: Some(&redis), ..Options::with(&endpoint) }).await;
    let user = harness.admit(passkey(1)).await.unwrap();
    until("the addition to the whitelist", async || harness.is_listed(passkey(1)).await).await;
    endpoint.reject_passkey(&passkey(1));
    earlier_writer(&harness).remove(&[passkey(1)]).await.unwrap();
    until("its removal", async || !harness.is_listed(passkey(1)).await).await;
    assert_eq!(harness.admit(passkey(1)).await, Err(Refusal::UnknownPasskey));
    assert_eq!(harness.revoked(), [user]);
    until("the counter", async || harness.counters().whitelist_removals.get() == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w4_an_addition_in_flight_during_a_removal_is_undone() {
    let redis = RedisServer::start();
    let endpoint = VerifyEndpoint::plain(KEY);
    endpoint.accept_passkey(passkey(1));
    endpoint.behave(Behaviour::Slow(Duration::from_millis(500)));
    let harness = Arc::new(Harness::new(Options { redis: Some(&redis), ..Options::with(&endpoint) }).await);
    let admitted = {
        let harness = Arc::clone(&harness);
        tokio::spawn(async move { harness.admit(passkey(1)).await })
    };
    until("the call", async || endpoint.calls() == 1).await;
    redis.freeze();
    let user = admitted.await.unwrap().unwrap();
    endpoint.reject_passkey(&passkey(1));
    earlier_writer(&harness).remove(&[passkey(1)]).await.unwrap();
    until("the revocation", async || harness.revoked() == [user]).await;
    redis.thaw();
    until("its removal", async || harness.counters().whitelist_removals.get() == 1).await;
    assert!(!harness.is_listed(passkey(1)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w4_an_addition_that_raced_with_a_refresh_is_undone() {
    let redis = RedisServer::start();
    let endpoint = VerifyEndpoint::plain(KEY);
    endpoint.accept_passkey(passkey(1));
    let harness = Harness::new(Options { redis: Some(&redis), ..Options::with(&endpoint) }).await;
    let user = harness.admit(passkey(1)).await.unwrap();
    until("the addition to the whitelist", async || harness.is_listed(passkey(1)).await).await;
    endpoint.reject_passkey(&passkey(1));
    let upload = earlier_writer(&harness).upload().await.unwrap();
    upload.finish(true).await.unwrap();
    until("its removal", async || !harness.is_listed(passkey(1)).await).await;
    until("the negative answer", async || harness.admit(passkey(1)).await == Err(Refusal::UnknownPasskey))
        .await;
    until("the revocation", async || harness.revoked() == [user]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w5_a_negative_answer_of_the_endpoint_does_not_count_while_the_whitelist_is_unavailable() {
    let redis = RedisServer::start();
    let endpoint = VerifyEndpoint::plain(KEY);
    endpoint.accept_passkey(passkey(2));
    let harness = Harness::new(Options { redis: Some(&redis), ..Options::with(&endpoint) }).await;
    harness.whitelist.add(&[passkey(1), passkey(3)]).await.unwrap();
    let first = harness.admit(passkey(1)).await.unwrap();
    assert!(harness.admit(passkey(2)).await.is_ok());
    until("the addition to the whitelist", async || harness.counters().whitelist_adds.get() == 1).await;
    endpoint.reject_passkey(&passkey(2));
    harness.clock.advance(Seconds(301));
    redis.freeze();
    assert_eq!(harness.admit(passkey(1)).await, Ok(first), "verified by the whitelist, which is unavailable");
    assert_eq!(
        harness.admit(passkey(2)).await,
        Err(Refusal::CannotCheck),
        "no longer verified by its source"
    );
    assert_eq!(harness.admit(passkey(3)).await, Err(Refusal::CannotCheck), "may be listed");
    redis.thaw();
    until("the whitelist", async || harness.admit(passkey(3)).await.is_ok()).await;
    assert!(harness.admit(passkey(2)).await.is_ok(), "listed, and not cached as invalid");
    assert!(harness.counters().calls.invalid.get() >= 3, "the endpoint did answer");
    assert_eq!(harness.revoked(), [], "no peers were evicted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w5_a_probe_decides_nothing_about_its_passkey() {
    let endpoint = VerifyEndpoint::plain(KEY);
    let pause = Duration::from_millis(200);
    let settings = VerificationSettings { pause, failures_max: 1, ..settings() };
    let harness = Harness::new(Options { settings, ..Options::with(&endpoint) }).await;
    endpoint.accept_passkey(passkey(1));
    endpoint.behave(Behaviour::Status(500));
    assert_eq!(harness.admit(passkey(1)).await, Err(Refusal::CannotCheck));
    endpoint.behave(Behaviour::Answers);
    until("a probe", async || !harness.counters().is_breaker_open()).await;
    assert_eq!(harness.counters().calls.valid.get(), 1, "the probe had a positive answer");
    assert_eq!(harness.store.count_users().await.unwrap(), 0, "without a request, no account");
    assert_eq!((harness.counters().cache_entries.get(), harness.is_listed(passkey(1)).await), (0, false));

    // Listed meanwhile: a negative answer to a probe revokes nothing.
    let user = harness.admit(passkey(1)).await.unwrap();
    until("the addition to the whitelist", async || harness.is_listed(passkey(1)).await).await;
    harness.passkeys.remove(&[passkey(1)]).await.unwrap();
    until("the removal", async || harness.revoked() == [user]).await;
    endpoint.behave(Behaviour::Status(500));
    until("the breaker to open", async || {
        let _ = harness.admit(passkey(1)).await;
        harness.counters().breaker_openings.get() == 2
    })
    .await;
    endpoint.reject_passkey(&passkey(1));
    harness.passkeys.add(&[passkey(1)]).await.unwrap();
    until("the addition", async || harness.admit(passkey(1)).await == Ok(user)).await;
    endpoint.behave(Behaviour::Answers);
    until("another probe", async || harness.counters().calls.invalid.get() == 1).await;
    assert_eq!(harness.admit(passkey(1)).await, Ok(user));
    assert_eq!(harness.revoked(), [user], "once, by the removal");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w4_after_a_refresh_a_negative_answer_of_the_endpoint_revokes() {
    let endpoint = VerifyEndpoint::plain(KEY);
    let harness = Harness::new(Options::with(&endpoint)).await;
    harness.passkeys.add(&[passkey(1), passkey(2), passkey(3)]).await.unwrap();
    let mut users = Vec::new();
    for number in 1..=3 {
        users.push(harness.admit(passkey(number)).await.unwrap());
    }
    endpoint.accept_passkey(passkey(2));
    let mut upload = harness.passkeys.upload().await.unwrap();
    upload.push(format!("{}\n", passkey(3)).as_bytes()).await.unwrap();
    upload.finish(false).await.unwrap();
    until("the refusal", async || harness.admit(passkey(1)).await == Err(Refusal::UnknownPasskey)).await;
    until("the revocation", async || harness.revoked() == users[..1]).await;
    assert_eq!(harness.admit(passkey(2)).await, Ok(users[1]), "verified by the endpoint");
    assert_eq!(harness.admit(passkey(3)).await, Ok(users[2]), "listed");
    assert_eq!(harness.revoked(), users[..1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w4_a_ban_persists_when_the_site_changes_the_passkey() {
    let redis = RedisServer::start();
    let endpoint = VerifyEndpoint::plain(KEY);
    endpoint.accept_passkey_of(passkey(1), 77);
    endpoint.accept_passkey_of(passkey(2), 78);
    let harness = Harness::new(Options { redis: Some(&redis), ..Options::with(&endpoint) }).await;
    assert_eq!(harness.admit(passkey(1)).await, Ok(user_id(77)));
    assert_eq!(harness.admit(passkey(2)).await, Ok(user_id(78)));
    until("the additions to the whitelist", async || harness.counters().whitelist_adds.get() == 2).await;
    harness.store.set_user_enabled(user_id(77), false).await.unwrap();
    until("the ban", async || harness.admit(passkey(1)).await == Err(Refusal::UserDisabled)).await;
    for number in [1, 2] {
        endpoint.reject_passkey(&passkey(number));
    }
    endpoint.accept_passkey_of(passkey(11), 77);
    endpoint.accept_passkey_of(passkey(12), 78);
    assert!(harness.admit(passkey(11)).await.is_err(), "the ban persists");
    assert_eq!(harness.admit(passkey(12)).await, Ok(user_id(78)), "and so does the account");
    until("the ban in the gate", async || harness.admit(passkey(11)).await == Err(Refusal::UserDisabled))
        .await;
    for number in [1, 2] {
        until("the old passkey to be refused", async || {
            harness.admit(passkey(number)).await == Err(Refusal::UnknownPasskey)
        })
        .await;
        assert!(!harness.is_listed(passkey(number)).await);
    }
    assert_eq!(harness.admit(passkey(12)).await, Ok(user_id(78)));
    assert_eq!(harness.store.count_users().await.unwrap(), 2, "no second accounts");
}
