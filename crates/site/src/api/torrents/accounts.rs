//! Accounts on a torrent.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use domain::{UnixTime, UserId};
use ledger::{Account, AccountKey};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::find;
use crate::api::Page;
use crate::api::figures::FiguresJson;
use crate::app::Routes;
use crate::extract::{PageCursor, PageParams, PathParams, QueryParams};
use crate::problem::Problem;
use crate::site::Site;

pub(super) fn routes() -> Routes {
    Routes::new().routes(routes!(accounts))
}

/// A user's account on a torrent.
#[derive(Serialize, ToSchema)]
struct TorrentAccount {
    user: u64,
    /// `left` of the latest announce; null if the client did not send it.
    #[schema(pattern = "^[0-9]+$")]
    left: Option<String>,
    /// Whether the user seeds the torrent now.
    seeding: bool,
    /// Whether the user leeches the torrent now.
    leeching: bool,
    /// Time of the first completion.
    completed_at: Option<u32>,
    /// Client of the latest announce, such as `-TR3000-`.
    client: String,
    figures: FiguresJson,
}

impl TorrentAccount {
    fn of((key, account): &(AccountKey, Account)) -> TorrentAccount {
        TorrentAccount {
            user: key.user.get(),
            left: account.left.map(|left| left.to_string()),
            seeding: account.is_seeding(),
            leeching: account.is_leeching(),
            completed_at: account.completed_at.map(|at| at.0),
            client: account.client(),
            figures: FiguresJson::of(&account.figures),
        }
    }
}

/// Time of the last announce and user of the last account on a page.
#[derive(Clone, Copy)]
struct AccountCursor(UnixTime, UserId);

impl PageCursor for AccountCursor {
    const PATTERN: &'static str = "^[0-9]{1,10}-[1-9][0-9]{0,18}$";

    fn parse(text: &str) -> Option<AccountCursor> {
        let (at, user) = text.split_once('-')?;
        let is_decimal = (1..=10).contains(&at.len()) && at.bytes().all(|byte| byte.is_ascii_digit());
        // Times beyond 32 bits count as the latest.
        let at = is_decimal.then(|| at.parse().unwrap_or(u32::MAX))?;
        Some(AccountCursor(UnixTime(at), <UserId as PageCursor>::parse(user)?))
    }
}

/// List the accounts on a torrent
///
/// Latest announce first. Every announce moves an account to the front, so an account that announces while pages are read
/// may be missing from the following pages; read the first page again to find it.
#[utoipa::path(
    get, path = "/api/v1/torrents/{id}/accounts", tag = "torrents",
    params(
        ("id" = String, Path, description = "Torrent id or infohash", pattern = "^([1-9][0-9]{0,18}|[0-9a-fA-F]{40})$"),
        PageParams<AccountCursor>,
    ),
    responses(
        (status = 200, description = "A page, latest announce first", body = Page<TorrentAccount>),
    )
)]
async fn accounts(
    State(site): State<Arc<Site>>,
    PathParams(id): PathParams<String>,
    QueryParams(params): QueryParams<PageParams<AccountCursor>>,
) -> Result<Json<Page<TorrentAccount>>, Problem> {
    let (limit, after) = (params.limit()?, params.cursor()?);
    let torrent = find(&site, &id).await?;
    let after = after.map(|AccountCursor(at, user)| (at, user));
    let page = site.parts.ledger.accounts_on(torrent.id, after, limit).await?;
    Ok(Json(Page {
        items: page.accounts.iter().map(TorrentAccount::of).collect(),
        next: page.next.map(|(at, user)| format!("{at}-{user}")),
    }))
}
