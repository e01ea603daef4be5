//! A certificate authority, server files, and a client that trusts the authority and returns the certificate.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use net::TlsFiles;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;
use testkit::RawHttp;

pub type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// An authority that signs certificates for loopback, and a folder with the files of a server.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

/// A certificate with its key.
pub struct Issued {
    pub certificate: CertificateDer<'static>,
    pub certificate_pem: String,
    pub key_pem: String,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "an authority for tests");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Authority { issuer, folder: tempfile::tempdir().unwrap() }
    }

    /// A new certificate for 127.0.0.1 and ::1.
    pub fn issue(&self) -> Issued {
        let key = KeyPair::generate().unwrap();
        let names = ["127.0.0.1".to_owned(), "::1".to_owned()];
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &self.issuer).unwrap();
        Issued {
            certificate: certificate.der().clone(),
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        }
    }

    /// Where the server looks.
    pub fn files(&self) -> TlsFiles {
        let at = |name| self.folder.path().join(name);
        TlsFiles { certificates: at("certificate.pem"), private_key: at("key.pem") }
    }

    /// Puts these texts into the files, each in one step, as tools that renew certificates do.
    pub fn write(&self, certificate_pem: &str, key_pem: &str) -> TlsFiles {
        let files = self.files();
        for (path, text) in [(&files.certificates, certificate_pem), (&files.private_key, key_pem)] {
            let new = path.with_extension("new");
            std::fs::write(&new, text).unwrap();
            std::fs::rename(&new, path).unwrap();
        }
        files
    }

    /// Issues a certificate and puts it into the files.
    pub fn install(&self) -> (TlsFiles, Issued) {
        let issued = self.issue();
        (self.write(&issued.certificate_pem, &issued.key_pem), issued)
    }

    /// A client that trusts this authority alone, and has not been here before.
    pub fn client_of(&self, server: SocketAddr) -> ClientConnection {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        ClientConnection::new(Arc::new(config), ServerName::from(server.ip())).unwrap()
    }

    /// Shakes hands over a stream that is connected.
    pub fn try_handshake(&self, mut stream: TcpStream, server: SocketAddr) -> std::io::Result<TlsStream> {
        let mut client = self.client_of(server);
        while client.is_handshaking() {
            client.complete_io(&mut stream)?;
        }
        Ok(StreamOwned::new(client, stream))
    }

    /// Connects and shakes hands.
    pub fn connect(&self, server: SocketAddr) -> RawHttp<TlsStream> {
        let stream = TcpStream::connect(server).unwrap();
        testkit::http::set_timeouts(&stream).unwrap();
        RawHttp::over(self.try_handshake(stream, server).unwrap(), server)
    }

    /// What a new client is shown.
    pub fn shown_by(&self, server: SocketAddr) -> CertificateDer<'static> {
        let connection = self.connect(server);
        connection.stream().conn.peer_certificates().unwrap()[0].clone().into_owned()
    }
}
