//! The queue of deliveries: order, retries, and when a delivery fails permanently.
//!
//! # Guarantees
//!
//! - One delivery of a user is in flight at a time, the oldest first.
//! - With several gateways writing the history in batches, a delivery is held for a while: an earlier event that is
//!   written later goes first.
//! - Other users do not wait, up to a bound on deliveries in flight.
//! - Failed attempts are repeated after a delay that doubles, with jitter. While the endpoint fails, it is tried with
//!   one delivery at a time, and rarely; when it answers again, all deliveries go at once.
//! - A delivery fails permanently once it is too old *and* was tried, or the endpoint has failed all the time.
//!
//! Pure: time is an argument, in milliseconds.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use domain::{Backoff, CircuitBreaker, UserId};
use fastrand::Rng;
use foldhash::{HashMap, HashSet};

use super::delivery::Delivery;

/// The first pause after a failure.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause of a message.
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// The longest pause of an endpoint that fails altogether.
const ENDPOINT_PAUSE_MAX: Duration = Duration::from_secs(60);
/// Failures in a row after which the endpoint fails altogether.
const FAILURES_MAX: u32 = 5;

#[derive(Clone, Copy, Debug)]
pub(super) struct QueueLimits {
    /// Deliveries in flight.
    pub at_once_max: usize,
    /// Messages that wait in memory.
    pub waiting_max: usize,
    /// The age at which a delivery fails permanently.
    pub give_up: Duration,
    /// How long a delivery waits for earlier events; zero with one writer.
    pub reorder_window: Duration,
}

#[derive(Debug)]
struct Waiting {
    message: Delivery,
    attempts: u32,
    /// It is held until then.
    from_ms: u64,
}

#[derive(Debug)]
pub(super) struct DeliveryQueue {
    limits: QueueLimits,
    by_user: HashMap<UserId, VecDeque<Waiting>>,
    /// Users with a delivery to send: earliest time, position, user.
    ready: BTreeSet<(u64, u64, UserId)>,
    in_flight: HashSet<UserId>,
    /// Places of messages that are not done.
    unfinished: BTreeSet<u64>,
    read_through: u64,
    /// Delays of single deliveries.
    backoff: Backoff,
    /// Open while the endpoint fails altogether.
    breaker: CircuitBreaker,
    /// Pauses of the breaker.
    pauses: Backoff,
}

impl DeliveryQueue {
    /// An empty queue; all deliveries up to `place` are done.
    pub(super) fn starting_after(place: u64, limits: QueueLimits, seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        DeliveryQueue {
            limits,
            by_user: HashMap::default(),
            ready: BTreeSet::new(),
            in_flight: HashSet::default(),
            unfinished: BTreeSet::new(),
            read_through: place,
            backoff: Backoff::with_rng(PAUSE_MIN, PAUSE_MAX, random.fork()),
            breaker: CircuitBreaker::new(FAILURES_MAX),
            pauses: Backoff::with_rng(PAUSE_MIN, ENDPOINT_PAUSE_MAX, random),
        }
    }

    /// How many more may wait.
    pub(super) fn room(&self) -> usize {
        self.limits.waiting_max.saturating_sub(self.unfinished.len())
    }

    /// How many are not done.
    pub(super) fn len(&self) -> usize {
        self.unfinished.len()
    }

    /// The age of the oldest that is not done.
    pub(super) fn oldest_ms(&self, now_ms: u64) -> u64 {
        let heads = self.by_user.values().filter_map(|waiting| waiting.front());
        heads.map(|waiting| now_ms.saturating_sub(waiting.message.at_ms)).max().unwrap_or(0)
    }

    /// The place up to which the history has been read.
    pub(super) fn read_through(&self) -> u64 {
        self.read_through
    }

    /// Position up to which all deliveries are done: the cursor.
    pub(super) fn done_through(&self) -> u64 {
        self.unfinished.first().map_or(self.read_through, |first| first - 1)
    }

    /// Whether the endpoint fails altogether.
    pub(super) fn is_failing(&self) -> bool {
        self.breaker.is_open()
    }

