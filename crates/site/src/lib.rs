//! The site's side: an HTTP API over every view, passkey verification for other trackers, metrics and health.
pub mod metrics;
