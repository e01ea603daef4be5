//! A template: text with blanks in angle brackets.

use std::fmt::{Display, Write as _};

/// What can be filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blank {
    InfoHash,
    Torrent,
    PeerId,
    User,
    Passkey,
    Prefix,
}

impl Blank {
    pub(super) const ALL: [Blank; 6] =
        [Blank::InfoHash, Blank::Torrent, Blank::PeerId, Blank::User, Blank::Passkey, Blank::Prefix];

    pub(super) const fn text(self) -> &'static str {
        match self {
            Blank::InfoHash => "<infohash>",
            Blank::Torrent => "<torrent>",
            Blank::PeerId => "<peer_id>",
            Blank::User => "<user>",
            Blank::Passkey => "<passkey>",
            Blank::Prefix => "<prefix>",
        }
    }

    /// How much of a text can be a value of this kind.
    fn length_in(self, text: &str) -> Option<usize> {
        let leading = |is_part: fn(char) -> bool| text.find(|c| !is_part(c)).unwrap_or(text.len());
        let length = match self {
            Blank::InfoHash | Blank::PeerId => {
                let is_hex = text.get(..40)?.bytes().all(|byte| byte.is_ascii_hexdigit());
                return is_hex.then_some(40);
            }
            Blank::Torrent | Blank::User => leading(|c| c.is_ascii_digit()),
            Blank::Passkey => leading(|c| c.is_ascii_hexdigit()),
            // A client's prefix may hold anything, so only the end of the key ends it.
            Blank::Prefix => text.len(),
        };
        (length > 0).then_some(length)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Blank(Blank),
}

/// A parsed template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template(Vec<Part>);

impl Template {
    /// None if something in angle brackets is not known.
    pub(super) fn parse(text: &str) -> Option<Template> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find('<') {
            let blank = Blank::ALL.into_iter().find(|blank| rest[open..].starts_with(blank.text()))?;
            if open > 0 {
                parts.push(Part::Text(rest[..open].to_owned()));
            }
            parts.push(Part::Blank(blank));
            rest = &rest[open + blank.text().len()..];
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Some(Template(parts))
    }

    pub(super) fn blanks(&self) -> impl Iterator<Item = Blank> + '_ {
        self.0.iter().filter_map(|part| match part {
            Part::Blank(blank) => Some(*blank),
            Part::Text(_) => None,
        })
    }

    pub(super) fn has(&self, blank: Blank) -> bool {
        self.blanks().any(|other| other == blank)
    }

    pub(super) fn fill(&self, values: &[(Blank, &dyn Display)]) -> String {
        let mut key = String::with_capacity(72);
        for part in &self.0 {
            match part {
                Part::Text(text) => key.push_str(text),
                Part::Blank(blank) => {
                    if let Some((_, value)) = values.iter().find(|(other, _)| other == blank) {
                        let _ = write!(key, "{value}");
                    }
                }
            }
        }
        key
    }

    /// What was filled in to get this key; none if it is none of this template's.
    pub(super) fn read<'k>(&self, key: &'k str) -> Option<Vec<(Blank, &'k str)>> {
        let mut values = Vec::new();
        let mut rest = key;
        for part in &self.0 {
            match part {
                Part::Text(text) => rest = rest.strip_prefix(text.as_str())?,
                Part::Blank(blank) => {
                    let (value, behind) = rest.split_at(blank.length_in(rest)?);
                    values.push((*blank, value));
                    rest = behind;
                }
            }
        }
        rest.is_empty().then_some(values)
    }

    /// Whether what was filled in can be told from a key: digits that follow on digits cannot.
    pub(super) fn is_readable(&self) -> bool {
        let forty = "1".repeat(40);
        let values: [(Blank, &dyn Display); 6] = [
            (Blank::InfoHash, &forty),
            (Blank::Torrent, &12),
            (Blank::PeerId, &forty),
            (Blank::User, &34),
            (Blank::Passkey, &"0123456789abcdef"),
            (Blank::Prefix, &"-TR3"),
        ];
        let key = self.fill(&values);
        let text =
            |blank| values.iter().find(|(other, _)| *other == blank).map(|(_, value)| value.to_string());
        self.read(&key)
            .is_some_and(|found| found.iter().all(|(blank, value)| text(*blank).as_deref() == Some(*value)))
    }

    /// A pattern that every key of this template fits.
    pub(super) fn pattern(&self) -> String {
        let mut pattern = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => {
                    for c in text.chars() {
                        if matches!(c, '*' | '?' | '[' | ']' | '\\' | '^') {
                            pattern.push('\\');
                        }
                        pattern.push(c);
                    }
                }
                Part::Blank(_) => pattern.push('*'),
            }
        }
        pattern
    }
}
