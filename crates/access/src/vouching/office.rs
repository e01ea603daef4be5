//! The one task that finds out about strangers. It owns every loop and every queue; its work on the network is done by
//! tasks that report back to it, so that nothing here waits.
//!
//! - here: questions come in, the whitelist is asked, the endpoint is called
//! - `conclude`: what follows from the answers: verdicts, accounts
//! - `write_back`: what the whitelist is told of them
//! - `news`: what follows from changes of the whitelist

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use domain::clock::Clock;
use domain::{Passkey, UnixTime, UserId};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, timeout};

use super::calls::{Calls, Permit};
use super::counters::VouchingCounters;
use super::endpoint::{Answer, CallFailure, VerifyEndpoint};
use super::inquiries::{Inquiries, Joined};
use super::recheck::{Part, Recheck};
use super::strangers::{Question, Questions, Strangers};
use super::verdicts::VerdictBook;
use super::write_backs::WriteBacks;
use super::{OnVerifyFailure, STEP_TIMEOUT, VouchingSettings};
use crate::error::AccessError;
use crate::gate::Gate;
use crate::store::Store;
use crate::store::adopted::Adopted;
use crate::whitelist::Whitelist;
use crate::whitelist::feed::{PasskeyChange, PasskeyFeed};

mod conclude;
mod news;
mod write_back;

use conclude::Vouched;

/// Questions taken at a time.
const QUESTIONS_AT_ONCE: usize = 1024;
/// Passkeys that the whitelist is asked about at a time.
const LOOKUP_MAX: usize = 500;
/// How often the whitelist is asked at the same time.
const LOOKUPS_AT_ONCE: usize = 4;
/// How often probes and overdue calls are looked for.
const LOOK_AROUND_EVERY: Duration = Duration::from_millis(100);
/// How often a failure that lasts is logged.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// What the office works with.
pub struct Parts {
    /// Where verdicts are remembered.
    pub strangers: Arc<Strangers>,
    /// Where questions come from.
    pub questions: Questions,
    /// Who knows the users.
    pub gate: Arc<Gate>,
    /// Where accounts are made.
    pub store: Store,
    /// Who vouches first.
    pub whitelist: Arc<dyn Whitelist>,
    /// Who tells of its changes.
    pub feed: PasskeyFeed,
    /// Who vouches next.
    pub endpoint: Option<VerifyEndpoint>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

/// Finds out about strangers.
pub struct Vouching {
    strangers: Arc<Strangers>,
    questions: mpsc::Receiver<Question>,
    gate: Arc<Gate>,
    store: Store,
    whitelist: Arc<dyn Whitelist>,
    endpoint: Option<VerifyEndpoint>,
    clock: Arc<dyn Clock>,
    settings: VouchingSettings,
    book: VerdictBook,
    inquiries: Inquiries,
    lookups: VecDeque<Passkey>,
    looking: usize,
    calls: Calls,
    adoptions: VecDeque<Vouched>,
    adopting: bool,
    write_backs: WriteBacks,
    recheck: Recheck,
    /// None while it is being looked at.
    feed: Option<PasskeyFeed>,
    /// When it was last begun to be looked at.
    feed_begun: Duration,
    feed_due: Duration,
    /// Whose peers must go; told at the end of each turn.
    shut_out: Vec<UserId>,
    complaints: Complaints,
    work: JoinSet<Done>,
    started: Instant,
}

/// What somebody who was sent reports.
enum Done {
    Looked(Vec<Passkey>, Result<Vec<bool>, AccessError>),
    Called { passkey: Passkey, is_probe: bool, outcome: Result<Answer, CallFailure> },
    Adopted(Vec<Vouched>, Result<Vec<Result<Adopted, AccessError>>, AccessError>),
    RanErrand(Result<(), AccessError>),
    Rechecked(Part, Result<Vec<bool>, AccessError>),
    News(PasskeyFeed, Result<Vec<PasskeyChange>, AccessError>),
}

/// When what was last complained about.
#[derive(Debug, Default)]
struct Complaints {
    whitelist: Option<Duration>,
    endpoint: Option<Duration>,
    adoption: Option<Duration>,
}

/// Whether it is time to complain again.
fn is_due(last: &mut Option<Duration>, now: Duration) -> bool {
    let due = last.is_none_or(|last| now.saturating_sub(last) >= COMPLAIN_EVERY);
    if due {
        *last = Some(now);
    }
    due
}

impl Vouching {
    /// An office that is not open yet.
    pub fn new(parts: Parts, settings: VouchingSettings) -> Self {
        Vouching {
            book: VerdictBook::new(Arc::clone(&parts.strangers), settings.entries_max),
            calls: Calls::new(&settings),
            strangers: parts.strangers,
            questions: parts.questions.0,
            gate: parts.gate,
            store: parts.store,
            whitelist: parts.whitelist,
            endpoint: parts.endpoint,
            clock: parts.clock,
            settings,
            inquiries: Inquiries::default(),
            lookups: VecDeque::new(),
            looking: 0,
            adoptions: VecDeque::new(),
            adopting: false,
            write_backs: WriteBacks::default(),
            recheck: Recheck::default(),
            feed: Some(parts.feed),
            feed_begun: Duration::ZERO,
            feed_due: Duration::ZERO,
            shut_out: Vec::new(),
            complaints: Complaints::default(),
            work: JoinSet::new(),
            started: Instant::now(),
        }
    }

