//! The site: HTTP API, passkey verification, dashboard, metrics and health.
//!
//! # Layout
//!
//! - [`server`]: listener, connections, drain
//! - [`app`]: all routes with their scopes and middleware
//! - [`auth`], [`rate_limit`]: authentication, scopes, rate limits
//! - [`session`]: operator sessions
//! - `user_token`: authentication of members by their presence token
//! - `verify`: `GET /passkey/verify` (W3)
//! - `websocket`: `GET /connection/websocket`, handed to the gateway
//! - `api`: `/api/v1`, one file per resource
//! - [`openapi`]: `/openapi.json` and `/docs`
//! - [`web`]: the dashboard at `/`, a member's page at `/me`
//! - `monitoring`, [`health`], [`metrics`]: `/healthz`, `/readyz`, `/metrics`
//! - [`alerts`]: one table of alerts, for the dashboard and for Prometheus
//! - [`overview`]: the state of the server, computed once a second while it is asked for
//! - [`ranking`]: torrents sorted by peer counts; `user_ranking`: users sorted by traffic
//! - `hit_and_run_list`: all hit-and-runs; `cached_value`: values that are expensive to read
//! - [`scan_limit`]: a limit on concurrent scans
//! - [`problem`], `extract`, `etag`, `cors`: shared parts of requests and responses
//! - [`site`]: the state of the application
//! - [`settings`], [`counters`]
//!
//! # Guarantees
//!
//! - A route that is not declared public needs a key; its scope is declared with the route.
//! - A change is in the audit trail before it is acknowledged.
//! - Amounts of bytes are decimal strings (L2).
//!
//! # Deliberately absent
//!
//! Passwords (operators sign in with a key); HTTP/2 (a proxy can add it); anything on the announce path.
//!
//! # A request
//!
//! A connection counts against `connections_max`; its request head is limited in time and size. Then: client address
//! behind proxies, rate limit of the address, CORS, key or session with scope and CSRF token, a timeout for everything
//! except uploads, ETag, the handler, and for changes `recorded`: check that the audit trail can be written, make the
//! change, record it, respond. Errors are `application/problem+json`; internal causes are logged only.
//!
//! Routes are declared once with utoipa. `/docs` is rendered from the description at the start, without a script.
//!
//! # The dashboard
//!
//! The build script turns `web/dist` into a table in the binary, with compressed forms; no path is looked up on disk.
//! Assets have a hash in their name and are cached forever; pages are revalidated. The content security policy allows
//! scripts, styles and connections of this server only and no frames, except `/me` for `site.embed_origins`.
//!
//! A session cookie is protected by `SameSite=Strict`, by `X-CSRF-Token`, and at sign-in by `Sec-Fetch-Site` or `Origin`.
//! Two different cookies of the name are refused.
//!
//! The overview is computed by one task, once a second while it is asked for: counters of tracker and gateway become rates over five seconds;
//! sources that need I/O are polled separately and may be missing, which is an alert. It is serialised once for all
//! viewers. Every ten seconds it becomes a point of the last hour, in memory.
//!
//! A ranking of torrents is a sorted copy of all counts, computed on request when the last one is older than a second
//! (longer if it took long). A cursor contains the id of its ranking, which stays cached for five minutes, so that pages
//! have no gaps.
//!
//! Users sorted by amounts, ratio or activity, and all hit-and-runs, are cached lists: no index has these orders. They are
//! read on request when the cached list is too old, one read at a time, and kept for ten times as long as the read took.
//! Users sorted by id come from the database. The staff queue merges risk events, dead letters and failed entries of the
//! journal, torrents that await approval, and hit-and-runs; a cursor is a position in the merged order.
//!
//! Health: a request never waits for a failing dependency. A dependency declares the one it depends on; of those that fail
//! together only the cause is logged and is an alert.
//!
//! Metrics have no counters of their own: each subsystem's atomics are read at a scrape. Values that need I/O are polled,
//! and the page shows the last result with its age.

pub mod alerts;
mod api;
pub mod app;
pub mod auth;
mod cached_value;
mod cors;
pub mod counters;
mod etag;
mod extract;
pub mod health;
mod hit_and_run_list;
pub mod metrics;
mod monitoring;
pub mod openapi;
pub mod overview;
pub mod problem;
pub mod ranking;
pub mod rate_limit;
pub mod scan_limit;
pub mod server;
pub mod session;
pub mod settings;
pub mod site;
mod user_ranking;
mod user_token;
mod verify;
pub mod web;
mod websocket;

pub use counters::SiteCounters;
pub use health::{Dependency, Health};
pub use overview::{OverviewCollector, OverviewSources};
pub use server::{RunningSite, SiteError, UnboundSite, listen};
pub use settings::{SiteLimits, SiteSettings};
pub use site::{Parts, Site, ViewGroup};
