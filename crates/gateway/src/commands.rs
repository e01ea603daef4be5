//! Commands by `rpc`: what people do over their connections.
//!
//! # Guarantees
//!
//! - Arguments are read strictly: an unknown field, a wrong type or a wrong value is refused, and nothing was changed.
//! - Lists are bounded before anything is done with them.
//! - Nothing tells of a person what [`presence::Sight`] does not allow, and nobody can tell who is hidden from who is
//!   offline.
//!
//! # Deliberately absent
//!
//! Rates: the session counts commands before it asks.

mod arguments;

use std::sync::Arc;
use std::time::Duration;

use domain::UserId;
use people::{People, PeopleChange, PeopleError};
use presence::{Declaration, DeviceId, Input, Privacy};
use register::Message;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::between::Errand;
use crate::feed::{self, IdText, PublicText};
use crate::hub::{CHOOSING, CommandError, ConnRef, Hub, raw};
use crate::outbox::FeedUser;
use crate::rooms::{self, Recipient, RoomName};
use crate::typing::{Admitted, Said, Target};
use crate::watch::Request;
use arguments::{
    AppStateArguments, DeviceArguments, PrivacyArguments, StatusArguments, TypingArguments, UsersArguments,
};

/// People asked about in one `status.get`.
const STATUS_USERS_MAX: usize = 1_000;
/// How long a command may wait for the database.
const DATABASE_TIME: Duration = Duration::from_secs(4);

/// Connections that are told of somebody who types in a room. In a larger room nobody is.
pub(crate) const TYPING_RECIPIENTS_MAX: usize = 500;

type Answer = Result<Box<RawValue>, CommandError>;

