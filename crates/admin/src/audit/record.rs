//! What is recorded. Secrets are not: a passkey appears as its first digits and a part of its hash.

use domain::{Passkey, TorrentId, UserId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::line::LineHash;

/// Passkeys named in one record; the count is always complete.
const PASSKEYS_MAX: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Ok,
    /// Not done, or not wholly; the details have the `reason`.
    Failed,
}

impl Outcome {
    pub const fn as_str(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Failed => "failed",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// `user`, `passkey`, `torrent`, …
    pub kind: &'static str,
    pub id: String,
}

impl Subject {
    pub fn new(kind: &'static str, id: impl ToString) -> Self {
        Subject { kind, id: id.to_string() }
    }

    /// None: the id is not known yet.
    pub fn user(id: Option<UserId>) -> Self {
        Subject::new("user", id.map(|id| id.to_string()).unwrap_or_default())
    }

    /// None: the id is not known yet.
    pub fn torrent(id: Option<TorrentId>) -> Self {
        Subject::new("torrent", id.map(|id| id.to_string()).unwrap_or_default())
    }

    pub fn passkey(passkey: &Passkey) -> Self {
        Subject::new("passkey", passkey_subject_id(passkey))
    }

    pub fn whitelist() -> Self {
        Subject::new("whitelist", "all")
    }

    pub fn key(id: impl ToString) -> Self {
        Subject::new("key", id)
    }
}

/// The first four digits of a passkey, and the first twelve of its SHA-256: enough to tell millions apart.
pub fn passkey_subject_id(passkey: &Passkey) -> String {
    let text = passkey.to_string();
    format!("{}…{}", &text[..4], &LineHash::of(text.as_bytes()).as_str()[..12])
}

pub fn actor_of_command(system_user: &str) -> String {
    format!("cli:{system_user}")
}

pub fn actor_of_key(key_id: &str) -> String {
    format!("key:{key_id}")
}

/// A change. Its time and its place in the chain come from the trail.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// `subject.verb`, such as `user.add`. `audit.` is reserved for the trail itself.
    pub action: &'static str,
    pub actor: String,
    pub subject: Subject,
    pub outcome: Outcome,
    pub details: Map<String, Json>,
}

impl Record {
    pub fn ok(action: &'static str, actor: impl Into<String>, subject: Subject) -> Self {
        Record { action, actor: actor.into(), subject, outcome: Outcome::Ok, details: Map::new() }
    }

    /// Adds a detail.
    pub fn with(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// Replaces the subject, whose id was not known before.
    pub fn about(mut self, subject: Subject) -> Self {
        self.subject = subject;
        self
    }

    pub fn failed(mut self, reason: impl ToString) -> Self {
        self.outcome = Outcome::Failed;
        self.with("reason", reason.to_string())
    }

    /// Adds the passkeys in a form that does not disclose them.
    pub fn about_passkeys(self, passkeys: &[Passkey]) -> Self {
        match passkeys {
            [passkey] => self.about(Subject::passkey(passkey)),
            _ => {
                let named: Vec<String> = passkeys.iter().take(PASSKEYS_MAX).map(passkey_subject_id).collect();
                self.about(Subject::whitelist()).with("passkeys", named).with("count", passkeys.len())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w7_a_passkey_is_not_in_its_subject_id() {
        let passkey: Passkey = "0123456789abcdef0123456789abcdef".parse().unwrap();
        let name = passkey_subject_id(&passkey);
        assert_eq!(name, "0123…3eb1bd439947");
        let short: Passkey = "01234567".parse().unwrap();
        assert_ne!(passkey_subject_id(&short), name);
    }
}
