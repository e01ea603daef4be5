//! The site: an HTTP API over every part of the process, passkey verification for other trackers, metrics and health.
//!
//! # Layout
//!
//! - [`server`]: listens, gives each connection to the application, drains
//! - [`app`]: all routes with their scopes, and the layers around them
//! - [`caller`], [`rate`]: authentication, scopes, rate limits
//! - [`session`]: operator sessions, started with a key
//! - `person`: requests of a member, authenticated by their token
//! - `verify`: `GET /passkey/verify` (W3)
//! - `upgrade`: `GET /connection/websocket`, handed to the gateway
//! - `api`: `/api/v1`, one file per resource
//! - `describe`: `/openapi.json` and `/docs`
//! - [`web`]: the dashboard at `/`, a member's page at `/me`
//! - `pages`, [`health`], [`metrics`]: `/healthz`, `/readyz`, `/metrics`
//! - [`pulse`]: the overview, computed once a second
//! - [`ranking`]: torrents sorted by counts, in stable pages
//! - `roster`: users sorted by traffic; `gone`: all hit-and-runs; `snapshot`: lists that are kept for a while
//! - [`scans`]: a limit on concurrent searches
//! - [`problem`], `extract`, `etag`, `cors`: shared parts of requests and answers
//! - [`site`]: the parts of the process that the site reads and changes
//! - [`settings`], [`counters`]
//!
//! # Guarantees
//!
//! - A route that is not declared open needs a key; its scope is declared with the route.
//! - A change is in the audit trail before it is acknowledged.
//! - Amounts of bytes are decimal strings (L2).
//!
//! # Deliberately absent
//!
//! Passwords (operators sign in with a key); HTTP/2 (a proxy can add it); anything on the announce path.
//!
//! # A request
//!
//! A connection has a place among `connections_max`; its head must come within time and length. Then: client address
//! behind proxies, rate limit of the address, CORS, key or session with scope and CSRF token, a deadline for
//! everything but uploads, ETag, the handler, and for changes `recorded`: check that the audit trail can be written,
//! make the change, record it, answer. Errors are `application/problem+json`; internal causes are logged only.
//!
//! Routes are declared once with utoipa. `/docs` is rendered from the description at the start, without a script.
//!
//! # The dashboard
//!
//! The build script turns `web/dist` into a table in the binary, with compressed forms; no path is looked up on a
//! disk. Assets have a hash in their name and are cached for ever; pages are revalidated. The content security policy
//! allows scripts, styles and connections of this server only and no frames, except `/me` for `site.embed_origins`.
//!
//! A cookie is guarded by `SameSite=Strict`, by `X-CSRF-Token`, and at sign-in by `Sec-Fetch-Site` or `Origin`. Two
//! different cookies of the name are refused.
//!
//! The overview is computed by one task, once a second: counters of tracker and gateway become rates over five
//! seconds; what needs I/O is fetched beside it and may be missing, which is an alert. It is serialised once for all
//! viewers. Every ten seconds it becomes a point of the last hour, in memory.
//!
//! Rankings of all torrents are a sorted copy of all counts, made on request when the last one is older than a second
//! (longer if it took long). A cursor names its ranking, which is kept for five minutes, so that pages join without
//! gaps.
//!
//! Users sorted by amounts, ratio or activity, and all hit-and-runs, are lists in memory, read when a page asks and
//! the last copy is too old, one read at a time, and kept for ten times as long as the read took: no index has these
//! orders. By number, users come from the database. The staff queue merges risk events, dead letters and failed
//! entries of the journal, torrents that await approval, and hit-and-runs; a cursor is a place in the merged order.
//!
//! Health: a request never waits for a dead dependency. A dependency names the one it needs; of those that fail
//! together only the cause is logged and is an alert.
//!
//! Metrics have no bookkeeping of their own: each part's atomics are read at a scrape. What needs I/O is refreshed by
//! a task, and the page shows the last answer and its age.

pub mod alerts;
mod api;
pub mod app;
pub mod caller;
mod cors;
pub mod counters;
pub mod describe;
mod etag;
mod extract;
mod gone;
pub mod health;
pub mod metrics;
mod pages;
mod person;
pub mod problem;
pub mod pulse;
pub mod ranking;
pub mod rate;
mod roster;
pub mod scans;
pub mod server;
pub mod session;
pub mod settings;
pub mod site;
mod snapshot;
mod upgrade;
mod verify;
pub mod web;

pub use counters::SiteCounters;
pub use health::{Dependency, Health};
pub use pulse::{Pulse, PulseSources};
pub use server::{RunningSite, SiteError, UnboundSite, listen};
pub use settings::{SiteLimits, SiteSettings};
pub use site::{Parts, Site, ViewGroup};
