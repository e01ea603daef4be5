//! RPC commands of clients.
//!
//! # Guarantees
//!
//! - Arguments are parsed strictly: an unknown field, a wrong type or a wrong value is refused, and nothing is
//!   changed.
//! - Lists are bounded before they are processed.
//! - No reply reveals what [`presence::Visibility`] does not allow; an invisible user cannot be distinguished from an
//!   offline one.
//!
//! # Deliberately absent
//!
//! Rate limits: the session applies them before.

mod arguments;
mod rooms;

use std::sync::Arc;

use domain::UserId;
use friends::{FriendStore, FriendsChange};
use presence::{Declaration, DeviceId, Input, Privacy};
use serde_json::json;
use serde_json::value::RawValue;

use crate::cluster::GatewayMessage;
use crate::cluster_sync::ClusterSync;
use crate::feed::{self, EncodedUser, IdText};
use crate::gateway_messages::{MessageSender, OutgoingMessage};
use crate::hub::users::Users;
use crate::hub::{CommandError, ConnRef};
use crate::outbox::FeedUser;
use crate::rooms::{RoomName, is_room};
use crate::typing::{Admission, Target, TypingStarted};
use crate::watch::{WatchRequests, in_time};
use arguments::{
    AppStateArguments, DeviceArguments, PrivacyArguments, StatusArguments, TypingArguments, UsersArguments,
};

/// Users in one `status.get`.
const STATUS_USERS_MAX: usize = 1_000;

/// Locks that serialise changes of one user's privacy settings.
const PRIVACY_LOCKS: usize = 64;

type Answer = Result<Box<RawValue>, CommandError>;

/// Carries out the commands of connected clients.
pub struct Commands {
    users: Arc<Users>,
    friend_store: FriendStore,
    watch: WatchRequests,
    /// None without a cluster.
    sync: Option<Arc<ClusterSync>>,
    /// None without a cluster.
    sender: Option<Arc<MessageSender>>,
    /// Held while a user's privacy settings are read, changed and written.
    privacy_locks: [tokio::sync::Mutex<()>; PRIVACY_LOCKS],
}

impl Commands {
    pub(crate) fn new(
        users: Arc<Users>,
        friend_store: FriendStore,
        watch: WatchRequests,
        (sync, sender): (Option<Arc<ClusterSync>>, Option<Arc<MessageSender>>),
    ) -> Commands {
        let privacy_locks = std::array::from_fn(|_| tokio::sync::Mutex::new(()));
        Commands { users, friend_store, watch, sync, sender, privacy_locks }
    }

    pub async fn rpc(&self, conn: ConnRef, method: &str, data: impl Into<Option<&RawValue>>) -> Answer {
        let data = data.into();
        match method {
            "status.set" => self.set_status(conn, arguments::read(data)?),
            "status.clear" => arguments::none(data).and_then(|()| self.declare(conn, None)),
            "status.get" => self.get_status(conn, arguments::read(data)?).await,
            "app.state" => self.set_app_state(conn, &arguments::read(data)?),
            "typing" => self.type_to(conn, arguments::read(data)?),
            "track" => self.track(conn, arguments::read(data)?).await,
            "untrack" => self.untrack(conn, arguments::read(data)?).await,
            "devices.list" => self.list_devices(conn, data),
            "devices.sign_out" => self.sign_out(conn, &arguments::read(data)?),
            "privacy.get" => self.get_privacy(conn, data).await,
            "privacy.set" => self.set_privacy(conn, arguments::read(data)?).await,
            _ => Err(CommandError::MethodNotFound),
        }
    }

    fn set_status(&self, conn: ConnRef, arguments: StatusArguments) -> Answer {
        let text_bytes_max = self.users.settings.limits.text_bytes_max as usize;
        let declaration = arguments.declaration(text_bytes_max, self.users.now().seconds())?;
        self.declare(conn, Some(declaration))
    }

    fn declare(&self, conn: ConnRef, declaration: Option<Declaration>) -> Answer {
        self.users.apply_input(conn.user, Input::Declare { conn: conn.conn, declaration });
        done()
    }

