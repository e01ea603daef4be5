//! The API, `/api/v1`: one file per resource.
//!
//! Changes go through [`recorded`], which writes them to the audit trail before they are acknowledged.

use ::friends::FriendsError;
use access::AccessError;
use admin::AdminError;
use admin::audit::{Record, Subject, actor_of_key};
use admin::keys::Authenticated;
use ledger::LedgerError;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::Routes;
use crate::problem::Problem;
use crate::site::Site;

mod audit;
mod clients;
mod dead_letters;
mod figures;
mod friends;
mod journal;
mod keys;
mod me;
mod multipliers;
mod overview;
mod ports;
mod presence;
mod risks;
mod staff;
mod stats;
mod swarms;
mod torrents;
mod torrents_by_id;
mod users;
mod whitelist;

/// Routes for keys with `read`.
pub(crate) fn read_routes() -> Routes {
    [
        users::read_routes(),
        friends::read_routes(),
        torrents::read_routes(),
        swarms::read_routes(),
        clients::read_routes(),
        ports::read_routes(),
        whitelist::read_routes(),
        multipliers::read_routes(),
        journal::read_routes(),
        dead_letters::read_routes(),
        risks::read_routes(),
        staff::read_routes(),
        stats::read_routes(),
        overview::read_routes(),
        presence::read_routes(),
    ]
    .into_iter()
    .fold(Routes::new(), Routes::merge)
}

/// Read-only routes for keys with `admin`.
pub(crate) fn admin_read_routes() -> Routes {
    audit::read_routes().merge(keys::read_routes())
}

/// Routes for keys with `admin`.
pub(crate) fn write_routes() -> Routes {
    [
        users::write_routes(),
        friends::write_routes(),
        torrents::write_routes(),
        clients::write_routes(),
        ports::write_routes(),
        whitelist::write_routes(),
        multipliers::write_routes(),
        journal::write_routes(),
        dead_letters::write_routes(),
        presence::write_routes(),
        keys::write_routes(),
    ]
    .into_iter()
    .fold(Routes::new(), Routes::merge)
}

/// Routes for keys with `admin` that stream their body.
pub(crate) fn upload_routes() -> Routes {
    whitelist::upload_routes().merge(torrents::upload_routes())
}

/// Routes for members, with a presence token.
pub(crate) fn user_routes() -> Routes {
    presence::heartbeat_routes().merge(me::routes())
}

pub(crate) use journal::behind_s;
pub(crate) use me::HitAndRunCounts;
pub(crate) use presence::{PresenceCount, gateway_of};

/// Paths of [`user_routes`].
pub(crate) const USER_PATHS: [&str; 2] = [me::PATH, presence::HEARTBEAT_PATH];

/// Maximum number of journal entries that one request scans.
pub(crate) const SCANNED_MAX: usize = 20_000;

/// A page of a collection.
#[derive(Serialize, ToSchema)]
pub(crate) struct Page<T> {
    pub items: Vec<T>,
    /// `cursor` of the next page; null after the last page.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// A collection without paging.
    pub(crate) fn whole(items: Vec<T>) -> Page<T> {
        Page { items, next: None }
    }

    /// A page of up to `limit` items. The caller reads `limit + 1`: the extra one shows that there is a next page.
    pub(crate) fn of<F>(
        mut found: Vec<F>,
        limit: usize,
        cursor: impl Fn(&F) -> String,
        show: impl Fn(&F) -> T,
    ) -> Page<T> {
        let is_more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| is_more).map(cursor);
        Page { items: found.iter().map(show).collect(), next }
    }
}

/// Makes a change and records it, whether it succeeds or not. It is acknowledged only after it is recorded.
pub(crate) async fn recorded<T, E: Into<Problem>>(
    site: &Site,
    caller: &Authenticated,
    change: Change,
    operation: impl Future<Output = Result<T, E>>,
) -> Result<T, Problem> {
    recorded_with(site, caller, change, operation, |record, _| record).await
}

/// As [`recorded`]; `extend` adds details that are known only after the change.
pub(crate) async fn recorded_with<T, E: Into<Problem>>(
    site: &Site,
    caller: &Authenticated,
    change: Change,
    operation: impl Future<Output = Result<T, E>>,
    extend: impl FnOnce(Record, &T) -> Record,
) -> Result<T, Problem> {
    let audit = &site.parts.audit;
    let unrecorded = |error| Problem::unavailable("the audit trail", &error);
    // If the trail cannot be written, the change is not made.
    audit.check().await.map_err(unrecorded)?;
    let record = Record::ok(change.action, actor_of_key(caller.key_id.as_str()), change.subject);
    let record = change.details.into_iter().fold(record, |record, (name, value)| record.with(name, value));
    match operation.await.map_err(Into::into) {
        Ok(done) => {
            let written = audit.record(extend(record, &done)).await;
            written.map_err(|error| Problem::change_not_recorded(&error))?;
            Ok(done)
        }
        Err(problem) => {
            let recorded = audit.record(record.failed(problem.detail())).await;
            recorded.map_err(unrecorded)?;
            Err(problem)
        }
    }
}

