//! The printed commands: each can be pasted into a shell on this machine, in this order.

use std::path::Path;

use domain::percent;

use super::sample::Sample;
use super::{SandboxUser, reachable_address};
use crate::announce_url::scrape_url;
use crate::command::CommandContext;
use crate::redis_cli::{RedisCli, quoted};
use crate::wiring::stores::{self, RedisBackend};

/// Its own consumer group: reading with the ledger's would take entries from it.
pub const SANDBOX_GROUP: &str = "sandbox";

/// Peers come from the tracker only.
const ARIA2: &str = "aria2c --no-conf=true --enable-dht=false --enable-dht6=false --bt-enable-lpd=false \
     --enable-peer-exchange=false --file-allocation=none";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// For scripts.
    pub name: &'static str,
    pub what: String,
    pub command: String,
}

#[derive(Clone, Copy)]
pub struct SandboxContext<'a> {
    pub context: &'a CommandContext,
    pub folder: &'a Path,
    /// At least two.
    pub sandbox_users: &'a [SandboxUser],
    /// At least one.
    pub samples: &'a [Sample],
}

pub fn all(sandbox: &SandboxContext<'_>) -> anyhow::Result<Vec<Recipe>> {
    let ([seeder, leecher, ..], [sample, ..]) = (sandbox.sandbox_users, sandbox.samples) else {
        return Ok(Vec::new());
    };
    let mut recipes = announces(seeder, leecher, sample);
    recipes.extend(verify(sandbox, seeder));
    recipes.extend(of_redis(sandbox, seeder, sample)?);
    recipes.extend(of_clients(sandbox, seeder, leecher, sample));
    recipes.push(accounts(sandbox, seeder));
    Ok(recipes)
}

fn recipe(name: &'static str, what: impl Into<String>, command: impl Into<String>) -> Recipe {
    Recipe { name, what: what.into(), command: command.into() }
}

/// With `curl`; none without HTTP.
fn announces(seeder: &SandboxUser, leecher: &SandboxUser, sample: &Sample) -> Vec<Recipe> {
    if !seeder.announce_url.starts_with("http") {
        return Vec::new();
    }
    let bytes = sample.content.len();
    let announce = |sandbox_user: &SandboxUser, client: u32, left: usize, event: &str| {
        let query = format!(
            "info_hash={}&peer_id=-RC0001-sandbox{client:05}&port={}&uploaded=0&downloaded=0&left={left}&event={event}&compact=1",
            percent::encode(&sample.info_hash.0),
            51_000 + client,
        );
        format!("curl -sS --output - '{}?{query}'; echo", sandbox_user.announce_url)
    };
    let scrape = scrape_url(&leecher.announce_url).unwrap_or_default();
    vec![
        recipe(
            "announce_seeder",
            "a seeder announces: a bencoded reply with \"complete\" 1",
            announce(seeder, 1, 0, "started"),
        ),
        recipe(
            "announce_leecher",
            "a leecher announces and receives the seeder (the six bytes after \"peers\")",
            announce(leecher, 2, bytes, "started"),
        ),
        recipe(
            "scrape",
            "counts of seeders and leechers",
            format!(
                "curl -sS --output - '{scrape}?info_hash={}'; echo",
                percent::encode(&sample.info_hash.0)
            ),
        ),
        recipe("stop_leecher", "the leecher leaves", announce(leecher, 2, bytes, "stopped")),
        recipe("stop_seeder", "the seeder leaves", announce(seeder, 1, 0, "stopped")),
    ]
}

/// The API key is not printed.
fn verify(sandbox: &SandboxContext<'_>, sandbox_user: &SandboxUser) -> Option<Recipe> {
    let site = &sandbox.context.config.site;
    let address = reachable_address(*site.addr.first()?);
    let scheme = if site.tls_cert_file.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{address}/passkey/verify?passkey={}", sandbox_user.user.passkey);
    Some(recipe(
        "verify",
        "reply of the verify endpoint: {\"valid\":true}. First: export TRACKER_API_KEY=… (site.tracker_api_key, or a \
         key with the scope verify)",
        format!("curl -sS -H \"X-API-Key: ${{TRACKER_API_KEY}}\" '{url}'; echo"),
    ))
}

