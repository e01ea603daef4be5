//! Certificates, reloaded while the server runs.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use domain::UnixTime;
use parking_lot::Mutex;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tracing::{error, info};

pub use tokio_rustls::TlsAcceptor;
pub use tokio_rustls::server::TlsStream;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// PEM, the server's certificate first.
    pub certificates: PathBuf,
    /// PEM.
    pub private_key: PathBuf,
}

impl TlsFiles {
    /// None unless both are set.
    pub fn of(certificates: Option<PathBuf>, private_key: Option<PathBuf>) -> Option<TlsFiles> {
        let (certificates, private_key) = certificates.zip(private_key)?;
        Some(TlsFiles { certificates, private_key })
    }
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {path}: {source}", path = .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} is not usable: {reason}", path = .path.display())]
    Unusable { path: PathBuf, reason: String },
    #[error("the certificate and the private key do not match, or are not usable: {0}")]
    Mismatch(#[from] rustls::Error),
}

/// A certificate that follows its files.
#[derive(Debug)]
pub struct Certificate {
    files: TlsFiles,
    current: Arc<CurrentKey>,
    /// State of the files when they were last read.
    seen: Mutex<Option<[FileState; 2]>>,
}

/// Detects a replaced file. The modification time is not enough: file systems have coarse clocks, and some tools
/// preserve the time of what they copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileState {
    modified: SystemTime,
    inode: u64,
    bytes: u64,
}

#[derive(Debug)]
struct CurrentKey(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for CurrentKey {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

impl Certificate {
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        // Taken before reading: a file replaced in between is then read again.
        let seen = file_states(files).ok();
        let key = read(files)?;
        Ok(Certificate {
            files: files.clone(),
            current: Arc::new(CurrentKey(ArcSwap::from_pointee(key))),
            seen: Mutex::new(seen),
        })
    }

    /// The earliest expiry in the chain; none if a certificate cannot be parsed.
    pub fn expires_at(&self) -> Option<UnixTime> {
        let current = self.current.0.load();
        let ends = current.cert.iter().map(|certificate| {
            let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
            Some(parsed.validity().not_after.timestamp())
        });
        let first = ends.collect::<Option<Vec<i64>>>()?.into_iter().min()?;
        Some(UnixTime(u32::try_from(first.max(0)).unwrap_or(u32::MAX)))
    }

    /// Unusable files leave the current certificate in place.
    pub fn reload_if_changed(&self) {
        let mut seen = self.seen.lock();
        let Ok(state) = file_states(&self.files) else {
            return;
        };
        if *seen == Some(state) {
            return;
        }
        self.reload_as(state, &mut seen);
    }

    /// Also if unchanged: an unreadable file may be readable now.
    pub fn reload(&self) {
        let mut seen = self.seen.lock();
        match file_states(&self.files) {
            Ok(state) => self.reload_as(state, &mut seen),
            Err(reason) => error!(%reason, "cannot read the certificate; keeping the old one"),
        }
    }

    fn reload_as(&self, state: [FileState; 2], seen: &mut Option<[FileState; 2]>) {
        *seen = Some(state);
        match read(&self.files) {
            Ok(key) => {
                self.current.0.store(Arc::new(key));
                info!(file = %self.files.certificates.display(), "certificate reloaded");
            }
            Err(reason) => error!(%reason, "the new certificate is unusable; keeping the old one"),
        }
    }

    pub fn acceptor(&self) -> TlsAcceptor {
        let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider supports the default protocol versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&self.current) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // Clients reconnect every half hour: tickets spare the full handshake and need no memory here.
        if let Ok(ticketer) = aws_lc_rs::Ticketer::new() {
            config.ticketer = ticketer;
        }
        TlsAcceptor::from(Arc::new(config))
    }
}

fn file_states(files: &TlsFiles) -> io::Result<[FileState; 2]> {
    let look = |path: &PathBuf| -> io::Result<FileState> {
        let file = std::fs::metadata(path)?;
        Ok(FileState { modified: file.modified()?, inode: file.ino(), bytes: file.len() })
    };
    Ok([look(&files.certificates)?, look(&files.private_key)?])
}

fn read(files: &TlsFiles) -> Result<CertifiedKey, TlsError> {
    let file =
        |path: &PathBuf| std::fs::read(path).map_err(|source| TlsError::Read { path: path.clone(), source });
    let unusable = |path: &PathBuf, reason: String| TlsError::Unusable { path: path.clone(), reason };
    let chain = CertificateDer::pem_slice_iter(&file(&files.certificates)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| unusable(&files.certificates, error.to_string()))?;
    if chain.is_empty() {
        return Err(unusable(&files.certificates, "it holds no certificate in PEM".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(&file(&files.private_key)?)
        .map_err(|error| unusable(&files.private_key, error.to_string()))?;
    Ok(CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider())?)
}
