//! The display name of a user.

use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a name has 1 to {max} characters, none of them a control character", max = UserName::CHARS_MAX)]
pub struct NotAName;

/// Trimmed, and without control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserName(String);

impl UserName {
    pub const CHARS_MAX: usize = 100;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for UserName {
    type Err = NotAName;
    fn from_str(text: &str) -> Result<Self, NotAName> {
        let text = text.trim();
        let is_name =
            (1..=Self::CHARS_MAX).contains(&text.chars().count()) && !text.chars().any(char::is_control);
        is_name.then(|| UserName(text.to_owned())).ok_or(NotAName)
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_trimmed_and_bounded() {
        assert_eq!("  Ada  ".parse::<UserName>().unwrap().as_str(), "Ada");
        assert!("é".repeat(100).parse::<UserName>().is_ok());
        for text in ["", "   ", "a\nb", "a\0b", &"é".repeat(101)] {
            assert_eq!(text.parse::<UserName>(), Err(NotAName), "{text:?}");
        }
    }
}
