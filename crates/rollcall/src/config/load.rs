//! Loading: defaults, then file, then environment, then flags. Each overrides the one before.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, Origin};
use super::nearest::{distance, nearest};
use super::section::Refusal;
use super::value::Raw;
use super::{Config, validate};

const PREFIX: &str = "ROLLCALL_";
/// They stand for the flags `--config` and `--data`.
const NOT_KEYS: [&str; 2] = ["ROLLCALL_CONFIG", "ROLLCALL_DATA"];

/// Variable names of other trackers (W8), and their keys. Ours override them.
const ALIASES: [(&str, &str, &str); 6] = [
    ("TRACKER_API_KEY", "site", "tracker_api_key"),
    ("TRACKER_STREAM_KEY", "journal", "stream_key"),
    ("TRACKER_DLQ_KEY", "journal", "dlq_key"),
    ("TRACKER_FAILED_KEY", "journal", "failed_key"),
    ("TRACKER_RETRY_MAX", "journal", "retry_max"),
    ("REDIS_PASSWORD", "redis", "password"),
];

/// The other names of W8: together they are `redis.url`. `REDIS_HOST` is needed, the others have defaults.
const REDIS_PARTS: [&str; 3] = ["REDIS_HOST", "REDIS_PORT", "REDIS_DB"];

/// Kept with the configuration for a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// None: defaults.
    pub file: Option<PathBuf>,
    /// Variables starting with `ROLLCALL_`, and those of W8.
    pub environment: Vec<(String, String)>,
    /// `SECTION.KEY=VALUE`.
    pub flags: Vec<String>,
}

impl Sources {
    /// Selects our variables from `environment`.
    pub fn new(
        file: Option<PathBuf>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        flags: Vec<String>,
    ) -> Self {
        let mut ours: Vec<(String, String)> = environment
            .into_iter()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
            .filter(|(name, value)| {
                let is_known = alias(name).is_some() || REDIS_PARTS.contains(&name.as_str());
                let is_alias = !value.is_empty() && is_known;
                is_alias || name.starts_with(PREFIX) && !NOT_KEYS.contains(&name.as_str())
            })
            .collect();
        // Aliases first, so that our own names override them.
        ours.sort_by_key(|(name, _)| (name.starts_with(PREFIX), name.clone()));
        Sources { file, environment: ours, flags }
    }

    pub fn load(&self) -> Result<Config, ConfigError> {
        let mut config = Config { sources: self.clone(), ..Config::default() };
        if let Some(path) = &self.file {
            let text = std::fs::read_to_string(path)
                .map_err(|source| ConfigError::Unreadable { path: path.clone(), source })?;
            apply_file(&mut config, path, &text)?;
        }
        apply_redis_parts(&mut config, &self.environment)?;
        for (name, value) in self.environment.iter().filter(|(name, _)| !REDIS_PARTS.contains(&name.as_str()))
        {
            apply_variable(&mut config, name, value)?;
        }
        for assignment in &self.flags {
            apply_flag(&mut config, assignment)?;
        }
        if let Some(misfit) = validate::find_conflict(&config) {
            let origins = misfit.keys.iter().filter_map(|key| config.set_by.get(*key).cloned()).collect();
            return Err(ConfigError::Conflict { problem: misfit.problem, origins });
        }
        Ok(config)
    }
}

fn apply_file(config: &mut Config, path: &Path, text: &str) -> Result<(), ConfigError> {
    let origin_at = |offset: usize| Origin::File { path: path.to_owned(), line: line_of(text, offset) };
    let document = DeTable::parse(text).map_err(|error| ConfigError::NotToml {
        origin: origin_at(error.span().map_or(0, |span| span.start)),
        message: error.message().replace('\n', " "),
    })?;
    for (section, content, offset) in in_file_order(document.get_ref()) {
        let Some(known) = config.section_name(section) else {
            return Err(unknown_at_top(config, origin_at(offset), section, content));
        };
        let DeValue::Table(keys) = content else {
            return Err(ConfigError::NotASection { origin: origin_at(offset), name: known });
        };
        for (key, value, offset) in in_file_order(keys) {
            config.set(section, key, &raw_of(value), origin_at(offset))?;
        }
    }
    Ok(())
}

/// From top to bottom, so that the first mistake in the file is reported.
fn in_file_order<'a>(table: &'a DeTable<'_>) -> Vec<(&'a str, &'a DeValue<'a>, usize)> {
    let mut entries: Vec<_> = table
        .iter()
        .map(|(key, value)| (key.get_ref().as_ref(), value.get_ref(), key.span().start))
        .collect();
    entries.sort_by_key(|(_, _, offset)| *offset);
    entries
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// A misspelt section, or a key above the first section.
fn unknown_at_top(config: &Config, origin: Origin, name: &str, content: &DeValue<'_>) -> ConfigError {
    if content.is_table() {
        let nearest = nearest_section(config, name);
        return ConfigError::UnknownSection { origin, name: name.to_owned(), nearest };
    }
    ConfigError::UnknownKey { origin, name: name.to_owned(), nearest: nearest_key(config, "", name) }
}

fn raw_of(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.as_ref().to_owned()),
        DeValue::Boolean(flag) => Raw::Bool(*flag),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(whole) => Raw::Integer(whole),
            Err(_) => Raw::Other(number.as_str().to_owned()),
        },
        DeValue::Float(number) => Raw::Other(number.as_str().to_owned()),
        DeValue::Datetime(moment) => Raw::Other(moment.to_string()),
        DeValue::Array(entries) => Raw::List(entries.iter().map(Spanned::get_ref).map(raw_of).collect()),
        DeValue::Table(_) => Raw::Other("a table".to_owned()),
    }
}

