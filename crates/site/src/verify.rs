//! `GET /passkey/verify` (W3, W6): passkey verification for other trackers.
//!
//! A passkey is valid by the whitelist or the database. If the whitelist is unavailable, the database can confirm a passkey
//! but not reject it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use access::Refusal;
use admin::audit::{Record, Subject, actor_of_key};
use admin::keys::Authenticated;
use axum::extract::State;
use axum::{Extension, Json};
use domain::Passkey;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use crate::app::Routes;
use crate::extract::QueryParams;
use crate::problem::{Problem, ProblemBody};
use crate::site::Site;

pub(crate) fn routes() -> Routes {
    Routes::new().routes(routes!(verify))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct VerifyParams {
    /// 8 to 64 hexadecimal digits; case is ignored.
    #[param(required = true, nullable = false, min_length = 8, max_length = 64, pattern = "^[0-9a-fA-F]+$")]
    passkey: Option<String>,
}

/// Result of a passkey verification.
#[derive(Serialize, ToSchema)]
struct VerifyReply {
    /// Whether announces with this passkey are accepted.
    valid: bool,
}

/// Verify a passkey
///
/// For other trackers, such as Chihaya, when they see an unknown passkey.
#[utoipa::path(
    get,
    path = "/passkey/verify",
    tag = "verify",
    params(VerifyParams),
    responses(
        (status = 200, description = "The result", body = VerifyReply),
        (status = 400, description = "Missing or malformed passkey", body = ProblemBody, content_type = "application/problem+json"),
        (status = 401, description = "No valid key", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn verify(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    QueryParams(params): QueryParams<VerifyParams>,
) -> Result<Json<VerifyReply>, Problem> {
    let passkey: Passkey = match params.passkey.as_deref().map(str::parse) {
        Some(Ok(passkey)) => passkey,
        Some(Err(_)) => return Err(Problem::bad_request("passkey must be 8 to 64 hexadecimal digits")),
        None => return Err(Problem::bad_request("passkey is missing: /passkey/verify?passkey=...")),
    };
    let valid = is_valid(&site, &passkey).await?;
    let counter = if valid { &site.counters.verified_valid } else { &site.counters.verified_invalid };
    counter.increment();
    sample(&site, &caller, &passkey, valid).await?;
    Ok(Json(VerifyReply { valid }))
}

async fn is_valid(site: &Site, passkey: &Passkey) -> Result<bool, Problem> {
    let listed = site.parts.passkeys.check(&[*passkey]).await;
    let is_listed = listed.as_ref().is_ok_and(|found| found.first() == Some(&true));
    let has_site_key = site.parts.gate.redis_user_of(passkey).is_some();
    let user = site.parts.store.user_by_passkey(passkey).await;
    // The gate knows disabled users while the database is unavailable.
    let is_disabled = || {
        let admission = site.parts.gate.admit_user(passkey, site.parts.clock.steady());
        matches!(admission, Err(Refusal::UserDisabled))
    };
    match (&user, &listed) {
        // A disabled user is invalid, even if a list contains the passkey.
        (Ok(Some(user)), _) if !user.enabled => Ok(false),
        (Err(_), _) if is_disabled() => Ok(false),
        _ if is_listed || has_site_key => Ok(true),
        (Ok(Some(user)), _) if !user.is_external => Ok(true),
        (Ok(_), Ok(_)) => Ok(false),
        (Err(error), _) => Err(Problem::unavailable("the database", error)),
        (_, Err(error)) => Err(Problem::unavailable("the whitelist", error)),
    }
}

/// Records one of `verify_audit_every` calls (W6).
async fn sample(site: &Site, caller: &Authenticated, passkey: &Passkey, valid: bool) -> Result<(), Problem> {
    let every = site.settings.verify_audit_every;
    let number = site.verify_calls.fetch_add(1, Ordering::Relaxed);
    if every == 0 || !number.is_multiple_of(every) {
        return Ok(());
    }
    let record =
        Record::ok("passkey.verify", actor_of_key(caller.key_id.as_str()), Subject::passkey(passkey))
            .with("valid", valid)
            .with("one_of", every);
    let recorded = site.parts.audit.record(record).await;
    recorded.map(|_| ()).map_err(|error| Problem::unavailable("the audit trail", &error))
}
