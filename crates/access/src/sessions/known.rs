//! Sessions that were seen lately, so that not each request asks the database, and so that operators stay signed in while
//! it fails.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::UnixTime;

use super::Session;
use super::secret::SessionHash;

/// How long the word of the database is taken.
const FRESH_MS: u64 = 1000;
/// Sessions in memory, at the most: far more than there are operators.
const KNOWN_MAX: usize = 10_000;

/// What memory says of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// The database said so a moment ago, or is being asked just now by somebody else.
    Lately(Session),
    /// It was there once: the database is to be asked.
    Before(Session),
    /// Nobody here knows it.
    Never,
}

#[derive(Debug)]
struct Entry {
    session: Session,
    checked_ms: u64,
}

/// The memory.
#[derive(Debug, Default)]
pub(super) struct Known {
    sessions: Mutex<HashMap<SessionHash, Entry, foldhash::fast::RandomState>>,
    /// Sessions that ended here. What the database said before one ended is not kept after it.
    endings: AtomicU64,
    forgotten: AtomicU64,
}

impl Known {
    /// What is known. Whoever hears [`Seen::Before`] is to ask; others go on with what is known meanwhile.
    pub(super) fn see(&self, hash: &SessionHash, now_ms: u64) -> Seen {
        let mut sessions = self.lock();
        let Some(entry) = sessions.get_mut(hash) else { return Seen::Never };
        // A clock that was set back makes nothing fresh for ever.
        if now_ms.abs_diff(entry.checked_ms) < FRESH_MS {
            return Seen::Lately(entry.session);
        }
        entry.checked_ms = now_ms;
        Seen::Before(entry.session)
    }

    /// How many have ended here: to be asked before the database is.
    pub(super) fn endings(&self) -> u64 {
        self.endings.load(Ordering::SeqCst)
    }

    /// Keeps what the database said, unless a session ended since it was asked.
    pub(super) fn keep(&self, hash: SessionHash, session: Session, now_ms: u64, endings: u64) {
        let mut sessions = self.lock();
        if self.endings() != endings {
            return;
        }
        if sessions.len() >= KNOWN_MAX && !sessions.contains_key(&hash) {
            self.forgotten.fetch_add(sessions.len() as u64, Ordering::Relaxed);
            sessions.clear();
        }
        sessions.insert(hash, Entry { session, checked_ms: now_ms });
    }

    /// The database does not have it. Nothing ended here, so what others were told meanwhile is kept: whoever makes up
    /// secrets must not keep those of operators out of memory.
    pub(super) fn drop_unknown(&self, hash: &SessionHash) {
        self.lock().remove(hash);
    }

    /// A session is over.
    pub(super) fn forget(&self, hash: &SessionHash) {
        let mut sessions = self.lock();
        self.endings.fetch_add(1, Ordering::SeqCst);
        sessions.remove(hash);
    }

    /// Sessions whose time has come are over.
    pub(super) fn forget_before(&self, now: UnixTime) {
        self.lock().retain(|_, entry| entry.session.expires_at > now);
    }

    /// How many were forgotten for want of room.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionHash, Entry, foldhash::fast::RandomState>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::SessionSecret;
    use super::*;

    fn some_session(key: &str) -> (SessionHash, Session) {
        let session = Session {
            key_id: key.parse().unwrap(),
            created_at: UnixTime(1_000),
            expires_at: UnixTime(2_000),
        };
        (SessionSecret::random().unwrap().hash(), session)
    }

    #[test]
    fn one_request_a_second_asks_and_the_others_go_on() {
        let known = Known::default();
        let (hash, session) = some_session("01234567");
        assert_eq!(known.see(&hash, 0), Seen::Never);
        known.keep(hash, session, 5_000, known.endings());
        assert_eq!(known.see(&hash, 5_999), Seen::Lately(session));
        assert_eq!(known.see(&hash, 6_000), Seen::Before(session));
        assert_eq!(known.see(&hash, 6_001), Seen::Lately(session), "somebody asks already");
        assert_eq!(known.see(&hash, 1_000), Seen::Before(session), "a clock that was set back");
    }

    #[test]
    fn what_was_asked_before_a_session_ended_does_not_bring_it_back() {
        let known = Known::default();
        let (hash, session) = some_session("01234567");
        let endings = known.endings();
        known.forget(&hash);
        known.keep(hash, session, 5_000, endings);
        assert_eq!(known.see(&hash, 5_000), Seen::Never);
        known.keep(hash, session, 5_000, known.endings());
        known.forget_before(UnixTime(1_999));
        assert_eq!(known.see(&hash, 5_000), Seen::Lately(session));
        known.forget_before(UnixTime(2_000));
        assert_eq!(known.see(&hash, 5_000), Seen::Never);
    }

    #[test]
    fn a_secret_that_is_none_keeps_no_other_out_of_memory() {
        let known = Known::default();
        let ((hash, session), (made_up, _)) = (some_session("01234567"), some_session("01234567"));
        let endings = known.endings();
        known.drop_unknown(&made_up);
        known.keep(hash, session, 5_000, endings);
        assert_eq!(known.see(&hash, 5_000), Seen::Lately(session));
        known.drop_unknown(&hash);
        assert_eq!(known.see(&hash, 5_000), Seen::Never);
    }

    #[test]
    fn memory_is_bounded_and_what_it_loses_is_counted() {
        let known = Known::default();
        for _ in 0..=KNOWN_MAX {
            let (hash, session) = some_session("01234567");
            known.keep(hash, session, 1, 0);
        }
        assert_eq!((known.lock().len(), known.forgotten()), (1, KNOWN_MAX as u64));
    }
}
