//! "Faults and fallback", and the hook of the tracker: Redis, then the verify call, then the write-back.

use testkit::eventually;

use crate::site_integration::environment::{Environment, PATIENCE, is_admitted, start, start_with};

#[test]
fn w4_w5_the_tracker_asks_the_site_fills_the_set_and_gets_on_without_it() {
    let (_redis, mut environment) = start();
    let known = environment.add_user(1);
    let late = environment.add_user(2);
    environment.shell.set("KNOWN", &known);
    environment.shell.set("LATE", &late);
    // "First SISMEMBER pt:passkeys; on a miss GET /passkey/verify?passkey= (with X-API-Key)"
    assert_eq!(environment.shell.run("redis SISMEMBER pt:passkeys $KNOWN"), "0");
    assert!(is_admitted(&environment.shell.run("announce $KNOWN 1 'uploaded=0&downloaded=0&left=9'")));
    // "If the site vouches, SADD may follow in the background"
    environment.shell.wait("redis SISMEMBER pt:passkeys $KNOWN", |said| said == "1");

    // "The verify endpoint fails: rely on the whitelist in Redis for a while"
    environment.site.kill();
    assert!(is_admitted(&environment.shell.run("announce $KNOWN 1 'uploaded=5&downloaded=0&left=9'")));
    // "... only passkeys that hit are let in": others get `retry in`, not an unknown passkey.
    let refused = environment.shell.run("announce $LATE 2 'uploaded=0&downloaded=0&left=9'");
    assert!(refused.contains("cannot be checked right now") && refused.contains("8:retry in"), "{refused}");
    // They are let in by the set, and not by what the tracker remembers: it looks them up anew once its TTL is over, or when
    // the site publishes the passkey.
    let before = hits(&environment);
    environment.shell.run("redis PUBLISH t:ch:user $KNOWN");
    eventually("another look into the set", PATIENCE, || {
        assert!(is_admitted(&environment.shell.run("announce $KNOWN 1 'uploaded=9&downloaded=0&left=9'")));
        (hits(&environment) > before).then_some(())
    });

    // Once the site is back, so are those who had to wait.
    environment.start_site_again();
    environment.shell.wait("announce $LATE 2 'uploaded=0&downloaded=0&left=9'", is_admitted);
}

/// How often the tracker found a passkey in the set.
#[track_caller]
fn hits(environment: &Environment) -> u64 {
    let figures = tracker_figures(environment);
    let is_hit = |line: &&str| {
        line.starts_with("rollcall_access_whitelist_lookups_total") && line.contains("\"found\"")
    };
    let line = figures.lines().find(is_hit).unwrap_or_else(|| panic!("{figures}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[track_caller]
fn tracker_figures(environment: &Environment) -> String {
    environment.shell.run(r#"curl -s -H "X-API-Key: $TRACKER_ADMIN_KEY" "$TRACKER_SITE/metrics""#)
}

#[test]
fn w5_with_refuse_all_external_users_are_refused_while_the_site_is_unreachable() {
    let (_redis, mut environment) = start_with(&[("ROLLCALL_ACCESS__ON_VERIFY_FAILURE", "refuse")]);
    let known = environment.add_user(1);
    let other = environment.add_user(2);
    environment.shell.set("KNOWN", &known);
    environment.shell.set("OTHER", &other);
    assert!(is_admitted(&environment.shell.run("announce $KNOWN 1 'uploaded=0&downloaded=0&left=9'")));
    environment.site.kill();
    // "If need be, go down to strict refusal": also those on the whitelist, once a call has failed.
    environment.shell.wait(
        "announce $OTHER 2 'uploaded=0&downloaded=0&left=9' > /dev/null; announce $KNOWN 1 'uploaded=0&downloaded=0&left=9'",
        |reply| reply.contains("14:failure reason"),
    );
    environment.start_site_again();
    environment.shell.wait("announce $KNOWN 1 'uploaded=0&downloaded=0&left=9'", is_admitted);
}