    /// Adds the next delivery of the history.
    pub(super) fn add(&mut self, message: Delivery, now_ms: u64) {
        let (place, user) = (message.place, message.user);
        if place <= self.read_through {
            return;
        }
        self.read_through = place;
        self.unfinished.insert(place);
        let window_ms = self.limits.reorder_window.as_millis() as u64;
        let from_ms = if window_ms == 0 { 0 } else { now_ms + window_ms };
        let is_on_its_way = self.in_flight.contains(&user);
        let waiting = self.by_user.entry(user).or_default();
        let at = match window_ms {
            0 => waiting.len(),
            _ => place_in_time(waiting, message.at_ms, is_on_its_way),
        };
        waiting.insert(at, Waiting { message, attempts: 0, from_ms });
        if waiting.len() == 1 {
            self.ready.insert((from_ms, place, user));
        } else if at == 0 {
            // Replaces the user's first delivery.
            let first_ms = waiting[1].from_ms;
            self.ready.retain(|(.., other)| *other != user);
            self.ready.insert((first_ms, place, user));
        }
    }

    /// The next message that may go, if one may; with how often it was tried.
    pub(super) fn take(&mut self, now_ms: u64) -> Option<(Delivery, u32)> {
        if self.next_at_ms()? > now_ms {
            return None;
        }
        let (_, _, user) = self.ready.pop_first()?;
        let head = self.by_user.get(&user)?.front()?;
        self.in_flight.insert(user);
        Some((head.message.clone(), head.attempts))
    }

    /// When the next message may go; none while it depends on those that are on their way.
    pub(super) fn next_at_ms(&self) -> Option<u64> {
        let at_once_max = if self.is_failing() { 1 } else { self.limits.at_once_max };
        if self.in_flight.len() >= at_once_max {
            return None;
        }
        let probe_at_ms = self.breaker.probe_at().map_or(0, |at| at.as_millis() as u64);
        self.ready.first().map(|(from_ms, ..)| (*from_ms).max(probe_at_ms))
    }

    pub(super) fn delivered(&mut self, user: UserId, now_ms: u64) {
        let was_failing = self.breaker.on_success();
        self.pauses.reset();
        self.finish_head(user);
        if was_failing {
            // The delays were the endpoint's fault.
            let all = std::mem::take(&mut self.ready);
            self.ready = all.into_iter().map(|(_, place, user)| (now_ms, place, user)).collect();
        }
    }

    /// An attempt failed. Returns the deliveries that failed permanently.
    pub(super) fn failed(&mut self, user: UserId, now_ms: u64) -> Vec<Delivery> {
        self.breaker.on_failure(Duration::from_millis(now_ms), || self.pauses.next_delay());
        let mut failed_deliveries = Vec::new();
        let is_too_old = self.head(user).is_some_and(|head| self.is_too_old(&head.message, now_ms));
        if is_too_old {
            failed_deliveries.extend(self.finish_head(user));
        } else {
            self.postpone(user, now_ms);
        }
        if self.is_failing() {
            self.fail_old(now_ms, &mut failed_deliveries);
        }
        failed_deliveries
    }

    fn head(&self, user: UserId) -> Option<&Waiting> {
        self.by_user.get(&user)?.front()
    }

    fn is_too_old(&self, message: &Delivery, now_ms: u64) -> bool {
        now_ms.saturating_sub(message.at_ms) >= self.limits.give_up.as_millis() as u64
    }

    /// Repeats the delivery later.
    fn postpone(&mut self, user: UserId, now_ms: u64) {
        self.in_flight.remove(&user);
        let Some(head) = self.by_user.get_mut(&user).and_then(VecDeque::front_mut) else { return };
        let pause_ms = self.backoff.delay_after(head.attempts).as_millis() as u64;
        head.attempts = head.attempts.saturating_add(1);
        self.ready.insert((now_ms + pause_ms, head.message.place, user));
    }

    /// The delivery is done; the user's next one is ready.
    fn finish_head(&mut self, user: UserId) -> Option<Delivery> {
        self.in_flight.remove(&user);
        let done = self.pop_head(user);
        self.ready_next(user);
        done
    }

    /// While the endpoint fails, old deliveries fail without an attempt of their own.
    fn fail_old(&mut self, now_ms: u64, failed_deliveries: &mut Vec<Delivery>) {
        // Users not in `ready` have a delivery in flight.
        for (from_ms, place, user) in std::mem::take(&mut self.ready) {
            if !self.head(user).is_some_and(|head| self.is_too_old(&head.message, now_ms)) {
                self.ready.insert((from_ms, place, user));
                continue;
            }
            while self.head(user).is_some_and(|head| self.is_too_old(&head.message, now_ms)) {
                failed_deliveries.extend(self.pop_head(user));
            }
            self.ready_next(user);
        }
    }

    fn pop_head(&mut self, user: UserId) -> Option<Delivery> {
        let done = self.by_user.get_mut(&user)?.pop_front()?;
        self.unfinished.remove(&done.message.place);
        Some(done.message)
    }

