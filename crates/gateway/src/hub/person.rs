//! What the hub keeps of a person beside what `presence` keeps: connections, watchers, and what they may see.
//!
//! There is one for everybody who has a connection or is watched by somebody who has.

use std::sync::Arc;

use domain::UserId;
use presence::{ConnId, Platform, Privacy, Sight, Visibility};
use serde_json::value::RawValue;

use crate::feed::PublicText;
use crate::outbox::Outbox;
use crate::rooms::RoomName;

/// A person with a connection, or watched by somebody who has one.
#[derive(Default)]
pub(crate) struct Person {
    pub(crate) connections: Vec<Connection>,
    /// Sorted by connection.
    watchers: Vec<Watcher>,
    /// Of somebody who has a connection.
    pub(crate) circle: Option<Box<Circle>>,
    /// What watchers were last given.
    pub(crate) text: Option<Box<PublicText>>,
}

/// Whom a person knows, and who may see them.
pub(crate) struct Circle {
    /// Sorted.
    pub(crate) friends: Arc<Vec<UserId>>,
    pub(crate) shown: Arc<Shown>,
}

/// To whom a person shows themselves.
#[derive(Debug)]
pub(crate) struct Shown {
    /// Of two, the one with the higher epoch counts.
    pub(crate) epoch: u64,
    pub(crate) is_invisible: bool,
    pub(crate) privacy: Arc<Privacy>,
}

impl Shown {
    /// Whether anybody else may know that this person is in a room.
    ///
    /// Who enters a room shows themselves to those in it, friends or not; only who hides from everybody does not.
    pub(crate) fn in_rooms(&self) -> bool {
        !self.is_invisible && self.privacy.status != Visibility::Nobody
    }

    /// Whether `viewer` is one of those who never see anything.
    pub(crate) fn is_never(&self, viewer: UserId) -> bool {
        self.privacy.never.binary_search(&viewer).is_ok()
    }
}

/// One connection of a person.
pub(crate) struct Connection {
    pub(crate) conn: ConnId,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) seat: Box<Seat>,
}

/// What is seldom needed of a connection.
#[derive(Default)]
pub(crate) struct Seat {
    /// Its name on the wire, as a number.
    pub(crate) client: u128,
    pub(crate) platform: Platform,
    /// What the token says about the person.
    pub(crate) info: Option<Arc<RawValue>>,
    /// Whom it tracks, sorted.
    pub(crate) tracked: Vec<UserId>,
    pub(crate) rooms: Vec<RoomName>,
}

/// Somebody's connection that is told of a person.
#[derive(Clone)]
pub(crate) struct Watcher {
    pub(crate) conn: ConnId,
    pub(crate) viewer: UserId,
    pub(crate) outbox: Arc<Outbox>,
    /// Why it watches: as a friend, because it tracks, or both.
    pub(crate) is_friend: bool,
    pub(crate) is_tracker: bool,
    pub(crate) sight: Sight,
}

impl Person {
    pub(crate) fn connection(&self, conn: ConnId) -> Option<&Connection> {
        self.connections.iter().find(|connection| connection.conn == conn)
    }

    pub(crate) fn connection_mut(&mut self, conn: ConnId) -> Option<&mut Connection> {
        self.connections.iter_mut().find(|connection| connection.conn == conn)
    }

    pub(crate) fn add_connection(&mut self, connection: Connection) {
        // Most people have one.
        self.connections.reserve_exact(1);
        self.connections.push(connection);
    }

    pub(crate) fn remove_connection(&mut self, conn: ConnId) -> Option<Connection> {
        let place = self.connections.iter().position(|connection| connection.conn == conn)?;
        Some(self.connections.swap_remove(place))
    }

    pub(crate) fn is_friend(&self, other: UserId) -> bool {
        self.circle.as_ref().is_some_and(|circle| circle.friends.binary_search(&other).is_ok())
    }

    /// Nobody is connected to them, and nobody watches them.
    pub(crate) fn is_idle(&self) -> bool {
        self.connections.is_empty() && self.watchers.is_empty()
    }

    pub(crate) fn watchers(&self) -> &[Watcher] {
        &self.watchers
    }

    pub(crate) fn watchers_mut(&mut self) -> &mut [Watcher] {
        &mut self.watchers
    }

    pub(crate) fn watcher(&self, conn: ConnId) -> Option<&Watcher> {
        let place = self.place(conn).ok()?;
        self.watchers.get(place)
    }

    /// Puts a watcher in, or in the place of the same connection's.
    pub(crate) fn put_watcher(&mut self, watcher: Watcher) {
        match self.place(watcher.conn) {
            Ok(place) => self.watchers[place] = watcher,
            Err(place) => {
                if self.watchers.len() == self.watchers.capacity() {
                    // By a quarter rather than twofold: there is one for each friend of everybody here.
                    self.watchers.reserve_exact((self.watchers.len() / 4).max(1));
                }
                self.watchers.insert(place, watcher);
            }
        }
    }

    pub(crate) fn remove_watcher(&mut self, conn: ConnId) -> bool {
        let Ok(place) = self.place(conn) else { return false };
        self.watchers.remove(place);
        if self.watchers.is_empty() {
            self.watchers = Vec::new();
            self.text = None;
        }
        true
    }

    fn place(&self, conn: ConnId) -> Result<usize, usize> {
        self.watchers.binary_search_by_key(&conn.0, |watcher| watcher.conn.0)
    }
}

/// The name of a connection on the wire.
pub(crate) fn client_name(client: u128) -> String {
    format!("{client:032x}")
}
