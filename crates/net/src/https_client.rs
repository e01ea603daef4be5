//! HTTPS client for other sites: a site's verify endpoint, webhooks.
//!
//! # Guarantees
//!
//! - A call ends within its timeout, connecting and reading included, and reads no more of the body than allowed.
//! - An untrusted certificate is a failure.
//! - Errors contain neither address nor headers, which may contain secrets.
//! - Connections are pooled.
//!
//! # Deliberately absent
//!
//! Redirects: they would disclose secrets to other hosts. Retries: callers decide.

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

/// Idle time of a pooled connection.
const IDLE_MAX: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// Trusted authorities as PEM; none for those of the system.
    pub ca_file: Option<PathBuf>,
    /// Of the whole call, connecting included.
    pub timeout: Duration,
    /// Pooled connections.
    pub connections_max: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// There are no trusted authorities.
    #[error("this system has no CA certificates: install the package ca-certificates")]
    NoAuthorities,
    /// The file of authorities cannot be used.
    #[error("{}: {reason}", .path.display())]
    CaFile { path: PathBuf, reason: String },
    /// The TLS library refuses the settings.
    #[error("{0}")]
    Tls(#[from] rustls::Error),
}

#[derive(Debug, thiserror::Error)]
pub enum CallFailure {
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// No connection, a broken connection, or an untrusted certificate.
    #[error("{0}")]
    Unreachable(String),
}

#[derive(Clone, Debug)]
pub struct Reply {
    pub status: StatusCode,
    /// For a success status; none if it is incomplete or too long.
    pub body: Option<Bytes>,
}

/// Clones share connections.
#[derive(Clone, Debug)]
pub struct Client {
    client: HyperClient<HttpsConnector<HttpConnector>, Full<Bytes>>,
    timeout: Duration,
    has_authorities: bool,
}

impl Client {
    /// Makes no connection yet. Without authorities only plain HTTP works: see [`Client::can_trust`].
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

    /// Fails if there are no trusted authorities.
    pub fn can_trust(&self) -> Result<(), ClientError> {
        self.has_authorities.then_some(()).ok_or(ClientError::NoAuthorities)
    }

    /// Sends a request and reads up to `body_bytes_max` bytes of the body.
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

/// An error with its causes. Only one kind of cause contains the address; it is replaced.
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

/// Whether any cause of an error is a certificate for another name. The inner error of an I/O error is not among its
/// sources.
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
        return Err(unusable("the file contains no certificate".to_owned()));
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use rustls::CertificateError;
    use rustls::pki_types::ServerName;

    use super::*;

    #[test]
    fn an_error_about_a_certificate_for_another_name_does_not_contain_the_address() {
        let reason = CertificateError::NotValidForNameContext {
            expected: ServerName::try_from("secret.example.com").unwrap(),
            presented: vec!["other.example.com".to_owned()],
        };
        let tls = io::Error::new(io::ErrorKind::InvalidData, rustls::Error::InvalidCertificate(reason));
        assert!(tls.to_string().contains("secret"), "precondition: the source contains the address");
        // As the connector returns it.
        assert_eq!(causes(&io::Error::other(tls)), "the certificate is for another name");
        let other = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        assert!(causes(&io::Error::other(other)).contains("UnknownIssuer"));
    }
}
