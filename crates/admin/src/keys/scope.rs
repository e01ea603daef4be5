//! Permissions of a key.

use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Verify passkeys; for trackers.
    Verify,
    /// Read everything but secrets; does not include `verify`.
    Read,
    /// Includes all others.
    Admin,
}

impl Scope {
    pub const ALL: [Scope; 3] = [Scope::Verify, Scope::Read, Scope::Admin];

    pub const fn as_str(self) -> &'static str {
        match self {
            Scope::Verify => "verify",
            Scope::Read => "read",
            Scope::Admin => "admin",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a scope is verify, read or admin")]
pub struct NotAScope;

impl FromStr for Scope {
    type Err = NotAScope;

    fn from_str(text: &str) -> Result<Self, NotAScope> {
        Scope::ALL.into_iter().find(|scope| scope.as_str() == text).ok_or(NotAScope)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scopes(u8);

impl Scopes {
    pub const fn allow(self, scope: Scope) -> bool {
        self.0 & (scope.bit() | Scope::Admin.bit()) != 0
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The scopes as given, without those that `admin` includes.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.0 & scope.bit() != 0)
    }
}

impl From<Scope> for Scopes {
    fn from(scope: Scope) -> Self {
        Scopes(scope.bit())
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Scopes(scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, scope) in self.iter().enumerate() {
            f.write_str(if number > 0 { "," } else { "" })?;
            f.write_str(scope.as_str())?;
        }
        Ok(())
    }
}

impl FromStr for Scopes {
    type Err = NotAScope;

    fn from_str(text: &str) -> Result<Self, NotAScope> {
        text.split(',').map(|name| name.trim().parse::<Scope>()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admin_includes_all_scopes_and_read_does_not_include_verify() {
        let allowed = |text: &str| {
            let scopes: Scopes = text.parse().unwrap();
            Scope::ALL.map(|scope| scopes.allow(scope))
        };
        assert_eq!(allowed("verify"), [true, false, false]);
        assert_eq!(allowed("read"), [false, true, false]);
        assert_eq!(allowed("read, verify"), [true, true, false]);
        assert_eq!(allowed("admin"), [true, true, true]);
        assert!(!Scopes::default().allow(Scope::Verify));
    }

    #[test]
    fn scopes_round_trip_through_text() {
        for text in ["verify", "verify,read", "verify,read,admin"] {
            assert_eq!(text.parse::<Scopes>().unwrap().to_string(), text);
        }
        for wrong in ["", "all", "Read", "read,", "read;verify"] {
            assert_eq!(wrong.parse::<Scopes>(), Err(NotAScope), "{wrong:?}");
        }
    }
}
