//! A site's verify endpoint that can be slow, broken, wrong or down, and counts its calls.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use domain::Passkey;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

/// How often an idle connection checks whether it should end.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behaviour {
    Answers,
    Slow(Duration),
    /// Answers with this status, and with a body that accepts every passkey.
    Status(u16),
    /// Answers 200 with this body.
    Body(String),
    /// Redirects to an address that accepts every passkey.
    Redirects,
    /// Answers 200 with a body of a megabyte that accepts every passkey.
    Huge,
    /// Closes the connection in the middle of the answer.
    Closes,
}

/// The expected key and the known passkeys.
struct Site {
    api_key: String,
    behaviour: Behaviour,
    valid_passkeys: HashMap<Passkey, Option<u64>>,
    calls: HashMap<String, u64>,
}

struct Shared {
    site: Mutex<Site>,
    calls: AtomicU64,
    connections: AtomicU64,
    unauthorised: AtomicU64,
    stop: AtomicBool,
    tls: Option<Arc<ServerConfig>>,
}

/// The endpoint. Dropping it closes its port.
pub struct VerifyEndpoint {
    shared: Arc<Shared>,
    address: SocketAddr,
    accepting: Option<JoinHandle<()>>,
    folder: TempDir,
}

impl VerifyEndpoint {
    /// Over plain HTTP; requires this key.
    pub fn plain(api_key: &str) -> Self {
        Self::start(api_key, None, tempfile::tempdir().expect("a temporary folder"))
    }

    /// One that speaks HTTPS, with a certificate that [`VerifyEndpoint::ca_file`] signed.
    pub fn tls(api_key: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "an authority for tests");
        let authority_key = KeyPair::generate().expect("a key can be made");
        let authority =
            CertifiedIssuer::self_signed(params, authority_key).expect("an authority can be made");
        let key = KeyPair::generate().expect("a key can be made");
        let certificate = CertificateParams::new(["127.0.0.1".to_owned()])
            .and_then(|params| params.signed_by(&key, &authority))
            .expect("a certificate can be signed");
        std::fs::write(folder.path().join("ca.pem"), authority.pem()).expect("the folder can be written to");
        let private_key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key is a key");
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider has protocols")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private_key)
            .expect("the certificate fits its key");
        Self::start(api_key, Some(Arc::new(config)), folder)
    }

    fn start(api_key: &str, tls: Option<Arc<ServerConfig>>, folder: TempDir) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let site = Site {
            api_key: api_key.to_owned(),
            behaviour: Behaviour::Answers,
            valid_passkeys: HashMap::new(),
            calls: HashMap::new(),
        };
        let shared = Arc::new(Shared {
            site: Mutex::new(site),
            calls: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            unauthorised: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            tls,
        });
        let accepting = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || accept(&listener, &shared))
        };
        VerifyEndpoint { shared, address, accepting: Some(accepting), folder }
    }

    /// Its address, as the configuration takes it.
    pub fn url(&self) -> String {
        let scheme = if self.shared.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/passkey/verify", self.address)
    }

    /// The authority of its certificate, as PEM.
    pub fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Accepts this passkey from now on.
    pub fn accept_passkey(&self, passkey: Passkey) {
        self.site().valid_passkeys.insert(passkey, None);
    }

    /// Accepts this passkey from now on, with its user id.
    pub fn accept_passkey_of(&self, passkey: Passkey, user_id: u64) {
        self.site().valid_passkeys.insert(passkey, Some(user_id));
    }

    /// Rejects it from now on.
    pub fn reject_passkey(&self, passkey: &Passkey) {
        self.site().valid_passkeys.remove(passkey);
    }

    /// From now on it does this.
    pub fn behave(&self, behaviour: Behaviour) {
        self.site().behaviour = behaviour;
    }

    pub fn calls(&self) -> u64 {
        self.shared.calls.load(Ordering::SeqCst)
    }

    /// Calls about one passkey so far.
    pub fn calls_about(&self, passkey: &Passkey) -> u64 {
        self.site().calls.get(&passkey.to_string()).copied().unwrap_or(0)
    }

    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Calls without the right key so far.
    pub fn unauthorised(&self) -> u64 {
        self.shared.unauthorised.load(Ordering::SeqCst)
    }

    fn site(&self) -> MutexGuard<'_, Site> {
        self.shared.site.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for VerifyEndpoint {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // Unblocks the accept loop.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        shared.connections.fetch_add(1, Ordering::SeqCst);
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            // A caller may disconnect at any time.
            let _ = stream.set_read_timeout(Some(POLL_INTERVAL));
            let _ = match &shared.tls {
                None => serve(stream, &shared),
                Some(config) => ServerConnection::new(Arc::clone(config))
                    .map_err(io::Error::other)
                    .and_then(|session| serve(StreamOwned::new(session, stream), &shared)),
            };
        });
    }
}

