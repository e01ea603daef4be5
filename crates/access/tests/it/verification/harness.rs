//! A gate with a verifier, a whitelist in SQL or Redis, and optionally an endpoint.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use access::verification::{EndpointSettings, RequestOutcome, VerifierParts, VerifyEndpoint};
use access::{
    Gate, OnVerifyFailure, PasskeyFeed, Passkeys, RedisWhitelist, Refusal, SqlWhitelist, Store,
    UnknownPasskeys, VerificationCounters, VerificationSettings, Verifier, Whitelist,
};
use domain::clock::{Clock, ManualClock};
use domain::{Passkey, Seconds, UserId};
use keyspace::{BaseNames, KeyNames, Mode, Redis, RedisSettings};
use parking_lot::Mutex;
use testkit::{RedisServer, eventually_async};
use tokio::sync::oneshot;

use crate::fixture::{Fixture, NOW, OpenStore, user_id};

pub const KEY: &str = "the tracker's key";
pub const LIMIT: Duration = Duration::from_secs(20);

pub struct Options<'a> {
    pub settings: VerificationSettings,
    pub endpoint: Option<EndpointSettings>,
    pub redis: Option<&'a RedisServer>,
}

pub fn settings() -> VerificationSettings {
    VerificationSettings {
        valid_for: Seconds(300),
        invalid_for: Seconds(60),
        entries_max: 1000,
        call_timeout: Duration::from_secs(5),
        calls_per_s: 1000,
        calls_at_once_max: 4,
        failures_max: 3,
        pause: Duration::from_secs(600),
        on_failure: OnVerifyFailure::KnownOnly,
        feed_every: Duration::from_millis(20),
        external_id_min: user_id(1_000_000),
    }
}

pub fn endpoint_of(endpoint: &testkit::VerifyEndpoint) -> EndpointSettings {
    EndpointSettings {
        url: endpoint.url(),
        api_key: KEY.to_owned(),
        ca_file: endpoint.url().starts_with("https").then(|| endpoint.ca_file()),
        timeout: Duration::from_secs(5),
        connections_max: 4,
    }
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options { settings: settings(), endpoint: None, redis: None }
    }
}

impl Options<'_> {
    pub fn with(endpoint: &testkit::VerifyEndpoint) -> Self {
        Options { endpoint: Some(endpoint_of(endpoint)), ..Options::default() }
    }
}

pub struct Harness {
    pub gate: Arc<Gate>,
    pub store: Store,
    /// Its changes are published in the feed.
    pub passkeys: Passkeys,
    /// Its changes are not published.
    pub whitelist: Arc<dyn Whitelist>,
    pub clock: ManualClock,
    revoked: Arc<Mutex<Vec<UserId>>>,
    _stop: oneshot::Sender<()>,
    _fixture: Fixture,
}

pub fn redis_whitelist(redis: &RedisServer) -> Arc<dyn Whitelist> {
    let settings = RedisSettings::from_url(&redis.url()).unwrap();
    let names = KeyNames::new(&BaseNames::default(), Mode::Single).unwrap();
    Arc::new(RedisWhitelist::new(Redis::new(settings).unwrap(), names))
}

impl Harness {
    pub async fn new(options: Options<'_>) -> Harness {
        let fixture = Fixture::sqlite();
        let store = fixture.store().await;
        let whitelist: Arc<dyn Whitelist> = match options.redis {
            Some(redis) => redis_whitelist(redis),
            None => Arc::new(SqlWhitelist::new(store.clone())),
        };
        let (unknown_passkeys, requests) = UnknownPasskeys::new(options.settings.answer_timeout());
        let gate = Arc::new(Gate::with_verification(Arc::clone(&unknown_passkeys)));
        let follower = access::load(store.clone(), Arc::clone(&gate)).await.unwrap();
        let clock = ManualClock::at(NOW);
        let parts = VerifierParts {
            unknown_passkeys,
            requests,
            gate: Arc::clone(&gate),
            store: store.clone(),
            whitelist: Arc::clone(&whitelist),
            feed: PasskeyFeed::open(&store).await.unwrap(),
            endpoint: options.endpoint.map(|settings| VerifyEndpoint::new(&settings).unwrap()),
            clock: Arc::new(clock.clone()),
        };
        let revoked = Arc::new(Mutex::new(Vec::new()));
        let (stop, stopped) = oneshot::channel::<()>();
        let on_revoked = {
            let revoked = Arc::clone(&revoked);
            move |user| revoked.lock().push(user)
        };
        let verifier = Verifier::new(parts, options.settings);
        tokio::spawn(async move {
            let follow = follower.run(|_| (), std::future::pending::<()>());
            tokio::select! {
                () = verifier.run(on_revoked, stopped) => {}
                () = follow => {}
            }
        });
        let passkeys = Passkeys::new(Arc::clone(&whitelist), store.clone());
        Harness { gate, store, passkeys, whitelist, clock, revoked, _stop: stop, _fixture: fixture }
    }

    /// Decides about a passkey as a listener does: requests a verification if the gate has no answer.
    pub async fn admit(&self, passkey: Passkey) -> Result<UserId, Refusal> {
        self.admit_from(passkey, Ipv4Addr::LOCALHOST.into()).await
    }

    pub async fn admit_from(&self, passkey: Passkey, from: IpAddr) -> Result<UserId, Refusal> {
        for _ in 0..2 {
            match self.gate.admit_user(&passkey, self.clock.now()) {
                Ok(user) => return Ok(user),
                Err(refusal) if refusal != Refusal::NotVerified => return Err(refusal),
                Err(_) => self.verify(passkey, from).await,
            }
        }
        match self.gate.admit_user(&passkey, self.clock.now()) {
            Ok(user) => Ok(user),
            Err(Refusal::NotVerified) => Err(Refusal::CannotCheck),
            Err(refusal) => Err(refusal),
        }
    }

    async fn verify(&self, passkey: Passkey, from: IpAddr) {
        let (answered, answer) = oneshot::channel();
        let outcome = self.gate.unknown_passkeys().unwrap().request(
            passkey,
            from,
            Box::new(move || {
                let _ = answered.send(());
            }),
        );
        assert_eq!(outcome, RequestOutcome::Queued);
        tokio::time::timeout(LIMIT, answer).await.expect("an answer in time").expect("a running verifier");
    }

    pub fn counters(&self) -> &VerificationCounters {
        self.gate.unknown_passkeys().unwrap().counters()
    }

    pub fn revoked(&self) -> Vec<UserId> {
        self.revoked.lock().clone()
    }

    pub async fn is_listed(&self, passkey: Passkey) -> bool {
        self.whitelist.contains(&[passkey]).await.unwrap()[0]
    }
}

pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    eventually_async(what, LIMIT, async || holds().await.then_some(())).await;
}
