//! Upload of a `.torrent` file, as `rollcall torrent add FILE`.

use std::sync::Arc;
use std::time::Duration;

use access::NewTorrent;
use admin::keys::Authenticated;
use axum::body::{Body, HttpBody};
use axum::extract::State;
use axum::{Extension, Json};
use http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::routes;
use wire::metainfo::{MAX_METAINFO_BYTES, Metainfo};

use super::{TorrentJson, add_recorded, check_name};
use crate::api::whitelist::next_chunk;
use crate::app::Routes;
use crate::extract::QueryParams;
use crate::problem::Problem;
use crate::scan_limit::ScanKind;
use crate::site::Site;

pub(crate) fn upload_routes() -> Routes {
    Routes::new().routes(routes!(upload))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FileParams {
    /// False if the torrent awaits approval.
    #[serde(default = "yes")]
    #[param(default = true)]
    approved: bool,
    /// Whether to accept a torrent without the private flag. Clients also find its peers by DHT and PEX, and that traffic
    /// is not counted.
    #[serde(default)]
    #[param(default = false)]
    allow_public: bool,
}

const fn yes() -> bool {
    true
}

/// Add a torrent from a `.torrent` file
///
/// Name, size and infohashes are read from the file. At most 32 MiB.
#[utoipa::path(
    post, path = "/api/v1/torrents/file", tag = "torrents", params(FileParams),
    request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "The file"),
    responses(
        (status = 201, description = "The torrent", body = TorrentJson),
    )
)]
async fn upload(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    QueryParams(params): QueryParams<FileParams>,
    body: Body,
) -> Result<(StatusCode, Json<TorrentJson>), Problem> {
    let pause_max = site.settings.limits.request_timeout;
    // Bounds the memory of concurrent uploads.
    let reading = async move { read(body, pause_max).await };
    let metainfo =
        site.scan_limits.run(ScanKind::TorrentFiles, &site.counters.scans_refused, reading).await??;
    if !metainfo.private && !params.allow_public {
        let detail = "the torrent has no private flag, so clients would also use DHT and PEX, which are not counted: \
                      create it again as a private torrent, or send it with allow_public=true";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "public_torrent", detail));
    }
    let new = NewTorrent {
        id: None,
        info_hash: metainfo.info_hash,
        info_hash_v2: metainfo.info_hash_v2,
        name: metainfo.name,
        total_bytes: metainfo.total_bytes,
        created_at: site.parts.clock.now(),
    };
    add_recorded(&site, &caller, new, params.approved).await
}

async fn read(mut body: Body, pause_max: Duration) -> Result<Metainfo, Problem> {
    // Refuses by the declared length before reading.
    if body.size_hint().lower() > MAX_METAINFO_BYTES as u64 {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = next_chunk(&mut body, pause_max).await? {
        if bytes.len() + chunk.len() > MAX_METAINFO_BYTES {
            return Err(too_long());
        }
        bytes.extend_from_slice(&chunk);
    }
    let parsing = tokio::task::spawn_blocking(move || Metainfo::parse(&bytes));
    let parsed = parsing.await.map_err(|error| Problem::internal("the torrent file", &error))?;
    let metainfo = parsed.map_err(|error| {
        let detail = format!("not a torrent file: {error}");
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "not_a_torrent", detail)
    })?;
    check_name(&metainfo.name)?;
    Ok(metainfo)
}

fn too_long() -> Problem {
    let detail = format!("a torrent file has at most {} MiB", MAX_METAINFO_BYTES >> 20);
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
}
