//! One room: its local and remote members.

use domain::named;
use std::sync::Arc;

use crate::cluster::NodeName;
use domain::UserId;
use hashbrown::HashMap;
use presence::ConnId;

use super::remote_member::RemoteMember;
use super::{Entrant, RoomName};
use crate::hub::user::VisibilityState;
use crate::outbox::Outbox;
use crate::protocol::{ClientInfo, Frame, PresenceStats};

/// Bytes of notices in one message; the rest follows in further messages. SDKs accept a megabyte at least.
const MESSAGE_BYTES_MAX: usize = 256 * 1024;

/// The user and outbox of a connection to notify.
pub(crate) type Recipient = (UserId, Arc<Outbox>);

enum ClientLocation {
    Here(ConnId, Arc<Outbox>),
    Remote(NodeName),
    /// Left; not announced yet.
    Left,
}

/// One connection in a room.
struct Client {
    info: ClientInfo,
    location: ClientLocation,
    /// Its join was announced, and its leave was not yet.
    is_announced: bool,
    /// It was in a reply to `presence` before it was announced.
    is_listed: bool,
}

impl Client {
    fn new(info: ClientInfo, location: ClientLocation) -> Client {
        Client { info, location, is_announced: false, is_listed: false }
    }

    fn is_in(&self) -> bool {
        !matches!(self.location, ClientLocation::Left)
    }

    fn is_at(&self, node: &NodeName) -> bool {
        matches!(&self.location, ClientLocation::Remote(at) if at == node)
    }

    fn outbox(&self) -> Option<&Arc<Outbox>> {
        match &self.location {
            ClientLocation::Here(_, outbox) => Some(outbox),
            ClientLocation::Remote(_) | ClientLocation::Left => None,
        }
    }

    /// What is to be announced, if anything changed since the last announcement.
    fn change(&self, visibility: &VisibilityState) -> Option<Change> {
        match (self.is_announced, self.is_in() && visibility.is_visible_in_rooms()) {
            (false, true) => Some(Change::Join),
            (true, false) => Some(Change::Leave),
            // A client that saw it in `presence` must see it leave; others ignore an unknown connection.
            (false, false) if self.is_listed => Some(Change::Leave),
            _ => None,
        }
    }
}

/// A user in a room.
struct Member {
    user: UserId,
    clients: Vec<Client>,
    /// Visibility of the user as other gateways report it, one for each gateway.
    remote_visibility: Vec<(NodeName, Arc<VisibilityState>)>,
    visibility: Arc<VisibilityState>,
    /// The user is checked at the end of the window.
    is_due: bool,
}

impl Member {
    fn new(user: UserId, visibility: Arc<VisibilityState>) -> Member {
        Member { user, clients: Vec::new(), remote_visibility: Vec::new(), visibility, is_due: false }
    }

    /// Whether other members may see the user.
    fn is_visible(&self) -> bool {
        self.clients_in() > 0 && self.visibility.is_visible_in_rooms()
    }

    /// Local and remote connections.
    fn clients_in(&self) -> usize {
        self.clients.iter().filter(|client| client.is_in()).count()
    }

    fn outboxes(&self) -> impl Iterator<Item = &Arc<Outbox>> {
        self.clients.iter().filter_map(Client::outbox)
    }

    fn is_here(&self) -> bool {
        self.outboxes().next().is_some()
    }

    /// Whether `viewer` sees this connection: it was announced, or will be.
    fn is_seen(&self, client: &Client, viewer: UserId) -> bool {
        let is_known = client.is_announced || client.is_listed;
        if viewer == self.user {
            return is_known || client.is_in();
        }
        (is_known || (client.is_in() && self.visibility.is_visible_in_rooms()))
            && !self.visibility.is_blocked_for(viewer)
    }

    /// A connection is in the room, local or remote. One that left within the window has not left.
    fn put(&mut self, info: ClientInfo, location: ClientLocation) {
        match self.clients.iter_mut().find(|client| client.info.client == info.client) {
            Some(known) => known.location = location,
            None => self.clients.push(Client::new(info, location)),
        }
    }

    /// Removes connections. Announced ones stay until their leave is announced.
    fn take_out(&mut self, is_gone: impl Fn(&Client) -> bool) {
        for client in self.clients.iter_mut().filter(|client| is_gone(client)) {
            client.location = ClientLocation::Left;
        }
        self.clients.retain(|client| client.is_in() || client.is_announced || client.is_listed);
    }

