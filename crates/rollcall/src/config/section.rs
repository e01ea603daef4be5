//! The section macro: each key is declared once; parsing, defaults and printing are derived.

use std::ops::RangeInclusive;

use serde_json::Value as Json;

use super::value::{InvalidValue, Raw};

#[derive(Debug)]
pub struct Key {
    /// Ends in its unit, if it has one.
    pub name: &'static str,
    /// Doc comment, by line.
    pub doc: &'static [&'static str],
    /// The range of a number.
    pub range: Option<RangeInclusive<u32>>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    UnknownKey,
    InvalidValue(InvalidValue),
}

pub trait Section {
    fn name(&self) -> &'static str;
    /// Doc comment, by line.
    fn doc(&self) -> &'static [&'static str];
    /// In the order of declaration.
    fn keys(&self) -> &'static [Key];
    fn set(&mut self, key: &str, raw: &Raw) -> Result<(), Refusal>;
    /// In the order of the keys.
    fn values(&self) -> Vec<Json>;
    /// Without secrets, in the order of the keys.
    fn shown_values(&self) -> Vec<Json>;
}

/// Declares a section: `key: type [range] = default`, each under its doc comment.
///
/// Generates the struct, its defaults and its [`Section`]. The doc comments become the comments of `rollcall config
/// print`, so they are written for operators.
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

macro_rules! config_range {
    () => {
        None
    };
    ($range:expr) => {
        Some($range)
    };
}

pub(super) use {config_range, config_section};
