//! Strangers: who vouches for them, as configured.

use std::sync::Arc;
use std::time::Duration;

use access::vouching::{EndpointSettings, Parts, Questions, VerifyEndpoint};
use access::{Gate, PasskeyFeed, Store, Strangers, Vouching, VouchingSettings};
use anyhow::Context;
use domain::{Seconds, UserId};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::backends::{self, system_clock};
use crate::config::Config;
use crate::roles::{Role, Roles};

/// Verdicts that are cached.
const CACHE_ENTRIES_MAX: usize = 1_000_000;
/// Concurrent calls of the verify endpoint.
const VERIFY_CALLS_AT_ONCE_MAX: usize = 32;
/// How often removals from the whitelist are looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Calls of the verify endpoint per second; a tenth of them for clients of one address (IPv6: one /64).
const VERIFY_CALLS_PER_S: u32 = 100;
/// The circuit breaker opens after this many failures in a row, for `VERIFY_PAUSE`.
const VERIFY_FAILURES_MAX: u32 = 5;
const VERIFY_PAUSE: Duration = Duration::from_secs(10);

impl Config {
    /// How strangers are judged.
    pub fn vouching_settings(&self) -> anyhow::Result<VouchingSettings> {
        let access = &self.access;
        Ok(VouchingSettings {
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
            adopted_id_min: UserId::new(access.adopted_id_min.into())
                .context("access.adopted_id_min must be positive")?,
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

/// Questions about strangers that nobody answers yet.
pub struct Unopened {
    strangers: Arc<Strangers>,
    questions: Questions,
    endpoint: Option<VerifyEndpoint>,
    settings: VouchingSettings,
}

/// The task that answers them.
pub struct Office {
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

/// A gate that verifies unknown passkeys; and the one behind it for the site's keys, where there is Redis and a role of
/// this process asks about torrents or passkeys.
pub fn gates(config: &Config, roles: &Roles) -> anyhow::Result<(Arc<Gate>, Option<Arc<Gate>>, Unopened)> {
    let settings = config.vouching_settings()?;
    let endpoint = config.verify_endpoint()?;
    let (strangers, questions) = Strangers::new(settings.patience());
    let asks =
        [Role::Tracker, Role::Ledger, Role::Mirror, Role::Site].iter().any(|role| roles.include(*role));
    let site = config.redis_settings()?.filter(|_| asks).map(|_| Arc::new(Gate::default()));
    let gate = Gate::with_strangers(Arc::clone(&strangers));
    let gate = match &site {
        Some(site) => gate.with_site(Arc::clone(site)),
        None => gate,
    };
    Ok((Arc::new(gate), site, Unopened { strangers, questions, endpoint, settings }))
}

impl Unopened {
    /// Begins to answer. `turn_out` hears of users whose peers must go.
    pub async fn open(
        self,
        config: &Config,
        store: &Store,
        gate: &Arc<Gate>,
        turn_out: impl FnMut(UserId) + Send + 'static,
    ) -> anyhow::Result<Office> {
        let parts = Parts {
            strangers: self.strangers,
            questions: self.questions,
            gate: Arc::clone(gate),
            store: store.clone(),
            whitelist: backends::open_whitelist(config, store)?.store,
            feed: PasskeyFeed::open(store).await?,
            endpoint: self.endpoint,
            clock: system_clock(),
        };
        let vouching = Vouching::new(parts, self.settings);
        let (stop, stopped) = oneshot::channel::<()>();
        Ok(Office { stop, running: tokio::spawn(vouching.run(turn_out, stopped)) })
    }
}

impl Office {
    /// Answers nobody any more. Whoever still waits is told to come back.
    pub async fn close(self) {
        // It ends as soon as its sender is gone.
        drop(self.stop);
        let _ = self.running.await;
    }
}