/// A change, as the audit trail records it.
pub(crate) struct Change {
    pub action: &'static str,
    pub subject: Subject,
    pub details: Vec<(&'static str, serde_json::Value)>,
}

impl Change {
    pub(crate) fn new(action: &'static str, subject: Subject) -> Change {
        Change { action, subject, details: Vec::new() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<serde_json::Value>) -> Change {
        self.details.push((name, value.into()));
        self
    }
}

impl From<AccessError> for Problem {
    fn from(error: AccessError) -> Problem {
        match &error {
            AccessError::UnknownUser(_) => Problem::not_found("unknown_user", error.to_string()),
            AccessError::UnknownTorrent(_) => Problem::not_found("unknown_torrent", error.to_string()),
            AccessError::UnknownClient(_) => Problem::not_found("unknown_client", error.to_string()),
            AccessError::PortsNotBanned(_) => Problem::not_found("ports_not_banned", error.to_string()),
            AccessError::NoNextId
            | AccessError::UserIdTaken(_)
            | AccessError::TorrentIdTaken(_)
            | AccessError::PasskeyTaken { .. }
            | AccessError::InfoHashTaken { .. } => Problem::conflict("already_exists", error.to_string()),
            AccessError::TooManyBytes(_)
            | AccessError::List(_)
            | AccessError::EmptyRefresh
            | AccessError::BadSearch(_) => Problem::bad_request(error.to_string()),
            AccessError::NotRotatable(_)
            | AccessError::UserIdExternal { .. }
            | AccessError::PasskeyExternal { .. } => Problem::conflict("external_user", error.to_string()),
            AccessError::Unpublished(_) => Problem::notification_failed(&error),
            AccessError::RefreshLost => Problem::conflict("refresh_incomplete", error.to_string()),
            AccessError::Redis(_) if error.is_retryable() => Problem::unavailable("Redis", &error),
            _ if error.is_retryable() => Problem::unavailable("the database", &error),
            _ => Problem::internal("the database", &error),
        }
    }
}

impl From<AdminError> for Problem {
    fn from(error: AdminError) -> Problem {
        match &error {
            AdminError::UnknownKey(_) => Problem::not_found("unknown_key", error.to_string()),
            AdminError::KeyName | AdminError::KeyWithoutScope => Problem::bad_request(error.to_string()),
            AdminError::TooManyKeys(_) => Problem::conflict("too_many_keys", error.to_string()),
            _ if error.is_retryable() => Problem::unavailable("the database", &error),
            _ => Problem::internal("the database", &error),
        }
    }
}

impl From<LedgerError> for Problem {
    fn from(error: LedgerError) -> Problem {
        match &error {
            LedgerError::EndsBeforeItStarts | LedgerError::NoteTooLong { .. } => {
                Problem::bad_request(error.to_string())
            }
            _ if error.is_retryable() => Problem::unavailable("the database", &error),
            _ => Problem::internal("the accounts", &error),
        }
    }
}

impl From<FriendsError> for Problem {
    fn from(error: FriendsError) -> Problem {
        match &error {
            FriendsError::OwnFriend(_) => Problem::conflict("self_friendship", error.to_string()),
            FriendsError::TooManyFriends { .. } => Problem::conflict("too_many_friends", error.to_string()),
            FriendsError::TooManyNever { .. } => Problem::bad_request(error.to_string()),
            _ if error.is_retryable() => Problem::unavailable("the database", &error),
            _ => Problem::internal("the database of friends", &error),
        }
    }
}

impl From<views::ViewsError> for Problem {
    fn from(error: views::ViewsError) -> Problem {
        match error.is_retryable() {
            true => Problem::unavailable("the store of the activity lists", &error),
            false => Problem::internal("the activity lists", &error),
        }
    }
}

impl From<gateway::hub::HubError> for Problem {
    fn from(error: gateway::hub::HubError) -> Problem {
        match &error {
            gateway::hub::HubError::Refused(refused) => {
                Problem::conflict("too_many_devices", refused.to_string())
            }
            gateway::hub::HubError::Disabled => Problem::user_disabled(),
            _ => Problem::unavailable("presence", &error),
        }
    }
}

impl From<::journal::JournalError> for Problem {
    fn from(error: ::journal::JournalError) -> Problem {
        match error.is_retryable() {
            true => Problem::unavailable("the journal", &error),
            false => Problem::internal("the journal", &error),
        }
    }
}
