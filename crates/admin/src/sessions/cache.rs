//! Recently used sessions, so that not every request needs a query, and operators stay signed in while the database fails.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::UnixTime;

use super::Session;
use super::secret::SessionHash;

/// How long a lookup is valid.
const FRESH_MS: u64 = 1000;
/// Far more than there are operators.
const SESSIONS_MAX: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cached {
    /// Looked up less than a second ago, or another request is looking it up now.
    Fresh(Session),
    /// The caller must look it up; other requests use this value meanwhile.
    Stale(Session),
    Missing,
}

#[derive(Debug)]
struct Entry {
    session: Session,
    checked_ms: u64,
}

#[derive(Debug, Default)]
pub(super) struct SessionCache {
    sessions: Mutex<HashMap<SessionHash, Entry, foldhash::fast::RandomState>>,
    /// Number of sessions that ended in this process. A lookup that began before the last one ended is not cached.
    endings: AtomicU64,
    dropped: AtomicU64,
}

impl SessionCache {
    pub(super) fn get(&self, hash: &SessionHash, now_ms: u64) -> Cached {
        let mut sessions = self.lock();
        let Some(entry) = sessions.get_mut(hash) else { return Cached::Missing };
        // `abs_diff`, because the clock may be set back.
        if now_ms.abs_diff(entry.checked_ms) < FRESH_MS {
            return Cached::Fresh(entry.session);
        }
        entry.checked_ms = now_ms;
        Cached::Stale(entry.session)
    }

    /// To be read before a lookup, for [`SessionCache::insert`].
    pub(super) fn endings(&self) -> u64 {
        self.endings.load(Ordering::SeqCst)
    }

    /// Caches the result of a lookup, unless a session ended since it began.
    pub(super) fn insert(&self, hash: SessionHash, session: Session, now_ms: u64, endings: u64) {
        let mut sessions = self.lock();
        if self.endings() != endings {
            return;
        }
        if sessions.len() >= SESSIONS_MAX && !sessions.contains_key(&hash) {
            self.dropped.fetch_add(sessions.len() as u64, Ordering::Relaxed);
            sessions.clear();
        }
        sessions.insert(hash, Entry { session, checked_ms: now_ms });
    }

    /// Removes a session that the database does not have. Not counted as an ending: invented secrets must not keep the
    /// sessions of operators out of the cache.
    pub(super) fn remove(&self, hash: &SessionHash) {
        self.lock().remove(hash);
    }

    pub(super) fn end(&self, hash: &SessionHash) {
        let mut sessions = self.lock();
        self.endings.fetch_add(1, Ordering::SeqCst);
        sessions.remove(hash);
    }

    pub(super) fn remove_expired(&self, now: UnixTime) {
        self.lock().retain(|_, entry| entry.session.expires_at > now);
    }

    /// Sessions dropped because the cache was full.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
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
    fn one_request_per_second_looks_up_a_session() {
        let cache = SessionCache::default();
        let (hash, session) = some_session("01234567");
        assert_eq!(cache.get(&hash, 0), Cached::Missing);
        cache.insert(hash, session, 5_000, cache.endings());
        assert_eq!(cache.get(&hash, 5_999), Cached::Fresh(session));
        assert_eq!(cache.get(&hash, 6_000), Cached::Stale(session));
        assert_eq!(cache.get(&hash, 6_001), Cached::Fresh(session), "a lookup is in progress");
        assert_eq!(cache.get(&hash, 1_000), Cached::Stale(session), "the clock was set back");
    }

    #[test]
    fn a_lookup_from_before_the_end_of_a_session_is_not_cached() {
        let cache = SessionCache::default();
        let (hash, session) = some_session("01234567");
        let endings = cache.endings();
        cache.end(&hash);
        cache.insert(hash, session, 5_000, endings);
        assert_eq!(cache.get(&hash, 5_000), Cached::Missing);
        cache.insert(hash, session, 5_000, cache.endings());
        cache.remove_expired(UnixTime(1_999));
        assert_eq!(cache.get(&hash, 5_000), Cached::Fresh(session));
        cache.remove_expired(UnixTime(2_000));
        assert_eq!(cache.get(&hash, 5_000), Cached::Missing);
    }

    #[test]
    fn an_invented_secret_does_not_keep_others_out_of_the_cache() {
        let cache = SessionCache::default();
        let ((hash, session), (invented, _)) = (some_session("01234567"), some_session("01234567"));
        let endings = cache.endings();
        cache.remove(&invented);
        cache.insert(hash, session, 5_000, endings);
        assert_eq!(cache.get(&hash, 5_000), Cached::Fresh(session));
        cache.remove(&hash);
        assert_eq!(cache.get(&hash, 5_000), Cached::Missing);
    }

    #[test]
    fn the_cache_is_bounded_and_dropped_sessions_are_counted() {
        let cache = SessionCache::default();
        for _ in 0..=SESSIONS_MAX {
            let (hash, session) = some_session("01234567");
            cache.insert(hash, session, 1, 0);
        }
        assert_eq!((cache.lock().len(), cache.dropped()), (1, SESSIONS_MAX as u64));
    }
}
