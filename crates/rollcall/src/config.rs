//! Configuration: typed sections, each key declared once.
//!
//! # Layout
//!
//! - `sections`, `mirror`: the keys, their types, defaults and the comments operators read
//! - `section`: the macro and the trait behind a section
//! - `value`, `kinds`, `names`, `web`: the types keys can have
//! - `load`: defaults < file < environment < flags
//! - `validate`: relations between keys
//! - `print`: annotated TOML
//! - `nearest`: what a misspelt name was meant to be
//!
//! # Guarantees
//!
//! A [`Config`] that was loaded is valid: every value is of its kind and in its range, and they fit together. Unknown
//! names are errors. What [`Config::to_annotated_toml`] prints parses back to the same configuration.

mod error;
mod kinds;
mod load;
mod mirror;
mod names;
mod nearest;
mod print;
mod section;
mod sections;
#[cfg(test)]
mod tests;
mod validate;
mod value;
mod web;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value as Json;

pub use error::{ConfigError, Origin};
pub use kinds::{HeaderName, LogFilter, LogFormat, Sharing};
pub use load::Sources;
pub use mirror::Mirror;
pub use names::Name;
use section::Section;
pub use sections::{
    Access, Activity, Database, Gateway, Journal, Ledger, Limits, Log, Presence, Redis, Site, Tracker,
};
pub use web::WebOrigin;

/// Everything an operator can set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Where announces are heard and how they are answered.
    pub tracker: Tracker,
    /// The log of every accepted announce.
    pub journal: Journal,
    /// Where Redis is, if it is used.
    pub redis: Redis,
    /// The accounts.
    pub ledger: Ledger,
    /// Who seeds and who leeches.
    pub activity: Activity,
    /// The tracker's layout in Redis.
    pub mirror: Mirror,
    /// Who may announce.
    pub access: Access,
    /// The HTTP API, the verify endpoint, metrics and health.
    pub site: Site,
    /// People: who is here.
    pub presence: Presence,
    /// Connections of people.
    pub gateway: Gateway,
    /// Where users, torrents and clients are kept.
    pub database: Database,
    /// What one server, and one address, may use up.
    pub limits: Limits,
    /// What the server says about itself.
    pub log: Log,
    /// Where it was read from, to read it again.
    sources: Sources,
    /// Who set each key that somebody set, by `section.key`.
    set_by: BTreeMap<String, Origin>,
}

/// A key that is not at its default.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// `section.key`.
    pub key: String,
    /// Its value, without secrets.
    pub value: Json,
    /// Its default.
    pub default: Json,
    /// Who set it.
    pub set_by: Option<Origin>,
}

impl Config {
    /// Reads the same file, environment and flags again. The present configuration stays as it is.
    pub fn reload(&self) -> Result<Config, ConfigError> {
        self.sources.load()
    }

    /// Where it was read from.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The file it was read from, if any.
    pub fn file(&self) -> Option<&Path> {
        self.sources.file.as_deref()
    }

    /// Where the database is, given the data folder.
    pub fn database_url(&self, data: &Path) -> String {
        match self.database.url.as_str() {
            Some(url) => url.to_owned(),
            None => format!("sqlite:{}", data.join("rollcall.db").display()),
        }
    }

    /// Every key with its comment, as TOML.
    pub fn to_annotated_toml(&self) -> String {
        print::to_annotated_toml(self)
    }

    /// Every key as JSON: an object of sections.
    pub fn to_json(&self) -> Json {
        print::to_json(self)
    }

    /// The keys that are not at their defaults, in the order of declaration.
    pub fn differences(&self) -> Vec<Difference> {
        let defaults = Config::default();
        let mut differences = Vec::new();
        for (section, default_section) in self.sections().into_iter().zip(defaults.sections()) {
            let values = section.values().into_iter().zip(section.shown_values());
            let values = values.zip(default_section.values());
            for (key, ((value, shown), default)) in section.keys().iter().zip(values) {
                if value != default {
                    let key = format!("{}.{}", section.name(), key.name);
                    let set_by = self.set_by.get(&key).cloned();
                    differences.push(Difference { key, value: shown, default, set_by });
                }
            }
        }
        differences
    }

    fn sections(&self) -> [&dyn Section; 13] {
        [
            &self.tracker,
            &self.journal,
            &self.redis,
            &self.ledger,
            &self.activity,
            &self.mirror,
            &self.access,
            &self.site,
            &self.presence,
            &self.gateway,
            &self.database,
            &self.limits,
            &self.log,
        ]
    }

    fn sections_mut(&mut self) -> [&mut dyn Section; 13] {
        [
            &mut self.tracker,
            &mut self.journal,
            &mut self.redis,
            &mut self.ledger,
            &mut self.activity,
            &mut self.mirror,
            &mut self.access,
            &mut self.site,
            &mut self.presence,
            &mut self.gateway,
            &mut self.database,
            &mut self.limits,
            &mut self.log,
        ]
    }
}
