//! "Dead letters and retries".

use crate::site_integration::accounts::xadd;
use crate::site_integration::environment::start;

#[test]
fn j6_an_entry_that_cannot_be_taken_is_retried_and_given_up() {
    let (_redis, environment) = start();
    let passkey = environment.add_user(1);
    let sh = &environment.shell;
    let stranger = "dddddddd00000001";
    sh.run(&xadd(stranger, "du 1 dd 1 left 0", "none", "dt 60"));
    // One bad entry holds up nothing.
    sh.run(&xadd(&passkey, "du 77 dd 0 left 0", "none", "dt 60"));
    // "If consumption fails: write to the DLQ and XACK"; "retried until TRACKER_RETRY_MAX (3), then the failed stream"
    sh.wait("redis XLEN tracker:traffic:failed", |length| length == "1");
    sh.wait("redis XLEN tracker:traffic:dlq", |length| length == "0");
    let failed = sh.run("redis XRANGE tracker:traffic:failed - + | xargs");
    assert!(failed.contains(&format!("passkey {stranger}")) && failed.contains("retry 3"), "{failed}");
    sh.wait(r#"api "$SITE/api/v1/users/1""#, |user| user.contains(r#""uploaded":"77""#));
    sh.wait("redis XPENDING tracker:traffic ztorrent | head -1", |pending| pending == "0");

    // "Figures: length of the backlog, distribution of retries, growth of the failed stream"
    sh.wait(r#"api "$SITE/metrics" | grep '^rollcall_journal_entries' "#, |figures| {
        figures.lines().any(|line| line.contains("failed") && line.ends_with(" 1"))
    });
    let figures = environment.metrics();
    for name in [
        "rollcall_view_lag_entries",
        "rollcall_view_dead_letter_retries_total",
        "rollcall_view_dead_letters_failed_total",
    ] {
        assert!(figures.contains(name), "{name} is missing:\n{figures}");
    }

    // The user turns up; the operator lets the entry be tried once more.
    environment.add_user_with(2, stranger);
    sh.run(r#"api "$SITE/api/v1/dead-letters/failed/replay" -d '{"all": true}'"#);
    sh.wait(r#"api "$SITE/api/v1/users/2""#, |user| user.contains(r#""uploaded":"1""#));
    assert_eq!(sh.run("redis XLEN tracker:traffic:failed"), "0");
}
