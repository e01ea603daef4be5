//! One room: those who came here, and guests, whom other gateways have in it.

use std::sync::Arc;

use domain::UserId;
use hashbrown::HashMap;
use presence::ConnId;
use register::NodeName;

use super::guest::Guest;
use super::{Entrant, RoomName};
use crate::hub::person::Shown;
use crate::outbox::Outbox;
use crate::protocol::{ClientInfo, Frame, PresenceStats};

/// One message brings news up to this; the rest follows in further messages. SDKs take a megabyte at least.
const MESSAGE_BYTES_MAX: usize = 256 * 1024;

/// A connection that may be told something, and whose it is.
pub(crate) type Recipient = (UserId, Arc<Outbox>);

/// Somebody in a room.
struct Member {
    info: ClientInfo,
    connections: Vec<(ConnId, Arc<Outbox>)>,
    /// What other gateways say of them, each once.
    elsewhere: Vec<(NodeName, Guest)>,
    shown: Arc<Shown>,
    /// Whether others were told that they are here, and not yet that they are gone.
    is_told: bool,
    /// Whether somebody found them in an answer to `presence` before others were told.
    is_listed: bool,
    /// Whether the room will look at them at the end of the window.
    is_due: bool,
}

impl Member {
    /// Whether others are to know of them.
    fn is_to_be_seen(&self) -> bool {
        self.is_in() && self.shown.in_rooms()
    }

    /// Whether they are in the room, here or elsewhere.
    fn is_in(&self) -> bool {
        !self.connections.is_empty() || !self.elsewhere.is_empty()
    }

    /// Their connections, wherever they are.
    fn clients(&self) -> u32 {
        let guests: u32 = self.elsewhere.iter().map(|(_, guest)| guest.clients).sum();
        (self.connections.len() as u32).saturating_add(guests)
    }

    /// Whether `viewer` finds them in the room: who was told of, and whose coming will be.
    fn is_seen_by(&self, viewer: UserId) -> bool {
        let is_in = self.is_told || self.is_listed || self.is_to_be_seen();
        viewer == self.info.user || (is_in && !self.shown.is_never(viewer))
    }

