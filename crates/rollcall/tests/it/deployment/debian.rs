//! The Debian package: built, looked at, installed into a root of its own, run from there.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use testkit::eventually;
use testkit::ports::free_port;
use testkit::process::Process;

use crate::deployment::{BINARY, printed, read, repository};

const PATIENCE: Duration = Duration::from_secs(60);

/// Packs the binary that is tested.
fn build(folder: &Path) -> PathBuf {
    let script = repository().join("scripts/deb.sh");
    let out = folder.to_str().unwrap();
    let said = printed(script.to_str().unwrap(), &["--binary", BINARY, "--out", out, "--quick"]);
    repository().join(said.lines().last().expect("the path of the package"))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn the_package_has_what_debian_asks_for() {
    let folder = tempfile::tempdir().unwrap();
    let package = build(folder.path());
    let field = |name: &str| printed("dpkg-deb", &["--field", text(&package), name]).trim().to_owned();
    let manifest = read("Cargo.toml");
    let version =
        manifest.lines().find_map(|line| line.strip_prefix("version = ")).unwrap().trim_matches('"');
    assert_eq!(field("Package"), "rollcall");
    assert_eq!(field("Version"), format!("{version}-1"));
    assert_eq!(field("Architecture"), printed("dpkg", &["--print-architecture"]).trim());
    assert!(field("Depends").contains("libc6 (>= "), "{}", field("Depends"));
    assert!(field("Maintainer").contains('<') && !field("Description").is_empty());
    assert!(field("Installed-Size").parse::<u64>().unwrap() > 1000);

    let contents = printed("dpkg-deb", &["--contents", text(&package)]);
    let listed = |path: &str| {
        let line = contents.lines().find(|line| line.ends_with(path));
        line.unwrap_or_else(|| panic!("{path} is not in the package:\n{contents}"))
    };
    assert!(listed("./usr/bin/rollcall").starts_with("-rwxr-xr-x root/root"));
    assert!(listed("./etc/rollcall/rollcall.toml").starts_with("-rw-r----- root/root"));
    for path in [
        "./etc/rollcall/rollcall.env",
        "./usr/lib/systemd/system/rollcall.service",
        "./usr/lib/systemd/system/rollcall@.service",
        "./usr/lib/sysusers.d/rollcall.conf",
        "./usr/share/man/man1/rollcall.1.gz",
        "./usr/share/doc/rollcall/copyright",
        "./usr/share/doc/rollcall/changelog.gz",
        "./usr/share/doc/rollcall/changelog.Debian.gz",
    ] {
        assert!(!listed(path).starts_with("-rwx"), "{path}");
    }
    for line in contents.lines() {
        assert!(line.contains(" root/root "), "{line}");
        assert!(!line.starts_with("-rwxrwx") && !line.contains("/usr/local"), "{line}");
    }
}

#[test]
fn settings_are_kept_on_upgrades_and_scripts_stop_at_the_first_error() {
    let folder = tempfile::tempdir().unwrap();
    let package = build(folder.path());
    let control = folder.path().join("control");
    printed("dpkg-deb", &["--control", text(&package), text(&control)]);
    let file = |name: &str| std::fs::read_to_string(control.join(name)).unwrap();
    assert_eq!(file("conffiles"), "/etc/rollcall/rollcall.env\n/etc/rollcall/rollcall.toml\n");
    assert!(file("md5sums").contains("  usr/bin/rollcall\n"));
    for script in ["postinst", "prerm", "postrm"] {
        let text = file(script);
        assert!(text.starts_with("#!/bin/sh\n") && text.contains("\nset -e\n"), "{script}");
        printed("sh", &["-n", control.join(script).to_str().unwrap()]);
    }
    let binary = folder.path().join("unpacked");
    printed("dpkg-deb", &["--extract", text(&package), text(&binary)]);
    let sections =
        printed("readelf", &["--section-headers", "--wide", text(&binary.join("usr/bin/rollcall"))]);
    assert!(!sections.contains(".debug_info") && !sections.contains(".symtab"), "it is stripped");
}

#[test]
fn the_same_sources_make_the_same_package() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bytes = |folder: &TempDir| std::fs::read(build(folder.path())).unwrap();
    assert!(bytes(&one) == bytes(&two));
}

/// A root directory with nothing in it but dpkg's own files.
struct Root {
    folder: TempDir,
}

