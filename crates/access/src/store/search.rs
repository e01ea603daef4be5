//! Search text for a torrent or a user: a part of its name, its id, or a prefix of an infohash.
//!
//! - Every character is literal; there are no wildcards.
//! - The search is case-insensitive in every script, on all databases. `LIKE` depends on the database and its collation, so
//!   the pattern contains each letter in both cases instead.

use crate::error::AccessError;

/// Fewer digits are not taken for the prefix of an infohash.
const HASH_DIGITS_MIN: usize = 4;
/// The length of an infohash; v2 hashes are truncated to it.
const HASH_DIGITS_MAX: usize = 40;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameSearch {
    text: String,
}

impl NameSearch {
    pub const CHARS_MAX: usize = 200;

    /// Surrounding white space is ignored.
    pub fn new(text: &str) -> Result<NameSearch, AccessError> {
        let text = text.trim();
        // Does not count an arbitrarily long text to its end.
        let chars = text.chars().take(Self::CHARS_MAX + 1).count();
        if chars == 0 || chars > Self::CHARS_MAX || text.contains('\0') {
            return Err(AccessError::BadSearch(Self::CHARS_MAX));
        }
        Ok(NameSearch { text: text.to_owned() })
    }

    /// The text as an id.
    pub(super) fn id(&self) -> Option<i64> {
        let is_plain = self.text.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| self.text.parse().ok()).flatten().filter(|number| *number > 0)
    }

    /// A `LIKE` pattern for infohashes with this prefix.
    pub(super) fn hash_pattern(&self) -> Option<String> {
        let is_hex = self.text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let fits = (HASH_DIGITS_MIN..=HASH_DIGITS_MAX).contains(&self.text.len());
        (is_hex && fits).then(|| format!("{}%", self.text.to_ascii_lowercase()))
    }

    /// A pattern for SQLite's `GLOB`.
    pub(super) fn glob(&self) -> String {
        let mut glob = "*".to_owned();
        for letter in self.text.chars() {
            match letter {
                '*' | '?' | '[' => push_class(&mut glob, [letter]),
                _ => push_both_cases(&mut glob, letter),
            }
        }
        glob.push('*');
        glob
    }

    /// A regular expression for PostgreSQL, MariaDB and MySQL.
    pub(super) fn regex(&self) -> String {
        let mut regex = String::new();
        for letter in self.text.chars() {
            if letter.is_ascii_punctuation() {
                regex.push('\\');
                regex.push(letter);
            } else {
                push_both_cases(&mut regex, letter);
            }
        }
        regex
    }
}

fn push_both_cases(pattern: &mut String, letter: char) {
    let mut cases = vec![letter];
    let mut also = |case: Option<char>| {
        if let Some(case) = case.filter(|case| !cases.contains(case)) {
            cases.push(case);
        }
    };
    let (lower, upper) = (only(letter.to_lowercase()), only(letter.to_uppercase()));
    also(lower);
    also(upper);
    // Letters with three forms, such as the Greek sigma.
    also(upper.and_then(|upper| only(upper.to_lowercase())));
    also(lower.and_then(|lower| only(lower.to_uppercase())));
    match cases.as_slice() {
        [one] => pattern.push(*one),
        _ => push_class(pattern, cases),
    }
}

fn push_class(pattern: &mut String, letters: impl IntoIterator<Item = char>) {
    pattern.push('[');
    pattern.extend(letters);
    pattern.push(']');
}

/// None for a case mapping to several letters.
fn only(mut letters: impl Iterator<Item = char>) -> Option<char> {
    let first = letters.next()?;
    letters.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_literal_and_case_insensitive() {
        let search = NameSearch::new(r"  aЖ*?[]^%_\.1 ").unwrap();
        assert_eq!(search.glob(), r"*[aA][Жж][*][?][[]]^%_\.1*");
        assert_eq!(search.regex(), r"[aA][Жж]\*\?\[\]\^\%\_\\\.1");
        // The upper case has two letters.
        assert_eq!(NameSearch::new("ß").unwrap().regex(), "ß");
    }

    #[test]
    fn ids_and_infohash_prefixes_are_recognised() {
        let read = |text: &str| {
            let search = NameSearch::new(text).unwrap();
            (search.id(), search.hash_pattern())
        };
        assert_eq!(read("77"), (Some(77), None));
        assert_eq!(read("1234"), (Some(1234), Some("1234%".to_owned())));
        assert_eq!(read("ABcd"), (None, Some("abcd%".to_owned())));
        assert_eq!(read(&"f".repeat(41)), (None, None));
        assert_eq!(read("0"), (None, None));
        assert_eq!(read("99999999999999999999"), (None, Some("99999999999999999999%".to_owned())));
    }

    #[test]
    fn empty_too_long_and_nul_are_refused() {
        for text in ["", "   ", "a\0b", &"x".repeat(201), &"名".repeat(10_000)] {
            assert!(NameSearch::new(text).is_err());
        }
        assert!(NameSearch::new(&"名".repeat(200)).is_ok());
    }
}