    /// Answers questions until `shutdown` is ready. `on_shut_out` hears of users whose peers must go, after the gate
    /// no longer lets them in. Whoever waits at the end gets no answer.
    pub async fn run(mut self, mut on_shut_out: impl FnMut(UserId), shutdown: impl Future) {
        let mut shutdown = pin!(shutdown);
        let mut ticks = tokio::time::interval(LOOK_AROUND_EVERY.min(self.settings.feed_every));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut questions = Vec::new();
        // Whether there is a whitelist at all is known before the first question.
        self.begin_lookup(Vec::new());
        loop {
            tokio::select! {
                biased;
                _ = &mut shutdown => return,
                Some(done) = self.work.join_next(), if !self.work.is_empty() => match done {
                    Ok(done) => self.take(done),
                    Err(reason) => tracing::error!(%reason, "somebody who was sent did not come back"),
                },
                received = self.questions.recv_many(&mut questions, QUESTIONS_AT_ONCE) => {
                    if received == 0 {
                        return;
                    }
                    questions.drain(..).for_each(|question| self.consider(question));
                    self.look_up();
                }
                _ = ticks.tick() => self.look_around(),
            }
            self.counters().waiting.set(self.inquiries.waiting());
            self.shut_out.drain(..).for_each(&mut on_shut_out);
        }
    }

    fn counters(&self) -> &VouchingCounters {
        self.strangers.counters()
    }

    /// Steady time: how long an answer holds is a duration.
    fn now(&self) -> UnixTime {
        self.clock.steady()
    }

    /// What has passed since the start. Unlike the time of day it never goes back.
    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn take(&mut self, done: Done) {
        match done {
            Done::Looked(passkeys, found) => self.take_lookup(passkeys, found),
            Done::Called { passkey, is_probe, outcome } => self.take_call(passkey, is_probe, outcome),
            Done::Adopted(vouched, outcome) => self.take_adoption(vouched, outcome),
            Done::RanErrand(outcome) => self.take_errand(outcome),
            Done::Rechecked(part, found) => self.take_recheck(part, found),
            Done::News(feed, news) => self.take_news(feed, news),
        }
    }

