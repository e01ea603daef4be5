//! Calls to other sites over HTTPS: a site's verify endpoint, webhooks.
//!
//! # Guarantees
//!
//! - A call ends within its time, connecting and reading included, and reads no longer body than it was told.
//! - A certificate that is not trusted is a failure.
//! - Errors name neither address nor headers, in which there may be secrets.
//! - Connections are kept and used again.
//!
//! # Deliberately absent
//!
//! Redirects: whatever secret is sent would go to wherever they lead. Trying again: callers know when that is wise.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// How long a connection is kept that nobody uses.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// How to call.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// Certificates that others may be signed by, as PEM; none for those of the system.
    pub ca_file: Option<PathBuf>,
    /// How long an answer may take, connecting included.
    pub timeout: Duration,
    /// Connections that are kept.
    pub connections_max: usize,
}

/// Why no calls can be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody's certificate could be trusted.
    #[error("this system has no certificates of authorities: install the package ca-certificates")]
    NoAuthorities,
    /// The file of authorities cannot be used.
    #[error("{}: {reason}", .path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The TLS library will not work like this.
    #[error("{0}")]
    Tls(#[from] rustls::Error),
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
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Its status.
    pub status: StatusCode,
    /// Its body, if the status says success; none if it breaks off or is longer than it may be.
    pub body: Option<Bytes>,
}

/// Makes calls. Clones share connections.
#[derive(Clone, Debug)]
pub struct Client {
    client: HyperClient<HttpsConnector<HttpConnector>, Full<Bytes>>,
    timeout: Duration,
    has_authorities: bool,
}

impl Client {
    /// Prepares calls; makes none. Without authorities only plain HTTP works: see [`Client::can_trust`].
    pub fn new(settings: &ClientSettings) -> Result<Client, ClientError> {
        let roots = roots(settings)?;
        let has_authorities = !roots.is_empty();
        let tls = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
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
        let client = HyperClient::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_MAX)
            .pool_max_idle_per_host(settings.connections_max)
            .http1_max_headers(64)
            .build(connector);
        Ok(Client { client, timeout: settings.timeout, has_authorities })
    }

    /// Whether anybody's certificate could be trusted; otherwise why not.
    pub fn can_trust(&self) -> Result<(), ClientError> {
        self.has_authorities.then_some(()).ok_or(ClientError::NoAuthorities)
    }

    /// Makes a call and reads up to so many bytes of what is answered.
    pub async fn call(
        &self,
        request: Request<Full<Bytes>>,
        body_bytes_max: usize,
    ) -> Result<Reply, CallFailure> {
        let answer = tokio::time::timeout(self.timeout, self.exchange(request, body_bytes_max)).await;
        answer.unwrap_or(Err(CallFailure::TimedOut(self.timeout)))
    }

    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        body_bytes_max: usize,
    ) -> Result<Reply, CallFailure> {
        let response: Response<Incoming> =
            self.client.request(request).await.map_err(|error| CallFailure::Unreachable(causes(&error)))?;
        let status = response.status();
        if !status.is_success() {
            return Ok(Reply { status, body: None });
        }
        let body = Limited::new(response.into_body(), body_bytes_max).collect().await;
        Ok(Reply { status, body: body.ok().map(|body| body.to_bytes()) })
    }
}

/// An error with what caused it. None of these names the address, but for one, which is put into other words.
fn causes(error: &(dyn Error + 'static)) -> String {
    if is_for_another_name(error) {
        return "the certificate is for another name".to_owned();
    }
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

/// Whether a certificate names somebody else, anywhere in what caused an error. What is inside an error of the system's
/// is not among its sources.
fn is_for_another_name(error: &(dyn Error + 'static)) -> bool {
    use rustls::CertificateError::{NotValidForName, NotValidForNameContext};
    if let Some(rustls::Error::InvalidCertificate(reason)) = error.downcast_ref() {
        return matches!(reason, NotValidForName | NotValidForNameContext { .. });
    }
    let inside = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    inside.is_some_and(|inside| is_for_another_name(inside))
        || error.source().is_some_and(is_for_another_name)
}

fn roots(settings: &ClientSettings) -> Result<RootCertStore, ClientError> {
    let mut roots = RootCertStore::empty();
    let Some(path) = &settings.ca_file else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(roots);
    };
    let unusable = |reason: String| ClientError::CaFile { path: path.clone(), reason };
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))? {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unusable("there is no certificate in it".to_owned()));
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use rustls::CertificateError;
    use rustls::pki_types::ServerName;

    use super::*;

    #[test]
    fn who_was_called_is_not_named_when_a_certificate_is_for_somebody_else() {
        let reason = CertificateError::NotValidForNameContext {
            expected: ServerName::try_from("secret.example.com").unwrap(),
            presented: vec!["other.example.com".to_owned()],
        };
        let tls = io::Error::new(io::ErrorKind::InvalidData, rustls::Error::InvalidCertificate(reason));
        assert!(tls.to_string().contains("secret"), "otherwise there is nothing to hide");
        // As the connector hands it on.
        assert_eq!(causes(&io::Error::other(tls)), "the certificate is for another name");
        let other = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        assert!(causes(&io::Error::other(other)).contains("UnknownIssuer"));
    }
}
