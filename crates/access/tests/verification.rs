//! Strangers, for whom the whitelist or a real endpoint vouches, fails to, or lies (W4, W5).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod fixture;
#[path = "verification/harness.rs"]
mod harness;

use std::sync::Arc;
use std::time::Duration;

use access::verification::BreakerState;
use access::{OnVerifyFailure, Refusal, VerificationSettings};
use domain::Seconds;
use fixture::{new_user, passkey, user_id};
use harness::{Harness, KEY, Options, endpoint_of, settings, until};
use testkit::{Behaviour, RedisServer, VerifyEndpoint};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w4_the_whitelist_vouches_before_anybody_is_called() {
    let endpoint = VerifyEndpoint::plain(KEY);
    let harness = Harness::new(Options::with(&endpoint)).await;
    harness.whitelist.add(&[passkey(1)]).await.unwrap();
    let user = harness.admit(passkey(1)).await.unwrap();
    assert_eq!(user, user_id(1_000_000), "the first number for strangers");
    assert_eq!(endpoint.calls(), 0);
    let row = harness.store.user(user).await.unwrap().unwrap();
    assert!(row.is_external && row.enabled);
    assert_eq!(harness.admit(passkey(1)).await, Ok(user));
    assert_eq!(harness.counters().whitelist_hits.get(), 1, "the second time it is remembered");
    assert_eq!(harness.counters().external_users_created.get(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w4_who_is_ours_is_never_asked_about() {
    let endpoint = VerifyEndpoint::plain(KEY);
    let harness = Harness::new(Options::with(&endpoint)).await;
    harness.store.add_user(new_user(5)).await.unwrap();
    until("the gate to know the user", async || harness.admit(passkey(5)).await == Ok(user_id(5))).await;
    let calls = endpoint.calls();
    harness.clock.advance(Seconds(1000));
    assert_eq!(harness.admit(passkey(5)).await, Ok(user_id(5)));
    harness.store.set_user_enabled(user_id(5), false).await.unwrap();
    endpoint.accept_passkey(passkey(5));
    until("the gate to shut the user out", async || {
        harness.admit(passkey(5)).await == Err(Refusal::UserDisabled)
    })
    .await;
    assert_eq!(endpoint.calls(), calls);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w4_the_endpoint_vouches_and_the_whitelist_learns_of_it() {
    let redis = RedisServer::start();
    let endpoint = VerifyEndpoint::tls(KEY);
    endpoint.accept_passkey(passkey(1));
    endpoint.accept_passkey_of(passkey(2), 77);
    endpoint.accept_passkey_of(passkey(3), 7);
    let harness = Harness::new(Options { redis: Some(&redis), ..Options::with(&endpoint) }).await;
    harness.store.add_user(new_user(7)).await.unwrap();
    assert_eq!(harness.admit(passkey(1)).await, Ok(user_id(1_000_000)));
    assert_eq!(harness.admit(passkey(2)).await, Ok(user_id(77)), "the site's number");
    assert_eq!(harness.admit(passkey(3)).await, Ok(user_id(1_000_001)), "that number is one of ours");
    assert_eq!(harness.admit(passkey(4)).await, Err(Refusal::UnknownPasskey));
    assert_eq!((endpoint.calls(), endpoint.connections(), endpoint.unauthorised()), (4, 1, 0));
    until("three write-backs", async || harness.counters().whitelist_adds.get() == 3).await;
    assert_eq!(redis.cli(&["SISMEMBER", "pt:passkeys", &passkey(2).to_string()]).trim(), "1");
    assert_eq!(redis.cli(&["SCARD", "pt:passkeys"]).trim(), "3");
    harness.clock.advance(Seconds(301));
    assert_eq!(harness.admit(passkey(2)).await, Ok(user_id(77)));
    assert_eq!(endpoint.calls(), 4, "the whitelist knows now");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w4_concurrent_misses_for_one_passkey_cause_one_call() {
    let endpoint = VerifyEndpoint::plain(KEY);
    endpoint.accept_passkey(passkey(1));
    endpoint.behave(Behaviour::Slow(Duration::from_millis(300)));
    let harness = Arc::new(Harness::new(Options::with(&endpoint)).await);
    let admitted: Vec<_> = (0..50)
        .map(|_| {
            let harness = Arc::clone(&harness);
            tokio::spawn(async move { harness.admit(passkey(1)).await })
        })
        .collect();
    for one in admitted {
        assert_eq!(one.await.unwrap(), Ok(user_id(1_000_000)));
    }
    assert_eq!(endpoint.calls_about(&passkey(1)), 1);
    assert_eq!(harness.store.count_users().await.unwrap(), 1);
    assert_eq!(harness.counters().waiting.get(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w4_a_no_is_remembered_for_its_own_time() {
    let endpoint = VerifyEndpoint::plain(KEY);
    let harness = Harness::new(Options::with(&endpoint)).await;
    assert_eq!(harness.admit(passkey(1)).await, Err(Refusal::UnknownPasskey));
    endpoint.accept_passkey(passkey(1));
    harness.clock.advance(Seconds(59));
    assert_eq!(harness.admit(passkey(1)).await, Err(Refusal::UnknownPasskey));
    assert_eq!(endpoint.calls(), 1);
    harness.clock.advance(Seconds(1));
    assert!(harness.admit(passkey(1)).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w2_between_the_two_renames_of_a_refresh_no_member_is_refused() {
    let redis = RedisServer::start();
    let endpoint = VerifyEndpoint::plain(KEY);
    let harness = Harness::new(Options { redis: Some(&redis), ..Options::with(&endpoint) }).await;
    redis.cli(&["SADD", "pt:passkeys", &passkey(1).to_string(), &passkey(2).to_string()]);
    redis.cli(&["SADD", "pt:passkeys:new", &passkey(1).to_string(), &passkey(2).to_string()]);
    let user = harness.admit(passkey(1)).await.unwrap();
    redis.cli(&["RENAME", "pt:passkeys", "pt:passkeys:old"]);
    harness.clock.advance(Seconds(301));
    assert_eq!(
        harness.admit(passkey(1)).await,
        Ok(user),
        "known from before, and the endpoint's no is not theirs"
    );
    assert_eq!(harness.admit(passkey(2)).await, Err(Refusal::CannotCheck));
    redis.cli(&["RENAME", "pt:passkeys:new", "pt:passkeys"]);
    assert!(harness.admit(passkey(2)).await.is_ok(), "no refusal was remembered");
    assert!(harness.revoked().is_empty());
    // A member that the new set leaves out is refused.
    redis.cli(&["SREM", "pt:passkeys", &passkey(1).to_string()]);
    harness.clock.advance(Seconds(301));
    assert_eq!(harness.admit(passkey(1)).await, Err(Refusal::UnknownPasskey));
    until("its peers to go", async || harness.revoked() == [user]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w5_no_failure_of_the_endpoint_is_an_answer() {
    let endpoint = VerifyEndpoint::plain(KEY);
    endpoint.accept_passkey(passkey(1));
    let mut options = Options::with(&endpoint);
    options.settings.failures_max = 1000;
    options.endpoint.as_mut().unwrap().timeout = Duration::from_millis(300);
    let harness = Harness::new(options).await;
    let body = |text: &str| Behaviour::Body(text.to_owned());
    let failures = [
        Behaviour::Status(500),
        Behaviour::Status(404),
        Behaviour::Status(401),
        Behaviour::Status(204),
        Behaviour::Redirects,
        Behaviour::Huge,
        Behaviour::Closes,
        Behaviour::Slow(Duration::from_secs(2)),
        body(""),
        body("no"),
        body("true"),
        body("[]"),
        body("{}"),
        body("{\"valid\": \"true\"}"),
        body("{\"valid\": 1}"),
        body("{\"valid\": null}"),
        body("{\"valid\": true, \"valid\": false}"),
        body("{\"valid\": true} and more"),
    ];
    for failure in failures {
        endpoint.behave(failure.clone());
        assert_eq!(harness.admit(passkey(1)).await, Err(Refusal::CannotCheck), "{failure:?}");
        assert_eq!(harness.admit(passkey(9)).await, Err(Refusal::CannotCheck), "{failure:?}");
    }
    let calls = &harness.counters().calls;
    assert_eq!((calls.valid.get(), calls.invalid.get()), (0, 0));
    assert_eq!((calls.timed_out.get(), calls.unreachable.get()), (4, 0));
    assert_eq!((calls.wrong_status.get(), calls.unreadable.get()), (20, 48));
    assert_eq!(harness.store.count_users().await.unwrap(), 0, "nobody was taken in");
    endpoint.behave(body("{\"valid\": true, \"user_id\": \"seven\", \"more\": [1]}"));
    assert_eq!(harness.admit(passkey(1)).await, Ok(user_id(1_000_000)), "what else it says is for others");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w5_neither_a_wrong_certificate_nor_a_wrong_key_nor_silence_is_an_answer() {
    let endpoint = VerifyEndpoint::tls(KEY);
    endpoint.accept_passkey(passkey(1));
    let other = VerifyEndpoint::tls(KEY);
    let mut options = Options::with(&endpoint);
    options.endpoint.as_mut().unwrap().ca_file = Some(other.ca_file());
    let harness = Harness::new(options).await;
    assert_eq!(harness.admit(passkey(1)).await, Err(Refusal::CannotCheck));
    assert_eq!(endpoint.calls(), 0, "neither key nor passkey were sent");
    assert_eq!(harness.counters().calls.unreachable.get(), 2);

    let mut options = Options::with(&endpoint);
    options.endpoint.as_mut().unwrap().api_key = "another key".to_owned();
    let harness = Harness::new(options).await;
    assert_eq!(harness.admit(passkey(1)).await, Err(Refusal::CannotCheck));

    let harness = Harness::new(Options::with(&endpoint)).await;
    assert!(harness.admit(passkey(1)).await.is_ok());
    drop(endpoint);
    assert_eq!(harness.admit(passkey(2)).await, Err(Refusal::CannotCheck), "it is gone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w5_an_endpoint_that_fails_is_left_alone_until_a_probe_is_answered() {
    let endpoint = VerifyEndpoint::plain(KEY);
    endpoint.behave(Behaviour::Status(500));
    let pause = Duration::from_millis(300);
    let harness = Harness::new(Options {
        settings: VerificationSettings { pause, ..settings() },
        ..Options::with(&endpoint)
    })
    .await;
    for number in 1..=20 {
        assert_eq!(harness.admit(passkey(number)).await, Err(Refusal::CannotCheck));
    }
    assert!(endpoint.calls() < 40, "{} calls", endpoint.calls());
    assert_ne!(harness.counters().breaker_state(), BreakerState::Closed);
    assert_eq!(harness.counters().breaker_openings.get(), 1);
    assert!(harness.counters().calls_breaker_open.get() > 0);
    endpoint.accept_passkey(passkey(1));
    endpoint.behave(Behaviour::Answers);
    until("a probe", async || harness.counters().breaker_state() == BreakerState::Closed).await;
    assert!(harness.admit(passkey(1)).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w5_known_only_lets_in_who_is_listed_or_was_vouched_for_by_whom_nobody_can_ask() {
    let redis = RedisServer::start();
    let endpoint = VerifyEndpoint::plain(KEY);
    let harness = Harness::new(Options { redis: Some(&redis), ..Options::with(&endpoint) }).await;
    endpoint.accept_passkey(passkey(1));
    harness.whitelist.add(&[passkey(2), passkey(3)]).await.unwrap();
    let first = harness.admit(passkey(1)).await.unwrap();
    let second = harness.admit(passkey(2)).await.unwrap();
    assert!(harness.admit(passkey(3)).await.is_ok());
    until("the write-back", async || harness.counters().whitelist_adds.get() == 1).await;
    endpoint.behave(Behaviour::Status(500));
    redis.cli(&["SREM", "pt:passkeys", &passkey(1).to_string(), &passkey(3).to_string()]);
    harness.clock.advance(Seconds(301));
    assert_eq!(harness.admit(passkey(1)).await, Ok(first), "the endpoint vouched, and cannot be asked");
    assert_eq!(harness.admit(passkey(2)).await, Ok(second), "listed");
    assert_eq!(harness.admit(passkey(3)).await, Err(Refusal::CannotCheck), "the whitelist took it back");
    assert_eq!(harness.admit(passkey(4)).await, Err(Refusal::CannotCheck), "never heard of");
    harness.clock.advance(Seconds(301));
    redis.freeze();
    assert_eq!(harness.admit(passkey(2)).await, Ok(second), "neither can be asked");
    redis.thaw();
    assert!(harness.counters().stale_kept.get() >= 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w5_refuse_lets_in_nobody_but_our_own_while_the_endpoint_fails() {
    let endpoint = VerifyEndpoint::plain(KEY);
    let pause = Duration::from_millis(200);
    let settings = VerificationSettings { on_failure: OnVerifyFailure::Refuse, pause, ..settings() };
    let harness = Harness::new(Options { settings, ..Options::with(&endpoint) }).await;
    harness.store.add_user(new_user(5)).await.unwrap();
    harness.whitelist.add(&[passkey(1)]).await.unwrap();
    assert!(harness.admit(passkey(1)).await.is_ok());
    endpoint.behave(Behaviour::Status(503));
    until("the endpoint to be left alone", async || {
        let _ = harness.admit(passkey(2)).await;
        harness.counters().breaker_openings.get() == 1
    })
    .await;
    assert_eq!(
        harness.admit(passkey(1)).await,
        Err(Refusal::CannotCheck),
        "listed, and refused all the same"
    );
    until("our own", async || harness.admit(passkey(5)).await == Ok(user_id(5))).await;
    endpoint.behave(Behaviour::Answers);
    until("strangers to be let in again", async || harness.admit(passkey(1)).await.is_ok()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w4_calls_are_limited_and_whoever_is_too_many_comes_back() {
    let endpoint = VerifyEndpoint::plain(KEY);
    let settings = VerificationSettings { calls_per_s: 1, ..settings() };
    let harness = Harness::new(Options { settings, ..Options::with(&endpoint) }).await;
    for number in 1..=20 {
        let _ = harness.admit_from(passkey(number), [127, 0, 0, number as u8].into()).await;
    }
    assert!(harness.counters().calls_over_rate.get() > 0);
    assert!(endpoint.calls() < 20, "{} calls", endpoint.calls());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w4_calls_at_once_are_limited_and_the_others_wait_their_turn() {
    let endpoint = VerifyEndpoint::plain(KEY);
    endpoint.behave(Behaviour::Slow(Duration::from_millis(50)));
    let settings = VerificationSettings { calls_at_once_max: 2, ..settings() };
    let harness = Arc::new(Harness::new(Options { settings, ..Options::with(&endpoint) }).await);
    let admitted: Vec<_> = (0..12)
        .map(|number| {
            let harness = Arc::clone(&harness);
            tokio::spawn(async move { harness.admit(passkey(number)).await })
        })
        .collect();
    for one in admitted {
        assert_eq!(one.await.unwrap(), Err(Refusal::UnknownPasskey));
    }
    assert_eq!((endpoint.calls(), endpoint.connections()), (12, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_through_us_shuts_out_at_once_and_an_addition_lets_in() {
    let harness = Harness::new(Options::default()).await;
    harness.passkeys.add(&[passkey(1)]).await.unwrap();
    let user = harness.admit(passkey(1)).await.unwrap();
    harness.passkeys.remove(&[passkey(1)]).await.unwrap();
    until("the removal", async || harness.admit(passkey(1)).await == Err(Refusal::UnknownPasskey)).await;
    assert_eq!(harness.revoked(), [user]);
    assert!(!harness.gate.is_enabled(user, fixture::NOW), "its peers go");
    harness.passkeys.add(&[passkey(1)]).await.unwrap();
    until("the addition", async || harness.admit(passkey(1)).await == Ok(user)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refresh_shuts_out_who_is_gone_and_keeps_the_others() {
    let harness = Harness::new(Options::default()).await;
    let everybody: Vec<_> = (1..=2500).map(passkey).collect();
    harness.whitelist.add(&everybody[..2400]).await.unwrap();
    let mut users = Vec::new();
    for one in &everybody[..10] {
        users.push(harness.admit(*one).await.unwrap());
    }
    assert_eq!(harness.admit(passkey(2500)).await, Err(Refusal::UnknownPasskey));
    let mut upload = harness.passkeys.upload().await.unwrap();
    let lines: Vec<String> = everybody[5..].iter().map(ToString::to_string).collect();
    upload.push(lines.join("\n").as_bytes()).await.unwrap();
    upload.finish(false).await.unwrap();
    until("all who are gone", async || harness.revoked().len() == 5).await;
    let mut gone = harness.revoked();
    gone.sort();
    assert_eq!(gone, users[..5]);
    assert_eq!(harness.admit(passkey(1)).await, Err(Refusal::UnknownPasskey));
    assert_eq!(harness.admit(passkey(6)).await, Ok(users[5]));
    until("who is new", async || harness.admit(passkey(2500)).await.is_ok()).await;
    assert_eq!(harness.revoked().len(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_a_change_overtook_is_asked_for_again() {
    let endpoint = VerifyEndpoint::plain(KEY);
    endpoint.accept_passkey(passkey(1));
    endpoint.behave(Behaviour::Slow(Duration::from_millis(500)));
    let harness = Arc::new(Harness::new(Options::with(&endpoint)).await);
    let admitted = {
        let harness = Arc::clone(&harness);
        tokio::spawn(async move { harness.admit(passkey(1)).await })
    };
    until("the call", async || endpoint.calls() == 1).await;
    endpoint.reject_passkey(&passkey(1));
    harness.passkeys.remove(&[passkey(1)]).await.unwrap();
    assert_eq!(admitted.await.unwrap(), Err(Refusal::UnknownPasskey));
    assert_eq!((endpoint.calls(), harness.counters().lookups_repeated.get()), (2, 1));
    assert!(!harness.is_listed(passkey(1)).await, "and it was not written back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_direct_removal_shuts_out_when_the_answer_is_too_old() {
    let redis = RedisServer::start();
    let harness = Harness::new(Options { redis: Some(&redis), ..Options::default() }).await;
    redis.cli(&["SADD", "pt:passkeys", &passkey(1).to_string(), &passkey(2).to_string()]);
    let user = harness.admit(passkey(1)).await.unwrap();
    redis.cli(&["SREM", "pt:passkeys", &passkey(1).to_string()]);
    harness.clock.advance(Seconds(299));
    assert_eq!(harness.admit(passkey(1)).await, Ok(user));
    harness.clock.advance(Seconds(1));
    assert_eq!(harness.admit(passkey(1)).await, Err(Refusal::UnknownPasskey));
    until("its peers to go", async || harness.revoked() == [user]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disabled_account_shuts_a_stranger_out_for_good() {
    let harness = Harness::new(Options::default()).await;
    harness.whitelist.add(&[passkey(1)]).await.unwrap();
    let user = harness.admit(passkey(1)).await.unwrap();
    harness.store.set_user_enabled(user, false).await.unwrap();
    until("the gate to know", async || harness.admit(passkey(1)).await == Err(Refusal::UserDisabled)).await;
    harness.clock.advance(Seconds(1000));
    assert_eq!(harness.admit(passkey(1)).await, Err(Refusal::UserDisabled));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_account_is_made_anew_with_another_number() {
    let harness = Harness::new(Options::default()).await;
    harness.whitelist.add(&[passkey(1)]).await.unwrap();
    let user = harness.admit(passkey(1)).await.unwrap();
    until("the gate to know the row", async || harness.gate.passkey_of(user).is_some()).await;
    harness.store.remove_user(user).await.unwrap();
    until("another account", async || harness.admit(passkey(1)).await == Ok(user_id(1_000_001))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_whitelist_that_cannot_be_asked_is_no_answer() {
    let redis = RedisServer::start();
    let harness = Harness::new(Options { redis: Some(&redis), ..Options::default() }).await;
    harness.whitelist.add(&[passkey(1)]).await.unwrap();
    redis.freeze();
    assert_eq!(harness.admit(passkey(1)).await, Err(Refusal::CannotCheck));
    assert_eq!(harness.admit(passkey(2)).await, Err(Refusal::CannotCheck));
    redis.thaw();
    until("it can", async || harness.admit(passkey(1)).await.is_ok()).await;
    assert!(harness.counters().whitelist_failures.get() >= 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_file_that_is_none_is_told_at_the_start() {
    let endpoint = VerifyEndpoint::tls(KEY);
    for path in ["/nowhere/ca.pem", "/dev/null"] {
        let settings =
            access::verification::EndpointSettings { ca_file: Some(path.into()), ..endpoint_of(&endpoint) };
        let error = access::verification::VerifyEndpoint::new(&settings).err().unwrap().to_string();
        assert!(error.contains("access.verify_ca_file") && error.contains(path), "{error}");
    }
}
