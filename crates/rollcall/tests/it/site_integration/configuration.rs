//! "Configuration (of the site)": all nine names, by the environment alone.

use testkit::RedisServer;

use crate::site_integration::environment::{Environment, is_admitted, of_redis};

#[test]
fn w8_the_names_of_the_document_configure_both_processes() {
    let redis = RedisServer::builder().password("geheim").start();
    let mut variables = of_redis(&redis, "geheim");
    let others = [
        ("TRACKER_STREAM_KEY", "pt:stream"),
        ("TRACKER_DLQ_KEY", "pt:stream:dead"),
        ("TRACKER_FAILED_KEY", "pt:stream:given-up"),
        ("TRACKER_RETRY_MAX", "1"),
        ("REDIS_DB", "3"),
    ];
    variables.extend(others.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let mut environment = Environment::start(variables, &[]);
    environment.shell.set("REDISCLI_AUTH", "geheim");
    let passkey = environment.add_user(1);
    environment.shell.set("KEY", &passkey);
    let sh = &environment.shell;
    // TRACKER_API_KEY: the tracker's verify call is let in. One that a busy machine answers too late is repeated.
    sh.wait("announce $KEY 1 'uploaded=0&downloaded=0&left=10&event=started'", is_admitted);
    // TRACKER_STREAM_KEY, in the database REDIS_DB of a Redis that wants REDIS_PASSWORD.
    assert_eq!(sh.run("redis XLEN pt:stream"), "1");
    assert_eq!(sh.run("REDIS_DB=0 redis DBSIZE"), "0");
    // TRACKER_RETRY_MAX, TRACKER_DLQ_KEY, TRACKER_FAILED_KEY
    sh.run("redis XADD pt:stream '*' passkey unknown");
    sh.wait("redis XLEN pt:stream:given-up", |length| length == "1");
    assert!(sh.run("redis XRANGE pt:stream:given-up - + | xargs").contains("retry 1"));
    assert_eq!(sh.run("redis EXISTS tracker:traffic tracker:traffic:dlq tracker:traffic:failed"), "0");
}
