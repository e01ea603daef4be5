//! A gate with an office behind it, a whitelist in SQL or Redis, and an endpoint.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use access::vouching::{Asked, EndpointSettings, Parts, VerifyEndpoint};
use access::{
    Denied, Gate, OnVerifyFailure, PasskeyFeed, Passkeys, RedisWhitelist, Refusal, SqlWhitelist, Store,
    Strangers, Vouching, VouchingCounters, VouchingSettings, Whitelist,
};
use domain::clock::{Clock, ManualClock};
use domain::{Passkey, Seconds, UserId};
use keyspace::{BaseNames, KeyNames, Mode, Redis, RedisSettings};
use parking_lot::Mutex;
use testkit::RedisServer;
use tokio::sync::oneshot;

use crate::fixture::{Fixture, NOW, user_id};

pub const KEY: &str = "the tracker's key";
pub const LIMIT: Duration = Duration::from_secs(20);

/// What a test may want to be different.
pub struct Wishes<'a> {
    pub settings: VouchingSettings,
    pub endpoint: Option<EndpointSettings>,
    pub redis: Option<&'a RedisServer>,
}

pub fn settings() -> VouchingSettings {
    VouchingSettings {
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
        adopted_id_min: user_id(1_000_000),
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

impl Default for Wishes<'_> {
    fn default() -> Self {
        Wishes { settings: settings(), endpoint: None, redis: None }
    }
}

impl Wishes<'_> {
    pub fn with(endpoint: &testkit::VerifyEndpoint) -> Self {
        Wishes { endpoint: Some(endpoint_of(endpoint)), ..Wishes::default() }
    }
}

pub struct Rig {
    pub gate: Arc<Gate>,
    pub store: Store,
    /// Changes that trackers are told of.
    pub passkeys: Passkeys,
    /// Changes that nobody is told of.
    pub whitelist: Arc<dyn Whitelist>,
    pub clock: ManualClock,
    shut_out: Arc<Mutex<Vec<UserId>>>,
    _stop: oneshot::Sender<()>,
    _fixture: Fixture,
}

pub fn redis_whitelist(redis: &RedisServer) -> Arc<dyn Whitelist> {
    let settings = RedisSettings::from_url(&redis.url()).unwrap();
    let names = KeyNames::new(&BaseNames::default(), Mode::Single).unwrap();
    Arc::new(RedisWhitelist::new(Redis::new(settings).unwrap(), names))
}

impl Rig {
    pub async fn new(wishes: Wishes<'_>) -> Rig {
        let fixture = Fixture::sqlite();
        let store = fixture.store().await;
        let whitelist: Arc<dyn Whitelist> = match wishes.redis {
            Some(redis) => redis_whitelist(redis),
            None => Arc::new(SqlWhitelist::new(store.clone())),
        };
        let (strangers, questions) = Strangers::new(wishes.settings.patience());
        let gate = Arc::new(Gate::with_strangers(Arc::clone(&strangers)));
        let follower = access::load(store.clone(), Arc::clone(&gate)).await.unwrap();
        let clock = ManualClock::at(NOW);
        let parts = Parts {
            strangers,
            questions,
            gate: Arc::clone(&gate),
            store: store.clone(),
            whitelist: Arc::clone(&whitelist),
            feed: PasskeyFeed::open(&store).await.unwrap(),
            endpoint: wishes.endpoint.map(|settings| VerifyEndpoint::new(&settings).unwrap()),
            clock: Arc::new(clock.clone()),
        };
        let shut_out = Arc::new(Mutex::new(Vec::new()));
        let (stop, stopped) = oneshot::channel::<()>();
        let turned_out = Arc::clone(&shut_out);
        let office = Vouching::new(parts, wishes.settings);
        tokio::spawn(async move {
            let follow =
                follower.poll_every(Duration::from_millis(20)).run(|_| (), std::future::pending::<()>());
            tokio::select! {
                () = office.run(move |user| turned_out.lock().push(user), stopped) => {}
                () = follow => {}
            }
        });
        let passkeys = Passkeys::new(Arc::clone(&whitelist), store.clone());
        Rig { gate, store, passkeys, whitelist, clock, shut_out, _stop: stop, _fixture: fixture }
    }

    /// Judges a passkey as a listener does: asks once if it has to be asked about.
    pub async fn judge(&self, passkey: Passkey) -> Result<UserId, Refusal> {
        self.judge_from(passkey, Ipv4Addr::LOCALHOST.into()).await
    }

    /// The same for a client at this address.
    pub async fn judge_from(&self, passkey: Passkey, from: IpAddr) -> Result<UserId, Refusal> {
        for _ in 0..2 {
            match self.gate.admit_user(&passkey, self.clock.now()) {
                Ok(user) => return Ok(user),
                Err(Denied::Refused(refusal)) => return Err(refusal),
                Err(Denied::Ask) => self.ask(passkey, from).await,
            }
        }
        match self.gate.admit_user(&passkey, self.clock.now()) {
            Ok(user) => Ok(user),
            Err(Denied::Refused(refusal)) => Err(refusal),
            Err(Denied::Ask) => Err(Refusal::CannotCheck),
        }
    }

    async fn ask(&self, passkey: Passkey, from: IpAddr) {
        let (answered, answer) = oneshot::channel();
        let asked = self.gate.strangers().unwrap().ask(
            passkey,
            from,
            Box::new(move || {
                let _ = answered.send(());
            }),
        );
        assert_eq!(asked, Asked::Taken);
        tokio::time::timeout(LIMIT, answer).await.expect("an answer in time").expect("an office");
    }

    pub fn counters(&self) -> &VouchingCounters {
        self.gate.strangers().unwrap().counters()
    }

    /// Whose peers had to go.
    pub fn shut_out(&self) -> Vec<UserId> {
        self.shut_out.lock().clone()
    }

    pub async fn is_listed(&self, passkey: Passkey) -> bool {
        self.whitelist.contains(&[passkey]).await.unwrap()[0]
    }
}

/// Waits until something holds.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LIMIT, wait).await.unwrap_or_else(|_| panic!("waited in vain: {what}"));
}
