//! The site's side: an HTTP API over every view, passkey verification for other trackers, metrics and health.
//!
//! # Layout
//!
//! - [`server`]: listens, gives each connection to the application, drains
//! - [`app`]: every route with what its callers need, and what happens around each of them
//! - [`caller`], [`rate`]: who asks, what their key may do, and how much
//! - [`session`]: operators who sign in with a key
//! - `person`: a person who asks for themselves, with a token
//! - `verify`: `GET /passkey/verify` (W3)
//! - `upgrade`: `GET /connection/websocket`, where connections of the gateway begin
//! - `api`: `/api/v1`, one file for each kind of thing
//! - `describe`: `/openapi.json` and `/docs`
//! - [`web`]: the dashboard at `/`, a member's page at `/me`
//! - `pages`, [`health`], [`metrics`]: `/healthz`, `/readyz`, `/metrics`
//! - [`pulse`]: the whole at a glance, once a second
//! - [`ranking`]: torrents by how many are on them, as people page through them
//! - [`scans`]: requests that look through much, only so many at a time
//! - [`problem`], `extract`, `etag`, `cors`: what answers and questions have in common
//! - [`site`]: the parts of the process that the site reads and changes
//! - [`settings`], [`counters`]
//!
//! # Guarantees
//!
//! - What is not declared open takes a key, and the key's scope is declared with the route.
//! - A change is in the audit trail before it is acknowledged.
//! - Numbers of bytes are decimal texts (L2).
//!
//! # Deliberately absent
//!
//! Passwords: a key signs in; HTTP/2, which a proxy in front can speak; anything on the announce path.

mod api;
pub mod app;
pub mod caller;
mod cors;
pub mod counters;
pub mod describe;
mod etag;
mod extract;
pub mod health;
pub mod metrics;
mod pages;
mod person;
pub mod problem;
pub mod pulse;
pub mod ranking;
pub mod rate;
pub mod scans;
pub mod server;
pub mod session;
pub mod settings;
pub mod site;
mod upgrade;
mod verify;
pub mod web;

pub use counters::SiteCounters;
pub use health::{Dependency, Health};
pub use pulse::{Pulse, PulseSources};
pub use server::{RunningSite, SiteError, UnboundSite, listen};
pub use settings::{SiteLimits, SiteSettings};
pub use site::{Parts, Site, ViewGroup};
