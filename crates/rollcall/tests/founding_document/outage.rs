//! "Faults and fallback", and the hook of the tracker: Redis, then the verify call, then the write-back.

use crate::place::{is_welcome, start};

#[test]
fn w4_w5_the_tracker_asks_the_site_fills_the_set_and_gets_on_without_it() {
    let (_redis, mut place) = start();
    let known = place.add_user(1);
    let late = place.add_user(2);
    place.shell.set("KNOWN", &known);
    place.shell.set("LATE", &late);
    // "First SISMEMBER pt:passkeys; on a miss GET /passkey/verify?passkey= (with X-API-Key)"
    assert_eq!(place.shell.run("redis SISMEMBER pt:passkeys $KNOWN"), "0");
    assert!(is_welcome(&place.shell.run("announce $KNOWN 1 'uploaded=0&downloaded=0&left=9'")));
    // "If the site vouches, SADD may follow in the background"
    place.shell.wait("redis SISMEMBER pt:passkeys $KNOWN", |said| said == "1");

    // "The verify endpoint fails: rely on the whitelist in Redis for a while"
    place.site.kill();
    assert!(is_welcome(&place.shell.run("announce $KNOWN 1 'uploaded=5&downloaded=0&left=9'")));
    // "... only passkeys that hit are let in": others are told to come back, not that they are unknown.
    let refused = place.shell.run("announce $LATE 2 'uploaded=0&downloaded=0&left=9'");
    assert!(refused.contains("cannot be checked right now") && refused.contains("8:retry in"), "{refused}");
    // The cache is long over; the set is what lets them in.
    place.shell.wait("announce $KNOWN 1 'uploaded=9&downloaded=0&left=9'", is_welcome);
    let figures = place.shell.run(r#"curl -s -H "X-API-Key: $TRACKER_ADMIN_KEY" "$TRACKER_SITE/metrics""#);
    assert!(figures.contains("rollcall_access_verify_calls_total"), "{figures}");
}
