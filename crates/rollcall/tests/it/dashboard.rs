//! The dashboard in a real Chromium, against this very program: the tests in `web/e2e`, which start their servers
//! themselves. See `web/e2e/fixtures.ts` for what every one of them checks besides what it is about.

use std::path::{Path, PathBuf};
use std::process::Command;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs a command, and shows what it printed if it failed.
#[track_caller]
fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", said(&output.stdout), said(&output.stderr));
}

#[test]
fn the_dashboard_works_in_a_browser() {
    // The packages; and the pages, which are part of the program if they were built before it, as `make test` does.
    succeed(&mut Command::new(repository().join("scripts/web.sh")));
    let folder = tempfile::tempdir().unwrap();
    let web = repository().join("web");
    succeed(
        Command::new(web.join("node_modules/.bin/playwright"))
            .arg("test")
            .current_dir(&web)
            .env("ROLLCALL_BIN", env!("CARGO_BIN_EXE_rollcall"))
            .env("E2E_OUTPUT", folder.path()),
    );
}
