//! Configuration as a whole: printing, reading, overriding, refusing.

use std::ffi::OsString;

use super::*;

/// Loads from these texts. In messages, `FILE` stands for the file.
fn load(file: &str, environment: &[(&str, &str)], flags: &[&str]) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollcall.toml");
    std::fs::write(&path, file).unwrap();
    let environment = environment.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
    let outcome = Sources::new(Some(path.clone()), environment, flags).load();
    outcome.map_err(|error| error.to_string().replace(&path.display().to_string(), "FILE"))
}

fn load_file(file: &str) -> Config {
    load(file, &[], &[]).unwrap()
}

fn refusal_of_file(file: &str) -> String {
    load(file, &[], &[]).expect_err("this must be refused")
}

#[test]
fn the_defaults_are_valid_and_differ_in_nothing() {
    let config = Sources::default().load().unwrap();
    assert_eq!(config, Config::default());
    assert_eq!(config.differences(), []);
}

#[test]
fn the_printed_file_sets_every_key_to_its_default() {
    let printed = Config::default().to_annotated_toml();
    let config = load_file(&printed);
    assert_eq!(config.to_json(), Config::default().to_json());
    assert_eq!(config.differences(), []);
    let keys: usize = config.sections().iter().map(|section| section.keys().len()).sum();
    assert_eq!(config.set_by.len(), keys, "every key is printed");
}

#[test]
fn every_section_and_key_is_documented() {
    for section in Config::default().sections() {
        assert!(!section.doc().is_empty(), "[{}]", section.name());
        for key in section.keys() {
            assert!(!key.doc.is_empty(), "{}.{}", section.name(), key.name);
        }
    }
}

#[test]
fn what_is_changed_prints_and_parses_back() {
    let changed = load_file(
        r#"
        [tracker]
        http_addr = ["0.0.0.0:6969", "[::]:6969"]
        allow_plaintext = true
        trusted_proxies = ["10.1.2.3/8", "2001:db8::1"]
        forwarded_headers = ["X-Real-IP"]
        tls_cert_file = 'C:\odd "path"'
        tls_key_file = "key.pem"
        proxy_protocol = true
        [log]
        level = "info,tracker=debug"
        format = "json"
        "#,
    );
    let tracker = &changed.tracker;
    assert_eq!(tracker.http_addr, ["0.0.0.0:6969".parse().unwrap(), "[::]:6969".parse().unwrap()]);
    assert_eq!(tracker.trusted_proxies, ["10.0.0.0/8".parse().unwrap(), "2001:db8::1/128".parse().unwrap()]);
    assert_eq!(tracker.forwarded_headers[0].as_str(), "x-real-ip");
    assert_eq!(load_file(&changed.to_annotated_toml()).to_json(), changed.to_json());
}

#[test]
fn addresses_are_one_text_or_a_list() {
    let as_text = load_file("[tracker]\nhttp_addr = \"127.0.0.1:1, [::1]:1\"");
    let as_list = load_file("[tracker]\nhttp_addr = [\"127.0.0.1:1\", \"[::1]:1\"]");
    assert_eq!(as_text.tracker, as_list.tracker);
    assert_eq!(load_file("tracker.http_addr = \"\"").tracker.http_addr, []);
}

#[test]
fn flags_override_the_environment_which_overrides_the_file() {
    let file = "[tracker]\nannounce_interval_s = 1000\npeer_grace_s = 1000\nworkers = 1";
    let environment = [("ROLLCALL_TRACKER__PEER_GRACE_S", "2000"), ("ROLLCALL_TRACKER__WORKERS", "2")];
    let config = load(file, &environment, &["tracker.workers=3"]).unwrap();
    assert_eq!(config.tracker.announce_interval_s, 1000);
    assert_eq!(config.tracker.peer_grace_s, 2000);
    assert_eq!(config.tracker.workers, 3);
    let set_by: Vec<String> =
        config.differences().into_iter().map(|d| d.set_by.unwrap().to_string()).collect();
    assert_eq!(set_by[0], "--set");
    assert!(set_by[1].ends_with("rollcall.toml:2"), "{}", set_by[1]);
    assert_eq!(set_by[2], "environment ROLLCALL_TRACKER__PEER_GRACE_S");
}

#[test]
fn lists_and_switches_can_be_set_from_the_environment() {
    let environment = [
        ("ROLLCALL_TRACKER__TRUSTED_PROXIES", "10.0.0.0/8,192.168.0.1"),
        ("ROLLCALL_TRACKER__PROXY_PROTOCOL", "true"),
        ("ROLLCALL_TRACKER__HTTPS_ADDR", ""),
        ("ROLLCALL_DATA", "/elsewhere"),
        ("HOME", "/root"),
    ];
    let config = load("", &environment, &[]).unwrap();
    assert_eq!(config.tracker.trusted_proxies.len(), 2);
    assert!(config.tracker.proxy_protocol);
    assert_eq!(config.tracker.https_addr, []);
}

