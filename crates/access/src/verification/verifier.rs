//! The verifier task. It owns all state and queues of verification. I/O runs in tasks that return a [`TaskResult`], so the
//! loop itself never blocks.
//!
//! - here: receives requests, looks passkeys up on the whitelist, calls the endpoint
//! - `results`: caches answers, creates accounts
//! - `whitelist`: applies whitelist changes, writes to the whitelist

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use domain::clock::Clock;
use domain::{LogThrottle, Passkey, UnixTime, UserId};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, timeout};

use super::answers::{AnswerCache, Source};
use super::calls::{CallScheduler, Permit};
use super::counters::VerificationCounters;
use super::endpoint::{CallFailure, EndpointAnswer, VerifyEndpoint};
use super::pending::{Joined, PendingRequests};
use super::unknown_passkeys::{Request, Requests, UnknownPasskeys};
use super::whitelist_writes::WhitelistWrites;
use super::{OnVerifyFailure, STEP_TIMEOUT, VerificationSettings};
use crate::error::AccessError;
use crate::gate::Gate;
use crate::store::{ExternalUser, Store};
use crate::whitelist::Whitelist;
use crate::whitelist::feed::{PasskeyChange, PasskeyFeed};

mod results;
mod whitelist;

use results::VerifiedPasskey;
use whitelist::{Recheck, RecheckBatch};

/// Requests received at once.
const REQUESTS_AT_ONCE: usize = 1024;
/// Passkeys per whitelist lookup.
const LOOKUP_MAX: usize = 500;
/// Concurrent whitelist lookups.
const LOOKUPS_AT_ONCE: usize = 4;
/// Interval of probes and of the check for overdue calls.
const TICK: Duration = Duration::from_millis(100);

pub struct VerifierParts {
    pub unknown_passkeys: Arc<UnknownPasskeys>,
    pub requests: Requests,
    pub gate: Arc<Gate>,
    /// Accounts of external users are created here.
    pub store: Store,
    pub whitelist: Arc<dyn Whitelist>,
    /// Changes of `whitelist`.
    pub feed: PasskeyFeed,
    pub endpoint: Option<VerifyEndpoint>,
    pub clock: Arc<dyn Clock>,
}

pub struct Verifier {
    unknown_passkeys: Arc<UnknownPasskeys>,
    requests: mpsc::Receiver<Request>,
    gate: Arc<Gate>,
    store: Store,
    whitelist: Arc<dyn Whitelist>,
    endpoint: Option<VerifyEndpoint>,
    clock: Arc<dyn Clock>,
    settings: VerificationSettings,
    pending: PendingRequests,
    lookup_queue: VecDeque<Passkey>,
    lookups_running: usize,
    calls: CallScheduler,
    account_queue: VecDeque<VerifiedPasskey>,
    is_creating_accounts: bool,
    writes: WhitelistWrites,
    recheck: Recheck,
    /// None while a task reads it.
    feed: Option<PasskeyFeed>,
    feed_read_begun: Duration,
    feed_due: Duration,
    /// Users whose peers must be evicted; reported at the end of each loop iteration.
    revoked: Vec<UserId>,
    log_throttles: LogThrottles,
    tasks: JoinSet<TaskResult>,
    started: Instant,
}

enum TaskResult {
    Lookup(Vec<Passkey>, Result<Vec<bool>, AccessError>),
    Call { passkey: Passkey, is_probe: bool, outcome: Result<EndpointAnswer, CallFailure> },
    Accounts(Vec<VerifiedPasskey>, Result<Vec<Result<ExternalUser, AccessError>>, AccessError>),
    Write(Result<(), AccessError>),
    Recheck(RecheckBatch, Result<Vec<bool>, AccessError>),
    Feed(Box<PasskeyFeed>, Result<Vec<PasskeyChange>, AccessError>),
}

#[derive(Debug, Default)]
struct LogThrottles {
    whitelist: LogThrottle,
    endpoint: LogThrottle,
    accounts: LogThrottle,
}

impl Verifier {
    pub fn new(parts: VerifierParts, settings: VerificationSettings) -> Self {
        Verifier {
            calls: CallScheduler::new(&settings),
            unknown_passkeys: parts.unknown_passkeys,
            requests: parts.requests.0,
            gate: parts.gate,
            store: parts.store,
            whitelist: parts.whitelist,
            endpoint: parts.endpoint,
            clock: parts.clock,
            settings,
            pending: PendingRequests::default(),
            lookup_queue: VecDeque::new(),
            lookups_running: 0,
            account_queue: VecDeque::new(),
            is_creating_accounts: false,
            writes: WhitelistWrites::default(),
            recheck: Recheck::default(),
            feed: Some(parts.feed),
            feed_read_begun: Duration::ZERO,
            feed_due: Duration::ZERO,
            revoked: Vec::new(),
            log_throttles: LogThrottles::default(),
            tasks: JoinSet::new(),
            started: Instant::now(),
        }
    }

