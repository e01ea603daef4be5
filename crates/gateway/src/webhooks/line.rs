//! The messages that wait: whose turn it is, when to try again, when to give up.
//!
//! # Guarantees
//!
//! - Of one person one message is on its way at a time, the oldest first; a later one waits until it is done.
//! - Where several gateways write the history, each when its batch is full or its time is over, a message is held for a
//!   while: what happened to the person before it, and was written after it, goes first.
//! - Others go on meanwhile, up to a bound on how many are on their way at once.
//! - What fails is tried again after a pause that doubles, with jitter. An endpoint that fails altogether is asked with
//!   one message at a time, and seldom; when it answers again, everything goes at once.
//! - A message is given up once it is too old *and* was tried in vain, or the endpoint has failed all the while.
//!
//! Pure: time comes in as an argument, in milliseconds.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use domain::UserId;
use fastrand::Rng;
use foldhash::{HashMap, HashSet};

/// The first pause after a failure.
const PAUSE_MIN_MS: u64 = 1_000;
/// The longest pause of a message.
const PAUSE_MAX_MS: u64 = 300_000;
/// The longest pause of an endpoint that fails altogether.
const SHUT_MAX_MS: u64 = 60_000;
/// Failures in a row after which the endpoint fails altogether.
const FAILURES_MAX: u32 = 5;

/// How fast messages go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Messages on their way at once.
    pub at_once_max: usize,
    /// Messages that wait in memory.
    pub waiting_max: usize,
    /// The age at which a message is given up.
    pub give_up: Duration,
    /// How long a message is held for what happened before it; zero where there is one writer.
    pub hold: Duration,
}

/// What the line has to know of a message.
pub(super) trait Message: Clone {
    /// Its place in the history; grows.
    fn place(&self) -> u64;
    /// Whom it is about.
    fn user(&self) -> UserId;
    /// When what it tells of happened.
    fn at_ms(&self) -> u64;
}

#[derive(Debug)]
struct Waiting<M> {
    message: M,
    attempts: u32,
    /// It is held until then.
    from_ms: u64,
}

/// The line.
#[derive(Debug)]
pub(super) struct Line<M> {
    pace: Pace,
    random: Rng,
    by_user: HashMap<UserId, VecDeque<Waiting<M>>>,
    /// Who has a message that may go, from when on, the oldest message first.
    ready: BTreeSet<(u64, u64, UserId)>,
    on_their_way: HashSet<UserId>,
    /// Places of messages that are not done.
    undone: BTreeSet<u64>,
    read_through: u64,
    failures_in_a_row: u32,
    shut_until_ms: u64,
    /// Pauses in a row.
    pauses: u32,
}

impl<M: Message> Line<M> {
    /// An empty line, behind a place in the history up to which all is done.
    pub(super) fn behind(place: u64, pace: Pace, seed: u64) -> Self {
        Line {
            pace,
            random: Rng::with_seed(seed),
            by_user: HashMap::default(),
            ready: BTreeSet::new(),
            on_their_way: HashSet::default(),
            undone: BTreeSet::new(),
            read_through: place,
            failures_in_a_row: 0,
            shut_until_ms: 0,
            pauses: 0,
        }
    }

    /// How many more may wait.
    pub(super) fn room(&self) -> usize {
        self.pace.waiting_max.saturating_sub(self.undone.len())
    }

    /// How many are not done.
    pub(super) fn len(&self) -> usize {
        self.undone.len()
    }

    /// The age of the oldest that is not done.
    pub(super) fn oldest_ms(&self, now_ms: u64) -> u64 {
        let heads = self.by_user.values().filter_map(|waiting| waiting.front());
        heads.map(|waiting| now_ms.saturating_sub(waiting.message.at_ms())).max().unwrap_or(0)
    }

    /// The place up to which the history has been read.
    pub(super) fn read_through(&self) -> u64 {
        self.read_through
    }

    /// The place up to which all is done: what a crash must not make us forget begins behind it.
    pub(super) fn done_through(&self) -> u64 {
        self.undone.first().map_or(self.read_through, |first| first - 1)
    }

    /// Whether the endpoint fails altogether.
    pub(super) fn is_failing(&self) -> bool {
        self.failures_in_a_row >= FAILURES_MAX
    }