#[test]
fn unknown_names_are_refused_and_the_nearest_named() {
    assert_eq!(
        refusal_of_file("[tracker]\n\nhttp_adr = \"\""),
        "FILE:3: unknown key tracker.http_adr, the nearest known one is tracker.http_addr"
    );
    assert_eq!(
        refusal_of_file("[trackr]\nworkers = 1"),
        "FILE:1: unknown section [trackr], the nearest known one is [tracker]"
    );
    assert_eq!(
        refusal_of_file("[tracker]\nheader_timeout_s = 5"),
        "FILE:2: unknown key tracker.header_timeout_s, the nearest known one is limits.header_timeout_s"
    );
    assert_eq!(
        refusal_of_file("workers = 1"),
        "FILE:1: unknown key workers, the nearest known one is tracker.workers"
    );
    assert_eq!(
        load("", &[("ROLLCALL_TRACKER__HTTP_ADDRESS", "")], &[]).unwrap_err(),
        "environment ROLLCALL_TRACKER__HTTP_ADDRESS: unknown key ROLLCALL_TRACKER__HTTP_ADDRESS, \
         the nearest known one is ROLLCALL_TRACKER__HTTP_ADDR"
    );
    assert_eq!(
        load("", &[("ROLLCALL_CONFG", "x")], &[]).unwrap_err(),
        "environment ROLLCALL_CONFG: unknown key ROLLCALL_CONFG, the nearest known one is ROLLCALL_CONFIG"
    );
    assert_eq!(
        load("", &[], &["log.levle=info"]).unwrap_err(),
        "--set: unknown key log.levle, the nearest known one is log.level"
    );
}

#[test]
fn the_first_mistake_in_the_file_is_the_one_reported() {
    let refusal = refusal_of_file("[tracker]\nzzz = 1\naaa = 2");
    assert!(refusal.starts_with("FILE:2: unknown key tracker.zzz"), "{refusal}");
}

#[test]
fn bad_values_name_the_key_the_value_and_what_is_expected() {
    let cases = [
        ("tracker.workers = \"4\"", "tracker.workers = \"4\": expected a whole number from 0 to 1024"),
        ("tracker.workers = -1", "tracker.workers = -1: expected a whole number from 0 to 1024"),
        ("tracker.workers = 2.5", "tracker.workers = 2.5: expected a whole number from 0 to 1024"),
        ("tracker.numwant_max = 0", "tracker.numwant_max = 0: expected a whole number from 1 to 200"),
        ("tracker.proxy_protocol = 1", "tracker.proxy_protocol = 1: expected true or false"),
        ("log.format = \"xml\"", "log.format = \"xml\": expected \"auto\", \"human\" or \"json\""),
        (
            "tracker.http_addr = [\"localhost:6969\"]",
            "tracker.http_addr = [\"localhost:6969\"]: expected IP addresses with ports such as \
             \"127.0.0.1:6969,[::1]:6969\", or \"\" for none",
        ),
        (
            "tracker.trusted_proxies = [\"10.0.0.0/40\"]",
            "tracker.trusted_proxies = [\"10.0.0.0/40\"]: expected a list of address ranges such as \
             [\"10.0.0.0/8\", \"2001:db8::/32\"]",
        ),
    ];
    for (file, expected) in cases {
        assert_eq!(refusal_of_file(file), format!("FILE:1: {expected}"));
    }
    assert_eq!(
        load("", &[("ROLLCALL_ACCESS__VERIFY_TIMEOUT_MS", "soon")], &[]).unwrap_err(),
        "environment ROLLCALL_ACCESS__VERIFY_TIMEOUT_MS: access.verify_timeout_ms = \"soon\": \
         expected a whole number from 50 to 60000"
    );
}

#[test]
fn what_is_not_a_section_or_an_assignment_is_refused() {
    assert_eq!(
        refusal_of_file("tracker = 1"),
        "FILE:1: tracker must be a section: write [tracker] and its keys below"
    );
    let refusal = refusal_of_file("[tracker]\nworkers = \n");
    assert!(refusal.starts_with("FILE:2: not TOML: "), "{refusal}");
    assert!(!refusal.contains('\n'), "one line: {refusal}");
    assert!(load("", &[], &["tracker.workers"]).unwrap_err().contains("expected SECTION.KEY=VALUE"));
}