    /// What comes with time.
    fn look_around(&mut self) {
        let now = self.elapsed();
        if let Some(about) = self.calls.begin_probe(now) {
            self.show_breaker();
            self.call(about, true);
        }
        self.give_up_calls();
        // Somebody who was sent and never came back must not keep a passkey shut for ever.
        let lost_after = 4 * self.settings.patience() + Duration::from_secs(30);
        for passkey in self.inquiries.begun_before(now.saturating_sub(lost_after)) {
            self.finish(&passkey);
        }
        self.book.forget_old(self.now());
        self.read_feed(now);
        self.go_on_rechecking();
    }

    fn consider(&mut self, question: Question) {
        let passkey = question.passkey;
        let known = self.book.get(&passkey).filter(|verdict| verdict.is_fresh(self.now()));
        // A refusal from before the site wrote a key says nothing.
        let has_site_key = self.gate.site_user_of(&passkey);
        let is_known = known.is_some_and(|verdict| verdict.vouched.is_some() || has_site_key.is_none());
        if is_known || self.gate.holder(&passkey).is_some_and(|holder| !holder.vouched) {
            return (question.on_answer)();
        }
        match self.inquiries.join(question, self.elapsed()) {
            Joined::First => match has_site_key {
                Some(user) => self.vouched(Vouched::by_site_key(passkey, user)),
                None => self.lookups.push_back(passkey),
            },
            Joined::Another => self.counters().joined.increment(),
            Joined::Full => self.counters().asks_dropped.increment(),
        }
    }

    /// Asks the whitelist about those who wait for it, many at a time.
    fn look_up(&mut self) {
        while self.looking < LOOKUPS_AT_ONCE && !self.lookups.is_empty() {
            let count = self.lookups.len().min(LOOKUP_MAX);
            let passkeys = self.lookups.drain(..count).collect();
            self.begin_lookup(passkeys);
        }
    }

    fn begin_lookup(&mut self, passkeys: Vec<Passkey>) {
        let whitelist = Arc::clone(&self.whitelist);
        self.looking += 1;
        self.work.spawn(async move {
            let found = within(STEP_TIMEOUT, whitelist.check(&passkeys)).await;
            Done::Looked(passkeys, found)
        });
    }

    fn take_lookup(&mut self, passkeys: Vec<Passkey>, found: Result<Vec<bool>, AccessError>) {
        self.looking -= 1;
        if let Err(error) = &found {
            self.complain_of_whitelist(error);
        }
        for (index, passkey) in passkeys.iter().enumerate() {
            match found.as_ref().ok().and_then(|found| found.get(index)) {
                Some(true) if !self.write_backs.is_leaving(passkey) => {
                    self.counters().whitelist_hits.increment();
                    self.vouched(Vouched::by_whitelist(*passkey));
                }
                Some(_) => {
                    self.counters().whitelist_misses.increment();
                    self.ask_further(*passkey, false);
                }
                None => {
                    self.counters().whitelist_failures.increment();
                    self.ask_further(*passkey, true);
                }
            }
        }
        self.look_up();
    }

    fn complain_of_whitelist(&mut self, error: &AccessError) {
        let now = self.elapsed();
        if is_due(&mut self.complaints.whitelist, now) {
            tracing::warn!(%error, "the whitelist cannot be asked about strangers");
        }
    }

    /// The whitelist does not vouch for somebody, or could not be asked.
    fn ask_further(&mut self, passkey: Passkey, whitelist_failed: bool) {
        // Given up as lost by now: no request waits for the answer.
        let Some(inquiry) = self.inquiries.get_mut(&passkey) else { return };
        inquiry.whitelist_failed = whitelist_failed;
        let from = inquiry.from;
        if self.endpoint.is_none() {
            let is_unsure = whitelist_failed || self.gate.is_site_unread();
            return if is_unsure { self.not_checkable(passkey) } else { self.unknown(passkey) };
        }
        let permit = self.calls.request(passkey, from, self.elapsed());
        let untracked = std::mem::take(&mut self.calls.untracked);
        self.counters().calls_untracked.add(untracked);
        match permit {
            Permit::Call => self.call(passkey, false),
            Permit::Wait => {}
            Permit::HeldBack => {
                self.counters().calls_held_back.increment();
                self.not_checkable(passkey);
            }
            Permit::OverShare => {
                self.counters().calls_over_share.increment();
                self.not_checkable(passkey);
            }
            Permit::OverPace => {
                self.counters().calls_over_pace.increment();
                self.not_checkable(passkey);
            }
        }
    }