    /// The user's next delivery is ready.
    fn ready_next(&mut self, user: UserId) {
        match self.head(user).map(|next| (next.from_ms, next.message.place)) {
            Some((from_ms, place)) => _ = self.ready.insert((from_ms, place, user)),
            None => _ = self.by_user.remove(&user),
        }
    }
}

/// Position by time among a user's deliveries. One that was tried may have arrived, and stays first.
fn place_in_time(waiting: &VecDeque<Waiting>, at_ms: u64, is_on_its_way: bool) -> usize {
    let is_tried = waiting.front().is_some_and(|head| is_on_its_way || head.attempts > 0);
    let later = waiting.iter().skip(usize::from(is_tried)).rev();
    waiting.len() - later.take_while(|other| other.message.at_ms > at_ms).count()
}

#[cfg(test)]
mod tests {
    use super::super::delivery::Event;
    use super::*;

    fn user(number: u64) -> UserId {
        UserId::new(number).unwrap()
    }

    fn queue(at_once_max: usize) -> DeliveryQueue {
        let give_up = Duration::from_secs(3600);
        let limits = QueueLimits { at_once_max, waiting_max: 100, give_up, reorder_window: Duration::ZERO };
        DeliveryQueue::starting_after(10, limits, 7)
    }

    fn delivery(place: u64, number: u64, at_ms: u64) -> Delivery {
        Delivery { place, user: user(number), at_ms, event: Event::Arrived, cause: None, device: None }
    }

    fn message(place: u64, user: u64) -> Delivery {
        delivery(place, user, 0)
    }

    #[test]
    fn a_later_delivery_of_a_user_waits_and_other_users_do_not() {
        let mut queue = queue(10);
        for (place, user) in [(11, 1), (12, 1), (13, 2)] {
            queue.add(message(place, user), 0);
        }
        assert_eq!(queue.take(5).unwrap().0.place, 11);
        assert_eq!(queue.take(5).unwrap().0.place, 13);
        assert!(queue.take(5).is_none(), "the second of user 1 waits for the first");
        queue.delivered(user(2), 5);
        assert_eq!(queue.done_through(), 10, "a crash would repeat 13 rather than lose 11");
        assert_eq!(queue.failed(user(1), 5), []);
        assert!(queue.take(5).is_none(), "after a failure there is a pause");
        let again_ms = queue.next_at_ms().unwrap();
        assert!((505..=1005).contains(&again_ms), "{again_ms}");
        assert_eq!(queue.take(again_ms).unwrap(), (message(11, 1), 1));
        queue.delivered(user(1), again_ms);
        assert_eq!(queue.done_through(), 11);
        assert_eq!(queue.take(again_ms).unwrap().0.place, 12);
        queue.delivered(user(1), again_ms);
        assert_eq!((queue.done_through(), queue.len(), queue.read_through()), (13, 0, 13));
        assert!(queue.next_at_ms().is_none());
    }

    /// A user changes gateways: the new gateway writes before the old one.
    #[test]
    fn p16_what_happened_before_goes_first_though_it_was_written_after() {
        let mut queue = queue(10);
        queue.limits.reorder_window = Duration::from_secs(2);
        let message = delivery;
        queue.add(message(11, 1, 300), 400);
        queue.add(message(12, 2, 350), 400);
        assert_eq!((queue.take(1_000), queue.next_at_ms()), (None, Some(2_400)));
        queue.add(message(13, 1, 0), 1_000);
        assert_eq!(queue.next_at_ms(), Some(2_400), "no delivery waits longer for it");
        let places: Vec<u64> =
            std::iter::from_fn(|| queue.take(2_400)).map(|(message, _)| message.place).collect();
        assert_eq!(places, [12, 13]);
        // A delivery in flight cannot be overtaken.
        queue.add(message(14, 1, 200), 2_500);
        queue.delivered(user(1), 2_500);
        queue.delivered(user(2), 2_500);
        assert_eq!(queue.done_through(), 10, "a crash would repeat them rather than lose 11");
        assert_eq!(queue.take(4_500).unwrap().0.place, 14);
        queue.delivered(user(1), 4_500);
        assert_eq!(queue.take(4_500).unwrap().0.place, 11);
        queue.delivered(user(1), 4_500);
        assert_eq!((queue.done_through(), queue.len()), (14, 0));
    }

    #[test]
    fn only_so_many_are_in_flight_and_only_so_many_wait() {
        let mut queue = queue(2);
        (11..=20).for_each(|place| queue.add(message(place, place), 0));
        assert_eq!(queue.room(), 90);
        assert!(queue.take(0).is_some() && queue.take(0).is_some());
        assert!(queue.take(0).is_none() && queue.next_at_ms().is_none());
        queue.delivered(user(11), 0);
        assert_eq!(queue.take(0).unwrap().0.place, 13);
        queue.add(message(20, 20), 0);
        assert_eq!(queue.len(), 9, "what was read already is not read again");
    }

