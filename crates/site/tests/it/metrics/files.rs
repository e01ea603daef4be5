//! Files that operators install: alert rules, Prometheus configuration, Grafana dashboard.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use access::{Store, UnknownPasskeys};
use admin::{Audit, AuditSettings, Sessions};
use domain::clock::SystemClock;
use domain::{InfoHash, Passkey, TorrentId, UnixTime, UserId};
use gateway::{GatewayCounters, OnlineCount};
use journal::RedisJournal;
use keyspace::PubSubCounters;
use keyspace::{BaseNames, KeyNames, Lease, Redis, RedisMirrorNames, RedisSettings};
use net::{Certificate, TlsFiles};
use serde_json::Value;
use site::SiteCounters;
use site::SiteLimits;
use site::auth::Callers;
use site::health::{Dependency, Health};
use site::metrics::{
    Allocator, CertificateMetrics, ClusterMetrics, PresenceMetrics, RedisMirrorMetrics, RedisSourceFigures,
    SitesMetrics, Source,
};
use site::ranking::Rankings;
use site::rate_limit::CallerRateLimit;
use testkit::RedisServer;
use views::redis_mirror::Directory;
use views::{RedisMirror, RedisMirrorParts, RedisMirrorSettings};

use crate::metrics::promtool::{self, deploy_folder};
use crate::metrics::server::{number, on_redis};

/// Metrics without a panel: constants and limits.
const NOT_ON_THE_DASHBOARD: [&str; 4] = [
    "process_start_time_seconds",
    "process_virtual_memory_bytes",
    "rollcall_tracker_table_addresses_max",
    "rollcall_tracker_table_users_max",
];

/// Metric names in an expression.
fn names_in(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("rollcall_") || word.starts_with("process_"))
        .collect()
}

/// Metric names on the page, including those of histogram series.
fn names_on(page: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        names.insert(name.to_owned());
        if kind == "histogram" {
            names.extend(["_bucket", "_sum", "_count"].map(|suffix| format!("{name}{suffix}")));
        }
    }
    names
}

fn read(path: &str) -> String {
    std::fs::read_to_string(deploy_folder().join(path)).unwrap()
}

