//! One log line when a server becomes unreachable and one when it returns, for all links of this process.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::error::RedisError;

/// Links of this process without a connection, by server. Servers without such links have no entry.
static DISCONNECTED: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

/// A link without a connection.
#[derive(Debug)]
pub(crate) struct Outage {
    server: String,
}

impl Outage {
    /// Logs if this is the first link to the server that cannot connect.
    pub(crate) fn begin(server: String, error: &RedisError) -> Outage {
        let is_first = {
            let mut disconnected = DISCONNECTED.lock();
            let links = disconnected.entry(server.clone()).or_default();
            *links += 1;
            *links == 1
        };
        if is_first {
            tracing::warn!(server, %error, "redis unreachable; retrying");
        }
        Outage { server }
    }

    /// Logs if this was the last link without a connection.
    pub(crate) fn end(self, attempts: u32) {
        let (server, is_last) = (self.server.clone(), self.is_last());
        drop(self);
        if is_last {
            tracing::info!(server, attempts, "redis reconnected");
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
        let error = RedisError::unavailable("connection refused");
        let links = || DISCONNECTED.lock().get("a:1").copied();
        let (first, second) =
            (Outage::begin("a:1".to_owned(), &error), Outage::begin("a:1".to_owned(), &error));
        assert_eq!(links(), Some(2));
        assert!(!first.is_last());
        first.end(3);
        assert!(second.is_last());
        drop(second);
        assert_eq!(links(), None, "a dropped link ends its outage");
    }
}