    #[test]
    fn a_failing_endpoint_is_tried_rarely_and_all_deliveries_follow_when_it_answers() {
        let mut queue = queue(8);
        (11..=30).for_each(|place| queue.add(message(place, place), 0));
        let mut now_ms = 0;
        let mut asked = 0;
        while now_ms < 600_000 {
            while let Some((message, _)) = queue.take(now_ms) {
                asked += 1;
                assert_eq!(queue.failed(message.user, now_ms), []);
            }
            now_ms += 100;
        }
        assert!(queue.is_failing());
        assert!((10..=40).contains(&asked), "{asked} calls in ten minutes");
        let (message, _) = loop {
            match queue.take(now_ms) {
                Some(taken) => break taken,
                None => now_ms += 100,
            }
        };
        assert!(queue.take(now_ms).is_none(), "one at a time");
        queue.delivered(message.user, now_ms);
        assert_eq!(std::iter::from_fn(|| queue.take(now_ms)).count(), 8, "all may go again");
    }

    #[test]
    fn an_old_delivery_fails_for_good_after_one_attempt() {
        let mut queue = queue(1);
        queue.add(message(11, 1), 0);
        queue.add(message(12, 1), 0);
        let late_ms = 3_600_000;
        assert_eq!(queue.take(late_ms).unwrap().0.place, 11, "it is tried at least once");
        assert_eq!(queue.failed(user(1), late_ms), [message(11, 1)]);
        assert_eq!((queue.done_through(), queue.len()), (11, 1));
        assert_eq!(queue.take(late_ms).unwrap().0.place, 12, "the next one is tried by itself");
    }

    #[test]
    fn while_the_endpoint_fails_all_old_deliveries_fail_for_good() {
        let mut queue = queue(1);
        (11..=50).for_each(|place| queue.add(message(place, 1 + place % 3), 0));
        queue.add(delivery(51, 1, 3_600_000), 0);
        let late_ms = 3_600_001;
        let mut failed_deliveries = 0;
        let mut now_ms = late_ms;
        while !queue.is_failing() {
            match queue.take(now_ms) {
                Some((message, _)) => failed_deliveries += queue.failed(message.user, now_ms).len(),
                None => now_ms += 100,
            }
        }
        assert_eq!((failed_deliveries, queue.len(), queue.done_through()), (40, 1, 50));
        assert_eq!(queue.oldest_ms(late_ms), 1);
    }

    /// Every delivery succeeds or fails permanently, in order for each user, whatever fails.
    #[test]
    fn random_histories_lose_nothing_and_keep_the_order() {
        for seed in 0..50 {
            let mut random = Rng::with_seed(seed);
            let give_up = Duration::from_secs(20);
            let limits =
                QueueLimits { at_once_max: 3, waiting_max: 20, give_up, reorder_window: Duration::ZERO };
            let mut queue = DeliveryQueue::starting_after(0, limits, seed);
            let (mut now_ms, mut next, mut done) = (0, 1, Vec::new());
            let mut flying: Vec<Delivery> = Vec::new();
            while done.len() < 200 {
                now_ms += random.u64(0..500);
                while next <= 200 && queue.room() > 0 && random.bool() {
                    queue.add(delivery(next, random.u64(1..=6), now_ms), now_ms);
                    next += 1;
                }
                while let Some((message, _)) = queue.take(now_ms) {
                    flying.push(message);
                }
                assert!(flying.len() <= 3 && queue.len() <= 20);
                if !flying.is_empty() {
                    let message = flying.swap_remove(random.usize(..flying.len()));
                    match random.u8(..10) < 4 {
                        true => {
                            queue.delivered(message.user, now_ms);
                            done.push(message);
                        }
                        false => done.extend(queue.failed(message.user, now_ms)),
                    }
                }
                assert!(
                    queue.done_through() < done.iter().map(|message| message.place).max().unwrap_or(0) + 1
                );
            }
            let mut places: Vec<u64> = done.iter().map(|message| message.place).collect();
            for number in 1..=6 {
                let of_one = done.iter().filter(|message| message.user == user(number));
                assert!(of_one.map(|message| message.place).is_sorted(), "seed {seed}");
            }
            places.sort_unstable();
            assert_eq!(places, (1..=200).collect::<Vec<u64>>(), "seed {seed}");
            assert_eq!(queue.done_through(), 200);
        }
    }
}
