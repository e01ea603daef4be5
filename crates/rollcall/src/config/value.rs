//! Parses values from a file, the environment or a flag, and prints them.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use ipnet::IpNet;
use serde_json::{Value as Json, json};

/// A value before its type is known.
#[derive(Clone, Debug, PartialEq)]
pub enum Raw {
    Text(String),
    Integer(i64),
    Bool(bool),
    List(Vec<Raw>),
    /// A float, a date or a table, which no key accepts.
    Other(String),
    /// From an environment variable or a flag: the key determines its type.
    Untyped(String),
}

impl Raw {
    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Raw::Text(text) | Raw::Untyped(text) => Some(text),
            _ => None,
        }
    }

    /// Of an array of strings, or of one string separated by commas.
    pub(super) fn as_entries(&self) -> Option<Vec<&str>> {
        match self {
            Raw::List(entries) => entries.iter().map(Raw::as_text).collect(),
            Raw::Untyped(text) => Some(split_at_commas(without_brackets(text))),
            _ => Some(split_at_commas(self.as_text()?)),
        }
    }
}

/// Variables and flags separate list entries by commas; brackets as in the file are allowed.
fn without_brackets(text: &str) -> &str {
    text.trim().strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(text)
}

fn split_at_commas(text: &str) -> Vec<&str> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    text.split(',').map(|entry| entry.trim().trim_matches('"')).collect()
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Raw::Text(text) | Raw::Untyped(text) => write!(f, "{}", json!(text)),
            Raw::Integer(number) => write!(f, "{number}"),
            Raw::Bool(flag) => write!(f, "{flag}"),
            Raw::Other(text) => f.write_str(text),
            Raw::List(entries) => {
                f.write_str("[")?;
                for (position, entry) in entries.iter().enumerate() {
                    let comma = if position == 0 { "" } else { ", " };
                    write!(f, "{comma}{entry}")?;
                }
                f.write_str("]")
            }
        }
    }
}

pub trait Value: Sized {
    /// Completes "expected …".
    const EXPECTED: &'static str;

    /// None for another type.
    fn read(raw: &Raw) -> Option<Self>;

    /// Only numbers have a range.
    fn is_within(&self, _range: &RangeInclusive<u32>) -> bool {
        true
    }

    /// TOML writes strings, numbers, booleans and lists of strings like JSON.
    fn to_json(&self) -> Json;

    /// Without secrets.
    fn shown(&self) -> Json {
        self.to_json()
    }

    /// The invalid input, without secrets.
    fn shown_raw(raw: &Raw) -> String {
        raw.to_string()
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct InvalidValue {
    /// Without secrets.
    pub shown: String,
    pub expected: String,
}

pub fn read<T: Value>(raw: &Raw, range: Option<RangeInclusive<u32>>) -> Result<T, InvalidValue> {
    let unfit = |expected| InvalidValue { shown: T::shown_raw(raw), expected };
    let Some(range) = range else {
        return T::read(raw).ok_or_else(|| unfit(T::EXPECTED.to_owned()));
    };
    T::read(raw)
        .filter(|value| value.is_within(&range))
        .ok_or_else(|| unfit(format!("{} from {} to {}", T::EXPECTED, range.start(), range.end())))
}

impl Value for u32 {
    const EXPECTED: &'static str = "a whole number";

    fn read(raw: &Raw) -> Option<Self> {
        match raw {
            Raw::Integer(number) => u32::try_from(*number).ok(),
            Raw::Untyped(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    fn is_within(&self, range: &RangeInclusive<u32>) -> bool {
        range.contains(self)
    }

    fn to_json(&self) -> Json {
        json!(self)
    }
}

impl Value for bool {
    const EXPECTED: &'static str = "true or false";

    fn read(raw: &Raw) -> Option<Self> {
        match raw {
            Raw::Bool(flag) => Some(*flag),
            Raw::Untyped(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    fn to_json(&self) -> Json {
        json!(self)
    }
}

/// "" means none.
impl Value for Option<PathBuf> {
    const EXPECTED: &'static str = "the path of a file, or \"\" for none";

    fn read(raw: &Raw) -> Option<Self> {
        let text = raw.as_text()?;
        Some((!text.is_empty()).then(|| PathBuf::from(text)))
    }

    fn to_json(&self) -> Json {
        json!(self.as_deref().map(|path| path.to_string_lossy()).unwrap_or_default())
    }
}

impl Value for PathBuf {
    const EXPECTED: &'static str = "the path of a file";

    fn read(raw: &Raw) -> Option<Self> {
        raw.as_text().filter(|text| !text.is_empty()).map(PathBuf::from)
    }

    fn to_json(&self) -> Json {
        json!(self.to_string_lossy())
    }
}

/// IP addresses, no host names, so that a start does not depend on a resolver.
impl Value for Vec<SocketAddr> {
    const EXPECTED: &'static str =
        "IP addresses with ports such as \"127.0.0.1:6969,[::1]:6969\", or \"\" for none";

    fn read(raw: &Raw) -> Option<Self> {
        raw.as_entries()?.into_iter().map(|entry| entry.parse().ok()).collect()
    }

    fn to_json(&self) -> Json {
        json!(self.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
    }
}

/// A single address is a range of one.
impl Value for Vec<IpNet> {
    const EXPECTED: &'static str = "a list of address ranges such as [\"10.0.0.0/8\", \"2001:db8::/32\"]";

    fn read(raw: &Raw) -> Option<Self> {
        raw.as_entries()?.into_iter().map(read_range).collect()
    }

    fn to_json(&self) -> Json {
        json!(self.iter().map(ToString::to_string).collect::<Vec<_>>())
    }
}

fn read_range(text: &str) -> Option<IpNet> {
    let range = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok()?;
    Some(range.trunc())
}
