//! The network edge of every role: listeners, TLS, proxies, connection permits, HTTPS calls.
//!
//! Protocols are elsewhere: the tracker and the site read requests from the connections that this crate accepts.
//!
//! # Layout
//!
//! Listening:
//!
//! - [`listen`]: binds listening sockets, or takes those of another process
//! - [`descriptors`]: messages with sockets between two processes (`SCM_RIGHTS`)
//! - [`accept`]: accepts connections; errors are counted and logged once a minute
//! - [`accept_gate`]: pauses, resumes and stops listeners
//!
//! Connections:
//!
//! - [`permits`]: bounds open connections, in total and by address
//! - [`proxy`], [`proxy_protocol`]: the client's address behind trusted proxies
//! - [`tls`]: certificates, reloaded while running
//! - [`socket`]: a socket with or without TLS, for protocols above an HTTP upgrade
//! - [`refused`]: counters of refusals by reason
//!
//! Calls to other servers:
//!
//! - [`https_client`]: the site's verify endpoint, webhooks
//!
//! # Guarantees
//!
//! - A port that another process uses is an error at the start, unless sharing is configured: with `SO_REUSEPORT` a
//!   second server would silently receive half of the requests.
//! - An inherited socket is the same kernel object, so connections queued in it wait for the new process.
//! - Open connections are bounded. An IPv6 /64 counts as one address; a trusted proxy has no limit per address.
//! - A forwarded address is used only if a trusted proxy sent it.
//! - An unusable certificate never replaces a usable one.
//! - Nothing that another server answers is unbounded in time or size.

pub mod accept;
pub mod accept_gate;
pub mod descriptors;
pub mod https_client;
pub mod listen;
pub mod permits;
pub mod proxy;
pub mod proxy_protocol;
pub mod refused;
pub mod socket;
pub mod tls;

pub use accept_gate::{AcceptGate, ShutdownMode};
pub use listen::BindError;
pub use permits::{ConnectionPermit, ConnectionPermits};
pub use proxy::ProxySettings;
pub use refused::Refused;
pub use socket::Socket;
pub use tls::{Certificate, TlsAcceptor, TlsError, TlsFiles};
