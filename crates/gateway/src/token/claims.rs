//! What a token says.

use std::sync::Arc;

use domain::{UnixTime, UserId};
use serde::Deserialize;
use serde_json::Number;
use serde_json::value::RawValue;

use super::Rejected;

/// What others in a room are shown is kept for as long as the connection lasts.
const INFO_BYTES_MAX: usize = 1024;

/// What a token says, as far as it matters here.
#[derive(Deserialize)]
pub(super) struct Claims {
    sub: Option<String>,
    exp: Option<Number>,
    nbf: Option<Number>,
    pub(super) channel: Option<String>,
    info: Option<Box<RawValue>>,
}

impl Claims {
    /// Whose token it is: an id as this server writes it.
    pub(super) fn user(&self) -> Result<UserId, Rejected> {
        let text = self.sub.as_deref().ok_or(Rejected::Invalid)?;
        let user: UserId = text.parse().map_err(|_| Rejected::Invalid)?;
        if user.to_string() == text { Ok(user) } else { Err(Rejected::Invalid) }
    }

    pub(super) fn expires_at(&self) -> Result<Option<UnixTime>, Rejected> {
        self.exp.as_ref().map(moment).transpose()
    }

    pub(super) fn not_before(&self) -> Result<Option<UnixTime>, Rejected> {
        self.nbf.as_ref().map(moment).transpose()
    }

    /// What others in a room are shown.
    pub(super) fn info(self) -> Result<Option<Arc<RawValue>>, Rejected> {
        match self.info {
            Some(info) if info.get().len() > INFO_BYTES_MAX => Err(Rejected::Invalid),
            info => Ok(info.map(Arc::from)),
        }
    }
}

/// A moment as tokens have it: seconds since 1970, from some programs with a fraction.
fn moment(number: &Number) -> Result<UnixTime, Rejected> {
    if let Some(seconds) = number.as_u64() {
        return Ok(UnixTime(u32::try_from(seconds).unwrap_or(u32::MAX)));
    }
    match number.as_f64() {
        Some(seconds) if seconds >= 0.0 => Ok(UnixTime(seconds as u32)),
        _ => Err(Rejected::Invalid),
    }
}
