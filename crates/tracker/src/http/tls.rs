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
use tokio_rustls::TlsAcceptor;
use tracing::{error, info};

use crate::settings::TlsFiles;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}", path = .path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{path} is not usable: {reason}", path = .path.display())]
    Unusable {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The key is not the certificate's.
    #[error("the certificate and the key do not belong together or cannot be used: {0}")]
    Mismatch(#[from] rustls::Error),
}

/// The certificate that the server shows, whatever is in its files.
#[derive(Debug)]
pub struct Certificate {
    files: TlsFiles,
    shown: Arc<Shown>,
    /// What the files were when they were last read.
    seen: Mutex<Option<[FileState; 2]>>,
}

/// What shows that a file was replaced. The time alone does not: clocks of file systems tick slowly, and some tools
/// keep the time of what they copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileState {
    modified: SystemTime,
    inode: u64,
    bytes: u64,
}

#[derive(Debug)]
struct Shown(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

impl Certificate {
    /// Reads the files.
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        // Looked at before they are read: what is replaced in between is read again, rather than never.
        let seen = look_at(files).ok();
        let key = read(files)?;
        Ok(Certificate {
            files: files.clone(),
            shown: Arc::new(Shown(ArcSwap::from_pointee(key))),
            seen: Mutex::new(seen),
        })
    }

    /// When the certificate that is shown expires: the first of its chain to do so. None if one of them cannot be
    /// read, which no client could either.
    pub fn expires_at(&self) -> Option<UnixTime> {
        let shown = self.shown.0.load();
        let ends = shown.cert.iter().map(|certificate| {
            let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
            Some(parsed.validity().not_after.timestamp())
        });
        let first = ends.collect::<Option<Vec<i64>>>()?.into_iter().min()?;
        Some(UnixTime(u32::try_from(first.max(0)).unwrap_or(u32::MAX)))
    }

    /// Reads the files again if they changed. Files that are not usable leave everything as it was.
    pub fn reload_if_changed(&self) {
        let mut seen = self.seen.lock();
        let Ok(state) = look_at(&self.files) else {
            return;
        };
        if *seen == Some(state) {
            return;
        }
        self.reload_as(state, &mut seen);
    }

    /// Reads the files again, changed or not: what could not be read may be readable now.
    pub fn reload(&self) {
        let mut seen = self.seen.lock();
        match look_at(&self.files) {
            Ok(state) => self.reload_as(state, &mut seen),
            Err(reason) => error!(%reason, "the certificate cannot be read; the old one stays"),
        }
    }

    fn reload_as(&self, state: [FileState; 2], seen: &mut Option<[FileState; 2]>) {
        *seen = Some(state);
        match read(&self.files) {
            Ok(key) => {
                self.shown.0.store(Arc::new(key));
                info!(file = %self.files.certificates.display(), "certificate reloaded");
            }
            Err(reason) => error!(%reason, "the new certificate is not usable; the old one stays"),
        }
    }

    /// What takes connections with this certificate.
    pub fn acceptor(&self) -> TlsAcceptor {
        let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider supports the default protocol versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&self.shown) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // Clients come back every half hour: tickets spare them the full handshake, and cost no memory here.
        if let Ok(ticketer) = aws_lc_rs::Ticketer::new() {
            config.ticketer = ticketer;
        }
        TlsAcceptor::from(Arc::new(config))
    }
}

fn look_at(files: &TlsFiles) -> io::Result<[FileState; 2]> {
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