fn of_redis(
    sandbox: &SandboxContext<'_>,
    sandbox_user: &SandboxUser,
    sample: &Sample,
) -> anyhow::Result<Vec<Recipe>> {
    let Some(RedisBackend { redis, names }) = stores::redis_backend(&sandbox.context.config)? else {
        return Ok(Vec::new());
    };
    let cli = RedisCli::of(redis.settings());
    let first = match cli.needs_password() {
        true => ". First: export REDISCLI_AUTH=… (the password of Redis)",
        false => "",
    };
    let stream = quoted(names.traffic());
    let passkey = sandbox_user.user.passkey;
    let tracker = &sandbox.context.config.tracker;
    let entry = format!(
        "passkey {passkey} infohash {} peer_id {} port 51001 ip 127.0.0.1 af IPv4 du 1048576 dd 0 left 0 event none \
         ts $(date +%s) dt 0 interval {} min_interval {}",
        sample.info_hash,
        "2d5243303030312d73616e64626f783030303031",
        tracker.announce_interval_s,
        tracker.min_announce_interval_s,
    );
    Ok(vec![
        recipe(
            "sismember",
            format!("whether the passkey is on the whitelist: 1{first}"),
            format!("{cli} SISMEMBER {} {passkey}", quoted(names.whitelist())),
        ),
        recipe(
            "xgroup_create",
            "a consumer group that reads new entries",
            format!("{cli} XGROUP CREATE {stream} {SANDBOX_GROUP} '$' MKSTREAM"),
        ),
        recipe(
            "xadd",
            "an entry with the fourteen fields, as any producer may write it: 1 MiB uploaded",
            format!("{cli} XADD {stream} '*' {entry}"),
        ),
        recipe(
            "xreadgroup",
            "entries that the group has not read yet",
            format!(
                "{cli} XREADGROUP GROUP {SANDBOX_GROUP} consumer-1 COUNT 100 BLOCK 5000 STREAMS {stream} '>'"
            ),
        ),
        recipe(
            "xgroup_destroy",
            "delete the group: an unread group prevents trimming (\"sandbox clear\" does this too)",
            format!("{cli} XGROUP DESTROY {stream} {SANDBOX_GROUP}"),
        ),
        recipe(
            "zrevrange",
            "torrents that the user seeds, newest first, with the times of the last announces",
            format!("{cli} ZREVRANGE {} 0 -1 WITHSCORES", quoted(&names.user_seed(&passkey))),
        ),
    ])
}

fn of_clients(
    sandbox: &SandboxContext<'_>,
    seeder: &SandboxUser,
    leecher: &SandboxUser,
    sample: &Sample,
) -> Vec<Recipe> {
    let path = |path: &Path| quoted(&path.display().to_string());
    let torrent_of = |sandbox_user: &SandboxUser| path(&sandbox_user.folder.join(sample.torrent_name()));
    let content = path(&sandbox.folder.join("content"));
    let downloads = path(&sandbox.folder.join("downloads"));
    let home = |name: &str| path(&sandbox.folder.join(name));
    vec![
        recipe(
            "aria2_seed",
            "a real client seeds until Ctrl-C; leave it running and use another terminal for the next one",
            format!("{ARIA2} --dir={content} --check-integrity=true --seed-ratio=0.0 {}", torrent_of(seeder)),
        ),
        recipe(
            "aria2_fetch",
            "another client downloads from it and exits",
            format!("{ARIA2} --dir={downloads} --seed-time=0 --bt-stop-timeout=120 {}", torrent_of(leecher)),
        ),
        recipe(
            "transmission_cli_seed",
            "Transmission seeds until Ctrl-C (on one machine it accepts connections but opens none: download with aria2)",
            format!(
                "transmission-cli --config-dir {} --download-dir {content} --no-portmap --verify {}",
                home("transmission-cli"),
                torrent_of(seeder)
            ),
        ),
        recipe(
            "transmission_daemon",
            "the same as a daemon; stop it with: transmission-remote --exit",
            format!(
                "transmission-daemon --config-dir {} --download-dir {content} --no-dht --no-lpd --no-portmap \
                 --rpc-bind-address 127.0.0.1",
                home("transmission-daemon"),
            ),
        ),
        recipe(
            "transmission_add",
            "add the torrent to the daemon",
            format!("transmission-remote --add {}", torrent_of(seeder)),
        ),
    ]
}

fn accounts(sandbox: &SandboxContext<'_>, sandbox_user: &SandboxUser) -> Recipe {
    let program =
        std::env::current_exe().map_or_else(|_| "rollcall".to_owned(), |path| path.display().to_string());
    let data = std::path::absolute(&sandbox.context.data).unwrap_or_else(|_| sandbox.context.data.clone());
    let mut command = format!(
        "{} user show {} --data {}",
        quoted(&program),
        sandbox_user.user.id,
        quoted(&data.display().to_string())
    );
    if let Some(file) = sandbox.context.config.file() {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        command.push_str(&format!(" --config {}", quoted(&file.display().to_string())));
    }
    recipe("account", "the user's account", command)
}
