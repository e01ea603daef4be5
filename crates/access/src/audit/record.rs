//! What is recorded, and about whom.
//!
//! Secrets stay out: a passkey is named by its first digits and a piece of its hash, so that two records about the same
//! passkey can be put together, and nobody can announce with what is in the file.

use domain::{Passkey, TorrentId, UserId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use sha2::{Digest, Sha256};

use super::line::hex;

/// How a change ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It is done.
    Ok,
    /// It was tried and did not happen, or not wholly; the details have the `reason`.
    Failed,
}

impl Outcome {
    /// As it stands in the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Failed => "failed",
        }
    }
}

/// What a change is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// What kind of thing: `user`, `passkey`, `torrent` and the like.
    pub kind: &'static str,
    /// Which of them.
    pub id: String,
}

impl Subject {
    /// Something of a kind that has no function of its own here.
    pub fn new(kind: &'static str, id: impl ToString) -> Self {
        Subject { kind, id: id.to_string() }
    }

    /// A user; none for one whose number is not known yet.
    pub fn user(id: Option<UserId>) -> Self {
        Subject::new("user", id.map(|id| id.to_string()).unwrap_or_default())
    }

    /// A torrent; none for one whose number is not known yet.
    pub fn torrent(id: Option<TorrentId>) -> Self {
        Subject::new("torrent", id.map(|id| id.to_string()).unwrap_or_default())
    }

    /// A passkey, which cannot be told from what is recorded.
    pub fn passkey(passkey: &Passkey) -> Self {
        Subject::new("passkey", passkey_subject_id(passkey))
    }

    /// The whitelist as a whole.
    pub fn whitelist() -> Self {
        Subject::new("whitelist", "all")
    }

    /// An API key.
    pub fn key(id: impl ToString) -> Self {
        Subject::new("key", id)
    }
}

/// A passkey's name in the trail: its first four digits, and the first twelve of its SHA-256.
///
/// Twelve digits tell millions of passkeys apart. Whoever guesses one can check the guess; with 32 digits to guess that
/// helps nobody.
pub fn passkey_subject_id(passkey: &Passkey) -> String {
    let text = passkey.to_string();
    let digest = hex(&Sha256::digest(text.as_bytes()));
    format!("{}…{}", &text[..4], &digest[..12])
}

/// Whoever runs a command, by the name that the system knows them by.
pub fn actor_of_command(system_user: &str) -> String {
    format!("cli:{system_user}")
}

/// Whoever calls the API, by the id of their key.
pub fn actor_of_key(key_id: &str) -> String {
    format!("key:{key_id}")
}

/// One change, to be recorded. When it was, and its place in the chain, come from the trail.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// What was done, as `subject.verb`: `user.add`. `audit.` belongs to the trail itself.
    pub action: &'static str,
    /// Who did it.
    pub actor: String,
    /// What it is about.
    pub subject: Subject,
    /// How it ended.
    pub outcome: Outcome,
    /// What else is worth knowing.
    pub details: Map<String, Json>,
}

impl Record {
    /// A change that went well, without details.
    pub fn ok(action: &'static str, actor: impl Into<String>, subject: Subject) -> Self {
        Record { action, actor: actor.into(), subject, outcome: Outcome::Ok, details: Map::new() }
    }

    /// The same with one more detail.
    pub fn with(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// The same about something else: whose number was not known before.
    pub fn about(mut self, subject: Subject) -> Self {
        self.subject = subject;
        self
    }

    /// The same as a change that failed, and why.
    pub fn failed(mut self, reason: impl ToString) -> Self {
        self.outcome = Outcome::Failed;
        self.with("reason", reason.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w7_a_passkey_is_named_without_telling_it() {
        let passkey: Passkey = "0123456789abcdef0123456789abcdef".parse().unwrap();
        let name = passkey_subject_id(&passkey);
        assert_eq!(name, "0123…3eb1bd439947");
        let short: Passkey = "01234567".parse().unwrap();
        assert_ne!(passkey_subject_id(&short), name);
    }
}
