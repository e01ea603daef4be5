//! Configuration: typed sections, each key declared once.
//!
//! # Layout
//!
//! - `sections`, `mirror`: keys, types, defaults and the comments for operators
//! - `section`: the macro and the trait behind a section
//! - `value`, `kinds`, `names`, `web`: the types of values
//! - `load`: defaults < file < environment < flags
//! - `validate`: relations between keys
//! - `print`: annotated TOML
//! - `nearest`: suggestions for misspelt names
//!
//! # Guarantees
//!
//! A loaded [`Config`] is valid: every value has its type and range, and related keys agree. Unknown names are
//! errors. The output of [`Config::to_annotated_toml`] parses back to the same configuration.

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
pub use kinds::{HeaderName, LogFilter, LogFormat, Sharing, SiteWrite};
pub use load::Sources;
pub use mirror::Mirror;
pub use names::Name;
use section::Section;
pub use sections::{
    Access, Activity, Database, Gateway, Journal, Ledger, Limits, Log, Presence, Redis, Site, Sites, Tracker,
};
pub use web::WebOrigin;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    pub tracker: Tracker,
    pub journal: Journal,
    pub redis: Redis,
    pub ledger: Ledger,
    pub activity: Activity,
    pub mirror: Mirror,
    pub access: Access,
    pub sites: Sites,
    pub site: Site,
    pub presence: Presence,
    pub gateway: Gateway,
    pub database: Database,
    pub limits: Limits,
    pub log: Log,
    /// To reload it.
    sources: Sources,
    /// The origin of each key that was set, by `section.key`.
    set_by: BTreeMap<String, Origin>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// `section.key`.
    pub key: String,
    /// Without secrets.
    pub value: Json,
    pub default: Json,
    pub set_by: Option<Origin>,
}

impl Config {
    /// Loads file, environment and flags again; `self` is not changed.
    pub fn reload(&self) -> Result<Config, ConfigError> {
        self.sources.load()
    }

    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    pub fn file(&self) -> Option<&Path> {
        self.sources.file.as_deref()
    }

    /// The profile and the address of an existing site's tables; none without a profile.
    pub fn site_tables(&self) -> Option<(&str, &str)> {
        Some((self.sites.profile.as_str()?, self.sites.database_url.as_str()?))
    }

    /// The configured one, or rollcall.db in the data folder.
    pub fn database_url(&self, data: &Path) -> String {
        match self.database.url.as_str() {
            Some(url) => url.to_owned(),
            None => format!("sqlite:{}", data.join("rollcall.db").display()),
        }
    }

    pub fn to_annotated_toml(&self) -> String {
        print::to_annotated_toml(self)
    }

    pub fn to_json(&self) -> Json {
        print::to_json(self)
    }

    /// In the order of declaration.
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

    fn sections(&self) -> [&dyn Section; 14] {
        [
            &self.tracker,
            &self.journal,
            &self.redis,
            &self.ledger,
            &self.activity,
            &self.mirror,
            &self.access,
            &self.sites,
            &self.site,
            &self.presence,
            &self.gateway,
            &self.database,
            &self.limits,
            &self.log,
        ]
    }

    fn sections_mut(&mut self) -> [&mut dyn Section; 14] {
        [
            &mut self.tracker,
            &mut self.journal,
            &mut self.redis,
            &mut self.ledger,
            &mut self.activity,
            &mut self.mirror,
            &mut self.access,
            &mut self.sites,
            &mut self.site,
            &mut self.presence,
            &mut self.gateway,
            &mut self.database,
            &mut self.limits,
            &mut self.log,
        ]
    }
}
