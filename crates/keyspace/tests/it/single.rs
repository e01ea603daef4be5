//! The handle on a single server: commands, outages, errors.

use std::io::Read;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use keyspace::{Redis, RedisError, RedisSettings, read_reply, scripts};
use redis::{cmd, pipe};
use testkit::RedisServer;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

fn handle(url: &str) -> Redis {
    Redis::new(RedisSettings::from_url(url).unwrap()).unwrap()
}

/// Pings until there is a reply.
async fn ping_until_ok(redis: &Redis) {
    let asking = async {
        while let Err(error) = redis.query::<String>(&cmd("PING")).await {
            assert!(error.is_retryable(), "{error}");
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.expect("no reply in time");
}

#[tokio::test]
async fn commands_pipelines_and_transactions() {
    let server = RedisServer::start();
    let redis = Redis::connect(RedisSettings::from_url(&server.url()).unwrap()).await.unwrap();
    redis.query::<()>(cmd("SET").arg("a").arg(1)).await.unwrap();
    assert_eq!(redis.query::<Option<u64>>(cmd("GET").arg("a")).await.unwrap(), Some(1));

    let mut pipeline = pipe();
    pipeline.cmd("INCR").arg("a").cmd("LPUSH").arg("a").arg(1).cmd("INCR").arg("a");
    let mut replies = redis.pipeline(&pipeline).await.into_iter();
    assert_eq!(read_reply::<u64>(replies.next().unwrap()).unwrap(), 2);
    assert!(matches!(replies.next().unwrap(), Err(RedisError::WrongType { .. })));
    assert_eq!(read_reply::<u64>(replies.next().unwrap()).unwrap(), 3);
    assert!(redis.pipeline(&pipe()).await.is_empty());

    let replies = redis.transaction(&pipeline).await.unwrap();
    assert!(replies[0].is_ok() && replies[1].is_err() && replies[2].is_ok());
    pipeline.cmd("NOSUCHCOMMAND");
    assert!(matches!(redis.transaction(&pipeline).await, Err(RedisError::Other { .. })));
    assert_eq!(redis.query::<u64>(cmd("GET").arg("a")).await.unwrap(), 5);
}

#[tokio::test]
async fn scripts_are_loaded_again_after_script_flush() {
    let server = RedisServer::start();
    let redis = handle(&server.url());
    let call = || {
        let mut call = scripts::DELETE_CONSUMER.call(&["s"]);
        call.arg("g").arg("c");
        call
    };
    server.cli(&["XGROUP", "CREATE", "s", "g", "0", "MKSTREAM"]);
    for _ in 0..2 {
        assert_eq!(redis.query::<u32>(&call()).await.unwrap(), 1);
        server.cli(&["SCRIPT", "FLUSH"]);
        let mut pipeline = pipe();
        pipeline.add_command(call()).cmd("SET").arg("x").arg(1).add_command(call());
        for reply in redis.pipeline(&pipeline).await {
            reply.unwrap();
        }
        assert_eq!(redis.query::<u32>(&call()).await.unwrap(), 1);
        server.cli(&["SCRIPT", "FLUSH"]);
    }
}

#[tokio::test]
async fn a_handle_survives_restarts_of_its_server() {
    let mut server = RedisServer::start();
    let redis = handle(&server.url());
    ping_until_ok(&redis).await;
    for _ in 0..3 {
        server.kill();
        // The read is repeated once, and the reconnect fails.
        let error = redis.query::<String>(&cmd("PING")).await.unwrap_err();
        assert!(matches!(error, RedisError::Unavailable { .. }), "{error}");
        server.restart();
        ping_until_ok(&redis).await;
    }
}

#[tokio::test]
async fn a_write_without_an_answer_is_reported_as_unanswered() {
    let server = RedisServer::start();
    let mut settings = RedisSettings::from_url(&server.url()).unwrap();
    settings.response_timeout = Duration::from_millis(200);
    let redis = Redis::new(settings).unwrap();
    ping_until_ok(&redis).await;
    server.freeze();
    let error = redis.query::<()>(cmd("INCR").arg("n")).await.unwrap_err();
    assert!(matches!(error, RedisError::Unanswered { .. }), "{error}");
    server.thaw();
    ping_until_ok(&redis).await;
    assert_eq!(server.cli(&["GET", "n"]), "1");
}

#[tokio::test]
async fn reconnects_to_an_unreachable_server_back_off() {
    // Accepts connections and closes them at once.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://:secret@127.0.0.1:{}", listener.local_addr().unwrap().port());
    let attempts = Arc::new(AtomicU32::new(0));
    let counted = attempts.clone();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = client.read(&mut [0; 64]);
        }
    });
    let redis = handle(&url);
    let asking = (0..20).map(|_| {
        let redis = redis.clone();
        tokio::spawn(async move {
            loop {
                let error = redis.query::<String>(&cmd("PING")).await.unwrap_err();
                assert!(!error.to_string().contains("secret"), "{error}");
            }
        })
    });
    let asking: Vec<_> = asking.collect();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    asking.iter().for_each(tokio::task::JoinHandle::abort);
    let attempts = attempts.load(Ordering::SeqCst);
    assert!((2..80).contains(&attempts), "twenty concurrent callers made {attempts} attempts");
}

#[tokio::test]
async fn connection_errors_name_the_remedy() {
    let server = RedisServer::builder().password("s3cret").start();
    let url = format!("redis://127.0.0.1:{}", server.port());
    let error = handle(&url).query::<String>(&cmd("PING")).await.unwrap_err();
    assert!(matches!(&error, RedisError::Refused { code, .. } if code == "NOAUTH"), "{error:?}");
    assert!(error.to_string().contains("REDIS_PASSWORD"), "{error}");

    let wrong = RedisSettings::from_url(&format!("redis://:wr0ng@127.0.0.1:{}", server.port())).unwrap();
    let error = Redis::connect(wrong).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("password"), "{error}");
    assert!(!format!("{error:?}").contains("wr0ng"));

    let right = RedisSettings::from_url(&format!("redis://:s3cret@127.0.0.1:{}/2", server.port())).unwrap();
    let redis = Redis::connect(right).await.unwrap();
    redis.query::<()>(cmd("SET").arg("k").arg(1)).await.unwrap();
    assert_eq!(server.cli(&["-n", "2", "GET", "k"]), "1");

    let cluster = format!("redis+cluster://:s3cret@127.0.0.1:{}", server.port());
    let error = handle(&cluster).query::<String>(cmd("GET").arg("k")).await.unwrap_err();
    assert!(error.to_string().contains("write redis:// instead"), "{error}");
    let missing = RedisSettings::from_url("rediss://127.0.0.1?ca=/no/such/file").unwrap();
    assert!(Redis::new(missing).unwrap_err().to_string().contains("/no/such/file"));
}

#[tokio::test]
async fn a_blocking_connection_has_no_response_timeout() {
    let server = RedisServer::start();
    let mut settings = RedisSettings::from_url(&server.url()).unwrap();
    settings.response_timeout = Duration::from_millis(200);
    let redis = Redis::new(settings).unwrap();
    let mut blocking = redis.blocking("list").await.unwrap();
    let mut wait = cmd("BLPOP");
    wait.arg("list").arg(1);
    assert_eq!(blocking.query::<Option<(String, String)>>(&wait).await.unwrap(), None);
    let mut dedicated = redis.dedicated("list").await.unwrap();
    let error = dedicated.query::<Option<(String, String)>>(&wait).await.unwrap_err();
    assert!(matches!(error, RedisError::Unanswered { .. }), "{error}");
}