/// Reads that block until data arrives or the endpoint has ended.
struct BlockingReader<'s, S> {
    stream: S,
    shared: &'s Shared,
}

impl<S: Read> Read for BlockingReader<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(buffer) {
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    if self.shared.stop.load(Ordering::SeqCst) {
                        return Ok(0);
                    }
                }
                outcome => return outcome,
            }
        }
    }
}

fn serve(stream: impl Read + Write, shared: &Shared) -> io::Result<()> {
    let mut stream = BufReader::new(BlockingReader { stream, shared });
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line)? == 0 {
                return Ok(());
            }
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_owned()),
            }
        }
        if shared.stop.load(Ordering::SeqCst) {
            return Ok(());
        }
        let (reply, stays_open) = answer(&head, shared);
        stream.get_mut().stream.write_all(&reply)?;
        stream.get_mut().stream.flush()?;
        if !stays_open {
            return Ok(());
        }
    }
}

/// The bytes of the reply, and whether the connection stays open after it.
fn answer(head: &[String], shared: &Shared) -> (Vec<u8>, bool) {
    shared.calls.fetch_add(1, Ordering::SeqCst);
    let target = head.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
    let asked = target.split_once("?passkey=").map(|(_, passkey)| passkey).unwrap_or_default();
    let key = head
        .iter()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("x-api-key"))
        .map(|(_, value)| value.trim());
    let (behaviour, agreed) = {
        let mut site = shared.site.lock().unwrap_or_else(PoisonError::into_inner);
        *site.calls.entry(asked.to_owned()).or_default() += 1;
        if key != Some(site.api_key.as_str()) {
            shared.unauthorised.fetch_add(1, Ordering::SeqCst);
            return (reply(401, "", b"{\"error\":\"wrong key\"}"), true);
        }
        let user = asked.parse().ok().and_then(|passkey: Passkey| site.valid_passkeys.get(&passkey).copied());
        let agreed = match user {
            None => "{\"valid\": false}".to_owned(),
            Some(None) => "{\"valid\": true}".to_owned(),
            Some(Some(id)) => format!("{{\"valid\": true, \"user_id\": {id}}}"),
        };
        (site.behaviour.clone(), agreed)
    };
    let lie = b"{\"valid\": true}";
    match behaviour {
        Behaviour::Answers => (reply(200, "", agreed.as_bytes()), true),
        Behaviour::Slow(delay) => {
            thread::sleep(delay);
            (reply(200, "", agreed.as_bytes()), true)
        }
        Behaviour::Status(status) => (reply(status, "", lie), true),
        Behaviour::Body(body) => (reply(200, "", body.as_bytes()), true),
        Behaviour::Redirects => (reply(302, "Location: /elsewhere\r\n", lie), true),
        Behaviour::Huge => {
            let mut body = lie.to_vec();
            body.resize(1 << 20, b' ');
            (reply(200, "", &body), false)
        }
        Behaviour::Closes => {
            let whole = reply(200, "", lie);
            (whole[..whole.len() - 4].to_vec(), false)
        }
    }
}

fn reply(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut reply = format!(
        "HTTP/1.1 {status} Whatever\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    reply.extend_from_slice(body);
    reply
}
