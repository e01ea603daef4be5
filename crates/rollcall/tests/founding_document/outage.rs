//! "Faults and fallback", and the hook of the tracker: Redis, then the verify call, then the write-back.

use testkit::eventually;

use crate::environment::{PATIENCE, Place, is_welcome, start, start_with};

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
    // "... only passkeys that hit are let in": others get `retry in`, not an unknown passkey.
    let refused = place.shell.run("announce $LATE 2 'uploaded=0&downloaded=0&left=9'");
    assert!(refused.contains("cannot be checked right now") && refused.contains("8:retry in"), "{refused}");
    // They are let in by the set, and not by what the tracker remembers: it looks them up anew once its TTL is over, or when
    // the site publishes the passkey.
    let before = hits(&place);
    place.shell.run("redis PUBLISH t:ch:user $KNOWN");
    eventually("another look into the set", PATIENCE, || {
        assert!(is_welcome(&place.shell.run("announce $KNOWN 1 'uploaded=9&downloaded=0&left=9'")));
        (hits(&place) > before).then_some(())
    });

    // Once the site is back, so are those who had to wait.
    place.start_site_again();
    place.shell.wait("announce $LATE 2 'uploaded=0&downloaded=0&left=9'", is_welcome);
}

/// How often the tracker found a passkey in the set.
#[track_caller]
fn hits(place: &Place) -> u64 {
    let figures = tracker_figures(place);
    let is_hit = |line: &&str| {
        line.starts_with("rollcall_access_whitelist_lookups_total") && line.contains("\"found\"")
    };
    let line = figures.lines().find(is_hit).unwrap_or_else(|| panic!("{figures}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[track_caller]
fn tracker_figures(place: &Place) -> String {
    place.shell.run(r#"curl -s -H "X-API-Key: $TRACKER_ADMIN_KEY" "$TRACKER_SITE/metrics""#)
}

#[test]
fn w5_with_refuse_all_external_users_are_refused_while_the_site_is_unreachable() {
    let (_redis, mut place) = start_with(&[("ROLLCALL_ACCESS__ON_VERIFY_FAILURE", "refuse")]);
    let known = place.add_user(1);
    let other = place.add_user(2);
    place.shell.set("KNOWN", &known);
    place.shell.set("OTHER", &other);
    assert!(is_welcome(&place.shell.run("announce $KNOWN 1 'uploaded=0&downloaded=0&left=9'")));
    place.site.kill();
    // "If need be, go down to strict refusal": also those on the whitelist, once a call has failed.
    place.shell.wait(
        "announce $OTHER 2 'uploaded=0&downloaded=0&left=9' > /dev/null; announce $KNOWN 1 'uploaded=0&downloaded=0&left=9'",
        |reply| reply.contains("14:failure reason"),
    );
    place.start_site_again();
    place.shell.wait("announce $KNOWN 1 'uploaded=0&downloaded=0&left=9'", is_welcome);
}
