//! One log line for the outage of a server, however many connections of this process to it break, and one for its end.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::error::RedisError;

/// How many links of this process have no connection, by server. A server whose links are all connected is not in it.
static DISCONNECTED: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

/// A link without a connection.
#[derive(Debug)]
pub(crate) struct Outage {
    server: String,
}

impl Outage {
    /// A link to this server could not connect. Logged if it is the first to notice.
    pub(crate) fn begin(server: String, error: &RedisError) -> Outage {
        let is_first = {
            let mut disconnected = DISCONNECTED.lock();
            let links = disconnected.entry(server.clone()).or_default();
            *links += 1;
            *links == 1
        };
        if is_first {
            tracing::warn!(server, %error, "no connection to redis, trying again");
        }
        Outage { server }
    }

    /// The link is connected. Logged if it is the last of them.
    pub(crate) fn end(self, attempts: u32) {
        let (server, is_last) = (self.server.clone(), self.is_last());
        drop(self);
        if is_last {
            tracing::info!(server, attempts, "connected to redis again");
        }
    }

    fn is_last(&self) -> bool {
        DISCONNECTED.lock().get(&self.server) == Some(&1)
    }
}

impl Drop for Outage {
    fn drop(&mut self) {
        let mut disconnected = DISCONNECTED.lock();
        if let Some(links) = disconnected.get_mut(&self.server) {
            *links -= 1;
            if *links == 0 {
                disconnected.remove(&self.server);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_one_server_share_an_outage() {
        let error = RedisError::unavailable("nobody listens");
        let links = || DISCONNECTED.lock().get("a:1").copied();
        let (first, second) =
            (Outage::begin("a:1".to_owned(), &error), Outage::begin("a:1".to_owned(), &error));
        assert_eq!(links(), Some(2));
        assert!(!first.is_last());
        first.end(3);
        assert!(second.is_last());
        drop(second);
        assert_eq!(links(), None, "a link that is dropped is no outage");
    }
}
