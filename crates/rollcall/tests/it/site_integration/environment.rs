//! The environment: Redis, the site, the tracker, and a shell with their addresses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use domain::clock::Stopwatch;
use serde_json::Value as Json;
use tempfile::TempDir;
use testkit::ports::free_port;
use testkit::process::Process;
use testkit::{RedisServer, eventually};

/// Long enough for a machine that does much else, too.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The key of the document, as a site would make one up.
pub const API_KEY: &str = "4f1c0ffee4f1c0ffee4f1c0ffee4f1c0";
/// A torrent that both know.
pub const INFOHASH: &str = "0123456789abcdef0123456789abcdef01234567";

/// What the shell knows before a script begins. `redis` is `redis-cli` at the right address, `api` a call to the site,
/// `announce PASSKEY NUMBER QUERY` what a client does.
const PRELUDE: &str = r#"
set -euo pipefail
redis() { redis-cli -e $REDIS_FLAGS -h 127.0.0.1 -p "$REDIS_PORT" -n "${REDIS_DB:-0}" "$@"; }
api() { curl --silent --show-error --fail-with-body --cacert "$CA" -H "X-API-Key: $ADMIN_KEY" -H 'Content-Type: application/json' "$@"; }
announce() {
  local hash=%01%23%45%67%89%ab%cd%ef%01%23%45%67%89%ab%cd%ef%01%23%45%67
  curl --silent --show-error "http://$TRACKER/$1/announce?info_hash=$hash&peer_id=-XX0001-00000000000$2&port=5141$2&compact=1&$3"
}
"#;

/// Variables of a process, or of the shell.
pub type Variables = BTreeMap<String, String>;

/// The site and the tracker.
pub struct Environment {
    pub site: Process,
    _tracker: Process,
    pub shell: Shell,
    pub folder: TempDir,
    site_launch: Launch,
}

/// A shell that knows where everything is.
pub struct Shell {
    pub variables: Variables,
}

impl Shell {
    fn output(&self, script: &str) -> Output {
        let mut command = Command::new("bash");
        command.arg("-c").arg(format!("{PRELUDE}\n{script}")).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap()).envs(&self.variables);
        command.output().unwrap()
    }

    /// Runs a script that succeeds. What it printed.
    #[track_caller]
    pub fn run(&self, script: &str) -> String {
        let output = self.output(script);
        let printed = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}\n{printed}\n{complaint}");
        printed
    }

    /// Runs a script that prints JSON.
    #[track_caller]
    pub fn json(&self, script: &str) -> Json {
        let printed = self.run(script);
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{script}\n{printed}\n{error}"))
    }

    /// Runs a script until it prints what is expected.
    #[track_caller]
    pub fn wait(&self, script: &str, is_expected: impl Fn(&str) -> bool) -> String {
        let watch = Stopwatch::start();
        loop {
            let output = self.output(script);
            let printed = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
            if output.status.success() && is_expected(&printed) {
                return printed;
            }
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert!(watch.elapsed() < PATIENCE, "waited in vain: {script}\n{printed}\n{complaint}");
        }
    }

    /// Sets a variable for all further scripts.
    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }
}

/// Reply to an admitted announce.
pub fn is_admitted(reply: &str) -> bool {
    reply.contains("5:peers") && !reply.contains("failure reason")
}

/// Reply to an unknown passkey.
pub fn is_unknown(reply: &str) -> bool {
    reply.contains("14:failure reason") && reply.contains("unknown passkey")
}

/// Configuration by the names of the document, for a Redis with a password.
pub fn of_redis(redis: &RedisServer, password: &str) -> Variables {
    let pairs = [
        ("TRACKER_API_KEY", API_KEY.to_owned()),
        ("REDIS_HOST", "127.0.0.1".to_owned()),
        ("REDIS_PORT", redis.port().to_string()),
        ("REDIS_PASSWORD", password.to_owned()),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value)).into()
}

/// A Redis with a password, and the environment around it.
pub fn start() -> (RedisServer, Environment) {
    start_with(&[])
}

/// The same with further settings.
pub fn start_with(more: &[(&str, &str)]) -> (RedisServer, Environment) {
    let redis = RedisServer::builder().password("geheim").start();
    let mut environment = Environment::start(of_redis(&redis, "geheim"), more);
    environment.shell.set("REDISCLI_AUTH", "geheim");
    (redis, environment)
}