    async fn get_status(&self, conn: ConnRef, asked: UsersArguments) -> Answer {
        let users = asked.users(STATUS_USERS_MAX)?;
        let found = in_time(self.friend_store.view_users(conn.user, &users)).await?;
        let is_unknown = |user: &UserId| !self.users.shard(*user).is_current(*user);
        let unknown: Vec<UserId> = users.iter().copied().filter(is_unknown).collect();
        let elsewhere = match &self.sync {
            Some(sync) => sync.records.lookup(&unknown).await,
            None => Default::default(),
        };
        let now = self.users.now();
        let mut seen = Vec::with_capacity(found.len());
        for one in found {
            let user = one.user;
            let mut shard = self.users.shard(user);
            seen.push(if user == conn.user {
                shard.own_feed_user(user)
            } else if !one.visibility.status || shard.is_current(user) {
                shard.feed_user_for(now, user, one.visibility)
            } else if let Some(view) = elsewhere.get(&user) {
                EncodedUser::of(view, now.seconds()).seen(view, one.visibility)
            } else if shard.knows(user) {
                shard.feed_user_for(now, user, one.visibility)
            } else {
                let last = self.users.context.writer.newest(user, one.last);
                let view = feed::offline_view(user, &last);
                EncodedUser::of(&view, now.seconds()).seen(&view, one.visibility)
            });
        }
        users_object(&seen)
    }

    fn set_app_state(&self, conn: ConnRef, arguments: &AppStateArguments) -> Answer {
        let state = arguments.state()?;
        self.users.apply_input(conn.user, Input::App { conn: conn.conn, state });
        done()
    }

    async fn track(&self, conn: ConnRef, asked: UsersArguments) -> Answer {
        let mut users = asked.users(self.users.settings.limits.tracked_max as usize)?;
        users.retain(|user| *user != conn.user);
        if users.is_empty() {
            return users_object(&[]);
        }
        users_object(&self.watch.track(conn, users).await?)
    }

    async fn untrack(&self, conn: ConnRef, asked: UsersArguments) -> Answer {
        // A connection cannot track more.
        let users = asked.users(self.users.settings.limits.tracked_max as usize)?;
        self.watch.untrack(conn, users).await?;
        done()
    }

    fn list_devices(&self, conn: ConnRef, data: Option<&RawValue>) -> Answer {
        arguments::none(data)?;
        let shard = self.users.shard(conn.user);
        let mine = shard.roster.sessions(conn.user).find(|session| session.conn == Some(conn.conn));
        let devices: Vec<serde_json::Value> = shard
            .roster
            .own_view(conn.user)
            .devices
            .iter()
            .map(|device| {
                json!({
                    "id": device.id.as_str(),
                    "platform": device.platform.name(),
                    "state": device.app.name(),
                    "status": device.status.name(),
                    "current": mine.as_ref().is_some_and(|session| session.device == device.id),
                })
            })
            .collect();
        raw(json!({"devices": devices}).to_string())
    }

    fn sign_out(&self, conn: ConnRef, asked: &DeviceArguments) -> Answer {
        let device = DeviceId::new(&asked.device).ok_or(CommandError::BadRequest("invalid device id"))?;
        let is_known = {
            let shard = self.users.shard(conn.user);
            let is_here = shard.roster.sessions(conn.user).any(|session| session.device == device);
            is_here || shard.roster.own_view(conn.user).devices.iter().any(|known| known.id == device)
        };
        if !is_known {
            return Err(CommandError::NotAvailable);
        }
        // The same device may be at several gateways.
        if let Some(sender) = &self.sender {
            let message = GatewayMessage::SignOut { user: conn.user, device: device.clone() };
            sender.send(OutgoingMessage::ToUser(conn.user, message));
        }
        self.users.apply_input(conn.user, Input::SignOut { device });
        done()
    }

    async fn get_privacy(&self, conn: ConnRef, data: Option<&RawValue>) -> Answer {
        arguments::none(data)?;
        let privacy = in_time(self.friend_store.privacy(conn.user)).await?;
        privacy_object(&privacy)
    }

