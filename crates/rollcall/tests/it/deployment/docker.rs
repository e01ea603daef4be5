//! The containers, as far as they can be checked where no container can be run.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value as Json;

use crate::deployment::{BINARY, printed, read, repository};

const DOCKERFILE: &str = "deploy/docker/Dockerfile";
const COMPOSE: &str = "deploy/docker/compose.yml";
const SECRETS: &str = "deploy/docker/rollcall.env.example";
const READ_YAML: &str = "import json, sys, yaml; json.dump(yaml.safe_load(open(sys.argv[1])), sys.stdout)";

fn compose() -> Json {
    let path = repository().join(COMPOSE);
    let text = printed("/usr/bin/python3", &["-c", READ_YAML, path.to_str().unwrap()]);
    serde_json::from_str(&text).unwrap()
}

/// Fills in `${NAME:?…}` as compose does; a name that the example of the secrets does not have fails.
fn filled_in(text: &str, secrets: &BTreeMap<String, String>) -> String {
    let mut rest = text;
    let mut filled = String::new();
    while let Some((before, behind)) = rest.split_once("${") {
        let (inside, after) = behind.split_once('}').unwrap();
        let name = inside.split(':').next().unwrap();
        filled.push_str(before);
        filled.push_str(secrets.get(name).unwrap_or_else(|| panic!("{SECRETS} lacks {name}")));
        rest = after;
    }
    filled + rest
}

/// Every name in the example, with some secret.
fn secrets() -> BTreeMap<String, String> {
    let example = read(SECRETS);
    let names = example.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('='));
    names
        .map(|(name, value)| {
            assert_eq!(value, "", "no secret has a default");
            (name.to_owned(), "0123456789abcdef0123456789abcdef".to_owned())
        })
        .collect()
}

#[test]
fn the_settings_of_compose_are_accepted_and_used() {
    let compose = compose();
    let mut command = Command::new(BINARY);
    testkit::process::clear_settings_env(&mut command);
    for (name, value) in compose["services"]["rollcall"]["environment"].as_object().unwrap() {
        command.env(name, filled_in(value.as_str().unwrap(), &secrets()));
    }
    let output = command.args(["config", "check", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let checked: Json = serde_json::from_slice(&output.stdout).unwrap();
    let changed: Vec<&str> =
        checked["changed"].as_array().unwrap().iter().map(|change| change["key"].as_str().unwrap()).collect();
    for key in [
        "tracker.http_addr",
        "site.addr",
        "database.url",
        "redis.url",
        "redis.password",
        "site.tracker_api_key",
    ] {
        assert!(changed.contains(&key), "{key}: {changed:?}");
    }
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(!shown.contains("0123456789abcdef"), "secrets are not shown: {shown}");
}

#[test]
fn redis_keeps_everything_and_every_service_has_a_health_check() {
    let compose = compose();
    let services = compose["services"].as_object().unwrap();
    let redis = services["redis"]["command"].to_string();
    for words in [r#""--appendonly","yes""#, r#""--maxmemory-policy","noeviction""#] {
        assert!(redis.contains(words), "{redis}");
    }
    for name in ["redis", "postgres"] {
        assert!(services[name]["healthcheck"]["test"].is_array(), "{name}");
        assert_eq!(services["rollcall"]["depends_on"][name]["condition"], "service_healthy");
    }
    assert!(read(DOCKERFILE).contains("HEALTHCHECK "), "ours is in the Dockerfile");
    let named: Vec<&String> = compose["volumes"].as_object().unwrap().keys().collect();
    for (name, service) in services {
        for volume in service["volumes"].as_array().unwrap() {
            let source = volume.as_str().unwrap().split(':').next().unwrap().to_owned();
            assert!(named.contains(&&source), "{name} uses a volume {source} that is not declared");
        }
    }
    // Plain HTTP stays on this machine.
    for port in services["rollcall"]["ports"].as_array().unwrap() {
        let port = port.as_str().unwrap();
        assert!(port.starts_with("127.0.0.1:") || port.ends_with("/udp"), "{port}");
    }
}

#[test]
fn the_dockerfile_builds_what_make_builds_from_files_that_exist() {
    let dockerfile = read(DOCKERFILE);
    let makefile = read("Makefile");
    let build = "cargo build --release --package rollcall";
    assert!(makefile.contains(build));
    assert!(dockerfile.contains("cargo build --release --locked --package rollcall"), "the same, locked");
    let mut stages = Vec::new();
    for line in dockerfile.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("FROM") => {
                let image = words.next().unwrap();
                assert!(!image.contains('/'), "{image}: no host of a registry");
                stages.extend(words.nth(1));
            }
            Some("COPY") if line.contains("--from=build") => assert!(stages.contains(&"build")),
            Some("COPY") => {
                let mut paths: Vec<&str> = words.collect();
                paths.pop();
                for path in paths {
                    assert!(repository().join(path).exists(), "COPY {path}");
                }
            }
            _ => {}
        }
    }
    let user = dockerfile.lines().find_map(|line| line.strip_prefix("USER ")).unwrap();
    assert!(!user.starts_with("root") && !user.starts_with('0'));
    let compiler = dockerfile.lines().find_map(|line| line.strip_prefix("FROM rust:")).unwrap();
    let wanted = read("Cargo.toml");
    let wanted =
        wanted.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    assert!(compiler.starts_with(wanted), "{compiler} is not {wanted}");
}
