//! The call to the site: `GET <url>?passkey=<hex>` with `X-API-Key`, answered by 200 and `{"valid":true|false}` (W3, W4).
//!
//! # Guarantees
//!
//! - Only a whole answer counts. Another status, a redirect, a body that is too long or says nothing, a certificate
//!   that is not trusted, no answer in time: all of these are failures, and never a "no".
//! - Neither passkey nor key is in any error or log line.
//! - Connections are kept and used again, as [`outbound`] does.
//!
//! # Deliberately absent
//!
//! Redirects: the key would be sent to wherever they lead. Trying again: the next announce does.

use std::path::PathBuf;
use std::time::Duration;

use domain::{Passkey, UserId};
use http::{HeaderValue, Request, StatusCode, Uri, header};
use http_body_util::Full;
use hyper::body::Bytes;
use outbound::{Client, ClientError, ClientSettings};
use serde::Deserialize;

use crate::error::AccessError;

/// The longest answer that is read; the documented one has fifteen bytes.
const BODY_BYTES_MAX: usize = 4096;
/// The highest number that every JSON reader understands. Higher ones would also use up the numbers that follow.
const USER_ID_MAX: u64 = (1 << 53) - 1;

/// How to ask.
#[derive(Clone)]
pub struct EndpointSettings {
    /// Where, without a query. Plain HTTP is the caller's decision.
    pub url: String,
    /// What is sent as `X-API-Key`.
    pub api_key: String,
    /// Certificates that the endpoint may be signed by, as PEM; none for those of the system.
    pub ca_file: Option<PathBuf>,
    /// How long an answer may take, connecting included.
    pub timeout: Duration,
    /// Connections that are kept.
    pub connections_max: usize,
}

/// What the site says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether it vouches for the passkey.
    pub valid: bool,
    /// The number by which it knows the user, if it tells one.
    pub user: Option<UserId>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallFailure {
    /// Nothing came in time.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// No connection, a connection that broke, or a certificate that is not trusted.
    #[error("{0}")]
    Unreachable(String),
    /// Not 200.
    #[error("{}", explain_status(*.0))]
    WrongStatus(StatusCode),
    /// The body breaks off, or is longer than it can be.
    #[error("the body of the answer breaks off, or is longer than {BODY_BYTES_MAX} bytes")]
    BodyCutShort,
    /// The body is not what was agreed.
    #[error("the answer is not {{\"valid\":true}} or {{\"valid\":false}}")]
    Garbage,
}

fn explain_status(status: StatusCode) -> String {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            format!("it answers {status}: set access.verify_api_key to the key that the site expects")
        }
        StatusCode::NOT_FOUND => format!("it answers {status}: check access.verify_url"),
        _ if status.is_redirection() => {
            format!(
                "it answers {status}, and redirects are not followed: set access.verify_url to where it leads"
            )
        }
        _ => format!("it answers {status}"),
    }
}

/// The documented answer. What else it holds is for others.
#[derive(Deserialize)]
struct Body {
    valid: bool,
    #[serde(default)]
    user_id: serde_json::Value,
}

impl From<outbound::CallFailure> for CallFailure {
    fn from(failure: outbound::CallFailure) -> CallFailure {
        match failure {
            outbound::CallFailure::TimedOut(limit) => CallFailure::TimedOut(limit),
            outbound::CallFailure::Unreachable(reason) => CallFailure::Unreachable(reason),
        }
    }
}

/// The site's verify endpoint. Clones share its connections.
#[derive(Clone)]
pub struct VerifyEndpoint {
    client: Client,
    url: Uri,
    api_key: HeaderValue,
}

impl VerifyEndpoint {
    /// Prepares the calls; makes none.
    pub fn new(settings: &EndpointSettings) -> Result<Self, AccessError> {
        let wrong = |what: String| AccessError::VerifyEndpoint(what);
        let url: Uri = settings.url.parse().map_err(|error| wrong(format!("access.verify_url: {error}")))?;
        let mut api_key = HeaderValue::from_str(&settings.api_key)
            .map_err(|_| wrong("access.verify_api_key has characters that no header may have".to_owned()))?;
        api_key.set_sensitive(true);
        let client = Client::new(&ClientSettings {
            ca_file: settings.ca_file.clone(),
            timeout: settings.timeout,
            connections_max: settings.connections_max,
        });
        let client = client.map_err(|error| wrong(explain_client(&error)))?;
        if settings.url.starts_with("https://") {
            client.can_trust().map_err(|error| wrong(explain_client(&error)))?;
        }
        Ok(VerifyEndpoint { client, url, api_key })
    }

    /// Asks whether the site vouches for a passkey.
    pub async fn ask(&self, passkey: &Passkey) -> Result<Answer, CallFailure> {
        let reply = self.client.call(self.request(passkey)?, BODY_BYTES_MAX).await?;
        if reply.status != StatusCode::OK {
            return Err(CallFailure::WrongStatus(reply.status));
        }
        let body = reply.body.ok_or(CallFailure::BodyCutShort)?;
        let body: Body = serde_json::from_slice(&body).map_err(|_| CallFailure::Garbage)?;
        let user = body.user_id.as_u64().filter(|id| *id <= USER_ID_MAX).and_then(UserId::new);
        Ok(Answer { valid: body.valid, user })
    }

    fn request(&self, passkey: &Passkey) -> Result<Request<Full<Bytes>>, CallFailure> {
        // An address that was read with this path cannot become unreadable by hexadecimal digits behind it.
        let unreachable = |_| CallFailure::Unreachable("access.verify_url is no address".to_owned());
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

/// Which setting mends it.
fn explain_client(error: &ClientError) -> String {
    match error {
        ClientError::NoAuthorities => format!("{error}, or set access.verify_ca_file"),
        ClientError::CaFile { .. } => format!("access.verify_ca_file {error}"),
        ClientError::Tls(_) => error.to_string(),
    }
}
