//! What people type to find a torrent or a user: a part of its name, its number, or the beginning of an infohash.
//!
//! # Guarantees
//!
//! - Every character stands for itself: nothing that is typed is a pattern.
//! - Upper and lower case are the same, in every script, on all three kinds of databases. What `LIKE` makes of them
//!   depends on the database and its collation, so each letter is asked for in both cases instead.

use crate::error::AccessError;

/// The fewest digits that are taken for the beginning of an infohash.
const HASH_DIGITS_MIN: usize = 4;
/// An infohash has no more; a v2 hash is known by as many.
const HASH_DIGITS_MAX: usize = 40;

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameSearch {
    text: String,
}

impl NameSearch {
    /// The longest text that is looked for.
    pub const CHARS_MAX: usize = 200;

    /// Looks for this, but for spaces around it.
    pub fn new(text: &str) -> Result<NameSearch, AccessError> {
        let text = text.trim();
        // One character more is enough to know.
        let chars = text.chars().take(Self::CHARS_MAX + 1).count();
        if chars == 0 || chars > Self::CHARS_MAX || text.contains('\0') {
            return Err(AccessError::BadSearch(Self::CHARS_MAX));
        }
        Ok(NameSearch { text: text.to_owned() })
    }

    /// The number of a torrent or a user, if it can be one.
    pub(super) fn number(&self) -> Option<i64> {
        let is_plain = self.text.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| self.text.parse().ok()).flatten().filter(|number| *number > 0)
    }

    /// The beginning of an infohash in small letters, if it can be one, as `LIKE` wants it.
    pub(super) fn hash_pattern(&self) -> Option<String> {
        let is_hex = self.text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let fits = (HASH_DIGITS_MIN..=HASH_DIGITS_MAX).contains(&self.text.len());
        (is_hex && fits).then(|| format!("{}%", self.text.to_ascii_lowercase()))
    }

    /// A part of a name as SQLite's `GLOB` wants it.
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

    /// A part of a name as a regular expression that PostgreSQL, MariaDB and MySQL all understand.
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

/// A letter in either case; anything else as it is.
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
    // Letters with three forms, such as the Greek sigma at the end of a word.
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

/// The letter, if it is one.
fn only(mut letters: impl Iterator<Item = char>) -> Option<char> {
    let first = letters.next()?;
    letters.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_stands_for_itself_in_either_case() {
        let search = NameSearch::new(r"  aЖ*?[]^%_\.1 ").unwrap();
        assert_eq!(search.glob(), r"*[aA][Жж][*][?][[]]^%_\.1*");
        assert_eq!(search.regex(), r"[aA][Жж]\*\?\[\]\^\%\_\\\.1");
        // Two letters in upper case are not one.
        assert_eq!(NameSearch::new("ß").unwrap().regex(), "ß");
    }

    #[test]
    fn what_can_be_a_number_or_an_infohash_is_also_looked_for_as_one() {
        let read = |text: &str| {
            let search = NameSearch::new(text).unwrap();
            (search.number(), search.hash_pattern())
        };
        assert_eq!(read("77"), (Some(77), None));
        assert_eq!(read("1234"), (Some(1234), Some("1234%".to_owned())));
        assert_eq!(read("ABcd"), (None, Some("abcd%".to_owned())));
        assert_eq!(read(&"f".repeat(41)), (None, None));
        assert_eq!(read("0"), (None, None));
        assert_eq!(read("99999999999999999999"), (None, Some("99999999999999999999%".to_owned())));
    }

    #[test]
    fn nothing_too_much_and_nul_are_refused() {
        for text in ["", "   ", "a\0b", &"x".repeat(201), &"名".repeat(10_000)] {
            assert!(NameSearch::new(text).is_err());
        }
        assert!(NameSearch::new(&"名".repeat(200)).is_ok());
    }
}
