//! Runs `promtool`, of Debian's package `prometheus`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Files that operators install.
pub fn deploy_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

/// Runs it in a folder with `input` on standard input; panics unless it succeeds.
#[track_caller]
pub fn run(folder: &Path, args: &[&str], input: &str) -> String {
    let mut child = Command::new("promtool")
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| {
            panic!("promtool does not start ({error}): run scripts/install-test-needs.sh")
        });
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writing = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    writing.join().unwrap().unwrap();
    let output = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "promtool {} failed:\n{output}", args.join(" "));
    output
}