impl Hub {
    /// Does a command.
    pub(crate) async fn command(&self, conn: ConnRef, method: &str, data: Option<&RawValue>) -> Answer {
        match method {
            "status.set" => self.set_status(conn, arguments::read(data)?),
            "status.clear" => self.clear_status(conn, data),
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

    fn set_status(&self, conn: ConnRef, said: StatusArguments) -> Answer {
        let text_bytes_max = self.settings.load().people.text_bytes_max as usize;
        let declaration = said.declaration(text_bytes_max, self.now().seconds())?;
        self.declare(conn, Some(declaration))
    }

    fn clear_status(&self, conn: ConnRef, data: Option<&RawValue>) -> Answer {
        arguments::none(data)?;
        self.declare(conn, None)
    }

    fn declare(&self, conn: ConnRef, declaration: Option<Declaration>) -> Answer {
        self.tell(conn.user, Input::Declare { conn: conn.conn, declaration });
        done()
    }

    async fn get_status(&self, conn: ConnRef, asked: UsersArguments) -> Answer {
        let users = asked.users(STATUS_USERS_MAX)?;
        let found = in_time(self.people.sights(conn.user, &users)).await?;
        let is_unknown = |user: &UserId| !self.shard(*user).is_current(*user);
        let unknown: Vec<UserId> = users.iter().copied().filter(is_unknown).collect();
        let elsewhere = self.look_elsewhere(&unknown).await;
        let now = self.now();
        let mut seen = Vec::with_capacity(found.len());
        for somebody in found {
            let user = somebody.user;
            let mut shard = self.shard(user);
            seen.push(if user == conn.user {
                shard.own(user)
            } else if !somebody.sight.status || shard.is_current(user) {
                shard.seen(now, user, somebody.sight)
            } else if let Some(view) = elsewhere.get(&user) {
                PublicText::of(view, now.seconds()).seen(view, somebody.sight)
            } else if shard.knows(user) {
                shard.seen(now, user, somebody.sight)
            } else {
                let last = self.outside.keeper.newest(user, somebody.last);
                let view = feed::absent(user, &last);
                PublicText::of(&view, now.seconds()).seen(&view, somebody.sight)
            });
        }
        users_object(&seen)
    }

    fn set_app_state(&self, conn: ConnRef, said: &AppStateArguments) -> Answer {
        let state = said.state()?;
        self.tell(conn.user, Input::App { conn: conn.conn, state });
        done()
    }

    async fn track(&self, conn: ConnRef, asked: UsersArguments) -> Answer {
        let mut users = asked.users(self.settings.load().people.tracked_max as usize)?;
        users.retain(|user| *user != conn.user);
        if users.is_empty() {
            return users_object(&[]);
        }
        let (reply, answer) = oneshot::channel();
        self.ask(Request::Track { conn, users, reply }).await?;
        let seen = answer.await.map_err(|_| CommandError::Internal)??;
        users_object(&seen)
    }

    async fn untrack(&self, conn: ConnRef, asked: UsersArguments) -> Answer {
        // Whoever tracked fewer people can hardly name more.
        let users = asked.users(self.settings.load().people.tracked_max as usize)?;
        let (reply, answer) = oneshot::channel();
        self.ask(Request::Untrack { conn, users, reply }).await?;
        answer.await.map_err(|_| CommandError::Internal)?;
        done()
    }

    fn list_devices(&self, conn: ConnRef, data: Option<&RawValue>) -> Answer {
        arguments::none(data)?;
        let shard = self.shard(conn.user);
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
        let device =
            DeviceId::new(&asked.device).ok_or(CommandError::BadRequest("no such name of a device"))?;
        let is_known = {
            let shard = self.shard(conn.user);
            let is_here = shard.roster.sessions(conn.user).any(|session| session.device == device);
            is_here || shard.roster.own_view(conn.user).devices.iter().any(|known| known.id == device)
        };
        if !is_known {
            return Err(CommandError::NotAvailable);
        }
        // The same device may be at several gateways.
        let message = Message::SignOut { user: conn.user, device: device.clone() };
        self.say(Errand::WhereverIs(conn.user, message));
        self.tell(conn.user, Input::SignOut { device });
        done()
    }

    async fn get_privacy(&self, conn: ConnRef, data: Option<&RawValue>) -> Answer {
        arguments::none(data)?;
        let privacy = in_time(self.people.privacy(conn.user)).await?;
        privacy_object(&privacy)
    }

    async fn set_privacy(&self, conn: ConnRef, chosen: PrivacyArguments) -> Answer {
        let chosen = chosen.check(conn.user, People::NEVER_MAX)?;
        let privacy = {
            // One after the other: of two devices that choose at once, neither undoes what the other chose.
            let _turn = self.choosing[conn.user.get() as usize % CHOOSING].lock().await;
            let mut privacy = in_time(self.people.privacy(conn.user)).await?;
            chosen.onto(&mut privacy);
            in_time(self.people.set_privacy(conn.user, &privacy)).await?;
            privacy
        };
        self.people_changed(vec![PeopleChange::Privacy(conn.user)]).await?;
        privacy_object(&privacy)
    }

    fn type_to(&self, conn: ConnRef, said: TypingArguments) -> Answer {
        let (target, on) = (said.target()?, said.on);
        let may = self.may_type(conn, &target)?;
        if !on {
            self.typing.end(conn.user, &target);
            return done();
        }
        if !may {
            return done();
        }
        let recipients = match &target {
            Target::Person(other) => self.connections_of(*other),
            Target::Room(name) => self
                .rooms
                .who_may_see(name, conn.user, TYPING_RECIPIENTS_MAX)
                .ok_or(CommandError::LimitExceeded)?,
        };
        let (now, lasts) = (self.now(), self.settings.load().people.typing);
        match self.typing.admit(conn.user, &target, now, lasts) {
            Admitted::TooSoon => return done(),
            Admitted::Full => return Err(CommandError::TooManyRequests),
            Admitted::PassOn => {}
        }
        let nodes = match &target {
            Target::Person(_) => Vec::new(),
            Target::Room(name) => self.rooms.nodes_of(name),
        };
        let said = Said { from: conn.user, target: target.clone(), now, lasts, nodes: Some(nodes) };
        self.typing.begin(said, recipients);
        // Whoever hid meanwhile was silenced before there was anything to silence.
        if !self.may_type(conn, &target).unwrap_or(false) {
            self.typing.end(conn.user, &target);
        }
        done()
    }

    /// Whether somebody is to be told. Who hides types to nobody, and is not told so.
    fn may_type(&self, conn: ConnRef, target: &Target) -> Result<bool, CommandError> {
        let shard = self.shard(conn.user);
        let person = shard.people.get(&conn.user).ok_or(CommandError::NotAvailable)?;
        let circle = person.circle.as_ref().ok_or(CommandError::NotAvailable)?;
        let shown = &circle.shown;
        match target {
            Target::Person(other) if person.is_friend(*other) => {
                Ok(!shown.is_invisible && shown.privacy.sight(*other, true).status)
            }
            Target::Room(name) if person.connections.iter().any(|one| one.seat.rooms.contains(name)) => {
                Ok(shown.in_rooms())
            }
            Target::Person(_) | Target::Room(_) => Err(CommandError::PermissionDenied),
        }
    }

    pub(crate) fn connections_of(&self, user: UserId) -> Vec<Recipient> {
        let shard = self.shard(user);
        let connections =
            shard.people.get(&user).map(|person| person.connections.as_slice()).unwrap_or_default();
        connections.iter().map(|connection| (user, Arc::clone(&connection.outbox))).collect()
    }

    /// Applies changes of friendships or privacy that were just made, rather than when they are heard of.
    pub async fn people_changed(&self, changes: Vec<PeopleChange>) -> Result<(), CommandError> {
        let (reply, answer) = oneshot::channel();
        self.ask(Request::Changed { changes, reply: Some(reply) }).await?;
        answer.await.map_err(|_| CommandError::Internal)?
    }

    pub(crate) async fn ask(&self, request: Request) -> Result<(), CommandError> {
        self.requests().send(request).await.map_err(|_| CommandError::Internal)
    }
}

impl TypingArguments {
    fn target(&self) -> Result<Target, CommandError> {
        match (&self.to, &self.room) {
            (Some(to), None) => Ok(Target::Person(to.0)),
            (None, Some(name)) => {
                let channel = format!("room:{name}");
                let name: RoomName = channel.into();
                if rooms::is_room(&name) {
                    Ok(Target::Room(name))
                } else {
                    Err(CommandError::BadRequest("no such room"))
                }
            }
            _ => Err(CommandError::BadRequest("either \"to\" or \"room\"")),
        }
    }
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

/// Waits for the database, but not for ever: commands of the same connection wait behind this one.
async fn in_time<T>(work: impl Future<Output = Result<T, PeopleError>>) -> Result<T, CommandError> {
    match tokio::time::timeout(DATABASE_TIME, work).await {
        Ok(outcome) => outcome.map_err(|error| internal(&error)),
        Err(_) => {
            tracing::warn!(limit_s = DATABASE_TIME.as_secs(), "a command could not be done in time");
            Err(CommandError::Internal)
        }
    }
}

fn internal(error: &PeopleError) -> CommandError {
    match error {
        PeopleError::TooManyNever { .. } => CommandError::LimitExceeded,
        _ => {
            tracing::warn!(%error, "a command could not be done");
            CommandError::Internal
        }
    }
}
