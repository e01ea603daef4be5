//! The JSON of a user in a feed.
//!
//! # Guarantees
//!
//! - What may not be seen is not in the text: without the right to see the status there is only "offline", version 0;
//!   without the right to see the last-seen time there is no `last_seen`.
//! - One change is encoded once for each of the two kinds of watchers, however many there are.
//!
//! # Deliberately absent
//!
//! Frames: an outbox puts these objects into publications.

use std::sync::Arc;

use domain::{UnixTime, UserId};
use presence::{DeviceView, LastKnown, Status, View, Visibility};
use serde::{Serialize, Serializer};
use serde_json::json;

use crate::outbox::FeedUser;

/// A user id, which the feed writes as text: JavaScript's numbers end at 2^53.
#[derive(Clone, Copy, Debug)]
pub struct IdText(pub UserId);

impl Serialize for IdText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

#[derive(Serialize)]
struct UserObject<'a> {
    id: IdText,
    #[serde(rename = "self", skip_serializing_if = "std::ops::Not::not")]
    is_self: bool,
    status: &'static str,
    version: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_seen: Option<u32>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    devices: &'a [DeviceObject<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<u32>,
    seeding: u32,
    leeching: u32,
}

/// A device, as the feed has it.
#[derive(Serialize)]
struct DeviceObject<'a> {
    id: &'a str,
    platform: &'static str,
    state: &'static str,
    status: &'static str,
}

impl<'a> From<&'a DeviceView> for DeviceObject<'a> {
    fn from(device: &'a DeviceView) -> Self {
        DeviceObject {
            id: device.id.as_str(),
            platform: device.platform.name(),
            state: device.app.name(),
            status: device.status.name(),
        }
    }
}

fn encode(view: &View, is_self: bool, sees_last_seen: bool) -> Arc<str> {
    let devices: Vec<DeviceObject<'_>> = view.devices.iter().map(DeviceObject::from).collect();
    let object = UserObject {
        id: IdText(view.user),
        is_self,
        status: view.status.name(),
        version: view.version,
        last_seen: view.last_seen.filter(|_| sees_last_seen).map(|at| at.0),
        devices: &devices,
        text: view.text.as_deref(),
        until: view.until.map(|at| at.0),
        seeding: view.seeding,
        leeching: view.leeching,
    };
    // Numbers, strings and lists of them: always valid JSON.
    serde_json::to_string(&object).unwrap_or_default().into()
}

/// The user, for their own devices.
pub fn own(view: &View) -> FeedUser {
    FeedUser { id: view.user, version: view.version, json: encode(view, true, true) }
}

/// A user that is not visible.
pub fn hidden(user: UserId) -> FeedUser {
    let json = json!({"id": IdText(user), "status": Status::Offline.name(), "version": 0});
    FeedUser { id: user, version: 0, json: json.to_string().into() }
}

/// The public view of a user, encoded with and without `last_seen`.
///
/// Kept with a watched user: a thousand friends who connect at once share the same text.
#[derive(Clone, Debug)]
pub struct EncodedUser {
    version: u64,
    at: UnixTime,
    is_here: bool,
    with_last_seen: Arc<str>,
    without: Option<Arc<str>>,
}

impl EncodedUser {
    /// While a user is online, `last_seen` advances without a new version; the text may lag by this much.
    const LAST_SEEN_BEHIND_MAX_S: u32 = 30;

    pub fn of(view: &View, now: UnixTime) -> EncodedUser {
        EncodedUser {
            version: view.version,
            at: now,
            is_here: !matches!(view.status, Status::Offline | Status::Pending),
            with_last_seen: encode(view, false, true),
            without: None,
        }
    }

    /// The user as a viewer with this visibility sees them.
    pub fn seen(&mut self, view: &View, visibility: Visibility) -> FeedUser {
        if !visibility.status {
            return hidden(view.user);
        }
        let json = if visibility.last_seen {
            self.with_last_seen.clone()
        } else {
            self.without.get_or_insert_with(|| encode(view, false, false)).clone()
        };
        FeedUser { id: view.user, version: self.version, json }
    }

    /// The cached text, unless it is outdated. Dropped when the view changes.
    pub fn seen_again(&self, user: UserId, visibility: Visibility, now: UnixTime) -> Option<FeedUser> {
        if self.is_here && now.since(self.at).0 >= Self::LAST_SEEN_BEHIND_MAX_S {
            return None;
        }
        let json = if visibility.last_seen { Some(&self.with_last_seen) } else { self.without.as_ref() };
        json.filter(|_| visibility.status).map(|json| FeedUser {
            id: user,
            version: self.version,
            json: json.clone(),
        })
    }
}

pub fn channel(user: UserId) -> String {
    format!("feed:#{user}")
}

/// The view of an offline user.
pub fn offline_view(user: UserId, last: &LastKnown) -> View {
    View { last_seen: last.last_seen, version: last.public_version, ..View::unknown(user) }
}
