//! Who somebody is: tokens (JWT) that the site signs for its members.
//!
//! # Guarantees
//!
//! - The algorithm follows from the key that is configured, never from the token: a secret takes HS256 alone, an RSA
//!   key RS256 alone, a key on P-256 ES256 alone. `none`, and a public key used as a secret, are refused.
//! - A token without `exp` is refused, unless the settings allow it.
//! - A token for a room lets nobody connect, and a token to connect opens no room.
//! - Files with keys are read again when they change. One that cannot be used leaves the old keys in place.
//! - Neither tokens nor keys are in any error or log line.
//!
//! # Deliberately absent
//!
//! Fetching keys over the network, and taking tokens back before they expire: the site disconnects a user, or disables
//! them ([`crate::accounts`]). The token for a room is checked on entry only: who is inside when it expires stays until they leave, or until
//! the connection ends, for which the token to connect counts.

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

/// How often files with keys are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Clocks differ a little.
const LEEWAY: Seconds = Seconds(5);

/// Why tokens cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// There is no key at all.
    #[error(
        "no key to check tokens with: set gateway.token_hmac_secret, gateway.token_public_key_file or gateway.token_jwks_file"
    )]
    NoKey,
    /// A file cannot be read.
    #[error("{}: cannot read the keys of tokens: {reason}", .path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: std::io::Error,
    },
    /// A file has nothing in it that could be used.
    #[error("{}: {reason}", .path.display())]
    Unusable {
        /// Which.
        path: PathBuf,
        /// What it should be.
        reason: &'static str,
    },
}

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// It was good once; the client gets itself another.
    #[error("the token has expired")]
    Expired,
    /// It is not good, whatever the reason: forgers learn nothing.
    #[error("the token is not valid")]
    Invalid,
}

/// Checks tokens.
pub struct Tokens {
    settings: TokenSettings,
    clock: Arc<dyn Clock>,
    keys: ArcSwap<Keys>,
    /// What the files were like when they were last read.
    seen: Mutex<Vec<Option<FileState>>>,
    has_warned: AtomicBool,
}

impl Tokens {
    /// Reads the keys.
    pub fn load(settings: TokenSettings, clock: Arc<dyn Clock>) -> Result<Tokens, TokenError> {
        let seen = look_at(&settings);
        let keys = Keys::read(&settings)?;
        let (keys, seen, has_warned) =
            (ArcSwap::from_pointee(keys), Mutex::new(seen), AtomicBool::new(false));
        Ok(Tokens { settings, clock, keys, seen, has_warned })
    }

    /// Who brings this token, to connect or to stay connected.
    pub fn identify(&self, token: &str) -> Result<Identity, Rejected> {
        let claims = self.check(token)?;
        if claims.channel.is_some() {
            return Err(Rejected::Invalid);
        }
        let user = claims.user()?;
        Ok(Identity { user, expires_at: claims.expires_at()?, info: claims.info()? })
    }

    /// Whether this token lets this person into this channel.
    pub fn admits(&self, token: &str, user: UserId, channel: &str) -> Result<(), Rejected> {
        let claims = self.check(token)?;
        let is_theirs = claims.user()? == user && claims.channel.as_deref() == Some(channel);
        if is_theirs { Ok(()) } else { Err(Rejected::Invalid) }
    }

    /// For how many seconds from now a token is good; never zero, which an SDK would take for a mistake.
    pub fn seconds_left(&self, expires_at: UnixTime) -> u32 {
        expires_at.since(self.clock.now()).0.max(1)
    }

    /// What is signed by a key of ours, for us, and now.
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

    /// Once per process: the token is signed, so the mistake is the site's, and clients are not told the reason.
    fn warn_of_missing_expiry(&self) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            warn!(
                "a token without \"exp\" was refused: let the site set one, or set gateway.allow_tokens_without_expiry"
            );
        }
    }

    /// Looks at the files now and then, until `stop` says true.
    pub async fn follow(&self, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                _ = stop.wait_for(|stopped| *stopped) => return,
                () = tokio::time::sleep(LOOK_EVERY) => {
                    self.reload_if_changed();
                }
            }
        }
    }

    /// Reads the files again if they changed. Says whether there are new keys.
    pub fn reload_if_changed(&self) -> bool {
        let mut seen = self.seen.lock();
        let state = look_at(&self.settings);
        if *seen == state {
            return false;
        }
        *seen = state;
        match Keys::read(&self.settings) {
            Ok(keys) => {
                self.keys.store(Arc::new(keys));
                info!("the keys of tokens were read again");
                true
            }
            Err(reason) => {
                error!(%reason, "the new keys of tokens cannot be used; the old ones stay");
                false
            }
        }
    }
}

fn look_at(settings: &TokenSettings) -> Vec<Option<FileState>> {
    let files = [&settings.public_key_file, &settings.jwks_file];
    files.into_iter().flatten().map(|path: &PathBuf| FileState::of(Path::new(path))).collect()
}