    /// Adds what was read next of the history.
    pub(super) fn add(&mut self, message: M, now_ms: u64) {
        let (place, user) = (message.place(), message.user());
        if place <= self.read_through {
            return;
        }
        self.read_through = place;
        self.undone.insert(place);
        let hold_ms = self.pace.hold.as_millis() as u64;
        let from_ms = if hold_ms == 0 { 0 } else { now_ms + hold_ms };
        let is_on_its_way = self.on_their_way.contains(&user);
        let waiting = self.by_user.entry(user).or_default();
        let at = match hold_ms {
            0 => waiting.len(),
            _ => place_in_time(waiting, message.at_ms(), is_on_its_way),
        };
        waiting.insert(at, Waiting { message, attempts: 0, from_ms });
        if waiting.len() == 1 {
            self.ready.insert((from_ms, place, user));
        } else if at == 0 {
            // It takes the place of who was first.
            let first_ms = waiting[1].from_ms;
            self.ready.retain(|(.., other)| *other != user);
            self.ready.insert((first_ms, place, user));
        }
    }

    /// The next message that may go, if one may; with how often it was tried.
    pub(super) fn take(&mut self, now_ms: u64) -> Option<(M, u32)> {
        if self.next_at_ms()? > now_ms {
            return None;
        }
        let (_, _, user) = self.ready.pop_first()?;
        let head = self.by_user.get(&user)?.front()?;
        self.on_their_way.insert(user);
        Some((head.message.clone(), head.attempts))
    }

    /// When the next message may go; none while it depends on those that are on their way.
    pub(super) fn next_at_ms(&self) -> Option<u64> {
        let at_once_max = if self.is_failing() { 1 } else { self.pace.at_once_max };
        if self.on_their_way.len() >= at_once_max {
            return None;
        }
        self.ready.first().map(|(from_ms, ..)| (*from_ms).max(self.shut_until_ms))
    }

    /// A message was delivered.
    pub(super) fn delivered(&mut self, user: UserId, now_ms: u64) {
        let was_failing = self.is_failing();
        self.failures_in_a_row = 0;
        self.shut_until_ms = 0;
        self.pauses = 0;
        self.finish_head(user);
        if was_failing {
            // Everybody's pause was the endpoint's fault.
            let all = std::mem::take(&mut self.ready);
            self.ready = all.into_iter().map(|(_, place, user)| (now_ms, place, user)).collect();
        }
    }

    /// A message was not delivered. Gives those that are given up for it.
    pub(super) fn failed(&mut self, user: UserId, now_ms: u64) -> Vec<M> {
        self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
        // Those that were on their way before the pause say nothing new.
        if self.is_failing() && now_ms >= self.shut_until_ms {
            self.shut_until_ms = now_ms + pause_ms(&mut self.random, self.pauses, SHUT_MAX_MS);
            self.pauses = self.pauses.saturating_add(1);
        }
        let mut given_up = Vec::new();
        let is_too_old = self.head(user).is_some_and(|head| self.is_too_old(&head.message, now_ms));
        if is_too_old {
            given_up.extend(self.finish_head(user));
        } else {
            self.postpone(user, now_ms);
        }
        if self.is_failing() {
            self.give_up_old(now_ms, &mut given_up);
        }
        given_up
    }

    fn head(&self, user: UserId) -> Option<&Waiting<M>> {
        self.by_user.get(&user)?.front()
    }

    fn is_too_old(&self, message: &M, now_ms: u64) -> bool {
        now_ms.saturating_sub(message.at_ms()) >= self.pace.give_up.as_millis() as u64
    }

    /// The message on its way comes again later.
    fn postpone(&mut self, user: UserId, now_ms: u64) {
        self.on_their_way.remove(&user);
        let Some(head) = self.by_user.get_mut(&user).and_then(VecDeque::front_mut) else { return };
        let pause = pause_ms(&mut self.random, head.attempts, PAUSE_MAX_MS);
        head.attempts = head.attempts.saturating_add(1);
        self.ready.insert((now_ms + pause, head.message.place(), user));
    }

    /// The message on its way is done, and the person's next one may go.
    fn finish_head(&mut self, user: UserId) -> Option<M> {
        self.on_their_way.remove(&user);
        let done = self.pop_head(user);
        self.call_next(user);
        done
    }

    /// While the endpoint fails, what is too old need not be tried by itself.
    fn give_up_old(&mut self, now_ms: u64, given_up: &mut Vec<M>) {
        // Of those who are not in here, the first message is on its way.
        for (from_ms, place, user) in std::mem::take(&mut self.ready) {
            if !self.head(user).is_some_and(|head| self.is_too_old(&head.message, now_ms)) {
                self.ready.insert((from_ms, place, user));
                continue;
            }
            while self.head(user).is_some_and(|head| self.is_too_old(&head.message, now_ms)) {
                given_up.extend(self.pop_head(user));
            }
            self.call_next(user);
        }
    }

    fn pop_head(&mut self, user: UserId) -> Option<M> {
        let done = self.by_user.get_mut(&user)?.pop_front()?;
        self.undone.remove(&done.message.place());
        Some(done.message)
    }

