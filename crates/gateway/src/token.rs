//! Connect and room tokens (JWT) that the site signs for its members.
//!
//! # Guarantees
//!
//! - The algorithm follows from the configured key, never from the token: a secret accepts HS256 only, an RSA key
//!   RS256 only, a P-256 key ES256 only. `none`, and a public key used as a secret, are refused.
//! - A token without `exp` is refused, unless the settings allow it.
//! - A room token cannot connect, and a connect token cannot enter a room.
//! - Key files are read again when they change. An unusable file leaves the old keys in place.
//! - Neither tokens nor keys are in any error or log line.
//!
//! # Deliberately absent
//!
//! Fetching keys over the network, and revoking tokens before they expire: the site disconnects a user, or disables
//! them ([`crate::hub::IsDisabled`]). A room token is checked on entry only: a member stays in the room after it expires,
//! until the connection ends.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use domain::clock::Clock;
use domain::{Seconds, UnixTime, UserId};
use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::{error, info, warn};

use crate::hub::Identity;
use crate::settings::TokenSettings;

mod claims;
mod keys;

use claims::Claims;
use keys::{FileState, Keys};

/// Interval of the check for changed key files.
const RELOAD_INTERVAL: Duration = Duration::from_secs(5);
const LEEWAY: Seconds = Seconds(5);

/// Why tokens cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error(
        "no key to check tokens with: set gateway.token_hmac_secret, gateway.token_public_key_file or gateway.token_jwks_file"
    )]
    NoKey,
    /// A file cannot be read.
    #[error("{}: cannot read token keys: {reason}", .path.display())]
    Unreadable { path: PathBuf, reason: std::io::Error },
    /// A file has nothing in it that could be used.
    #[error("{}: {reason}", .path.display())]
    Unusable { path: PathBuf, reason: &'static str },
}

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// Expired; the client may refresh it.
    #[error("the token has expired")]
    Expired,
    /// Invalid; the reason is not disclosed.
    #[error("the token is not valid")]
    Invalid,
}

pub struct Tokens {
    settings: TokenSettings,
    clock: Arc<dyn Clock>,
    keys: ArcSwap<Keys>,
    /// State of the files when they were last read.
    seen: Mutex<Vec<Option<FileState>>>,
    has_warned: AtomicBool,
}

impl Tokens {
    pub fn load(settings: TokenSettings, clock: Arc<dyn Clock>) -> Result<Tokens, TokenError> {
        let seen = file_states(&settings);
        let keys = Keys::read(&settings)?;
        let (keys, seen, has_warned) =
            (ArcSwap::from_pointee(keys), Mutex::new(seen), AtomicBool::new(false));
        Ok(Tokens { settings, clock, keys, seen, has_warned })
    }

    /// Verifies a connect token.
    pub fn identify(&self, token: &str) -> Result<Identity, Rejected> {
        let claims = self.check(token)?;
        if claims.channel.is_some() {
            return Err(Rejected::Invalid);
        }
        let user = claims.user()?;
        Ok(Identity { user, expires_at: claims.expires_at()?, info: claims.info()? })
    }

    /// Verifies a room token.
    pub fn admits(&self, token: &str, user: UserId, channel: &str) -> Result<(), Rejected> {
        let claims = self.check(token)?;
        let is_theirs = claims.user()? == user && claims.channel.as_deref() == Some(channel);
        if is_theirs { Ok(()) } else { Err(Rejected::Invalid) }
    }

    /// Seconds until expiry; never zero, which SDKs reject.
    pub fn seconds_left(&self, expires_at: UnixTime) -> u32 {
        expires_at.since(self.clock.now()).0.max(1)
    }

    /// Checks signature, audience, issuer and times.
    fn check(&self, token: &str) -> Result<Claims, Rejected> {
        let claims = self.keys.load().decode(token)?;
        let now = self.clock.now();
        if claims.not_before()?.is_some_and(|moment| now + LEEWAY < moment) {
            return Err(Rejected::Invalid);
        }
        match claims.expires_at()? {
            Some(moment) if moment + LEEWAY <= now => Err(Rejected::Expired),
            None if !self.settings.allow_without_expiry => {
                self.warn_of_missing_expiry();
                Err(Rejected::Invalid)
            }
            _ => Ok(claims),
        }
    }

    /// Once per process: the token is signed, so the mistake is the site's, and clients do not get the reason.
    fn warn_of_missing_expiry(&self) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            warn!(
                "a token without \"exp\" was refused: let the site set one, or set gateway.allow_tokens_without_expiry"
            );
        }
    }

    /// Checks the files periodically, until stopped.
    pub async fn follow(&self, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                _ = stop.wait_for(|stopped| *stopped) => return,
                () = tokio::time::sleep(RELOAD_INTERVAL) => {
                    self.reload_if_changed();
                }
            }
        }
    }

    /// Reads the files again if they changed. Returns whether there are new keys.
    pub fn reload_if_changed(&self) -> bool {
        let mut seen = self.seen.lock();
        let state = file_states(&self.settings);
        if *seen == state {
            return false;
        }
        *seen = state;
        match Keys::read(&self.settings) {
            Ok(keys) => {
                self.keys.store(Arc::new(keys));
                info!("token keys reloaded");
                true
            }
            Err(reason) => {
                error!(%reason, "cannot use the new token keys; keeping the old ones");
                false
            }
        }
    }
}

fn file_states(settings: &TokenSettings) -> Vec<Option<FileState>> {
    let files = [&settings.public_key_file, &settings.jwks_file];
    files.into_iter().flatten().map(|path: &PathBuf| FileState::of(Path::new(path))).collect()
}
