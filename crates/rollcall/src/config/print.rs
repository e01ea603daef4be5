//! The annotated TOML of `rollcall config print`.

use std::fmt::Write;

use serde_json::{Map, Value as Json};

use super::Config;
use super::load::variable_name;
use super::section::{Key, Section};

const HEADER: &str = "\
# Rollcall's configuration, with every key at its default: keep what you change, delete the rest.
# Environment variables override this file, --set SECTION.KEY=VALUE overrides both.
";

/// Parses back to the same configuration.
pub fn to_annotated_toml(config: &Config) -> String {
    let mut toml = HEADER.to_owned();
    for section in config.sections() {
        toml.push('\n');
        push_comments(&mut toml, section.doc());
        push_line(&mut toml, format_args!("[{}]", section.name()));
        for (key, value) in section.keys().iter().zip(section.values()) {
            toml.push('\n');
            push_key(&mut toml, section, key, &value);
        }
    }
    toml
}

fn push_key(toml: &mut String, section: &dyn Section, key: &Key, value: &Json) {
    push_comments(toml, key.doc);
    if let Some(range) = &key.range {
        push_line(toml, format_args!("# Range: {} to {}", range.start(), range.end()));
    }
    push_line(toml, format_args!("# Environment: {}", variable_name(section.name(), key.name)));
    push_line(toml, format_args!("{} = {value}", key.name));
}

fn push_comments(toml: &mut String, lines: &[&str]) {
    for line in lines {
        push_line(toml, format_args!("#{line}"));
    }
}

fn push_line(toml: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(toml, "{line}").expect("writing to a String cannot fail");
}

pub fn to_json(config: &Config) -> Json {
    let section_json = |section: &dyn Section| -> Json {
        let names = section.keys().iter().map(|key| key.name.to_owned());
        names.zip(section.values()).collect::<Map<_, _>>().into()
    };
    let sections = config.sections().map(|section| (section.name().to_owned(), section_json(section)));
    sections.into_iter().collect::<Map<_, _>>().into()
}
