//! What the hub keeps of a user besides the presence table: connections, watchers, visibility.
//!
//! There is one entry for every user that has a connection, or is watched by one.

use std::sync::Arc;

use domain::UserId;
use presence::{Audience, ConnId, Platform, Privacy, Visibility};
use serde_json::value::RawValue;

use crate::feed::EncodedUser;
use crate::outbox::Outbox;
use crate::rooms::RoomName;

#[derive(Default)]
pub(crate) struct UserEntry {
    pub(crate) connections: Vec<Connection>,
    pub(crate) watchers: Watchers,
    /// Set while the user has a connection.
    pub(crate) connected: Option<Box<ConnectedUser>>,
    /// The text last sent to watchers.
    pub(crate) text: Option<Box<EncodedUser>>,
}

/// Friends and visibility of a connected user.
pub(crate) struct ConnectedUser {
    /// Sorted.
    pub(crate) friends: Arc<Vec<UserId>>,
    pub(crate) visibility: Arc<VisibilityState>,
}

/// To which users a user is visible.
#[derive(Debug)]
pub(crate) struct VisibilityState {
    /// Of two, the one with the higher epoch counts.
    pub(crate) epoch: u64,
    pub(crate) is_invisible: bool,
    pub(crate) privacy: Arc<Privacy>,
}

impl VisibilityState {
    /// Whether other members of a room may see this user.
    ///
    /// Members of a room see each other, friends or not; except invisible users, and those without an audience for their
    /// status.
    pub(crate) fn is_visible_in_rooms(&self) -> bool {
        !self.is_invisible && self.privacy.status != Audience::Nobody
    }

    /// Whether `viewer` is on the user's `never` list.
    pub(crate) fn is_blocked_for(&self, viewer: UserId) -> bool {
        self.privacy.never.binary_search(&viewer).is_ok()
    }
}

pub(crate) struct Connection {
    pub(crate) conn: ConnId,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) details: Box<ConnectionDetails>,
}

/// Rarely used fields of a connection.
#[derive(Default)]
pub(crate) struct ConnectionDetails {
    /// Its name on the wire, as a number.
    pub(crate) client: u128,
    pub(crate) platform: Platform,
    /// The claim `info` of the token.
    pub(crate) info: Option<Arc<RawValue>>,
    /// Tracked users, sorted.
    pub(crate) tracked: Vec<UserId>,
    pub(crate) rooms: Vec<RoomName>,
}

/// The connections that receive the changes of a user, in the order of their numbers.
#[derive(Default)]
pub(crate) struct Watchers(Vec<Watcher>);

/// A connection that receives the changes of a user.
#[derive(Clone)]
pub(crate) struct Watcher {
    pub(crate) conn: ConnId,
    pub(crate) viewer: UserId,
    pub(crate) outbox: Arc<Outbox>,
    /// Why it watches: as a friend, because it tracks, or both.
    pub(crate) is_friend: bool,
    pub(crate) is_tracker: bool,
    pub(crate) visibility: Visibility,
}

impl UserEntry {
    pub(crate) fn connection(&self, conn: ConnId) -> Option<&Connection> {
        self.connections.iter().find(|connection| connection.conn == conn)
    }

    pub(crate) fn connection_mut(&mut self, conn: ConnId) -> Option<&mut Connection> {
        self.connections.iter_mut().find(|connection| connection.conn == conn)
    }

    pub(crate) fn add_connection(&mut self, connection: Connection) {
        // Most users have one.
        self.connections.reserve_exact(1);
        self.connections.push(connection);
    }

    pub(crate) fn remove_connection(&mut self, conn: ConnId) -> Option<Connection> {
        let place = self.connections.iter().position(|connection| connection.conn == conn)?;
        Some(self.connections.swap_remove(place))
    }

    pub(crate) fn is_friend(&self, other: UserId) -> bool {
        self.connected.as_ref().is_some_and(|connected| connected.friends.binary_search(&other).is_ok())
    }

    /// Without connections and watchers.
    pub(crate) fn is_idle(&self) -> bool {
        self.connections.is_empty() && self.watchers.is_empty()
    }

    /// Without watchers, no text is kept.
    pub(crate) fn remove_watcher(&mut self, conn: ConnId) -> bool {
        let is_removed = self.watchers.remove(conn);
        if self.watchers.is_empty() {
            self.text = None;
        }
        is_removed
    }
}

impl Watchers {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Watcher> {
        self.0.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Watcher> {
        self.0.iter_mut()
    }

    pub(crate) fn get(&self, conn: ConnId) -> Option<&Watcher> {
        self.0.get(self.place(conn).ok()?)
    }

    /// In the place of the same connection's, if there is one.
    pub(crate) fn put(&mut self, watcher: Watcher) {
        match self.place(watcher.conn) {
            Ok(place) => self.0[place] = watcher,
            Err(place) => {
                if self.0.len() == self.0.capacity() {
                    // Grows by a quarter instead of doubling: there is one watcher for each friend of each
                    // connection.
                    self.0.reserve_exact((self.0.len() / 4).max(1));
                }
                self.0.insert(place, watcher);
            }
        }
    }

    fn remove(&mut self, conn: ConnId) -> bool {
        let Ok(place) = self.place(conn) else { return false };
        self.0.remove(place);
        if self.0.is_empty() {
            self.0 = Vec::new();
        }
        true
    }

    fn place(&self, conn: ConnId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&conn.0, |watcher| watcher.conn.0)
    }
}

/// The name of a connection on the wire.
pub(crate) fn client_name(client: u128) -> String {
    format!("{client:032x}")
}