    /// Whoever is first now may go.
    fn call_next(&mut self, user: UserId) {
        match self.head(user).map(|next| (next.from_ms, next.message.place())) {
            Some((from_ms, place)) => _ = self.ready.insert((from_ms, place, user)),
            None => _ = self.by_user.remove(&user),
        }
    }
}

/// Where a message belongs among those of a person, by the time. What was tried may have arrived, and stays first.
fn place_in_time<M: Message>(waiting: &VecDeque<Waiting<M>>, at_ms: u64, is_on_its_way: bool) -> usize {
    let is_tried = waiting.front().is_some_and(|head| is_on_its_way || head.attempts > 0);
    let later = waiting.iter().skip(usize::from(is_tried)).rev();
    waiting.len() - later.take_while(|other| other.message.at_ms() > at_ms).count()
}

/// A pause that doubles with each attempt, shortened by a random part.
fn pause_ms(random: &mut Rng, attempts: u32, most_ms: u64) -> u64 {
    let whole_ms = PAUSE_MIN_MS.saturating_mul(1 << attempts.min(20)).min(most_ms);
    whole_ms / 2 + random.u64(0..=whole_ms / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Told {
        place: u64,
        user: u64,
        at_ms: u64,
    }

    impl Message for Told {
        fn place(&self) -> u64 {
            self.place
        }

        fn user(&self) -> UserId {
            user(self.user)
        }

        fn at_ms(&self) -> u64 {
            self.at_ms
        }
    }

    fn user(number: u64) -> UserId {
        UserId::new(number).unwrap()
    }

    fn line(at_once_max: usize) -> Line<Told> {
        let give_up = Duration::from_secs(3600);
        let pace = Pace { at_once_max, waiting_max: 100, give_up, hold: Duration::ZERO };
        Line::behind(10, pace, 7)
    }

    fn told(place: u64, user: u64) -> Told {
        Told { place, user, at_ms: 0 }
    }

    #[test]
    fn a_later_message_of_a_person_waits_and_others_go_on() {
        let mut line = line(10);
        for (place, user) in [(11, 1), (12, 1), (13, 2)] {
            line.add(told(place, user), 0);
        }
        assert_eq!(line.take(5).unwrap().0.place, 11);
        assert_eq!(line.take(5).unwrap().0.place, 13);
        assert!(line.take(5).is_none(), "the second of person 1 waits for the first");
        line.delivered(user(2), 5);
        assert_eq!(line.done_through(), 10, "a crash would repeat 13 rather than lose 11");
        assert_eq!(line.failed(user(1), 5), []);
        assert!(line.take(5).is_none(), "after a failure there is a pause");
        let again_ms = line.next_at_ms().unwrap();
        assert!((505..=1005).contains(&again_ms), "{again_ms}");
        assert_eq!(line.take(again_ms).unwrap(), (told(11, 1), 1));
        line.delivered(user(1), again_ms);
        assert_eq!(line.done_through(), 11);
        assert_eq!(line.take(again_ms).unwrap().0.place, 12);
        line.delivered(user(1), again_ms);
        assert_eq!((line.done_through(), line.len(), line.read_through()), (13, 0, 13));
        assert!(line.next_at_ms().is_none());
    }

    /// Somebody changes gateways: the one that they came to writes before the one that they left.
    #[test]
    fn p16_what_happened_before_goes_first_though_it_was_written_after() {
        let mut line = line(10);
        line.pace.hold = Duration::from_secs(2);
        let told = |place, user, at_ms| Told { place, user, at_ms };
        line.add(told(11, 1, 300), 400);
        line.add(told(12, 2, 350), 400);
        assert_eq!((line.take(1_000), line.next_at_ms()), (None, Some(2_400)));
        line.add(told(13, 1, 0), 1_000);
        assert_eq!(line.next_at_ms(), Some(2_400), "nobody waits longer for it");
        let places: Vec<u64> = std::iter::from_fn(|| line.take(2_400)).map(|(told, _)| told.place).collect();
        assert_eq!(places, [12, 13]);
        // What is on its way cannot be overtaken any more.
        line.add(told(14, 1, 200), 2_500);
        line.delivered(user(1), 2_500);
        line.delivered(user(2), 2_500);
        assert_eq!(line.done_through(), 10, "a crash would repeat them rather than lose 11");
        assert_eq!(line.take(4_500).unwrap().0.place, 14);
        line.delivered(user(1), 4_500);
        assert_eq!(line.take(4_500).unwrap().0.place, 11);
        line.delivered(user(1), 4_500);
        assert_eq!((line.done_through(), line.len()), (14, 0));
    }

    #[test]
    fn only_so_many_are_on_their_way_and_only_so_many_wait() {
        let mut line = line(2);
        (11..=20).for_each(|place| line.add(told(place, place), 0));
        assert_eq!(line.room(), 90);
        assert!(line.take(0).is_some() && line.take(0).is_some());
        assert!(line.take(0).is_none() && line.next_at_ms().is_none());
        line.delivered(user(11), 0);
        assert_eq!(line.take(0).unwrap().0.place, 13);
        line.add(told(20, 20), 0);
        assert_eq!(line.len(), 9, "what was read already is not read again");
    }

    #[test]
    fn an_endpoint_that_fails_is_asked_seldom_and_everything_goes_when_it_answers() {
        let mut line = line(8);
        (11..=30).for_each(|place| line.add(told(place, place), 0));
        let mut now_ms = 0;
        let mut asked = 0;
        while now_ms < 600_000 {
            while let Some((message, _)) = line.take(now_ms) {
                asked += 1;
                assert_eq!(line.failed(message.user(), now_ms), []);
            }
            now_ms += 100;
        }
        assert!(line.is_failing());
        assert!((10..=40).contains(&asked), "{asked} calls in ten minutes");
        let (message, _) = loop {
            match line.take(now_ms) {
                Some(taken) => break taken,
                None => now_ms += 100,
            }
        };
        assert!(line.take(now_ms).is_none(), "one at a time");
        line.delivered(message.user(), now_ms);
        assert_eq!(std::iter::from_fn(|| line.take(now_ms)).count(), 8, "all may go again");
    }

    #[test]
    fn what_is_too_old_is_given_up_once_it_was_tried() {
        let mut line = line(1);
        line.add(told(11, 1), 0);
        line.add(told(12, 1), 0);
        let late_ms = 3_600_000;
        assert_eq!(line.take(late_ms).unwrap().0.place, 11, "it is tried at least once");
        assert_eq!(line.failed(user(1), late_ms), [told(11, 1)]);
        assert_eq!((line.done_through(), line.len()), (11, 1));
        assert_eq!(line.take(late_ms).unwrap().0.place, 12, "the next one is tried by itself");
    }

    #[test]
    fn while_the_endpoint_fails_all_that_is_too_old_is_given_up() {
        let mut line = line(1);
        (11..=50).for_each(|place| line.add(told(place, 1 + place % 3), 0));
        line.add(Told { place: 51, user: 1, at_ms: 3_600_000 }, 0);
        let late_ms = 3_600_001;
        let mut given_up = 0;
        let mut now_ms = late_ms;
        while !line.is_failing() {
            match line.take(now_ms) {
                Some((message, _)) => given_up += line.failed(message.user(), now_ms).len(),
                None => now_ms += 100,
            }
        }
        assert_eq!((given_up, line.len(), line.done_through()), (40, 1, 50));
        assert_eq!(line.oldest_ms(late_ms), 1);
    }

    /// Whatever fails and whenever, every message is delivered or given up, each person's in order.
    #[test]
    fn random_histories_lose_nothing_and_keep_the_order() {
        for seed in 0..50 {
            let mut random = Rng::with_seed(seed);
            let give_up = Duration::from_secs(20);
            let pace = Pace { at_once_max: 3, waiting_max: 20, give_up, hold: Duration::ZERO };
            let mut line = Line::behind(0, pace, seed);
            let (mut now_ms, mut next, mut done) = (0, 1, Vec::new());
            let mut flying: Vec<Told> = Vec::new();
            while done.len() < 200 {
                now_ms += random.u64(0..500);
                while next <= 200 && line.room() > 0 && random.bool() {
                    line.add(Told { place: next, user: random.u64(1..=6), at_ms: now_ms }, now_ms);
                    next += 1;
                }
                while let Some((message, _)) = line.take(now_ms) {
                    flying.push(message);
                }
                assert!(flying.len() <= 3 && line.len() <= 20);
                if !flying.is_empty() {
                    let message = flying.swap_remove(random.usize(..flying.len()));
                    match random.u8(..10) < 4 {
                        true => {
                            line.delivered(message.user(), now_ms);
                            done.push(message);
                        }
                        false => done.extend(line.failed(message.user(), now_ms)),
                    }
                }
                assert!(line.done_through() < done.iter().map(|told| told.place).max().unwrap_or(0) + 1);
            }
            let mut places: Vec<u64> = done.iter().map(|told| told.place).collect();
            for number in 1..=6 {
                let of_one = done.iter().filter(|told| told.user == number);
                assert!(of_one.map(|told| told.place).is_sorted(), "seed {seed}");
            }
            places.sort_unstable();
            assert_eq!(places, (1..=200).collect::<Vec<u64>>(), "seed {seed}");
            assert_eq!(line.done_through(), 200);
        }
    }
}