    fn call(&mut self, passkey: Passkey, is_probe: bool) {
        let Some(endpoint) = self.endpoint.clone() else { return };
        self.work.spawn(async move {
            let outcome = endpoint.ask(&passkey).await;
            Done::Called { passkey, is_probe, outcome }
        });
    }

    /// A probe tells about the endpoint and decides nothing about its passkey: nobody may be asking about it, and the
    /// whitelist was not asked first.
    fn take_call(&mut self, passkey: Passkey, is_probe: bool, outcome: Result<Answer, CallFailure>) {
        self.calls.end();
        match outcome {
            Ok(answer) => {
                if !self.calls.breaker.lets_call() {
                    tracing::info!("the verify endpoint answers again");
                }
                self.calls.breaker.hear_answer();
                self.show_breaker();
                self.count_answer(answer);
                if !is_probe {
                    self.take_answer(passkey, answer);
                }
            }
            Err(failure) => {
                self.take_failure(passkey, is_probe, &failure);
                if !is_probe {
                    self.not_checkable(passkey);
                }
            }
        }
        while let Some(next) = self.calls.next() {
            self.call(next, false);
        }
        self.give_up_calls();
    }

    fn count_answer(&self, answer: Answer) {
        let calls = &self.counters().calls;
        if answer.valid { calls.valid.increment() } else { calls.invalid.increment() }
    }

    fn take_answer(&mut self, passkey: Passkey, answer: Answer) {
        if answer.valid {
            self.vouched(Vouched::by_endpoint(passkey, answer.user));
        } else {
            self.denied_by_endpoint(passkey);
        }
    }

    fn take_failure(&mut self, passkey: Passkey, is_probe: bool, failure: &CallFailure) {
        let calls = &self.counters().calls;
        match failure {
            CallFailure::TimedOut(_) => calls.timed_out.increment(),
            CallFailure::Unreachable(_) => calls.unreachable.increment(),
            CallFailure::WrongStatus(_) => calls.wrong_status.increment(),
            CallFailure::BodyCutShort | CallFailure::Garbage => calls.unreadable.increment(),
        }
        let now = self.elapsed();
        if is_due(&mut self.complaints.endpoint, now) {
            tracing::warn!(reason = %failure, "the verify endpoint failed");
        }
        if self.calls.breaker.hear_failure(now, passkey, is_probe) {
            self.counters().breaker_openings.increment();
            tracing::warn!(
                reason = %failure,
                pause_s = self.settings.pause.as_secs(),
                "the verify endpoint failed too often in a row and is left alone for a while"
            );
        }
        self.show_breaker();
    }

    /// Calls that waited for too long, or can no longer be made, are not made.
    fn give_up_calls(&mut self) {
        while let Some(passkey) = self.calls.give_up(self.elapsed()) {
            self.counters().calls_overdue.increment();
            self.not_checkable(passkey);
        }
    }

    /// Tells the metrics page, and the gate, whether the endpoint is left alone.
    fn show_breaker(&self) {
        self.counters().set_breaker_state(self.calls.breaker.state());
        let fails = !self.calls.breaker.lets_call();
        self.strangers.set_shut(fails && self.settings.on_failure == OnVerifyFailure::Refuse);
    }
}

/// Puts a limit to how long somebody may take.
async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, AccessError>>,
) -> Result<T, AccessError> {
    let busy = || AccessError::Database(database::DatabaseError::Busy);
    timeout(limit, work).await.unwrap_or_else(|_| Err(busy()))
}
