//! The request target: route, passkey, query.

use domain::{Passkey, percent};

use super::error::QueryError;
use super::query::pairs;
use super::scan::segment_end;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    Announce,
    Scrape,
}

impl Route {
    fn from_segment(segment: &[u8]) -> Option<Self> {
        match segment {
            b"announce" => Some(Route::Announce),
            b"scrape" => Some(Route::Scrape),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Target<'a> {
    pub route: Route,
    /// The path segment of the passkey, not decoded and not checked. See [`Target::path_passkey`].
    pub passkey: Option<&'a [u8]>,
    /// The part after the first `?`.
    pub query: &'a [u8],
}

impl Target<'_> {
    /// Decoded, in lower case.
    #[inline]
    pub fn path_passkey(&self) -> Result<Option<Passkey>, QueryError> {
        match self.passkey {
            Some(text) => decode_passkey(text).map(Some),
            None => Ok(None),
        }
    }

    /// The passkey in the path or else in the query, without parsing the rest of the query.
    pub fn any_passkey(&self) -> Result<Option<Passkey>, QueryError> {
        if self.passkey.is_some() {
            return self.path_passkey();
        }
        pairs(self.query)
            .find(|(name, _)| *name == b"passkey")
            .map(|(_, value)| decode_passkey(value))
            .transpose()
    }
}

impl std::fmt::Debug for Target<'_> {
    /// Hides the passkey and the query: both contain secrets, and targets are logged.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("route", &self.route).finish_non_exhaustive()
    }
}

/// Parses a target in origin form (`/announce?…`) or absolute form (`http://host/announce?…`).
///
/// The paths are `/announce`, `/<passkey>/announce` and `/announce/<passkey>`, and the same for `scrape`.
pub fn parse_target(target: &[u8]) -> Result<Target<'_>, QueryError> {
    let local = if target.first() == Some(&b'/') { target } else { strip_authority(target)? };
    split_path(local).ok_or(QueryError::UnknownPath)
}

/// An empty segment is not a passkey: `//announce` results from concatenated URLs.
fn split_path(local: &[u8]) -> Option<Target<'_>> {
    let (first, behind) = split_segment(local.strip_prefix(b"/")?);
    let (route, passkey, behind) = match behind {
        // As nearly all clients announce.
        _ if let Some(query) = behind.strip_prefix(b"/announce?")
            && !first.is_empty() =>
        {
            return Some(Target { route: Route::Announce, passkey: Some(first), query });
        }
        [b'/', segment @ ..] => {
            let (second, behind) = split_segment(segment);
            match Route::from_segment(second) {
                Some(route) => (route, first, behind),
                None => (Route::from_segment(first)?, second, behind),
            }
        }
        _ => (Route::from_segment(first)?, &[][..], behind),
    };
    let query = match behind {
        [] => behind,
        [b'?', query @ ..] => query,
        _ => return None,
    };
    Some(Target { route, passkey: Some(passkey).filter(|passkey| !passkey.is_empty()), query })
}

fn split_segment(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(segment_end(text))
}

/// Removes `http://host` from an absolute-form target.
#[cold]
fn strip_authority(target: &[u8]) -> Result<&[u8], QueryError> {
    let separator = target.iter().position(|byte| *byte == b':').ok_or(QueryError::UnknownPath)?;
    let (scheme, rest) = target.split_at(separator);
    if !scheme.eq_ignore_ascii_case(b"http") && !scheme.eq_ignore_ascii_case(b"https") {
        return Err(QueryError::UnknownPath);
    }
    let authority = rest.strip_prefix(b"://").ok_or(QueryError::UnknownPath)?;
    let end = authority.iter().position(|byte| matches!(byte, b'/' | b'?')).ok_or(QueryError::UnknownPath)?;
    Ok(&authority[end..])
}

/// The passkey in a path segment or query value.
#[inline]
pub(super) fn decode_passkey(text: &[u8]) -> Result<Passkey, QueryError> {
    // No client escapes digits.
    if let Ok(passkey) = Passkey::from_ascii(text) {
        return Ok(passkey);
    }
    decode_escaped_passkey(text)
}

#[cold]
fn decode_escaped_passkey(text: &[u8]) -> Result<Passkey, QueryError> {
    let mut buffer = [0; Passkey::MAX_DIGITS];
    let digits = percent::decode(text, &mut buffer).map_err(|_| QueryError::NotAPasskey)?;
    Passkey::from_ascii(digits).map_err(|_| QueryError::NotAPasskey)
}
