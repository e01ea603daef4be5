//! Passkey verification with a whitelist and a real endpoint, which answers, fails or misbehaves (W4, W5).

pub mod harness;

use std::sync::Arc;
use std::time::Duration;

use access::{OnVerifyFailure, Refusal, VerificationSettings};
use domain::Seconds;
use testkit::{Behaviour, RedisServer, VerifyEndpoint};

use crate::fixture::{self, new_user, passkey, user_id};
use harness::{Harness, KEY, Options, endpoint_of, settings, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w4_the_whitelist_is_looked_up_before_the_endpoint() {
    let endpoint = VerifyEndpoint::plain(KEY);
    let harness = Harness::new(Options::with(&endpoint)).await;
    harness.whitelist.add(&[passkey(1)]).await.unwrap();
    let user = harness.admit(passkey(1)).await.unwrap();
    assert_eq!(user, user_id(1_000_000), "the first id for external users");
    assert_eq!(endpoint.calls(), 0);
    let row = harness.store.user(user).await.unwrap().unwrap();
    assert!(row.is_external && row.enabled);
    assert_eq!(harness.admit(passkey(1)).await, Ok(user));
    assert_eq!(harness.counters().whitelist_hits.get(), 1, "the second time it is cached");
    assert_eq!(harness.counters().external_users_created.get(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w4_users_of_the_database_are_never_verified() {
    let endpoint = VerifyEndpoint::plain(KEY);
    let harness = Harness::new(Options::with(&endpoint)).await;
    harness.store.add_user(new_user(5)).await.unwrap();
    until("the user in the gate", async || harness.admit(passkey(5)).await == Ok(user_id(5))).await;
    let calls = endpoint.calls();
    harness.clock.advance(Seconds(1000));
    assert_eq!(harness.admit(passkey(5)).await, Ok(user_id(5)));
    harness.store.set_user_enabled(user_id(5), false).await.unwrap();
    endpoint.accept_passkey(passkey(5));
    until("the disabled user in the gate", async || {
        harness.admit(passkey(5)).await == Err(Refusal::UserDisabled)
    })
    .await;
    assert_eq!(endpoint.calls(), calls);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w4_passkeys_verified_by_the_endpoint_are_added_to_the_whitelist() {
    let redis = RedisServer::start();
    let endpoint = VerifyEndpoint::tls(KEY);
    endpoint.accept_passkey(passkey(1));
    endpoint.accept_passkey_of(passkey(2), 77);
    endpoint.accept_passkey_of(passkey(3), 7);
    let harness = Harness::new(Options { redis: Some(&redis), ..Options::with(&endpoint) }).await;
    harness.store.add_user(new_user(7)).await.unwrap();
    assert_eq!(harness.admit(passkey(1)).await, Ok(user_id(1_000_000)));
    assert_eq!(harness.admit(passkey(2)).await, Ok(user_id(77)), "the site's id");
    assert_eq!(harness.admit(passkey(3)).await, Ok(user_id(1_000_001)), "a user of the database has that id");
    assert_eq!(harness.admit(passkey(4)).await, Err(Refusal::UnknownPasskey));
    assert_eq!((endpoint.calls(), endpoint.connections(), endpoint.unauthorised()), (4, 1, 0));
    until("three additions", async || harness.counters().whitelist_adds.get() == 3).await;
    assert_eq!(redis.cli(&["SISMEMBER", "pt:passkeys", &passkey(2).to_string()]).trim(), "1");
    assert_eq!(redis.cli(&["SCARD", "pt:passkeys"]).trim(), "3");
    harness.clock.advance(Seconds(301));
    assert_eq!(harness.admit(passkey(2)).await, Ok(user_id(77)));
    assert_eq!(endpoint.calls(), 4, "found on the whitelist");
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
async fn w4_a_negative_answer_is_cached_for_its_own_lifetime() {
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
        "cached, and the endpoint's negative answer does not count alone"
    );
    assert_eq!(harness.admit(passkey(2)).await, Err(Refusal::CannotCheck));
    redis.cli(&["RENAME", "pt:passkeys:new", "pt:passkeys"]);
    assert!(harness.admit(passkey(2)).await.is_ok(), "no refusal was cached");
    assert!(harness.revoked().is_empty());
    // A member that is not in the new set is refused.
    redis.cli(&["SREM", "pt:passkeys", &passkey(1).to_string()]);
    harness.clock.advance(Seconds(301));
    assert_eq!(harness.admit(passkey(1)).await, Err(Refusal::UnknownPasskey));
    until("the revocation", async || harness.revoked() == [user]).await;
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
    assert_eq!(harness.store.count_users().await.unwrap(), 0, "no account was created");
    endpoint.behave(body("{\"valid\": true, \"user_id\": \"seven\", \"more\": [1]}"));
    assert_eq!(harness.admit(passkey(1)).await, Ok(user_id(1_000_000)), "other fields are ignored");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w5_an_untrusted_certificate_a_wrong_key_and_no_server_are_failures() {
    let endpoint = VerifyEndpoint::tls(KEY);
    endpoint.accept_passkey(passkey(1));
    let other = VerifyEndpoint::tls(KEY);
    let mut options = Options::with(&endpoint);
    options.endpoint.as_mut().unwrap().ca_file = Some(other.ca_file());
    let harness = Harness::new(options).await;
    assert_eq!(harness.admit(passkey(1)).await, Err(Refusal::CannotCheck));
    assert_eq!(endpoint.calls(), 0, "neither key nor passkey was sent");
    assert_eq!(harness.counters().calls.unreachable.get(), 2);

    let mut options = Options::with(&endpoint);
    options.endpoint.as_mut().unwrap().api_key = "another key".to_owned();
    let harness = Harness::new(options).await;
    assert_eq!(harness.admit(passkey(1)).await, Err(Refusal::CannotCheck));

    let harness = Harness::new(Options::with(&endpoint)).await;
    assert!(harness.admit(passkey(1)).await.is_ok());
    drop(endpoint);
    assert_eq!(harness.admit(passkey(2)).await, Err(Refusal::CannotCheck), "no server");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w5_a_failing_endpoint_is_not_called_until_a_probe_is_answered() {
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
    assert!(harness.counters().is_breaker_open());
    assert_eq!(harness.counters().breaker_openings.get(), 1);
    assert!(harness.counters().calls_breaker_open.get() > 0);
    endpoint.accept_passkey(passkey(1));
    endpoint.behave(Behaviour::Answers);
    until("a probe", async || !harness.counters().is_breaker_open()).await;
    assert!(harness.admit(passkey(1)).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w5_known_only_admits_listed_passkeys_and_answers_of_an_unavailable_source() {
    let redis = RedisServer::start();
    let endpoint = VerifyEndpoint::plain(KEY);
    let harness = Harness::new(Options { redis: Some(&redis), ..Options::with(&endpoint) }).await;
    endpoint.accept_passkey(passkey(1));
    harness.whitelist.add(&[passkey(2), passkey(3)]).await.unwrap();
    let first = harness.admit(passkey(1)).await.unwrap();
    let second = harness.admit(passkey(2)).await.unwrap();
    assert!(harness.admit(passkey(3)).await.is_ok());
    until("the addition to the whitelist", async || harness.counters().whitelist_adds.get() == 1).await;
    endpoint.behave(Behaviour::Status(500));
    redis.cli(&["SREM", "pt:passkeys", &passkey(1).to_string(), &passkey(3).to_string()]);
    harness.clock.advance(Seconds(301));
    assert_eq!(harness.admit(passkey(1)).await, Ok(first), "verified by the endpoint, which is unavailable");
    assert_eq!(harness.admit(passkey(2)).await, Ok(second), "listed");
    assert_eq!(harness.admit(passkey(3)).await, Err(Refusal::CannotCheck), "removed from the whitelist");
    assert_eq!(harness.admit(passkey(4)).await, Err(Refusal::CannotCheck), "never verified");
    harness.clock.advance(Seconds(301));
    redis.freeze();
    assert_eq!(harness.admit(passkey(2)).await, Ok(second), "both are unavailable");
    redis.thaw();
    assert!(harness.counters().stale_kept.get() >= 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w5_refuse_admits_only_users_of_the_database_while_the_endpoint_fails() {
    let endpoint = VerifyEndpoint::plain(KEY);
    let pause = Duration::from_millis(200);
    let settings = VerificationSettings { on_failure: OnVerifyFailure::Refuse, pause, ..settings() };
    let harness = Harness::new(Options { settings, ..Options::with(&endpoint) }).await;
    harness.store.add_user(new_user(5)).await.unwrap();
    harness.whitelist.add(&[passkey(1)]).await.unwrap();
    assert!(harness.admit(passkey(1)).await.is_ok());
    endpoint.behave(Behaviour::Status(503));
    until("the circuit breaker to open", async || {
        let _ = harness.admit(passkey(2)).await;
        harness.counters().breaker_openings.get() == 1
    })
    .await;
    assert_eq!(harness.admit(passkey(1)).await, Err(Refusal::CannotCheck), "listed, but refused");
    until("the user of the database", async || harness.admit(passkey(5)).await == Ok(user_id(5))).await;
    endpoint.behave(Behaviour::Answers);
    until("the breaker to close", async || harness.admit(passkey(1)).await.is_ok()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w4_calls_per_second_are_limited() {
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
async fn w4_concurrent_calls_are_limited_and_others_are_queued() {
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
async fn a_published_removal_revokes_at_once_and_an_addition_admits() {
    let harness = Harness::new(Options::default()).await;
    harness.passkeys.add(&[passkey(1)]).await.unwrap();
    let user = harness.admit(passkey(1)).await.unwrap();
    harness.passkeys.remove(&[passkey(1)]).await.unwrap();
    until("the removal", async || harness.admit(passkey(1)).await == Err(Refusal::UnknownPasskey)).await;
    assert_eq!(harness.revoked(), [user]);
    assert!(!harness.gate.is_enabled(user, fixture::NOW), "its peers are evicted");
    harness.passkeys.add(&[passkey(1)]).await.unwrap();
    until("the addition", async || harness.admit(passkey(1)).await == Ok(user)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refresh_revokes_removed_passkeys_only() {
    let harness = Harness::new(Options::default()).await;
    let passkeys: Vec<_> = (1..=2500).map(passkey).collect();
    harness.whitelist.add(&passkeys[..2400]).await.unwrap();
    let mut users = Vec::new();
    for one in &passkeys[..10] {
        users.push(harness.admit(*one).await.unwrap());
    }
    assert_eq!(harness.admit(passkey(2500)).await, Err(Refusal::UnknownPasskey));
    let mut upload = harness.passkeys.upload().await.unwrap();
    let lines: Vec<String> = passkeys[5..].iter().map(ToString::to_string).collect();
    upload.push(lines.join("\n").as_bytes()).await.unwrap();
    upload.finish(false).await.unwrap();
    until("all revocations", async || harness.revoked().len() == 5).await;
    let mut revoked = harness.revoked();
    revoked.sort();
    assert_eq!(revoked, users[..5]);
    assert_eq!(harness.admit(passkey(1)).await, Err(Refusal::UnknownPasskey));
    assert_eq!(harness.admit(passkey(6)).await, Ok(users[5]));
    until("the new passkey", async || harness.admit(passkey(2500)).await.is_ok()).await;
    assert_eq!(harness.revoked().len(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_older_than_a_whitelist_change_is_requested_again() {
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
    assert!(!harness.is_listed(passkey(1)).await, "it was not added to the whitelist");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_by_another_program_revokes_after_the_answer_expires() {
    let redis = RedisServer::start();
    let harness = Harness::new(Options { redis: Some(&redis), ..Options::default() }).await;
    redis.cli(&["SADD", "pt:passkeys", &passkey(1).to_string(), &passkey(2).to_string()]);
    let user = harness.admit(passkey(1)).await.unwrap();
    redis.cli(&["SREM", "pt:passkeys", &passkey(1).to_string()]);
    harness.clock.advance(Seconds(299));
    assert_eq!(harness.admit(passkey(1)).await, Ok(user));
    harness.clock.advance(Seconds(1));
    assert_eq!(harness.admit(passkey(1)).await, Err(Refusal::UnknownPasskey));
    until("the revocation", async || harness.revoked() == [user]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disabled_external_user_is_refused_permanently() {
    let harness = Harness::new(Options::default()).await;
    harness.whitelist.add(&[passkey(1)]).await.unwrap();
    let user = harness.admit(passkey(1)).await.unwrap();
    harness.store.set_user_enabled(user, false).await.unwrap();
    until("the disabled user in the gate", async || {
        harness.admit(passkey(1)).await == Err(Refusal::UserDisabled)
    })
    .await;
    harness.clock.advance(Seconds(1000));
    assert_eq!(harness.admit(passkey(1)).await, Err(Refusal::UserDisabled));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_account_is_created_again_with_another_id() {
    let harness = Harness::new(Options::default()).await;
    harness.whitelist.add(&[passkey(1)]).await.unwrap();
    let user = harness.admit(passkey(1)).await.unwrap();
    until("the row in the gate", async || harness.gate.passkey_of(user).is_some()).await;
    harness.store.remove_user(user).await.unwrap();
    until("another account", async || harness.admit(passkey(1)).await == Ok(user_id(1_000_001))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unavailable_whitelist_is_not_a_negative_answer() {
    let redis = RedisServer::start();
    let harness = Harness::new(Options { redis: Some(&redis), ..Options::default() }).await;
    harness.whitelist.add(&[passkey(1)]).await.unwrap();
    redis.freeze();
    assert_eq!(harness.admit(passkey(1)).await, Err(Refusal::CannotCheck));
    assert_eq!(harness.admit(passkey(2)).await, Err(Refusal::CannotCheck));
    redis.thaw();
    until("the whitelist", async || harness.admit(passkey(1)).await.is_ok()).await;
    assert!(harness.counters().whitelist_failures.get() >= 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_certificate_file_is_reported_at_the_start() {
    let endpoint = VerifyEndpoint::tls(KEY);
    for path in ["/nowhere/ca.pem", "/dev/null"] {
        let settings =
            access::verification::EndpointSettings { ca_file: Some(path.into()), ..endpoint_of(&endpoint) };
        let error = access::verification::VerifyEndpoint::new(&settings).err().unwrap().to_string();
        assert!(error.contains("access.verify_ca_file") && error.contains(path), "{error}");
    }
}
