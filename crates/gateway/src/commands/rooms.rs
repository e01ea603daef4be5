//! Commands about rooms. `room` is the whole channel, `room:<name>`.

use super::{Answer, Commands, raw};
use crate::hub::user::{UserEntry, client_name};
use crate::hub::{CommandError, ConnRef};
use crate::protocol::ClientInfo;
use crate::rooms::{Entrant, RoomName, is_room};

impl Commands {
    /// Enters a room. Whether a token is needed was checked before.
    pub async fn subscribe(&self, conn: ConnRef, room: &str) -> Result<(), CommandError> {
        if !is_room(room) {
            return Err(CommandError::BadRequest("a room is \"room:\" and 1 to 64 visible characters"));
        }
        let rooms_max = self.users.settings.limits.rooms_max as usize;
        let name: RoomName = room.into();
        let entrant = {
            let mut shard = self.users.shard(conn.user);
            let entry = shard.users.get_mut(&conn.user).ok_or(CommandError::NotAvailable)?;
            let visibility = entry.connected.as_ref().map(|connected| connected.visibility.clone());
            let connection = entry.connection_mut(conn.conn).ok_or(CommandError::NotAvailable)?;
            let details = &mut connection.details;
            if details.rooms.contains(&name) {
                return Ok(());
            }
            if details.rooms.len() >= rooms_max {
                return Err(CommandError::LimitExceeded);
            }
            details.rooms.push(name.clone());
            let client = client_name(details.client).into();
            let info = ClientInfo { client, user: conn.user, info: details.info.clone() };
            let visibility = visibility.ok_or(CommandError::NotAvailable)?;
            Entrant { info, conn: conn.conn, outbox: connection.outbox.clone(), visibility }
        };
        self.users.rooms.enter(&name, entrant);
        self.sync_room(conn, &name);
        Ok(())
    }

    /// Applies what changed between reading the user and entering the room.
    fn sync_room(&self, conn: ConnRef, name: &RoomName) {
        let (visibility, is_there) = {
            let shard = self.users.shard(conn.user);
            let entry = shard.users.get(&conn.user);
            let connected = entry.and_then(|entry| entry.connected.as_ref());
            (connected.map(|connected| connected.visibility.clone()), room_in(entry, conn, name).is_some())
        };
        if let Some(visibility) = visibility {
            self.users.rooms.update_visibility(name, conn.user, &visibility);
        }
        if !is_there {
            self.users.rooms.leave(name, conn.user, conn.conn);
        }
    }

    /// Leaves a room. Not an error if the connection is not in it.
    pub async fn unsubscribe(&self, conn: ConnRef, room: &str) -> Result<(), CommandError> {
        let left = {
            let mut shard = self.users.shard(conn.user);
            let entry = shard.users.get_mut(&conn.user);
            entry.and_then(|entry| entry.connection_mut(conn.conn)).and_then(|connection| {
                let place = connection.details.rooms.iter().position(|name| **name == *room)?;
                Some(connection.details.rooms.swap_remove(place))
            })
        };
        if let Some(name) = left {
            self.users.rooms.leave(&name, conn.user, conn.conn);
        }
        Ok(())
    }

    /// The result of `presence`. Only for members of the room.
    pub async fn presence(&self, conn: ConnRef, room: &str) -> Answer {
        let name = self.room_of(conn, room)?;
        raw(ClientInfo::presence(&self.users.rooms.presence(&name, conn.user)))
    }

    /// The result of `presence_stats`. Only for members of the room.
    pub async fn presence_stats(&self, conn: ConnRef, room: &str) -> Answer {
        let name = self.room_of(conn, room)?;
        raw(self.users.rooms.stats(&name, conn.user).to_json())
    }

    /// A room that this connection is in.
    fn room_of(&self, conn: ConnRef, room: &str) -> Result<RoomName, CommandError> {
        let shard = self.users.shard(conn.user);
        let name = room_in(shard.users.get(&conn.user), conn, room);
        name.cloned().ok_or(CommandError::PermissionDenied)
    }
}

fn room_in<'a>(entry: Option<&'a UserEntry>, conn: ConnRef, room: &str) -> Option<&'a RoomName> {
    entry?.connection(conn.conn)?.details.rooms.iter().find(|name| ***name == *room)
}