fn expressions(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alerts_and_dashboard_use_existing_metrics_and_the_dashboard_shows_all() {
    let redis = RedisServer::start();
    let server = on_redis(&redis).await;
    server.wait_for("rollcall_view_lag_entries{group=\"ledger\",view=\"ledger\"}", 0.0).await;
    let audit = Audit::open(
        AuditSettings { file: server.folder.path().join("audit.log"), is_synced: false },
        Arc::new(SystemClock),
    )
    .unwrap();
    let (unknown_passkeys, _requests) = UnknownPasskeys::new(Duration::from_secs(1));
    let count = Arc::new(OnlineCount::default);
    let mirror = a_mirror(&redis);
    let gateways =
        ClusterMetrics { cluster: Arc::default(), gateway: Arc::default(), since_contact_s: Arc::new(|| 0) };
    let database = format!("sqlite:{}", server.folder.path().join("sessions.db").display());
    let store = Store::open(&database).await.unwrap();
    let more: [&dyn Source; 16] = [
        &gateways,
        &mirror,
        &SitesMetrics { reader: Arc::default(), writer: Some(Arc::default()) },
        &some_redis_source(),
        &audit,
        &*unknown_passkeys,
        &CertificateMetrics(vec![("site", a_certificate(server.folder.path()))]),
        &SiteCounters::default(),
        &Callers {
            by_key: CallerRateLimit::per_s(1),
            by_address: CallerRateLimit::per_s(1),
            by_user: CallerRateLimit::per_s(1),
            wrong_keys: CallerRateLimit::per_minute(1),
        },
        &Sessions::on(store.database()),
        &Rankings::new(site::ranking::RankingSource::of(Arc::default(), None, None)),
        &some_limits(),
        &Allocator,
        &Health::new(vec![Dependency::new("database", || async { Ok(()) })], UnixTime(0)),
        &GatewayCounters::default(),
        &PresenceMetrics { count, connections_max: 1 },
    ];
    let page = server.metrics.render_with(&more);
    assert_eq!(promtool::run(server.folder.path(), &["check", "metrics"], &page), "");
    assert!(number(&page, "rollcall_certificate_expiry_timestamp_seconds{listener=\"site\"}") > 1.8e9);
    let (alerts, dashboard) = (read("prometheus/alerts.yml"), read("grafana/rollcall.json"));
    let on_page = names_on(&page);
    for (file, text) in [("alerts", &alerts), ("dashboard", &dashboard)] {
        let missing: Vec<&str> = names_in(text).into_iter().filter(|name| !on_page.contains(*name)).collect();
        assert!(missing.is_empty(), "the {file} use unknown metrics: {missing:?}");
    }
    let shown = names_in(&dashboard);
    let families = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let is_shown =
        |name: &str| shown.iter().any(|shown| shown.strip_suffix("_bucket").unwrap_or(shown) == name);
    let unshown: Vec<&str> =
        families.filter(|name| !is_shown(name) && !NOT_ON_THE_DASHBOARD.contains(name)).collect();
    assert!(unshown.is_empty(), "the dashboard does not show {unshown:?}");
    server.end().await;
}

/// An idle mirror.
fn a_mirror(server: &RedisServer) -> RedisMirrorMetrics {
    struct Empty;
    impl Directory for Empty {
        fn user_of(&self, _: &Passkey) -> Option<UserId> {
            None
        }
        fn torrent_of(&self, _: &InfoHash) -> Option<(TorrentId, InfoHash)> {
            None
        }
    }
    let redis = Redis::new(RedisSettings::from_url(&server.url()).unwrap()).unwrap();
    let names = RedisMirrorNames::new(redis.mode());
    let keys = KeyNames::new(&BaseNames::default(), redis.mode()).unwrap();
    let parts = RedisMirrorParts {
        journal: Arc::new(RedisJournal::new(redis.clone(), keys)),
        lease: Arc::new(Lease::new(
            redis.clone(),
            names.lease().to_owned(),
            "test".to_owned(),
            Duration::from_secs(10),
        )),
        redis,
        names,
        directory: Arc::new(Empty),
        clock: Arc::new(SystemClock),
    };
    let mirror = Arc::new(RedisMirror::new(parts, RedisMirrorSettings::default(), "test.reaper".to_owned()));
    let listening = Arc::new(OnceLock::from(Arc::new(PubSubCounters::default())));
    RedisMirrorMetrics { mirror, listening }
}

/// Keys that are both believed and copied, which no one process does.
fn some_redis_source() -> RedisSourceFigures {
    RedisSourceFigures {
        source: Some(Arc::default()),
        copy: Some(Arc::default()),
        listening: vec![("redis_source", Arc::default())],
    }
}

fn a_certificate(folder: &Path) -> Arc<Certificate> {
    let files =
        TlsFiles { certificates: folder.join("certificate.pem"), private_key: folder.join("key.pem") };
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(&files.certificates, made.cert.pem()).unwrap();
    std::fs::write(&files.private_key, made.signing_key.serialize_pem()).unwrap();
    Arc::new(Certificate::load(&files).unwrap())
}

/// With ROLLCALL_WRITE_DOCS set, the file is written instead of compared.
#[test]
fn alerts_file_is_generated_from_the_table() {
    let path = deploy_folder().join("prometheus/alerts.yml");
    let expected = site::alerts::prometheus_rules();
    if std::env::var_os("ROLLCALL_WRITE_DOCS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), expected, "run make docs");
}

#[test]
fn alert_rules_are_valid_and_pass_their_tests() {
    let folder = deploy_folder().join("prometheus");
    promtool::run(&folder, &["check", "rules", "alerts.yml"], "");
    promtool::run(&folder, &["test", "rules", "alerts_test.yml"], "");
    promtool::run(&folder, &["check", "config", "--syntax-only", "prometheus.yml"], "");
}

#[test]
fn every_alert_has_severity_summary_description_and_test() {
    let (alerts, tests) = (read("prometheus/alerts.yml"), read("prometheus/alerts_test.yml"));
    let count = |what: &str| alerts.lines().filter(|line| line.trim_start().starts_with(what)).count();
    let names: Vec<&str> = alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(names.len() > 30);
    for what in ["labels: {severity: ", "summary: ", "description: "] {
        assert_eq!(count(what), names.len(), "each alert has one {what}");
    }
    for name in names {
        assert!(tests.contains(&format!("alertname=\"{name}\"")), "{name} has no test");
    }
}

#[test]
fn the_dashboard_is_valid_and_has_a_data_source_variable() {
    let dashboard: Value = serde_json::from_str(&read("grafana/rollcall.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "panel ids are unique");
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
        assert_ne!(panel["description"].as_str().unwrap(), "", "{}", panel["title"]);
        let grid = &panel["gridPos"];
        assert!(grid["x"].as_u64().unwrap() + grid["w"].as_u64().unwrap() <= 24, "{}", panel["title"]);
    }
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    assert!(variables.iter().any(|variable| variable["type"] == "datasource"));
}

#[test]
fn every_expression_of_the_dashboard_is_valid() {
    let dashboard: Value = serde_json::from_str(&read("grafana/rollcall.json")).unwrap();
    let mut rules = String::from("groups:\n  - name: dashboard\n    rules:\n");
    for (number, expression) in expressions(&dashboard).iter().enumerate() {
        let expression = expression.replace("$__rate_interval", "5m");
        let quoted = serde_json::to_string(&expression).unwrap();
        rules.push_str(&format!("      - record: dashboard:expression{number}\n        expr: {quoted}\n"));
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rules.yml"), rules).unwrap();
    promtool::run(folder.path(), &["check", "rules", "rules.yml"], "");
}

fn some_limits() -> SiteLimits {
    let time = Duration::from_secs(1);
    SiteLimits {
        requests_per_key_per_s: 1,
        requests_per_address_per_s: 1,
        connections_max: 1,
        connections_per_address_max: 1,
        header_bytes_max: 8192,
        header_timeout: time,
        request_timeout: time,
        body_bytes_max: 1,
        upload_bytes_max: 1,
    }
}
