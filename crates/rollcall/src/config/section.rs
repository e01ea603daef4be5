//! A section: each key is declared once, and everything else about it follows from there.

use std::ops::RangeInclusive;

use serde_json::Value as Json;

use super::value::{InvalidValue, Raw};

/// One key of a section.
#[derive(Debug)]
pub struct Key {
    /// Its name; ends in its unit where it has one.
    pub name: &'static str,
    /// Its doc comment, line by line.
    pub doc: &'static [&'static str],
    /// The numbers it takes, if it takes numbers.
    pub range: Option<RangeInclusive<u32>>,
}

/// Why a section did not take a value.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such key.
    UnknownKey,
    /// The value is not of the key's kind.
    InvalidValue(InvalidValue),
}

/// What a declared section can do.
pub trait Section {
    /// Its name between the brackets.
    fn name(&self) -> &'static str;
    /// Its doc comment, line by line.
    fn doc(&self) -> &'static [&'static str];
    /// Its keys, in the order of declaration.
    fn keys(&self) -> &'static [Key];
    /// Sets a key.
    fn set(&mut self, key: &str, raw: &Raw) -> Result<(), Refusal>;
    /// The values, in the order of the keys.
    fn values(&self) -> Vec<Json>;
    /// The values as they may be shown to anybody, in the order of the keys.
    fn shown_values(&self) -> Vec<Json>;
}

/// Declares a section: `key: type [range] = default`, each under its doc comment.
///
/// From it come the struct, its defaults and its [`Section`]; the doc comments become the comments of
/// `rollcall config print`, so they are written for operators.
macro_rules! config_section {
    (
        $(#[doc = $section_doc:literal])*
        $name:ident as $section:literal {
            $( $(#[doc = $doc:literal])* $key:ident: $type:ty $([$range:expr])? = $default:expr, )*
        }
    ) => {
        $(#[doc = $section_doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $( $(#[doc = $doc])* pub $key: $type, )*
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $( $key: $default, )* }
            }
        }

        impl $crate::config::section::Section for $name {
            fn name(&self) -> &'static str {
                $section
            }

            fn doc(&self) -> &'static [&'static str] {
                &[$( $section_doc ),*]
            }

            fn keys(&self) -> &'static [$crate::config::section::Key] {
                const KEYS: &[$crate::config::section::Key] = &[
                    $( $crate::config::section::Key {
                        name: stringify!($key),
                        doc: &[$( $doc ),*],
                        range: $crate::config::section::config_range!($( $range )?),
                    }, )*
                ];
                KEYS
            }

            fn set(
                &mut self,
                key: &str,
                raw: &$crate::config::value::Raw,
            ) -> Result<(), $crate::config::section::Refusal> {
                use $crate::config::section::{Refusal, config_range};
                match key {
                    $( stringify!($key) => {
                        self.$key = $crate::config::value::read(raw, config_range!($( $range )?))
                            .map_err(Refusal::InvalidValue)?;
                    } )*
                    _ => return Err(Refusal::UnknownKey),
                }
                Ok(())
            }

            fn values(&self) -> Vec<serde_json::Value> {
                vec![$( $crate::config::value::Value::to_json(&self.$key) ),*]
            }

            fn shown_values(&self) -> Vec<serde_json::Value> {
                vec![$( $crate::config::value::Value::shown(&self.$key) ),*]
            }
        }
    };
}

/// The range of a key that may have none.
macro_rules! config_range {
    () => {
        None
    };
    ($range:expr) => {
        Some($range)
    };
}

pub(super) use {config_range, config_section};
