//! The call to the site: `GET <url>?passkey=<hex>` with `X-API-Key`, answered by 200 and `{"valid":true|false}` (W3, W4).
//!
//! # Guarantees
//!
//! - Only a whole answer counts. Another status, a redirect, a body that is too long or says nothing, a certificate
//!   that is not trusted, no answer in time: all of these are failures, and never a "no".
//! - Neither passkey nor key is in any error or log line.
//! - Connections are kept and used again.
//!
//! # Deliberately absent
//!
//! Redirects: the key would be sent to wherever they lead. Trying again: the next announce does.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::{Passkey, UserId};
use http::{HeaderValue, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize;

use crate::error::AccessError;

/// The longest answer that is read; the documented one has fifteen bytes.
const BODY_BYTES_MAX: usize = 4096;
/// How long a connection is kept that nobody uses.
const IDLE_MAX: Duration = Duration::from_secs(30);
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

/// The site's verify endpoint. Clones share its connections.
#[derive(Clone)]
pub struct VerifyEndpoint {
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    url: Uri,
    api_key: HeaderValue,
    timeout: Duration,
}

impl VerifyEndpoint {
    /// Prepares the calls; makes none.
    pub fn new(settings: &EndpointSettings) -> Result<Self, AccessError> {
        let wrong = |what: String| AccessError::VerifyEndpoint(what);
        let url: Uri = settings.url.parse().map_err(|error| wrong(format!("access.verify_url: {error}")))?;
        let mut api_key = HeaderValue::from_str(&settings.api_key)
            .map_err(|_| wrong("access.verify_api_key has characters that no header may have".to_owned()))?;
        api_key.set_sensitive(true);
        let tls = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(error.to_string()))?
            .with_root_certificates(roots(settings)?)
            .with_no_client_auth();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(settings.timeout));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_MAX)
            .pool_max_idle_per_host(settings.connections_max)
            .http1_max_headers(64)
            .build(connector);
        Ok(VerifyEndpoint { client, url, api_key, timeout: settings.timeout })
    }

    /// Asks whether the site vouches for a passkey.
    pub async fn ask(&self, passkey: &Passkey) -> Result<Answer, CallFailure> {
        let call = tokio::time::timeout(self.timeout, self.call(passkey)).await;
        call.unwrap_or(Err(CallFailure::TimedOut(self.timeout)))
    }

    async fn call(&self, passkey: &Passkey) -> Result<Answer, CallFailure> {
        let response = self.client.request(self.request(passkey)?).await;
        let response = response.map_err(|error| CallFailure::Unreachable(causes(&error)))?;
        if response.status() != StatusCode::OK {
            return Err(CallFailure::WrongStatus(response.status()));
        }
        let body: Limited<Incoming> = Limited::new(response.into_body(), BODY_BYTES_MAX);
        let body = body.collect().await.map_err(|_| CallFailure::BodyCutShort)?.to_bytes();
        let body: Body = serde_json::from_slice(&body).map_err(|_| CallFailure::Garbage)?;
        let user = body.user_id.as_u64().filter(|id| *id <= USER_ID_MAX).and_then(UserId::new);
        Ok(Answer { valid: body.valid, user })
    }

    fn request(&self, passkey: &Passkey) -> Result<Request<Empty<Bytes>>, CallFailure> {
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
            .body(Empty::new())
            .map_err(|_| ())
            .map_err(unreachable)
    }
}

/// An error with what caused it. None of these names the address, which has the passkey in it.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

fn roots(settings: &EndpointSettings) -> Result<RootCertStore, AccessError> {
    let mut roots = RootCertStore::empty();
    let Some(path) = &settings.ca_file else {
        let found = rustls_native_certs::load_native_certs();
        let (usable, _) = roots.add_parsable_certificates(found.certs);
        if usable == 0 && settings.url.starts_with("https://") {
            let reason = "this system has no certificates of authorities: install the package ca-certificates, or set \
                          access.verify_ca_file";
            return Err(AccessError::VerifyEndpoint(reason.to_owned()));
        }
        return Ok(roots);
    };
    let unusable = |reason: String| {
        AccessError::VerifyEndpoint(format!("access.verify_ca_file {}: {reason}", path.display()))
    };
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))? {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unusable("there is no certificate in it".to_owned()));
    }
    Ok(roots)
}