    /// Changes to announce, which count as announced from now on. Joins come before leaves, so that a user who
    /// reconnects stays in the room.
    fn take_changes(&mut self) -> Vec<(Change, ClientInfo)> {
        let mut changes = Vec::new();
        for client in &mut self.clients {
            let Some(change) = client.change(&self.visibility) else { continue };
            (client.is_announced, client.is_listed) = (change == Change::Join, false);
            changes.push((change, client.info.clone()));
        }
        changes.sort_by_key(|(change, _)| *change);
        changes
    }
}

named! {
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    enum Change {
        Join = "join",
        Leave = "leave",
    }
}

/// A join or leave to send to the members that may see the user.
struct RoomNotice {
    user: UserId,
    visibility: Arc<VisibilityState>,
    line: String,
}

pub(super) struct Room {
    name: RoomName,
    members: HashMap<UserId, Member, foldhash::fast::RandomState>,
    /// Known versions of the entries of other gateways.
    known: HashMap<NodeName, u64, foldhash::fast::RandomState>,
    connections: usize,
}

impl Room {
    pub(super) fn new(name: RoomName) -> Room {
        Room { name, members: HashMap::default(), known: HashMap::default(), connections: 0 }
    }

    /// Without local connections the room can be dropped.
    pub(super) fn has_no_local_clients(&self) -> bool {
        self.connections == 0
    }

    /// True if the room must be flushed.
    pub(super) fn enter(&mut self, entrant: Entrant) -> bool {
        let Entrant { info, conn, outbox, visibility } = entrant;
        let user = info.user;
        let member = self.members.entry(user).or_insert_with(|| Member::new(user, visibility.clone()));
        // For a user with a local connection, the local visibility counts.
        if !member.is_here() || member.visibility.epoch < visibility.epoch {
            member.visibility = visibility;
        }
        let before = member.outboxes().count();
        member.put(info, ClientLocation::Here(conn, outbox));
        self.connections += member.outboxes().count() - before;
        mark_due(member)
    }

    /// True if the room must be flushed.
    pub(super) fn leave(&mut self, user: UserId, conn: ConnId) -> bool {
        let Some(member) = self.members.get_mut(&user) else { return false };
        let before = member.outboxes().count();
        member
            .take_out(|client| matches!(&client.location, ClientLocation::Here(known, _) if *known == conn));
        self.connections -= before - member.outboxes().count();
        // No local member is left; the room is dropped at the flush.
        let is_due = mark_due(member) || self.connections == 0;
        match member.remote_visibility.first() {
            Some((_, visibility)) if !member.is_here() => {
                let visibility = visibility.clone();
                self.set_visibility(user, &visibility) || is_due
            }
            _ => is_due,
        }
    }

    /// Applies a newer visibility; true if the room must be flushed. Changes of `never` are sent at once.
    pub(super) fn update_visibility(&mut self, user: UserId, visibility: &Arc<VisibilityState>) -> bool {
        let is_newer =
            self.members.get(&user).is_some_and(|member| member.visibility.epoch < visibility.epoch);
        is_newer && self.set_visibility(user, visibility)
    }

    fn set_visibility(&mut self, user: UserId, visibility: &Arc<VisibilityState>) -> bool {
        let Some(member) = self.members.get_mut(&user) else { return false };
        let before = std::mem::replace(&mut member.visibility, visibility.clone());
        let is_due = mark_due(member);
        if before.privacy.never == visibility.privacy.never {
            return is_due;
        }
        let announced = || member.clients.iter().filter(|client| client.is_announced);
        let frames = |change: Change| -> Vec<Frame> {
            announced().map(|client| Frame::text(&client.info.push(&self.name, change.name()))).collect()
        };
        let (joins, leaves) = (frames(Change::Join), frames(Change::Leave));
        for (viewer, other) in self.members.iter().filter(|(viewer, _)| **viewer != user) {
            let frames = match (before.is_blocked_for(*viewer), visibility.is_blocked_for(*viewer)) {
                (true, false) if visibility.is_visible_in_rooms() => &joins,
                (false, true) => &leaves,
                _ => continue,
            };
            for outbox in other.outboxes() {
                frames.iter().for_each(|frame| outbox.push(frame.clone()));
            }
        }
        is_due
    }