    /// Runs until `shutdown` is ready; pending requests are dropped then. `on_revoked` gets each user whose peers must be
    /// evicted, after the gate refuses them.
    pub async fn run(mut self, mut on_revoked: impl FnMut(UserId), shutdown: impl Future) {
        let mut shutdown = pin!(shutdown);
        let mut ticks = tokio::time::interval(TICK.min(self.settings.feed_every));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut requests = Vec::new();
        // Records whether the whitelist exists before the first request.
        self.begin_lookup(Vec::new());
        loop {
            tokio::select! {
                biased;
                _ = &mut shutdown => return,
                Some(result) = self.tasks.join_next(), if !self.tasks.is_empty() => match result {
                    Ok(result) => self.on_result(result),
                    Err(error) => tracing::error!(%error, "verification task panicked"),
                },
                received = self.requests.recv_many(&mut requests, REQUESTS_AT_ONCE) => {
                    if received == 0 {
                        return;
                    }
                    requests.drain(..).for_each(|request| self.on_request(request));
                    self.begin_lookups();
                }
                _ = ticks.tick() => self.on_tick(),
            }
            self.counters().waiting.set(self.pending.waiting());
            self.counters().cache_entries.set(self.answers().len());
            self.revoked.drain(..).for_each(&mut on_revoked);
        }
    }

    fn counters(&self) -> &VerificationCounters {
        self.unknown_passkeys.counters()
    }

    fn answers(&self) -> &AnswerCache {
        self.unknown_passkeys.answers()
    }

