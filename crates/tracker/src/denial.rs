//! Why the pipeline does not accept a request.

use access::{Denied, Refusal};
use domain::Passkey;

use crate::rejection::Rejection;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    Rejected(Rejection),
    /// Unknown passkey: it has to be verified ([`crate::Tracker::verify_passkey`]), then the request is processed
    /// again.
    NeedsVerification(Passkey),
}

impl<R: Into<Rejection>> From<R> for Denial {
    fn from(rejection: R) -> Self {
        Denial::Rejected(rejection.into())
    }
}

impl Denial {
    pub(crate) fn of(denied: Denied, passkey: &Passkey) -> Self {
        match denied {
            Denied::Refused(refusal) => refusal.into(),
            Denied::NotVerified => Denial::NeedsVerification(*passkey),
        }
    }

    /// The rejection after verification was tried: it is tried once per request.
    pub fn into_rejection(self) -> Rejection {
        match self {
            Denial::Rejected(rejection) => rejection,
            Denial::NeedsVerification(_) => Refusal::CannotCheck.into(),
        }
    }
}