    /// Announces the changes since the last flush, and drops members that left.
    pub(super) fn flush(&mut self) {
        let notices = self.take_notices();
        self.send_notices(&notices);
        for member in self.members.values_mut() {
            member.is_due = false;
            member.take_out(|_| false);
        }
        self.members.retain(|_, member| !member.clients.is_empty());
    }

    /// The connections that `viewer` sees. Each listed connection will be announced when it leaves.
    pub(super) fn presence(&mut self, viewer: UserId) -> Vec<ClientInfo> {
        let mut seen = Vec::new();
        for member in self.members.values_mut() {
            let mut clients = std::mem::take(&mut member.clients);
            for client in clients.iter_mut().filter(|client| member.is_seen(client, viewer)) {
                client.is_listed |= !client.is_announced && member.user != viewer;
                seen.push(client.info.clone());
            }
            member.clients = clients;
        }
        seen
    }

    /// How many `viewer` sees.
    pub(super) fn stats(&self, viewer: UserId) -> PresenceStats {
        let mut stats = PresenceStats::default();
        for member in self.members.values() {
            let seen = member.clients.iter().filter(|client| member.is_seen(client, viewer)).count();
            stats.users += u32::from(seen > 0);
            stats.clients += u32::try_from(seen).unwrap_or(u32::MAX);
        }
        stats
    }

    /// The connections that may see `user`, without the user's own. None if there are more than `max`.
    pub(super) fn recipients_for(&self, user: UserId, max: usize) -> Option<Vec<Recipient>> {
        let Some(member) = self.members.get(&user).filter(|member| member.is_visible()) else {
            return Some(Vec::new());
        };
        let mut recipients: Vec<Recipient> = Vec::new();
        let mut clients = 0;
        for (viewer, other) in &self.members {
            if *viewer == user || member.visibility.is_blocked_for(*viewer) {
                continue;
            }
            clients += other.clients_in();
            if clients > max {
                return None;
            }
            recipients.extend(other.outboxes().map(|outbox| (*viewer, outbox.clone())));
        }
        Some(recipients)
    }

    /// The local connections of a user for other gateways; none if there are none, or the user is not visible.
    pub(super) fn remote_member(&self, user: UserId) -> Option<RemoteMember> {
        let member = self.members.get(&user).filter(|member| member.visibility.is_visible_in_rooms())?;
        let here = member.clients.iter().filter(|client| client.outbox().is_some());
        let clients: Vec<ClientInfo> = here.map(|client| client.info.clone()).collect();
        (!clients.is_empty()).then(|| RemoteMember { clients, visibility: member.visibility.clone() })
    }

    /// Users with local connections.
    pub(super) fn local_users(&self) -> Vec<UserId> {
        let here = self.members.iter().filter(|(_, member)| member.is_here());
        here.map(|(user, _)| *user).collect()
    }

    /// The known version of another gateway's entry.
    pub(super) fn known(&self, node: &NodeName) -> Option<u64> {
        self.known.get(node).copied()
    }

    /// Gateways whose entries are known.
    pub(super) fn nodes(&self) -> Vec<NodeName> {
        self.known.keys().cloned().collect()
    }

    /// Changes at another gateway; true if the room must be flushed.
    pub(super) fn apply_changes(
        &mut self,
        node: &NodeName,
        version: u64,
        changes: Vec<(UserId, Option<RemoteMember>)>,
    ) -> bool {
        self.known.insert(node.clone(), version);
        let mut is_due = false;
        for (user, remote_member) in changes {
            is_due |= self.apply_remote_member(node, user, remote_member);
        }
        is_due
    }

    /// All members at another gateway; true if the room must be flushed.
    pub(super) fn replace(
        &mut self,
        node: &NodeName,
        version: u64,
        remote_members: Vec<(UserId, RemoteMember)>,
    ) -> bool {
        let named: HashMap<UserId, (), foldhash::fast::RandomState> =
            remote_members.iter().map(|(user, _)| (*user, ())).collect();
        let is_theirs = |member: &Member| member.remote_visibility.iter().any(|(known, _)| known == node);
        let gone: Vec<UserId> = self
            .members
            .iter()
            .filter(|(user, member)| is_theirs(member) && !named.contains_key(*user))
            .map(|(user, _)| *user)
            .collect();
        let changes = gone.into_iter().map(|user| (user, None));
        let changes = changes
            .chain(remote_members.into_iter().map(|(user, remote_member)| (user, Some(remote_member))))
            .collect();
        self.apply_changes(node, version, changes)
    }

