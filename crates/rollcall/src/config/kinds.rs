//! Types of values, validated when parsed.

use domain::named;
use std::fmt;

use serde_json::{Value as Json, json};
use tracing_subscriber::EnvFilter;

use super::value::{Raw, Value};

/// In lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderName(String);

impl HeaderName {
    /// None if the text is not a token.
    pub fn new(text: &str) -> Option<Self> {
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        let is_name = !text.is_empty() && text.bytes().all(is_token);
        is_name.then(|| HeaderName(text.to_ascii_lowercase()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for Vec<HeaderName> {
    const EXPECTED: &'static str = "a list of HTTP header names such as [\"x-forwarded-for\"]";

    fn read(raw: &Raw) -> Option<Self> {
        raw.as_entries()?.into_iter().map(HeaderName::new).collect()
    }

    fn to_json(&self) -> Json {
        json!(self.iter().map(HeaderName::as_str).collect::<Vec<_>>())
    }
}

/// Empty for the file in the data folder. Its password is never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct DatabaseUrl(String);

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DatabaseUrl").field(&database::redacted(&self.0)).finish()
    }
}

impl DatabaseUrl {
    pub fn as_str(&self) -> Option<&str> {
        (!self.0.is_empty()).then_some(self.0.as_str())
    }
}

impl Value for DatabaseUrl {
    const EXPECTED: &'static str = "\"sqlite:PATH\", \"postgres://USER:PASSWORD@HOST/NAME\", \
        \"mysql://USER:PASSWORD@HOST/NAME\", or \"\"";

    fn read(raw: &Raw) -> Option<Self> {
        let text = raw.as_text()?.trim();
        let is_known = text.is_empty() || database::Kind::of(text).is_some();
        is_known.then(|| DatabaseUrl(text.to_owned()))
    }

    fn to_json(&self) -> Json {
        json!(self.0)
    }

    fn shown(&self) -> Json {
        json!(database::redacted(&self.0))
    }

    fn shown_raw(raw: &Raw) -> String {
        match raw.as_text() {
            Some(text) => json!(database::redacted(text)).to_string(),
            None => raw.to_string(),
        }
    }
}

/// A level, or a `tracing` filter such as `info,tracker=debug`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFilter(String);

impl LogFilter {
    /// None if the text is not a filter.
    ///
    /// `tracing` reads a single word as a module name and enables only that, so a misspelt level would disable all
    /// other logs: here a single word must be a level.
    pub fn new(text: &str) -> Option<Self> {
        let lone_words_are_levels =
            text.split(',').all(|part| part.contains(['=', '[']) || is_level(part.trim()));
        let is_filter = lone_words_are_levels && EnvFilter::builder().parse(text).is_ok();
        is_filter.then(|| LogFilter(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_level(word: &str) -> bool {
    ["off", "error", "warn", "info", "debug", "trace"].iter().any(|level| level.eq_ignore_ascii_case(word))
}

impl Value for LogFilter {
    const EXPECTED: &'static str =
        "off, error, warn, info, debug, trace, or a filter such as \"info,tracker=debug\"";

    fn read(raw: &Raw) -> Option<Self> {
        LogFilter::new(raw.as_text()?.trim())
    }

    fn to_json(&self) -> Json {
        json!(self.0)
    }
}

named! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum LogFormat {
        /// Text on a terminal, JSON otherwise.
        #[default]
        Auto = "auto",
        /// Text.
        Human = "human",
        /// One JSON object per line.
        Json = "json",
    }
}

impl Value for LogFormat {
    const EXPECTED: &'static str = "\"auto\", \"human\" or \"json\"";

    fn read(raw: &Raw) -> Option<Self> {
        let text = raw.as_text()?.trim();
        LogFormat::ALL.into_iter().find(|format| format.name() == text)
    }

    fn to_json(&self) -> Json {
        json!(self.name())
    }
}

/// Whether presence is shared with other gateways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// If Redis is configured.
    #[default]
    Auto,
    Off,
}

impl Value for Sharing {
    const EXPECTED: &'static str = "\"auto\" or \"off\"";

    fn read(raw: &Raw) -> Option<Self> {
        match raw.as_text()?.trim() {
            "auto" => Some(Sharing::Auto),
            "off" => Some(Sharing::Off),
            _ => None,
        }
    }

    fn to_json(&self) -> Json {
        match self {
            Sharing::Auto => json!("auto"),
            Sharing::Off => json!("off"),
        }
    }
}

/// Whether a site's tables are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SiteWrite {
    #[default]
    On,
    Off,
}

impl Value for SiteWrite {
    const EXPECTED: &'static str = "\"on\" or \"off\"";

    fn read(raw: &Raw) -> Option<Self> {
        match raw.as_text()?.trim() {
            "on" => Some(SiteWrite::On),
            "off" => Some(SiteWrite::Off),
            _ => None,
        }
    }

    fn to_json(&self) -> Json {
        match self {
            SiteWrite::On => json!("on"),
            SiteWrite::Off => json!("off"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_log_level_is_refused() {
        assert_eq!(LogFilter::new("inof"), None);
        assert_eq!(LogFilter::new("info,inof"), None);
        assert_eq!(LogFilter::new("tracker=loud"), None);
        assert_eq!(LogFilter::new(""), None);
        assert!(LogFilter::new("INFO").is_some());
        assert!(LogFilter::new("warn,tracker=debug").is_some());
    }

    #[test]
    fn header_names_are_lower_case_tokens() {
        assert_eq!(HeaderName::new("X-Real-IP").unwrap().as_str(), "x-real-ip");
        assert_eq!(HeaderName::new("x forwarded"), None);
        assert_eq!(HeaderName::new(""), None);
    }

    #[test]
    fn only_supported_databases_are_accepted() {
        let read = |text: &str| DatabaseUrl::read(&Raw::Text(text.to_owned()));
        assert_eq!(read("").unwrap().as_str(), None);
        assert_eq!(
            read("sqlite:/var/lib/rollcall.db").unwrap().as_str(),
            Some("sqlite:/var/lib/rollcall.db")
        );
        for known in
            ["postgres://me:pw@host/db", "postgresql://host/db", "mysql://host/db", "mariadb://host/db"]
        {
            assert_eq!(read(known).unwrap().as_str(), Some(known));
        }
        assert_eq!(read("sqlite:"), None);
        assert_eq!(read("oracle://host/db"), None);
    }
}
