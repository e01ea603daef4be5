//! The whitelist in Redis: the keys as a site sees them, and failures.

use access::{AccessError, Replaced, Whitelist};
use keyspace::{BaseNames, KeyNames, Redis, RedisSettings, scripts};
use testkit::RedisServer;

use crate::whitelist::place::{build, on_redis, passkey, passkeys};

#[tokio::test]
async fn w2_a_site_can_use_the_set_with_redis_commands() {
    let server = RedisServer::start();
    let whitelist = on_redis(&server.url(), "pt:passkeys");
    let known = passkey(1).to_string();
    server.cli(&["SADD", "pt:passkeys", &known]);
    assert_eq!(whitelist.contains(&passkeys(0..2)).await.unwrap(), [false, true]);
    whitelist.add(&[passkey(2)]).await.unwrap();
    assert_eq!(server.cli(&["SISMEMBER", "pt:passkeys", &passkey(2).to_string()]), "1");
    // The manual refresh of the integration guide; it can be undone.
    server.cli(&["SADD", "pt:passkeys:new", &passkey(7).to_string()]);
    server.cli(&["RENAME", "pt:passkeys", "pt:passkeys:old"]);
    server.cli(&["RENAME", "pt:passkeys:new", "pt:passkeys"]);
    assert_eq!(whitelist.undo().await.unwrap(), Some(Replaced { before: 1, after: 2 }));
    assert_eq!(server.cli(&["SISMEMBER", "pt:passkeys", &known]), "1");
}

#[tokio::test]
async fn w2_the_whitelist_does_not_expire_and_a_refresh_leaves_no_other_keys() {
    let server = RedisServer::start();
    let whitelist = on_redis(&server.url(), "pt:passkeys");
    build(&whitelist, &passkeys(0..10), 3).await.commit().await.unwrap();
    let refresh = build(&whitelist, &passkeys(5..20), 3).await;
    let building = server.cli(&["KEYS", "pt:passkeys:new:*"]);
    let ttl_s: i64 = server.cli(&["TTL", &building]).parse().unwrap();
    assert!((1..=600).contains(&ttl_s), "a new set expires: {ttl_s}");
    refresh.commit().await.unwrap();
    assert_eq!(server.cli(&["TTL", "pt:passkeys"]), "-1");
    assert_eq!(server.cli(&["TTL", "pt:passkeys:old"]), "-1");
    let keys = server.cli(&["KEYS", "*"]);
    let mut keys: Vec<&str> = keys.lines().collect();
    keys.sort_unstable();
    assert_eq!(keys, ["pt:passkeys", "pt:passkeys:note", "pt:passkeys:old"]);
}

#[tokio::test]
async fn w2_a_switch_whose_reply_is_lost_is_not_repeated() {
    let server = RedisServer::start();
    let whitelist = on_redis(&server.url(), "pt:passkeys");
    whitelist.add(&passkeys(0..3)).await.unwrap();
    let redis = Redis::new(RedisSettings::from_url(&server.url()).unwrap()).unwrap();
    let names = KeyNames::new(&BaseNames::default(), redis.mode()).unwrap();
    let built = names.whitelist_new("7");
    server.cli(&["SADD", &built, &passkey(9).to_string()]);
    let keys = [names.whitelist(), names.whitelist_old(), &built, names.whitelist_last_change()];
    let mut switch = scripts::WHITELIST_SWITCH.call(&keys);
    switch.arg("7").arg(1);
    let mut undo = scripts::WHITELIST_UNDO.call(&keys);
    undo.arg("8");
    for _ in 0..3 {
        assert_eq!(redis.query::<Option<(u64, u64)>>(&switch).await.unwrap(), Some((3, 1)));
        assert_eq!(whitelist.count().await.unwrap(), 1);
    }
    for _ in 0..3 {
        assert_eq!(redis.query::<Option<(u64, u64)>>(&undo).await.unwrap(), Some((1, 3)));
        assert_eq!(whitelist.count().await.unwrap(), 3);
    }
}

#[tokio::test]
async fn w2_an_incomplete_set_is_refused() {
    let server = RedisServer::start();
    let whitelist = on_redis(&server.url(), "pt:passkeys");
    whitelist.add(&passkeys(0..3)).await.unwrap();
    let refresh = build(&whitelist, &passkeys(10..20), 10).await;
    let building = server.cli(&["KEYS", "pt:passkeys:new:*"]);
    server.cli(&["SREM", &building, &passkey(15).to_string()]);
    let error = refresh.commit().await.unwrap_err();
    assert!(matches!(error, AccessError::RefreshLost), "{error}");
    assert_eq!(whitelist.contains(&passkeys(0..3)).await.unwrap(), [true; 3]);
}

#[tokio::test]
async fn a_key_of_another_type_is_not_changed() {
    let server = RedisServer::start();
    let whitelist = on_redis(&server.url(), "pt:passkeys");
    server.cli(&["SET", "pt:passkeys", "mine"]);
    assert!(whitelist.add(&[passkey(1)]).await.unwrap_err().is_retryable(), "an operator can correct it");
    assert!(whitelist.contains(&[passkey(1)]).await.is_err());
    assert!(whitelist.undo().await.is_err());
    let refresh = build(&whitelist, &passkeys(0..3), 3).await;
    let error = refresh.commit().await.unwrap_err();
    assert!(error.to_string().contains("pt:passkeys holds a string"), "{error}");
    assert_eq!(server.cli(&["GET", "pt:passkeys"]), "mine");
}

#[tokio::test]
async fn a_full_or_unreachable_redis_leaves_the_whitelist_unchanged() {
    let mut server = RedisServer::builder().append_only(testkit::Fsync::Always).start();
    let whitelist = on_redis(&server.url(), "pt:passkeys");
    whitelist.add(&passkeys(0..3)).await.unwrap();
    let mut refresh = build(&whitelist, &passkeys(10..20), 10).await;
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    refresh.add(&passkeys(20..30)).await.unwrap_err();
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    let error = refresh.commit().await.unwrap_err();
    assert!(matches!(error, AccessError::RefreshLost), "a batch is missing: {error}");

    let refresh = build(&whitelist, &passkeys(10..20), 10).await;
    server.kill();
    assert!(refresh.commit().await.unwrap_err().is_retryable());
    assert!(whitelist.count().await.unwrap_err().is_retryable());
    server.restart();
    assert_eq!(whitelist.contains(&passkeys(0..3)).await.unwrap(), [true; 3]);
    assert_eq!(whitelist.count().await.unwrap(), 3);
}