    /// Steady time, because the lifetime of an answer is a duration.
    fn now(&self) -> UnixTime {
        self.clock.steady()
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn on_result(&mut self, result: TaskResult) {
        match result {
            TaskResult::Lookup(passkeys, found) => self.on_lookup(&passkeys, found),
            TaskResult::Call { passkey, is_probe, outcome } => self.on_call(passkey, is_probe, outcome),
            TaskResult::Accounts(verified, outcome) => self.on_accounts(verified, outcome),
            TaskResult::Write(outcome) => self.on_write(outcome),
            TaskResult::Recheck(batch, found) => self.on_recheck(batch, found),
            TaskResult::Feed(feed, changes) => self.on_feed(*feed, changes),
        }
    }

    fn on_tick(&mut self) {
        let now = self.elapsed();
        if let Some(passkey) = self.calls.begin_probe(now) {
            self.call(passkey, true);
        }
        self.drop_overdue_calls();
        // A panicked task must not leave its passkeys pending for ever.
        let lost_after = 4 * self.settings.answer_timeout() + Duration::from_secs(30);
        for passkey in self.pending.begun_before(now.saturating_sub(lost_after)) {
            self.finish(&passkey);
        }
        self.read_feed(now);
        self.continue_recheck();
    }

    fn on_request(&mut self, request: Request) {
        let passkey = request.passkey;
        let cached = self.answers().get(&passkey).filter(|answer| answer.is_fresh(self.now()));
        let redis_user = self.gate.redis_user_of(&passkey);
        // A negative answer from before the site wrote its key does not count.
        let is_answered = cached.is_some_and(|answer| answer.verified.is_some() || redis_user.is_none());
        if is_answered || self.gate.holder(&passkey).is_some_and(|holder| !holder.is_external) {
            return (request.on_answer)();
        }
        match self.pending.join(request, self.elapsed()) {
            Joined::First => match redis_user {
                Some(_) => self.on_verified(VerifiedPasskey {
                    passkey,
                    source: Source::RedisKey,
                    site_id: redis_user,
                }),
                None => self.lookup_queue.push_back(passkey),
            },
            Joined::Existing => self.counters().requests_joined.increment(),
            Joined::Full => self.counters().requests_dropped.increment(),
        }
    }

    fn begin_lookups(&mut self) {
        while self.lookups_running < LOOKUPS_AT_ONCE && !self.lookup_queue.is_empty() {
            let count = self.lookup_queue.len().min(LOOKUP_MAX);
            let passkeys = self.lookup_queue.drain(..count).collect();
            self.begin_lookup(passkeys);
        }
    }

    fn begin_lookup(&mut self, passkeys: Vec<Passkey>) {
        let whitelist = Arc::clone(&self.whitelist);
        self.lookups_running += 1;
        self.tasks.spawn(async move {
            let found = within(STEP_TIMEOUT, whitelist.check(&passkeys)).await;
            TaskResult::Lookup(passkeys, found)
        });
    }

    fn on_lookup(&mut self, passkeys: &[Passkey], found: Result<Vec<bool>, AccessError>) {
        self.lookups_running -= 1;
        if let Err(error) = &found {
            self.warn_of_whitelist(error);
        }
        for (index, passkey) in passkeys.iter().copied().enumerate() {
            match found.as_ref().ok().and_then(|found| found.get(index)) {
                Some(true) if !self.writes.is_being_removed(&passkey) => {
                    self.counters().whitelist_hits.increment();
                    self.on_verified(VerifiedPasskey { passkey, source: Source::Whitelist, site_id: None });
                }
                Some(_) => {
                    self.counters().whitelist_misses.increment();
                    self.ask_endpoint(passkey, false);
                }
                None => {
                    self.counters().whitelist_failures.increment();
                    self.ask_endpoint(passkey, true);
                }
            }
        }
        self.begin_lookups();
    }

    fn warn_of_whitelist(&self, error: &AccessError) {
        if self.log_throttles.whitelist.admit(self.now()).is_some() {
            tracing::warn!(%error, "whitelist unavailable; unknown passkeys cannot be looked up");
        }
    }

    /// The second source, for a passkey that the whitelist does not have or could not look up.
    fn ask_endpoint(&mut self, passkey: Passkey, whitelist_failed: bool) {
        // None if `on_tick` has dropped it.
        let Some(pending) = self.pending.get_mut(&passkey) else { return };
        pending.whitelist_failed = whitelist_failed;
        let from = pending.from;
        if self.endpoint.is_none() {
            let is_undecided = whitelist_failed || self.gate.is_redis_source_unread();
            return if is_undecided { self.on_unavailable(passkey) } else { self.on_invalid(passkey) };
        }
        let now = self.elapsed();
        match self.calls.request(passkey, from, now, self.unknown_passkeys.counters()) {
            Permit::Call => self.call(passkey, false),
            Permit::Queued => {}
            Permit::Refused => self.on_unavailable(passkey),
        }
    }

    fn call(&mut self, passkey: Passkey, is_probe: bool) {
        let Some(endpoint) = self.endpoint.clone() else { return };
        self.tasks.spawn(async move {
            let outcome = endpoint.verify(&passkey).await;
            TaskResult::Call { passkey, is_probe, outcome }
        });
    }

    /// The answer to a probe closes the breaker and is not used for its passkey, which may have no pending request and
    /// was not looked up on the whitelist.
    fn on_call(&mut self, passkey: Passkey, is_probe: bool, outcome: Result<EndpointAnswer, CallFailure>) {
        self.calls.end();
        match outcome {
            Ok(answer) => {
                if self.calls.on_answer() {
                    tracing::info!("verify endpoint answers again");
                }
                self.publish_breaker_state();
                let calls = &self.counters().calls;
                if answer.valid {
                    calls.valid.increment()
                } else {
                    calls.invalid.increment()
                }
                match answer {
                    _ if is_probe => {}
                    EndpointAnswer { valid: true, user: site_id } => {
                        self.on_verified(VerifiedPasskey { passkey, source: Source::Endpoint, site_id });
                    }
                    EndpointAnswer { valid: false, .. } => self.on_denied_by_endpoint(passkey),
                }
            }
            Err(failure) => {
                self.on_call_failure(passkey, is_probe, &failure);
                if !is_probe {
                    self.on_unavailable(passkey);
                }
            }
        }
        while let Some(next) = self.calls.next() {
            self.call(next, false);
        }
        self.drop_overdue_calls();
    }

    fn on_call_failure(&mut self, passkey: Passkey, is_probe: bool, failure: &CallFailure) {
        let calls = &self.counters().calls;
        match failure {
            CallFailure::TimedOut(_) => calls.timed_out.increment(),
            CallFailure::Unreachable(_) => calls.unreachable.increment(),
            CallFailure::WrongStatus(_) => calls.wrong_status.increment(),
            CallFailure::BodyTruncated | CallFailure::BodyMalformed => calls.unreadable.increment(),
        }
        if self.log_throttles.endpoint.admit(self.now()).is_some() {
            tracing::warn!(error = %failure, "verify endpoint call failed");
        }
        if self.calls.on_failure(self.elapsed(), passkey, is_probe) {
            self.counters().breaker_openings.increment();
            tracing::warn!(
                error = %failure,
                pause_s = self.settings.pause.as_secs(),
                "verify endpoint failed repeatedly; circuit breaker open"
            );
        }
        self.publish_breaker_state();
    }

    fn drop_overdue_calls(&mut self) {
        while let Some(passkey) = self.calls.take_overdue(self.elapsed()) {
            self.counters().calls_overdue.increment();
            self.on_unavailable(passkey);
        }
    }

    /// To the metrics and to the gate.
    fn publish_breaker_state(&self) {
        let is_open = self.calls.is_suspended();
        self.counters().set_breaker_open(is_open);
        self.unknown_passkeys.set_refuses_all(is_open && self.settings.on_failure == OnVerifyFailure::Refuse);
    }
}

/// Limits the duration of an operation; past the limit it fails with a retryable error.
async fn within<T>(
    limit: Duration,
    operation: impl Future<Output = Result<T, AccessError>>,
) -> Result<T, AccessError> {
    let busy = || AccessError::Database(database::DatabaseError::Busy);
    timeout(limit, operation).await.unwrap_or_else(|_| Err(busy()))
}