    /// What there is to tell, if anything changed since others were told.
    fn change(&self) -> Option<Change> {
        match (self.is_told, self.is_to_be_seen()) {
            (false, true) => Some(Change::Join),
            (true, false) => Some(Change::Leave),
            // Whoever found them is told that they left; for others it is about somebody they do not know.
            (false, false) if self.is_listed => Some(Change::Leave),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Join,
    Leave,
}

/// What everybody but a few is told of somebody.
struct News {
    user: UserId,
    shown: Arc<Shown>,
    line: String,
}

/// Who is in a room.
pub(super) struct Room {
    name: RoomName,
    members: HashMap<UserId, Member, foldhash::fast::RandomState>,
    /// How far the parts of other gateways are known, by their versions.
    known: HashMap<NodeName, u64, foldhash::fast::RandomState>,
    /// Connections in it here.
    connections: usize,
}

impl Room {
    pub(super) fn new(name: RoomName) -> Room {
        Room { name, members: HashMap::default(), known: HashMap::default(), connections: 0 }
    }

    /// Nobody here is in it: there is nobody to be told of it.
    pub(super) fn is_deserted(&self) -> bool {
        self.connections == 0
    }

    /// A connection comes in; true if there is something to tell.
    pub(super) fn enter(&mut self, entrant: Entrant) -> bool {
        let Entrant { info, conn, outbox, shown } = entrant;
        let member = self.members.entry(info.user).or_insert_with(|| Member {
            info,
            connections: Vec::new(),
            elsewhere: Vec::new(),
            shown: shown.clone(),
            is_told: false,
            is_listed: false,
            is_due: false,
        });
        // What is known here of somebody who is here counts more than what others say.
        if member.connections.is_empty() || member.shown.epoch < shown.epoch {
            member.shown = shown;
        }
        if !member.connections.iter().any(|(known, _)| *known == conn) {
            member.connections.push((conn, outbox));
            self.connections += 1;
        }
        mark(member)
    }

    /// A connection goes; true if there is something to tell.
    pub(super) fn leave(&mut self, user: UserId, conn: ConnId) -> bool {
        let Some(member) = self.members.get_mut(&user) else { return false };
        let before = member.connections.len();
        member.connections.retain(|(known, _)| *known != conn);
        self.connections -= before - member.connections.len();
        // Nobody is left to be told, but the room is to be forgotten.
        let is_due = mark(member) || self.connections == 0;
        match member.elsewhere.first() {
            Some((_, guest)) if member.connections.is_empty() => {
                let shown = guest.shown.clone();
                self.show_as(user, &shown) || is_due
            }
            _ => is_due,
        }
    }

    /// Somebody shows themselves differently; true if there is something to tell at the end of the window. Those who may
    /// never see them, or may again, are told at once.
    pub(super) fn show(&mut self, user: UserId, shown: &Arc<Shown>) -> bool {
        let is_newer = self.members.get(&user).is_some_and(|member| member.shown.epoch < shown.epoch);
        is_newer && self.show_as(user, shown)
    }

    fn show_as(&mut self, user: UserId, shown: &Arc<Shown>) -> bool {
        let Some(member) = self.members.get_mut(&user) else { return false };
        let before = std::mem::replace(&mut member.shown, shown.clone());
        let is_due = mark(member);
        if !member.is_told || before.privacy.never == shown.privacy.never {
            return is_due;
        }
        let joins = Frame::text(&line(&self.name, Change::Join, &member.info));
        let leaves = Frame::text(&line(&self.name, Change::Leave, &member.info));
        for (viewer, other) in self.members.iter().filter(|(viewer, _)| **viewer != user) {
            let frame = match (before.is_never(*viewer), shown.is_never(*viewer)) {
                (true, false) if shown.in_rooms() => &joins,
                (false, true) => &leaves,
                _ => continue,
            };
            for (_, outbox) in &other.connections {
                outbox.push(frame.clone());
            }
        }
        is_due
    }

    /// Tells what changed since the last time, and forgets who is gone.
    pub(super) fn tell(&mut self) {
        let news = self.news();
        for member in self.members.values_mut() {
            member.is_due = false;
        }
        self.spread(&news);
        self.members.retain(|_, member| member.is_told || member.is_in());
    }

    /// Whom `viewer` sees. Nobody is told anything by it, but whoever is seen here will be said to leave.
    pub(super) fn presence(&mut self, viewer: UserId) -> Vec<ClientInfo> {
        let mut seen = Vec::new();
        for member in self.members.values_mut().filter(|member| member.is_seen_by(viewer)) {
            member.is_listed |= !member.is_told && member.info.user != viewer;
            seen.push(member.info.clone());
        }
        seen
    }

    /// How many `viewer` sees.
    pub(super) fn stats(&self, viewer: UserId) -> PresenceStats {
        let mut stats = PresenceStats::default();
        for member in self.members.values().filter(|member| member.is_seen_by(viewer)) {
            stats.users += 1;
            stats.clients += member.clients().max(1);
        }
        stats
    }

    /// The connections that may know of `user`, without their own. None if they are more than `max`.
    pub(super) fn who_may_see(&self, user: UserId, max: usize) -> Option<Vec<Recipient>> {
        let Some(member) = self.members.get(&user).filter(|member| member.is_to_be_seen()) else {
            return Some(Vec::new());
        };
        let mut recipients: Vec<Recipient> = Vec::new();
        let mut clients = 0;
        for (viewer, other) in &self.members {
            if *viewer == user || member.shown.is_never(*viewer) {
                continue;
            }
            clients += other.clients() as usize;
            if clients > max {
                return None;
            }
            recipients.extend(other.connections.iter().map(|(_, outbox)| (*viewer, outbox.clone())));
        }
        Some(recipients)
    }

    /// What this gateway has others know of somebody; none if they are not here, or hide.
    pub(super) fn guest(&self, user: UserId) -> Option<Guest> {
        let member = self.members.get(&user)?;
        let is_here = !member.connections.is_empty() && member.shown.in_rooms();
        is_here.then(|| Guest {
            info: member.info.clone(),
            clients: member.connections.len() as u32,
            shown: member.shown.clone(),
        })
    }

    /// Everybody who is in it here.
    pub(super) fn local_users(&self) -> Vec<UserId> {
        let here = self.members.iter().filter(|(_, member)| !member.connections.is_empty());
        here.map(|(user, _)| *user).collect()
    }

    /// How far the part of another gateway is known.
    pub(super) fn known(&self, node: &NodeName) -> Option<u64> {
        self.known.get(node).copied()
    }

    /// Gateways whose parts are known.
    pub(super) fn nodes(&self) -> Vec<NodeName> {
        self.known.keys().cloned().collect()
    }

    /// What changed at another gateway; true if there is something to tell.
    pub(super) fn hear(
        &mut self,
        node: &NodeName,
        version: u64,
        changes: Vec<(UserId, Option<Guest>)>,
    ) -> bool {
        self.known.insert(node.clone(), version);
        let mut is_due = false;
        for (user, guest) in changes {
            is_due |= self.host(node, user, guest);
        }
        is_due
    }

    /// Everybody whom another gateway has in the room; true if there is something to tell.
    pub(super) fn replace(&mut self, node: &NodeName, version: u64, guests: Vec<(UserId, Guest)>) -> bool {
        let named: HashMap<UserId, (), foldhash::fast::RandomState> =
            guests.iter().map(|(user, _)| (*user, ())).collect();
        let is_theirs = |member: &Member| member.elsewhere.iter().any(|(known, _)| known == node);
        let gone: Vec<UserId> = self
            .members
            .iter()
            .filter(|(user, member)| is_theirs(member) && !named.contains_key(*user))
            .map(|(user, _)| *user)
            .collect();
        let changes = gone.into_iter().map(|user| (user, None));
        let changes = changes.chain(guests.into_iter().map(|(user, guest)| (user, Some(guest)))).collect();
        self.hear(node, version, changes)
    }

    /// Another gateway is gone, or has nobody in the room; true if there is something to tell.
    pub(super) fn lose(&mut self, node: &NodeName) -> bool {
        let is_due = self.replace(node, 0, Vec::new());
        self.known.remove(node);
        is_due
    }

    fn host(&mut self, node: &NodeName, user: UserId, guest: Option<Guest>) -> bool {
        let Some(guest) = guest else {
            let Some(member) = self.members.get_mut(&user) else { return false };
            member.elsewhere.retain(|(known, _)| known != node);
            return mark(member);
        };
        let member = self.members.entry(user).or_insert_with(|| Member {
            info: guest.info.clone(),
            connections: Vec::new(),
            elsewhere: Vec::new(),
            shown: guest.shown.clone(),
            is_told: false,
            is_listed: false,
            is_due: false,
        });
        let shown = guest.shown.clone();
        match member.elsewhere.iter_mut().find(|(known, _)| known == node) {
            Some((_, before)) => *before = guest,
            None => member.elsewhere.push((node.clone(), guest)),
        }
        let is_due = mark(member);
        // Who is here shows themselves as is known here.
        if member.connections.is_empty() { self.show_as(user, &shown) || is_due } else { is_due }
    }

    /// What is to be told, which from now on counts as told.
    fn news(&mut self) -> Vec<News> {
        let mut news = Vec::new();
        for (user, member) in self.members.iter_mut().filter(|(_, member)| member.is_due) {
            let Some(change) = member.change() else { continue };
            member.is_told = change == Change::Join;
            member.is_listed = false;
            let line = line(&self.name, change, &member.info);
            news.push(News { user: *user, shown: member.shown.clone(), line });
        }
        news
    }

    /// Everybody is told everything in as few frames as it fits into, but for what they may not know.
    fn spread(&self, news: &[News]) {
        if news.is_empty() {
            return;
        }
        let everything = frames(news.iter());
        let has_exceptions =
            news.iter().any(|one| !one.shown.privacy.never.is_empty() || !one.shown.in_rooms());
        for (viewer, member) in &self.members {
            if member.connections.is_empty() {
                continue;
            }
            let may_know = |one: &&News| {
                if one.user == *viewer { one.shown.in_rooms() } else { !one.shown.is_never(*viewer) }
            };
            let special = has_exceptions && !news.iter().all(|one| may_know(&one));
            let special = special.then(|| frames(news.iter().filter(may_know)));
            let told = special.as_ref().unwrap_or(&everything);
            for (_, outbox) in &member.connections {
                told.iter().for_each(|frame| outbox.push(frame.clone()));
            }
        }
    }
}

/// Has the room look at a member at the end of the window; false if it will already, or need not.
fn mark(member: &mut Member) -> bool {
    let is_new = !member.is_due && (member.change().is_some() || !member.is_in());
    member.is_due |= is_new;
    is_new
}

/// News as messages of many lines, none of them much longer than SDKs take.
fn frames<'a>(news: impl Iterator<Item = &'a News>) -> Vec<Frame> {
    let (mut frames, mut text) = (Vec::new(), String::new());
    for one in news {
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

fn line(name: &str, change: Change, info: &ClientInfo) -> String {
    let what = match change {
        Change::Join => "join",
        Change::Leave => "leave",
    };
    let channel = serde_json::Value::from(name);
    format!(r#"{{"push":{{"channel":{channel},"{what}":{{"info":{}}}}}}}"#, info.to_json())
}
