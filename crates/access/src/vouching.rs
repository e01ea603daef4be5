//! Strangers: passkeys that no user of ours has, for whom the whitelist or the site's verify endpoint may vouch.

/// What becomes of strangers while the verify endpoint fails (W5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnVerifyFailure {
    /// Those who are on the whitelist, or were vouched for before, may announce.
    #[default]
    KnownOnly,
    /// Nobody may announce but users of our own.
    Refuse,
}