impl Root {
    fn new() -> Self {
        let root = Root { folder: tempfile::tempdir().unwrap() };
        for name in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "etc"] {
            std::fs::create_dir_all(root.path(name)).unwrap();
        }
        std::fs::write(root.path("var/lib/dpkg/status"), "").unwrap();
        root
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs dpkg there. Without root it runs under fakeroot, because files have to become root's.
    #[track_caller]
    fn dpkg(&self, args: &[&str]) -> String {
        let mut words: Vec<String> = vec![
            "dpkg".to_owned(),
            format!("--root={}", self.folder.path().display()),
            format!("--log={}", self.path("dpkg.log").display()),
            "--force-script-chrootless".to_owned(),
            "--force-not-root".to_owned(),
            // Nothing is installed there, not even a C library.
            "--force-depends".to_owned(),
        ];
        words.extend(args.iter().map(|word| (*word).to_owned()));
        let is_root = printed("id", &["--user"]).trim() == "0";
        if !is_root {
            words.insert(0, "fakeroot".to_owned());
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        printed(words[0], &words[1..])
    }
}

/// The scripts run too, and must not touch the machine that runs the test.
#[test]
fn the_package_can_be_installed_run_and_purged() {
    let folder = tempfile::tempdir().unwrap();
    let package = build(folder.path());
    let users_here = std::fs::read_to_string("/etc/passwd").unwrap();
    let root = Root::new();
    root.dpkg(&["--install", text(&package)]);
    let status = std::fs::read_to_string(root.path("var/lib/dpkg/status")).unwrap();
    assert!(status.contains("Status: install ok installed"), "{status}");
    let users_there = std::fs::read_to_string(root.path("etc/passwd")).unwrap();
    assert!(
        users_there.contains("rollcall:") && users_there.contains(":/var/lib/rollcall:"),
        "{users_there}"
    );
    assert!(root.path("etc/systemd/system/multi-user.target.wants/rollcall.service").is_symlink());

    serves_with_the_shipped_settings(&root);

    std::fs::create_dir_all(root.path("var/lib/rollcall")).unwrap();
    std::fs::write(root.path("var/lib/rollcall/rollcall.db"), "accounts").unwrap();
    root.dpkg(&["--purge", "rollcall"]);
    assert!(!root.path("usr/bin/rollcall").exists() && !root.path("etc/rollcall").exists());
    assert!(root.path("var/lib/rollcall/rollcall.db").exists(), "accounts survive a purge");
    assert_eq!(
        std::fs::read_to_string("/etc/passwd").unwrap(),
        users_here,
        "no user was added to this machine"
    );
}

#[track_caller]
fn serves_with_the_shipped_settings(root: &Root) {
    let binary = root.path("usr/bin/rollcall");
    let config = root.path("etc/rollcall/rollcall.toml");
    let checked = printed(text(&binary), &["config", "check", "--config", text(&config)]);
    assert_eq!(checked, "valid, every setting at its default\n");
    let (port, site_port) = (free_port(), free_port());
    let data = root.path("var/lib/rollcall-test");
    // The ports of the defaults may be taken on this machine.
    let common = [
        format!("--config={}", config.display()),
        format!("--data={}", data.display()),
        format!("--set=tracker.http_addr=127.0.0.1:{port}"),
        format!("--set=tracker.udp_addr=127.0.0.1:{port}"),
        format!("--set=site.addr=127.0.0.1:{site_port}"),
    ];
    let mut args = vec!["serve".to_owned()];
    args.extend(common.clone());
    let mut server = Process::start(text(&binary), args, &root.path("server.log"));
    // The announce listener is enough to be alive here; the last setting of a key counts.
    let ask = |word: &str, last: &[&str]| {
        let mut command = Command::new(&binary);
        testkit::process::clear_settings_env(&mut command);
        command.arg(word).args(&common).args(last).output().unwrap()
    };
    eventually("the installed server to be alive", PATIENCE, || {
        assert!(server.has_ended().is_none(), "it ended: {}", server.log());
        ask("ping", &["--set=site.addr="]).status.success().then_some(())
    });
    let doctor = ask("doctor", &["--json"]);
    assert!(doctor.status.success(), "{}", String::from_utf8_lossy(&doctor.stdout));
    server.terminate();
    assert!(server.wait_end(PATIENCE).success());
    assert!(!ask("ping", &["--set=site.addr="]).status.success(), "no server answers any more");
}
