//! Why the pipeline does not answer a request with what it asked for.

use access::{Denied, Refusal};
use domain::Passkey;

use crate::rejection::Rejection;

/// Why a request has no answer of the kind it asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// It is refused.
    Rejected(Rejection),
    /// Nobody here knows this passkey: somebody has to be asked ([`crate::Tracker::ask`]), and then the request is taken
    /// again. A client never hears of it.
    Ask(Passkey),
}

impl<R: Into<Rejection>> From<R> for Halt {
    fn from(rejection: R) -> Self {
        Halt::Rejected(rejection.into())
    }
}

impl Halt {
    pub(crate) fn of(denied: Denied, passkey: &Passkey) -> Self {
        match denied {
            Denied::Refused(refusal) => refusal.into(),
            Denied::NotVerified => Halt::Ask(*passkey),
        }
    }

    /// What a client is told whose passkey was asked about already: nobody asks twice for one request.
    pub fn into_rejection(self) -> Rejection {
        match self {
            Halt::Rejected(rejection) => rejection,
            Halt::Ask(_) => Refusal::CannotCheck.into(),
        }
    }
}