impl Environment {
    /// Starts both, configured by these variables and a few that shorten the test; makes the torrent known to both.
    #[track_caller]
    pub fn start(variables: Variables, more: &[(&str, &str)]) -> Environment {
        let folder = tempfile::tempdir().unwrap();
        make_certificates(folder.path());
        let (site_port, tracker_port, tracker_site_port) = (free_port(), free_port(), free_port());
        let path = |name: &str| folder.path().join(name).display().to_string();
        let mut common = variables.clone();
        let quick = [("ROLLCALL_JOURNAL__RETRY_DELAY_S", "0")];
        common
            .extend(quick.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let site = [
            ("ROLLCALL_SITE__ADDR", format!("127.0.0.1:{site_port}")),
            ("ROLLCALL_SITE__TLS_CERT_FILE", path("site.pem")),
            ("ROLLCALL_SITE__TLS_KEY_FILE", path("site.key")),
        ];
        let tracker = [
            ("ROLLCALL_TRACKER__HTTP_ADDR", format!("127.0.0.1:{tracker_port}")),
            ("ROLLCALL_TRACKER__UDP_ADDR", String::new()),
            ("ROLLCALL_TRACKER__MIN_ANNOUNCE_INTERVAL_S", "0".to_owned()),
            ("ROLLCALL_SITE__ADDR", format!("127.0.0.1:{tracker_site_port}")),
            ("ROLLCALL_ACCESS__VERIFY_URL", format!("https://127.0.0.1:{site_port}/passkey/verify")),
            ("ROLLCALL_ACCESS__VERIFY_CA_FILE", path("ca.pem")),
        ];
        let with = |own: &[(&str, String)]| -> Variables {
            let own = own.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
            common.clone().into_iter().chain(own).collect()
        };
        let site_launch = Launch::new(folder.path(), "site", "site,ledger,activity", with(&site));
        let site = site_launch.start();
        let tracker = Launch::new(folder.path(), "tracker", "tracker,site", with(&tracker)).start();
        let mut shell = Shell { variables };
        shell.set("REDIS_FLAGS", "");
        shell.set("CA", &path("ca.pem"));
        shell.set("SITE", &format!("https://127.0.0.1:{site_port}"));
        shell.set("TRACKER", &format!("127.0.0.1:{tracker_port}"));
        shell.set("TRACKER_SITE", &format!("http://127.0.0.1:{tracker_site_port}"));
        shell.set("INFOHASH", INFOHASH);
        shell.set("ADMIN_KEY", &admin_key(&site));
        shell.set("TRACKER_ADMIN_KEY", &admin_key(&tracker));
        let environment = Environment { site, _tracker: tracker, shell, folder, site_launch };
        environment.make_torrent_known();
        environment
    }

    /// Tells both of the torrent.
    fn make_torrent_known(&self) {
        let torrent = r#"{"infohash": "'$INFOHASH'", "name": "a sample"}"#;
        self.shell.wait(r#"curl -sf --cacert "$CA" "$SITE/healthz""#, |said| said.contains("alive"));
        self.shell.wait(r#"curl -sf "$TRACKER_SITE/healthz""#, |said| said.contains("alive"));
        self.shell.run(&format!("api \"$SITE/api/v1/torrents\" -d '{torrent}'"));
        self.shell.run(&format!(
            "ADMIN_KEY=$TRACKER_ADMIN_KEY api \"$TRACKER_SITE/api/v1/torrents\" -d '{torrent}'"
        ));
    }

    /// Starts the site again after it was killed.
    pub fn start_site_again(&mut self) {
        self.site = self.site_launch.start();
    }

    /// Adds a user to the site's own database, whose passkey ends with the number.
    #[track_caller]
    pub fn add_user(&self, number: u64) -> String {
        let passkey = format!("{:032x}", 0xabcd_ef00_0000_0000_u64 + number);
        self.add_user_with(number, &passkey);
        passkey
    }

    /// Adds a user to the site's own database, and waits until all of the site knows them.
    #[track_caller]
    pub fn add_user_with(&self, number: u64, passkey: &str) {
        let user = format!(r#"{{"id": {number}, "passkey": "{passkey}"}}"#);
        self.shell.run(&format!("api \"$SITE/api/v1/users\" -d '{user}'"));
        let asked = format!(r#"{{"passkeys": ["{passkey}"]}}"#);
        let is_known = |said: &str| said.contains(&format!("\"user\":{number}"));
        self.shell.wait(&format!("api \"$SITE/api/v1/users/lookup\" -d '{asked}'"), is_known);
    }

    /// The site's figures, as Prometheus reads them.
    #[track_caller]
    pub fn metrics(&self) -> String {
        self.shell.run(r#"api "$SITE/metrics""#)
    }
}

/// A process whose configuration is its environment.
struct Launch {
    args: Vec<String>,
    log_path: PathBuf,
}

impl Launch {
    fn new(folder: &Path, name: &str, roles: &str, variables: Variables) -> Launch {
        let mut args: Vec<String> =
            variables.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        let data = folder.join(name).display().to_string();
        let command = [env!("CARGO_BIN_EXE_rollcall"), "serve", "--roles", roles, "--data", &data];
        args.extend(command.map(str::to_owned));
        Launch { args, log_path: folder.join(format!("{name}.log")) }
    }

    fn start(&self) -> Process {
        Process::start("env", &self.args, &self.log_path)
    }
}

/// The key of a first start, from the file that it names.
#[track_caller]
fn admin_key(process: &Process) -> String {
    let file = eventually("the file of the first key to be named", PATIENCE, || {
        let log = process.log();
        log.lines().map(str::trim).find(|line| line.ends_with("/first-admin-key")).map(str::to_owned)
    });
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}

/// An authority, and a certificate for 127.0.0.1 that it signed.
fn make_certificates(folder: &Path) {
    const SCRIPT: &str = "
        new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
        openssl req -x509 $new -keyout ca.key -out ca.pem -days 2 -subj '/CN=an authority for tests'
        openssl req $new -keyout site.key -out site.csr -subj '/CN=site'
        printf 'subjectAltName=IP:127.0.0.1\nbasicConstraints=critical,CA:FALSE\n' > site.ext
        openssl x509 -req -in site.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out site.pem -days 2 -extfile site.ext
    ";
    let output = Command::new("bash").args(["-euc", SCRIPT]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