#[test]
fn values_that_do_not_fit_together_are_refused() {
    assert_eq!(
        refusal_of_file("[tracker]\nannounce_interval_s = 600"),
        "tracker.min_announce_interval_s = 900 is more than tracker.announce_interval_s = 600: \
         lower the first or raise the second (set in FILE:2)"
    );
    let cases = [
        ("limits.connections_max = 10", "limits.connections_per_address_max = 200 is more than"),
        ("limits.announce_burst_per_user = 10", "limits.announces_per_user_per_s = 20 is more than"),
        ("tracker.https_addr = \"127.0.0.1:443\"", "tracker.https_addr needs tracker.tls_cert_file"),
        ("tracker.tls_key_file = \"key.pem\"", "tracker.tls_cert_file and tracker.tls_key_file go together"),
        ("tracker.proxy_protocol = true", "tracker.proxy_protocol = true needs tracker.trusted_proxies"),
        ("tracker.udp_addr = \"127.0.0.1:1,127.0.0.1:1\"", "tracker.udp_addr names 127.0.0.1:1 twice"),
    ];
    for (file, beginning) in cases {
        let refusal = refusal_of_file(file);
        assert!(refusal.starts_with(beginning), "{file}: {refusal}");
    }
}

#[test]
fn nothing_secret_crosses_the_network_in_plain_text_unless_allowed() {
    let refusal = refusal_of_file("[tracker]\nhttp_addr = \"0.0.0.0:6969\"");
    assert!(refusal.contains("tracker.allow_plaintext") && refusal.contains("plain text"), "{refusal}");
    let refusal = refusal_of_file("[site]\naddr = \"10.0.0.1:8080\"");
    assert!(refusal.contains("site.allow_plaintext") && refusal.contains("10.0.0.1:8080"), "{refusal}");
    load_file("[tracker]\nhttp_addr = \"0.0.0.0:6969\"\nallow_plaintext = true");
    load_file("[site]\naddr = \"0.0.0.0:8080\"\nallow_plaintext = true");
    load_file("[site]\naddr = \"0.0.0.0:8443\"\ntls_cert_file = \"a\"\ntls_key_file = \"b\"");
    load_file("[tracker]\nudp_addr = \"0.0.0.0:6969\"");
}

#[test]
fn zero_means_no_limit_for_the_burst_and_any_port_for_addresses() {
    load_file("limits.announce_burst_per_user = 0");
    load_file("limits.requests_per_address_per_s = 0");
    load_file("tracker.http_addr = \"127.0.0.1:0,127.0.0.1:0\"");
}

#[test]
fn reloading_reads_the_file_again_and_keeps_the_flags() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollcall.toml");
    std::fs::write(&path, "tracker.peer_grace_s = 1\ntracker.workers = 1").unwrap();
    let sources = Sources::new(Some(path.clone()), [], vec!["tracker.workers=2".to_owned()]);
    let first = sources.load().unwrap();
    std::fs::write(&path, "tracker.peer_grace_s = 5\ntracker.workers = 5").unwrap();
    let second = first.reload().unwrap();
    assert_eq!((second.tracker.peer_grace_s, second.tracker.workers), (5, 2));
    std::fs::write(&path, "nonsense").unwrap();
    first.reload().unwrap_err();
}

#[test]
fn the_password_of_a_database_is_never_shown() {
    let config = load_file("database.url = \"postgres://me:s3cret@db.example/site\"");
    assert_eq!(config.database_url(Path::new("/")), "postgres://me:s3cret@db.example/site");
    let differences = config.differences();
    assert_eq!(differences[0].value, "postgres://me@db.example:5432/site");
    assert!(!format!("{differences:?}{:?}", config.database).contains("s3cret"));
    for file in ["database.url = \"oracle://me:s3cret@host/db\"", "database.url = \"me:s3cret@host/db\""] {
        let refusal = refusal_of_file(file);
        assert!(refusal.contains("expected \"sqlite:PATH\"") && !refusal.contains("s3cret"), "{refusal}");
    }
}

#[test]
fn the_database_is_in_the_data_folder_by_default() {
    let data = Path::new("/srv/data");
    assert_eq!(Config::default().database_url(data), "sqlite:/srv/data/rollcall.db");
    assert_eq!(load_file("database.url = \"sqlite:/x.db\"").database_url(data), "sqlite:/x.db");
}

#[test]
fn a_secret_of_tokens_that_could_be_guessed_is_refused_and_not_shown() {
    let setting = |secret: &str| format!("[gateway]\ntoken_hmac_secret = {secret:?}\n");
    let error = refusal_of_file(&setting("hunter2hunter2hunter2hunter2hun"));
    assert!(error.contains("FILE:2") && error.contains("31 characters"), "{error}");
    assert!(error.contains("openssl rand -hex 32") && !error.contains("hunter2"), "{error}");
    load_file(&setting(&"s".repeat(32)));
}