    async fn set_privacy(&self, conn: ConnRef, chosen: PrivacyArguments) -> Answer {
        let chosen = chosen.check(conn.user, FriendStore::NEVER_MAX)?;
        let privacy = {
            // Serialised: of two devices that change privacy at once, neither undoes the other's change.
            let _turn = self.privacy_locks[conn.user.get() as usize % PRIVACY_LOCKS].lock().await;
            let mut privacy = in_time(self.friend_store.privacy(conn.user)).await?;
            chosen.apply_to(&mut privacy);
            in_time(self.friend_store.set_privacy(conn.user, &privacy)).await?;
            privacy
        };
        self.watch.changed(vec![FriendsChange::Privacy(conn.user)]).await?;
        privacy_object(&privacy)
    }

    fn type_to(&self, conn: ConnRef, arguments: TypingArguments) -> Answer {
        let (target, on) = (arguments.target()?, arguments.on);
        let may = self.may_type(conn, &target)?;
        if !on {
            self.users.typing.end(conn.user, &target, self.users.now());
            return done();
        }
        if !may {
            return done();
        }
        let recipients =
            self.users.typing_recipients(conn.user, &target).ok_or(CommandError::LimitExceeded)?;
        let (now, lasts) = (self.users.now(), self.users.settings.limits.typing);
        match self.users.typing.admit(conn.user, &target, now, lasts) {
            Admission::TooSoon => return done(),
            Admission::Full => return Err(CommandError::TooManyRequests),
            Admission::PassOn => {}
        }
        let nodes = match &target {
            Target::User(_) => Vec::new(),
            Target::Room(name) => self.users.rooms.nodes_of(name),
        };
        let started =
            TypingStarted { from: conn.user, target: target.clone(), now, lasts, nodes: Some(nodes) };
        self.users.typing.begin(started, recipients);
        // If the user became invisible meanwhile, the typing had not begun when it was ended.
        if !self.may_type(conn, &target).unwrap_or(false) {
            self.users.typing.end(conn.user, &target, self.users.now());
        }
        done()
    }

    /// Whether recipients are notified. The typing of an invisible user is dropped without an error.
    fn may_type(&self, conn: ConnRef, target: &Target) -> Result<bool, CommandError> {
        let shard = self.users.shard(conn.user);
        let entry = shard.users.get(&conn.user).ok_or(CommandError::NotAvailable)?;
        let connected = entry.connected.as_ref().ok_or(CommandError::NotAvailable)?;
        let visibility = &connected.visibility;
        match target {
            Target::User(other) if entry.is_friend(*other) => {
                Ok(!visibility.is_invisible && visibility.privacy.visibility_for(*other, true).status)
            }
            Target::Room(name) if entry.connections.iter().any(|one| one.details.rooms.contains(name)) => {
                Ok(visibility.is_visible_in_rooms())
            }
            Target::User(_) | Target::Room(_) => Err(CommandError::PermissionDenied),
        }
    }
}

impl TypingArguments {
    fn target(&self) -> Result<Target, CommandError> {
        match (&self.to, &self.room) {
            (Some(to), None) => Ok(Target::User(to.0)),
            (None, Some(name)) => {
                let channel = format!("room:{name}");
                let name: RoomName = channel.into();
                if is_room(&name) {
                    Ok(Target::Room(name))
                } else {
                    Err(CommandError::BadRequest("invalid room name"))
                }
            }
            _ => Err(CommandError::BadRequest("give either \"to\" or \"room\"")),
        }
    }
}

fn raw(json: String) -> Answer {
    RawValue::from_string(json).map_err(|_| CommandError::Internal)
}

fn done() -> Answer {
    raw("{}".to_owned())
}

fn users_object(users: &[FeedUser]) -> Answer {
    let all: Vec<&str> = users.iter().map(|user| &*user.json).collect();
    raw(format!(r#"{{"users":[{}]}}"#, all.join(",")))
}

fn privacy_object(privacy: &Privacy) -> Answer {
    let never: Vec<IdText> = privacy.never.iter().map(|user| IdText(*user)).collect();
    let object =
        json!({"status": privacy.status.name(), "last_seen": privacy.last_seen.name(), "never": never});
    raw(object.to_string())
}