fn apply_variable(config: &mut Config, name: &str, value: &str) -> Result<(), ConfigError> {
    let origin = Origin::Environment { name: name.to_owned() };
    let ours = || config.all_keys().into_iter().find(|(section, key)| variable_name(section, key) == name);
    let wanted = alias(name).or_else(ours);
    let Some((section, key)) = wanted else {
        return Err(ConfigError::UnknownKey {
            origin,
            name: name.to_owned(),
            nearest: nearest_variable(config, name),
        });
    };
    config.set(section, key, &Raw::Untyped(value.to_owned()), origin)
}

/// `REDIS_HOST`, `REDIS_PORT` and `REDIS_DB` as one `redis.url`.
fn apply_redis_parts(config: &mut Config, environment: &[(String, String)]) -> Result<(), ConfigError> {
    let value_of =
        |name: &str| environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.trim());
    let Some(host) = value_of("REDIS_HOST") else { return Ok(()) };
    let origin_of = |name: &str| Origin::Environment { name: name.to_owned() };
    let reject = |name: &str, value: &str, expected: &'static str| ConfigError::BadValue {
        origin: origin_of(name),
        key: name.to_owned(),
        value: format!("\"{value}\""),
        expected: expected.to_owned(),
    };
    if host.contains(['/', '@', ' ', ',']) {
        return Err(reject(
            "REDIS_HOST",
            host,
            "the name or address of one server; use redis.url for anything else",
        ));
    }
    let port = value_of("REDIS_PORT").unwrap_or("6379");
    if !port.parse::<u16>().is_ok_and(|port| port > 0) {
        return Err(reject("REDIS_PORT", port, "a port number"));
    }
    let db = value_of("REDIS_DB").unwrap_or("0");
    if db.parse::<u32>().is_err() {
        return Err(reject("REDIS_DB", db, "the number of a database"));
    }
    if let Some(set_by) = config.set_by.get("redis.url").cloned() {
        return Err(ConfigError::Conflict {
            problem: "redis.url and REDIS_HOST are both set: keep one of them".to_owned(),
            origins: vec![set_by, origin_of("REDIS_HOST")],
        });
    }
    let is_ipv6 = host.contains(':') && !host.starts_with('[');
    let host = if is_ipv6 { format!("[{host}]") } else { host.to_owned() };
    let url = Raw::Text(format!("redis://{host}:{port}/{db}"));
    config.set("redis", "url", &url, origin_of("REDIS_HOST"))
}

fn alias(name: &str) -> Option<(&'static str, &'static str)> {
    ALIASES.iter().find(|(alias, ..)| *alias == name).map(|(_, section, key)| (*section, *key))
}

pub fn variable_name(section: &str, key: &str) -> String {
    format!("{PREFIX}{}__{}", section.to_ascii_uppercase(), key.to_ascii_uppercase())
}

fn apply_flag(config: &mut Config, assignment: &str) -> Result<(), ConfigError> {
    let not_an_assignment = || ConfigError::NotAnAssignment { text: assignment.to_owned() };
    let (name, value) = assignment.split_once('=').ok_or_else(not_an_assignment)?;
    let (section, key) = name.trim().split_once('.').ok_or_else(not_an_assignment)?;
    config.set(section, key, &Raw::Untyped(value.to_owned()), Origin::Flag)
}

impl Config {
    /// Sets a key and records its origin.
    fn set(&mut self, section: &str, key: &str, raw: &Raw, origin: Origin) -> Result<(), ConfigError> {
        let name = format!("{section}.{key}");
        let target = self.sections_mut().into_iter().find(|known| known.name() == section);
        let outcome = target.map_or(Err(Refusal::UnknownKey), |target| target.set(key, raw));
        match outcome {
            Ok(()) => {
                self.set_by.insert(name, origin);
                Ok(())
            }
            Err(Refusal::UnknownKey) => {
                Err(ConfigError::UnknownKey { origin, name, nearest: nearest_key(self, section, key) })
            }
            Err(Refusal::InvalidValue(unfit)) => {
                Err(ConfigError::BadValue { origin, key: name, value: unfit.shown, expected: unfit.expected })
            }
        }
    }

    fn section_name(&self, name: &str) -> Option<&'static str> {
        self.sections().iter().map(|section| section.name()).find(|known| *known == name)
    }

    fn all_keys(&self) -> Vec<(&'static str, &'static str)> {
        let keys_of = |section: &&dyn super::section::Section| {
            let name = section.name();
            section.keys().iter().map(move |key| (name, key.name)).collect::<Vec<_>>()
        };
        self.sections().iter().flat_map(keys_of).collect()
    }
}

fn nearest_section(config: &Config, name: &str) -> &'static str {
    let names = config.sections().map(|section| section.name());
    nearest(names, |known| distance(known, name)).unwrap_or_default()
}

fn nearest_key(config: &Config, section: &str, key: &str) -> String {
    // A right key in the wrong section is nearer than a wrong key in the right one.
    let cost = |known: &(&str, &str)| distance(known.0, section).min(2) + distance(known.1, key);
    let found = nearest(config.all_keys(), cost);
    found.map(|(section, key)| format!("{section}.{key}")).unwrap_or_default()
}

fn nearest_variable(config: &Config, name: &str) -> String {
    let keys = config.all_keys().into_iter().map(|(section, key)| variable_name(section, key));
    nearest(keys.chain(NOT_KEYS.map(str::to_owned)), |known| distance(known, name)).unwrap_or_default()
}
