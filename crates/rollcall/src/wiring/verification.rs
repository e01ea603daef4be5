//! Verification of unknown passkeys by whitelist and endpoint.

use std::sync::Arc;
use std::time::Duration;

use access::verification::{EndpointSettings, Requests, VerifierParts, VerifyEndpoint};
use access::{Gate, PasskeyFeed, Store, UnknownPasskeys, VerificationSettings, Verifier};
use anyhow::Context;
use domain::{Seconds, UserId};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::stores::{self, system_clock};
use crate::config::Config;
use crate::roles::{Role, Roles};

/// Cached results.
const CACHE_ENTRIES_MAX: usize = 1_000_000;
/// Concurrent calls of the verify endpoint.
const VERIFY_CALLS_AT_ONCE_MAX: usize = 32;
/// Interval at which removals from the whitelist are read.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Calls of the verify endpoint per second; a tenth of them for clients of one address (IPv6: one /64).
const VERIFY_CALLS_PER_S: u32 = 100;
/// The circuit breaker opens after this many failures in a row, for `VERIFY_PAUSE`.
const VERIFY_FAILURES_MAX: u32 = 5;
const VERIFY_PAUSE: Duration = Duration::from_secs(10);

impl Config {
    pub fn verification_settings(&self) -> anyhow::Result<VerificationSettings> {
        let access = &self.access;
        Ok(VerificationSettings {
            valid_for: Seconds(access.cache_valid_s),
            invalid_for: Seconds(access.cache_invalid_s),
            entries_max: CACHE_ENTRIES_MAX,
            call_timeout: Duration::from_millis(access.verify_timeout_ms.into()),
            calls_per_s: VERIFY_CALLS_PER_S,
            calls_at_once_max: VERIFY_CALLS_AT_ONCE_MAX,
            failures_max: VERIFY_FAILURES_MAX,
            pause: VERIFY_PAUSE,
            on_failure: access.on_verify_failure,
            feed_every: POLL_INTERVAL,
            external_id_min: UserId::new(access.external_id_min.into())
                .context("access.external_id_min must be positive")?,
        })
    }

    fn verify_endpoint(&self) -> anyhow::Result<Option<VerifyEndpoint>> {
        let access = &self.access;
        let Some(url) = access.verify_url.as_str() else { return Ok(None) };
        let api_key = access.verify_api_key.reveal().or(self.site.tracker_api_key.reveal());
        let endpoint = VerifyEndpoint::new(&EndpointSettings {
            url: url.to_owned(),
            api_key: api_key.unwrap_or_default().to_owned(),
            ca_file: access.verify_ca_file.clone(),
            timeout: Duration::from_millis(access.verify_timeout_ms.into()),
            connections_max: VERIFY_CALLS_AT_ONCE_MAX,
        })?;
        Ok(Some(endpoint))
    }
}

/// Verification requests queue here until it is started.
pub struct PendingVerification {
    unknown_passkeys: Arc<UnknownPasskeys>,
    requests: Requests,
    endpoint: Option<VerifyEndpoint>,
    settings: VerificationSettings,
}

/// The running verifier.
pub struct VerificationTask {
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

/// The gate, which verifies unknown passkeys, and behind it the gate of the Redis source, if Redis is configured and
/// a role of this process needs it.
pub fn open_gates(
    config: &Config,
    roles: &Roles,
) -> anyhow::Result<(Arc<Gate>, Option<Arc<Gate>>, PendingVerification)> {
    let settings = config.verification_settings()?;
    let endpoint = config.verify_endpoint()?;
    let (unknown_passkeys, requests) = UnknownPasskeys::new(settings.answer_timeout());
    let is_needed =
        [Role::Tracker, Role::Ledger, Role::Mirror, Role::Site].iter().any(|role| roles.include(*role));
    let site = config.redis_settings()?.filter(|_| is_needed).map(|_| Arc::new(Gate::default()));
    let gate = Gate::with_verification(Arc::clone(&unknown_passkeys));
    let gate = match &site {
        Some(site) => gate.with_redis_source(Arc::clone(site)),
        None => gate,
    };
    Ok((Arc::new(gate), site, PendingVerification { unknown_passkeys, requests, endpoint, settings }))
}

impl PendingVerification {
    /// `evict` is called for users whose peers must be removed.
    pub async fn start(
        self,
        config: &Config,
        store: &Store,
        gate: &Arc<Gate>,
        evict: impl FnMut(UserId) + Send + 'static,
    ) -> anyhow::Result<VerificationTask> {
        let parts = VerifierParts {
            unknown_passkeys: self.unknown_passkeys,
            requests: self.requests,
            gate: Arc::clone(gate),
            store: store.clone(),
            whitelist: stores::open_whitelist(config, store)?.store,
            feed: PasskeyFeed::open(store).await?,
            endpoint: self.endpoint,
            clock: system_clock(),
        };
        let verifier = Verifier::new(parts, self.settings);
        let (stop, stopped) = oneshot::channel::<()>();
        Ok(VerificationTask { stop, running: tokio::spawn(verifier.run(evict, stopped)) })
    }
}

impl VerificationTask {
    /// Requests that still wait are answered with `retry in`.
    pub async fn stop(self) {
        // The task stops when its sender is dropped.
        drop(self.stop);
        let _ = self.running.await;
    }
}
