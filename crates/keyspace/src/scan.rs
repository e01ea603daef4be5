//! `SCAN` by pattern over all masters, page by page.
//!
//! # Guarantees
//!
//! - Each page is one bounded `SCAN`; callers may pause between pages.
//! - A key that exists throughout is returned at least once, unless a slot migrates or a master changes meanwhile. So a
//!   key that was not returned may still exist: check it by name.
//! - A broken connection ends the scan with an error: cursors are not valid on another server.
//!
//! # Deliberately absent
//!
//! `KEYS`, which blocks Redis.

use redis::aio::MultiplexedConnection;

use crate::error::RedisError;
use crate::handle::Redis;
use crate::settings::Node;

/// Keys examined per page. Only matching ones are returned, so a page may be empty.
const PAGE: usize = 1000;

/// A running scan.
pub struct Scan {
    redis: Redis,
    pattern: String,
    /// Masters that are left to scan; none before the first page.
    servers: Option<Vec<Node>>,
    current: Option<(Node, MultiplexedConnection, u64)>,
}

impl Redis {
    /// Scans for keys that match a glob pattern such as `t:info_hash:*`.
    pub fn scan(&self, pattern: impl Into<String>) -> Scan {
        Scan { redis: self.clone(), pattern: pattern.into(), servers: None, current: None }
    }
}

impl Scan {
    /// The next page; none at the end. A key may be returned twice; keys that are not UTF-8 are skipped.
    pub async fn next_page(&mut self) -> Result<Option<Vec<String>>, RedisError> {
        if self.servers.is_none() {
            self.servers = Some(self.redis.masters().await?);
        }
        if self.current.is_none() {
            let Some(node) = self.servers.as_mut().and_then(Vec::pop) else { return Ok(None) };
            let timeout = Some(self.redis.settings().response_timeout);
            let connection = self.redis.dialer().dial(&node, timeout).await?;
            self.current = Some((node, connection, 0));
        }
        let Some((node, connection, cursor)) = &mut self.current else { return Ok(None) };
        let mut command = redis::cmd("SCAN");
        command.arg(*cursor).arg("MATCH").arg(&self.pattern).arg("COUNT").arg(PAGE);
        let page: (u64, Vec<Vec<u8>>) = command
            .query_async(connection)
            .await
            .map_err(|error| RedisError::from_send(&node.to_string(), &error))?;
        match page.0 {
            0 => self.current = None,
            next => *cursor = next,
        }
        Ok(Some(page.1.into_iter().filter_map(|key| String::from_utf8(key).ok()).collect()))
    }
}

/// A pattern that matches all keys of these patterns and few others, so that one scan serves several.
pub fn common_pattern(patterns: &[String]) -> String {
    let prefixes: Vec<Vec<char>> = patterns
        .iter()
        .map(|pattern| pattern.chars().take_while(|c| !matches!(c, '*' | '?' | '[' | '\\')).collect())
        .collect();
    let length = prefixes.iter().map(Vec::len).min().unwrap_or(0);
    let mut joined = String::new();
    for position in 0..length {
        let mut characters: Vec<char> = prefixes.iter().map(|prefix| prefix[position]).collect();
        characters.sort_unstable();
        characters.dedup();
        match characters.as_slice() {
            [one] => joined.push(*one),
            several if several.iter().all(|c| c.is_ascii_alphanumeric() || matches!(c, ':' | '_')) => {
                joined.push('[');
                joined.extend(several);
                joined.push(']');
            }
            _ => joined.push('?'),
        }
    }
    joined.push('*');
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_common_pattern_covers_all_patterns() {
        let all = |patterns: &[&str]| {
            common_pattern(&patterns.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(all(&["t:info_hash:*", "t:user:*", "t:whitelist:*"]), "t:[iuw][hns][efi][ort][:_e]*");
        assert_eq!(all(&["a:*"]), "a:*");
        assert_eq!(all(&["a*b", "c\\*d*"]), "[ac]*");
        assert_eq!(all(&["a-", "ab"]), "a?*");
        assert_eq!(all(&["*x", "a"]), "*");
    }
}
