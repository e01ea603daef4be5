//! A certificate authority, a server's certificate files, and a TLS client that trusts the authority.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

use crate::http::{RawHttp, set_timeouts};

pub type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// An authority that signs certificates for loopback, and a folder with the files of a server.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "an authority for tests");
        let key = KeyPair::generate().expect("a key can be made");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("an authority can be made");
        Authority { issuer, folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// Where the certificate is, once there is one.
    pub fn certificate_path(&self) -> PathBuf {
        self.folder.path().join("certificate.pem")
    }

    pub fn key_path(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }

    /// Issues a certificate for 127.0.0.1 and replaces the files atomically, as renewal tools do.
    pub fn install(&self) -> CertificateDer<'static> {
        let key = KeyPair::generate().expect("a key can be made");
        let certificate = CertificateParams::new(["127.0.0.1".to_owned()])
            .and_then(|params| params.signed_by(&key, &self.issuer))
            .expect("a certificate can be signed");
        for (path, text) in
            [(self.certificate_path(), certificate.pem()), (self.key_path(), key.serialize_pem())]
        {
            let new = path.with_extension("new");
            std::fs::write(&new, text).expect("the folder can be written to");
            std::fs::rename(&new, path).expect("the folder can be written to");
        }
        certificate.der().clone()
    }

    /// Connects and shakes hands, trusting this authority alone.
    pub fn connect(&self, server: SocketAddr) -> io::Result<RawHttp<TlsStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).map_err(io::Error::other)?;
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::from(server.ip());
        let mut client = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        let mut stream = TcpStream::connect(server)?;
        set_timeouts(&stream)?;
        while client.is_handshaking() {
            client.complete_io(&mut stream)?;
        }
        Ok(RawHttp::over(StreamOwned::new(client, stream), server))
    }

    /// What a new client is shown.
    pub fn shown_by(&self, server: SocketAddr) -> io::Result<CertificateDer<'static>> {
        let connection = self.connect(server)?;
        let shown = connection.stream().conn.peer_certificates().and_then(|chain| chain.first());
        shown
            .map(|certificate| certificate.clone().into_owned())
            .ok_or_else(|| io::Error::other("no certificate"))
    }
}