    /// The gateway is dead, or has no members in the room; true if the room must be flushed.
    pub(super) fn remove_node(&mut self, node: &NodeName) -> bool {
        let is_due = self.replace(node, 0, Vec::new());
        self.known.remove(node);
        is_due
    }

    fn apply_remote_member(
        &mut self,
        node: &NodeName,
        user: UserId,
        remote_member: Option<RemoteMember>,
    ) -> bool {
        let Some(RemoteMember { clients, visibility }) = remote_member else {
            let Some(member) = self.members.get_mut(&user) else { return false };
            member.remote_visibility.retain(|(known, _)| known != node);
            member.take_out(|client| client.is_at(node));
            return mark_due(member);
        };
        let member = self.members.entry(user).or_insert_with(|| Member::new(user, visibility.clone()));
        match member.remote_visibility.iter_mut().find(|(known, _)| known == node) {
            Some((_, before)) => *before = visibility.clone(),
            None => member.remote_visibility.push((node.clone(), visibility.clone())),
        }
        let is_named = |client: &Client| clients.iter().any(|info| info.client == client.info.client);
        member.take_out(|client| client.is_at(node) && !is_named(client));
        for info in clients {
            member.put(info, ClientLocation::Remote(node.clone()));
        }
        let is_due = mark_due(member);
        // For a user with a local connection, the local visibility counts.
        if member.is_here() { is_due } else { self.set_visibility(user, &visibility) || is_due }
    }

    /// Takes the changes to announce, which count as announced from now on.
    fn take_notices(&mut self) -> Vec<RoomNotice> {
        let mut notices = Vec::new();
        for (user, member) in self.members.iter_mut().filter(|(_, member)| member.is_due) {
            let visibility = &member.visibility.clone();
            for (change, info) in member.take_changes() {
                notices.push(RoomNotice {
                    user: *user,
                    visibility: visibility.clone(),
                    line: info.push(&self.name, change.name()),
                });
            }
        }
        notices
    }

    /// Sends notices in as few frames as possible, without those that the recipient may not see.
    fn send_notices(&self, notices: &[RoomNotice]) {
        if notices.is_empty() {
            return;
        }
        let everything = frames(notices.iter());
        let has_exceptions = notices
            .iter()
            .any(|one| !one.visibility.privacy.never.is_empty() || !one.visibility.is_visible_in_rooms());
        for (viewer, member) in &self.members {
            if !member.is_here() {
                continue;
            }
            let may_know = |one: &&RoomNotice| {
                if one.user == *viewer {
                    one.visibility.is_visible_in_rooms()
                } else {
                    !one.visibility.is_blocked_for(*viewer)
                }
            };
            let special = has_exceptions && !notices.iter().all(|one| may_know(&one));
            let special = special.then(|| frames(notices.iter().filter(may_know)));
            let frames = special.as_ref().unwrap_or(&everything);
            for outbox in member.outboxes() {
                frames.iter().for_each(|frame| outbox.push(frame.clone()));
            }
        }
    }
}

/// Schedules a check of the member at the end of the window; false if it is scheduled already, or nothing changed.
fn mark_due(member: &mut Member) -> bool {
    let has_changed = member.clients.iter().any(|client| client.change(&member.visibility).is_some());
    let is_new = !member.is_due && (has_changed || member.clients_in() == 0);
    member.is_due |= is_new;
    is_new
}

/// Messages of many lines, none much longer than SDKs accept.
fn frames<'a>(notices: impl Iterator<Item = &'a RoomNotice>) -> Vec<Frame> {
    let (mut frames, mut text) = (Vec::new(), String::new());
    for one in notices {
        if !text.is_empty() && text.len() + one.line.len() >= MESSAGE_BYTES_MAX {
            frames.push(Frame::text(&text));
            text.clear();
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&one.line);
    }
    if !text.is_empty() {
        frames.push(Frame::text(&text));
    }
    frames
}
