//! The settings of the server, recorded in its data folder, so that commands need only `--data`.
//!
//! # Guarantees
//!
//! - Readable by its owner only: flags and variables may contain passwords.
//! - A command's own flags and variables override recorded ones; with its own configuration file it ignores the
//!   record.
//! - Without a readable record, commands use their own settings.

use std::fs;
use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value as Json, json};
use tracker::Addresses;

use crate::config::{Config, Sources};
use crate::data_files::sqlite_path;

/// In the data folder.
const FILE: &str = "settings";

pub fn load(own: Sources, data: &Path) -> anyhow::Result<Config> {
    if own.file.is_some() {
        return Ok(own.load()?);
    }
    let Some(recorded) = read(data)? else { return Ok(own.load()?) };
    let named = |name: &str| own.environment.iter().any(|(own, _)| own == name);
    let mut environment: Vec<_> = recorded.environment.into_iter().filter(|(name, _)| !named(name)).collect();
    environment.extend(own.environment.iter().cloned());
    // A variable of the command overrides a flag of the server.
    let own_flags = own.environment.iter().filter_map(|(name, value)| flag_of(name, value));
    let flags = recorded.flags.into_iter().chain(own_flags).chain(own.flags.iter().cloned()).collect();
    let merged = Sources { file: recorded.file, environment, flags };
    merged.load().with_context(|| {
        format!(
            "the settings in {} (recorded by the last server on this data folder)",
            data.join(FILE).display()
        )
    })
}

fn flag_of(name: &str, value: &str) -> Option<String> {
    let (section, key) = name.strip_prefix("ROLLCALL_")?.split_once("__")?;
    Some(format!("{}.{}={value}", section.to_ascii_lowercase(), key.to_ascii_lowercase()))
}

/// With the ports that were assigned for port 0.
pub fn write(config: &Config, addresses: &Addresses, data: &Path) -> anyhow::Result<()> {
    let sources = config.sources();
    let mut flags = sources.flags.clone();
    flags.extend(relative_database(config));
    let lists = [
        ("http_addr", &config.tracker.http_addr, &addresses.http),
        ("https_addr", &config.tracker.https_addr, &addresses.https),
        ("udp_addr", &config.tracker.udp_addr, &addresses.udp),
    ];
    for (key, configured, bound) in lists {
        if configured.iter().any(|address: &SocketAddr| address.port() == 0) && !bound.is_empty() {
            let bound: Vec<String> = bound.iter().map(ToString::to_string).collect();
            flags.push(format!("tracker.{key}={}", bound.join(",")));
        }
    }
    let file = sources.file.as_deref().map(std::path::absolute).transpose()?;
    let record = json!({ "file": file, "environment": sources.environment, "flags": flags });
    write_private(&data.join(FILE), &record.to_string())
        .with_context(|| format!("cannot write {}", data.join(FILE).display()))
}

/// Makes a relative path absolute: commands may run in another folder.
fn relative_database(config: &Config) -> Option<String> {
    let path = sqlite_path(config.database.url.as_str()?).filter(|path| path.is_relative())?;
    Some(format!("database.url=sqlite:{}", std::path::absolute(path).ok()?.display()))
}

/// Written under another name first, so that the file is complete or absent.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let unfinished = PathBuf::from(format!("{}.{}", path.display(), std::process::id()));
    let mut file =
        fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    file.write_all(text.as_bytes())?;
    fs::rename(&unfinished, path)
}

fn read(data: &Path) -> anyhow::Result<Option<Sources>> {
    let path = data.join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        // Another user's server: without it the command may use wrong settings.
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    Ok(serde_json::from_str(&text).ok().and_then(|record| sources_of(&record)))
}

fn sources_of(record: &Json) -> Option<Sources> {
    let text = |value: &Json| value.as_str().map(str::to_owned);
    let pair = |entry: &Json| Some((text(&entry[0])?, text(&entry[1])?));
    Some(Sources {
        file: record["file"].as_str().map(PathBuf::from),
        environment: record["environment"].as_array()?.iter().map(pair).collect::<Option<_>>()?,
        flags: record["flags"].as_array()?.iter().map(text).collect::<Option<_>>()?,
    })
}
