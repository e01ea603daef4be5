//! The verify endpoint: `GET <url>?passkey=<hex>` with `X-API-Key`, answered by 200 and `{"valid":true|false}` (W3, W4).
//!
//! - Another status, a redirect, a body that is too long or malformed, an untrusted certificate and a timeout are
//!   failures, never a negative answer.
//! - Neither passkey nor API key is in any error or log line.
//! - Redirects are not followed: they would disclose the API key. Failed calls are not retried: the next announce
//!   requests another.

use std::path::PathBuf;
use std::time::Duration;

use domain::{Passkey, UserId};
use http::{HeaderValue, Request, StatusCode, Uri, header};
use http_body_util::Full;
use hyper::body::Bytes;
use net::https_client::{self, Client, ClientError, ClientSettings};
use serde::Deserialize;

use crate::error::AccessError;

/// The documented body has fifteen bytes.
const BODY_BYTES_MAX: usize = 4096;
/// The highest integer that every JSON parser represents exactly. A higher id would also exhaust the ids after it.
const USER_ID_MAX: u64 = (1 << 53) - 1;

#[derive(Clone)]
pub struct EndpointSettings {
    /// Without a query. Plain HTTP is permitted here.
    pub url: String,
    /// Sent as `X-API-Key`.
    pub api_key: String,
    /// Certificate authorities as PEM; none for those of the system.
    pub ca_file: Option<PathBuf>,
    /// Time limit of a call, connecting included.
    pub timeout: Duration,
    /// Pooled connections.
    pub connections_max: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointAnswer {
    pub valid: bool,
    /// The site's id of the user, if the body has one.
    pub user: Option<UserId>,
}

#[derive(Debug, thiserror::Error)]
pub enum CallFailure {
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// No connection, a broken connection, or an untrusted certificate.
    #[error("{0}")]
    Unreachable(String),
    /// Any status but 200.
    #[error("{}", explain_status(*.0))]
    WrongStatus(StatusCode),
    #[error("the response body is truncated, or longer than {BODY_BYTES_MAX} bytes")]
    BodyTruncated,
    #[error("the response body is not {{\"valid\":true}} or {{\"valid\":false}}")]
    BodyMalformed,
}

fn explain_status(status: StatusCode) -> String {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            format!("status {status}: set access.verify_api_key to the key that the site expects")
        }
        StatusCode::NOT_FOUND => format!("status {status}: check access.verify_url"),
        _ if status.is_redirection() => {
            format!("status {status}: redirects are not followed; set access.verify_url to their target")
        }
        _ => format!("status {status}"),
    }
}

/// Other fields are ignored.
#[derive(Deserialize)]
struct Body {
    valid: bool,
    #[serde(default)]
    user_id: serde_json::Value,
}

impl From<https_client::CallFailure> for CallFailure {
    fn from(failure: https_client::CallFailure) -> CallFailure {
        match failure {
            https_client::CallFailure::TimedOut(limit) => CallFailure::TimedOut(limit),
            https_client::CallFailure::Unreachable(reason) => CallFailure::Unreachable(reason),
        }
    }
}

/// Clones share the connection pool.
#[derive(Clone)]
pub struct VerifyEndpoint {
    client: Client,
    url: Uri,
    api_key: HeaderValue,
}

impl VerifyEndpoint {
    /// Makes no call.
    pub fn new(settings: &EndpointSettings) -> Result<Self, AccessError> {
        let invalid = |reason: String| AccessError::VerifyEndpoint(reason);
        let url: Uri =
            settings.url.parse().map_err(|error| invalid(format!("access.verify_url: {error}")))?;
        let mut api_key = HeaderValue::from_str(&settings.api_key).map_err(|_| {
            invalid("access.verify_api_key has characters that are not allowed in a header".to_owned())
        })?;
        api_key.set_sensitive(true);
        let client = Client::new(&ClientSettings {
            ca_file: settings.ca_file.clone(),
            timeout: settings.timeout,
            connections_max: settings.connections_max,
        });
        let client = client.map_err(|error| invalid(explain_client(&error)))?;
        if settings.url.starts_with("https://") {
            client.can_trust().map_err(|error| invalid(explain_client(&error)))?;
        }
        Ok(VerifyEndpoint { client, url, api_key })
    }

    pub async fn verify(&self, passkey: &Passkey) -> Result<EndpointAnswer, CallFailure> {
        let reply = self.client.call(self.request(passkey)?, BODY_BYTES_MAX).await?;
        if reply.status != StatusCode::OK {
            return Err(CallFailure::WrongStatus(reply.status));
        }
        let body = reply.body.ok_or(CallFailure::BodyTruncated)?;
        let body: Body = serde_json::from_slice(&body).map_err(|_| CallFailure::BodyMalformed)?;
        let user = body.user_id.as_u64().filter(|id| *id <= USER_ID_MAX).and_then(UserId::new);
        Ok(EndpointAnswer { valid: body.valid, user })
    }

    fn request(&self, passkey: &Passkey) -> Result<Request<Full<Bytes>>, CallFailure> {
        // Cannot fail: hexadecimal digits keep a valid URL valid.
        let unreachable = |_| CallFailure::Unreachable("access.verify_url is not a URL".to_owned());
        let mut parts = self.url.clone().into_parts();
        let target = format!("{}?passkey={passkey}", self.url.path());
        parts.path_and_query = Some(target.parse().map_err(|_| ()).map_err(unreachable)?);
        let url = Uri::from_parts(parts).map_err(|_| ()).map_err(unreachable)?;
        Request::get(url)
            .header("x-api-key", &self.api_key)
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, concat!("rollcall/", env!("CARGO_PKG_VERSION")))
            .body(Full::default())
            .map_err(|_| ())
            .map_err(unreachable)
    }
}

/// Names the setting to correct.
fn explain_client(error: &ClientError) -> String {
    match error {
        ClientError::NoAuthorities => format!("{error}, or set access.verify_ca_file"),
        ClientError::CaFile { .. } => format!("access.verify_ca_file {error}"),
        ClientError::Tls(_) => error.to_string(),
    }
}
