//! Types of values: names, secrets, Redis URLs, when an announce is answered.

use std::fmt;

use keyspace::RedisSettings;
use serde_json::{Value as Json, json};
use tracker::settings::Acknowledge;

use super::value::{Raw, Value};

/// Of a key, a group or a node: printable, without spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

impl Name {
    pub fn new(text: &str) -> Option<Self> {
        let is_name = !text.is_empty() && text.len() <= 200 && text.bytes().all(|b| b.is_ascii_graphic());
        is_name.then(|| Name(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for Name {
    const EXPECTED: &'static str = "a name of 1 to 200 printable characters without spaces";

    fn read(raw: &Raw) -> Option<Self> {
        Name::new(raw.as_text()?)
    }

    fn to_json(&self) -> Json {
        json!(self.0)
    }
}

/// A required claim of a token; empty to accept any value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word(String);

impl Word {
    pub fn as_str(&self) -> Option<&str> {
        (!self.0.is_empty()).then_some(self.0.as_str())
    }
}

impl Value for Word {
    const EXPECTED: &'static str = "a text without quotes, backslashes and control characters, or \"\"";

    fn read(raw: &Raw) -> Option<Self> {
        let text = raw.as_text()?;
        let is_plain = !text.contains(['"', '\\']) && !text.chars().any(char::is_control);
        is_plain.then(|| Word(text.to_owned()))
    }

    fn to_json(&self) -> Json {
        json!(self.0)
    }
}

impl Value for Option<Name> {
    const EXPECTED: &'static str = "a name of 1 to 200 printable characters without spaces, or \"\" for none";

    fn read(raw: &Raw) -> Option<Self> {
        match raw.as_text()? {
            "" => Some(None),
            text => Name::new(text).map(Some),
        }
    }

    fn to_json(&self) -> Json {
        json!(self.as_ref().map(Name::as_str).unwrap_or_default())
    }
}

/// Never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn reveal(&self) -> Option<&str> {
        (!self.0.is_empty()).then_some(self.0.as_str())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "none" } else { "…" })
    }
}

impl Value for Secret {
    const EXPECTED: &'static str = "a text, or \"\" for none";

    fn read(raw: &Raw) -> Option<Self> {
        raw.as_text().map(|text| Secret(text.to_owned()))
    }

    fn to_json(&self) -> Json {
        json!(self.0)
    }

    fn shown(&self) -> Json {
        json!(if self.0.is_empty() { "" } else { "…" })
    }

    fn shown_raw(_: &Raw) -> String {
        "…".to_owned()
    }
}

/// Empty for none.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RedisUrl(String);

impl RedisUrl {
    pub fn as_str(&self) -> Option<&str> {
        (!self.0.is_empty()).then_some(self.0.as_str())
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redacted(&self.0))
    }
}

fn redacted(url: &str) -> String {
    match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1))) {
        Some((scheme, host)) => format!("{scheme}://…@{host}"),
        None => url.to_owned(),
    }
}

impl Value for RedisUrl {
    const EXPECTED: &'static str = "redis://HOST:PORT/DB, rediss://…, redis+sentinel://HOST:PORT,…/MASTER, \
         redis+cluster://HOST:PORT,…, or \"\" for none";

    fn read(raw: &Raw) -> Option<Self> {
        let text = raw.as_text()?.trim();
        let is_known = text.is_empty() || RedisSettings::from_url(text).is_ok();
        is_known.then(|| RedisUrl(text.to_owned()))
    }

    fn to_json(&self) -> Json {
        json!(self.0)
    }

    fn shown(&self) -> Json {
        json!(redacted(&self.0))
    }

    fn shown_raw(raw: &Raw) -> String {
        match raw.as_text() {
            Some(text) => json!(redacted(text)).to_string(),
            None => raw.to_string(),
        }
    }
}

const ACKNOWLEDGE_NAMES: [(&str, Acknowledge); 3] =
    [("events", Acknowledge::Events), ("all", Acknowledge::All), ("none", Acknowledge::None)];

impl Value for Acknowledge {
    const EXPECTED: &'static str = "\"events\", \"all\" or \"none\"";

    fn read(raw: &Raw) -> Option<Self> {
        let text = raw.as_text()?.trim();
        ACKNOWLEDGE_NAMES.iter().find(|(name, _)| *name == text).map(|(_, mode)| *mode)
    }

    fn to_json(&self) -> Json {
        json!(ACKNOWLEDGE_NAMES.iter().find(|(_, mode)| mode == self).map(|(name, _)| *name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let raw = |text: &str| Raw::Text(text.to_owned());
        let secret = Secret::read(&raw("hunter2")).unwrap();
        assert_eq!(secret.reveal(), Some("hunter2"));
        assert!(!format!("{secret:?}{}", secret.shown()).contains("hunter2"));
        let url = RedisUrl::read(&raw("redis://me:hunter2@127.0.0.1:6379/0")).unwrap();
        let shown = format!("{url:?}{}", url.shown());
        assert!(!shown.contains("hunter2") && shown.contains("127.0.0.1:6379"), "{shown}");
        assert_eq!(RedisUrl::read(&raw("http://127.0.0.1")), None);
    }
}
