//! Somebody connects.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use domain::UserId;
use domain::clock::Stopwatch;
use hashbrown::HashMap;
use people::Circle;
use presence::{Goodbye, Input, LastKnown, Sight, Status};
use tokio::sync::oneshot;

use super::{Connect, in_time};
use crate::feed;
use crate::hub::person::{self, Connection, Watcher};
use crate::hub::{ConnRef, Hub, Refusal, Welcome, person::client_name};
use crate::outbox::FeedUser;

/// A place that was given to a connection. Whoever drops it without taking it gives it back: the session may be gone
/// by the time the answer comes.
pub(crate) struct Seat {
    hub: Arc<Hub>,
    welcome: Option<Welcome>,
}

impl Seat {
    /// From now on the session owes the goodbye.
    pub(crate) fn take(mut self) -> Option<Welcome> {
        self.welcome.take()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(welcome) = self.welcome.take() {
            self.hub.closed(welcome.conn, Goodbye::Dropped);
        }
    }
}

type Map<T> = HashMap<UserId, T, foldhash::fast::RandomState>;

impl Hub {
    /// Gives everybody who connects their place, with one reading for all of them. An error if it failed.
    pub(super) async fn seat_all(self: &Arc<Self>, mut connects: Vec<Connect>) -> Result<(), Refusal> {
        // Whoever is gone already needs no place. In a storm those are many, and reading for them would feed it.
        connects.retain(|connect| !connect.reply.is_closed());
        if connects.is_empty() {
            return Ok(());
        }
        let mut users: Vec<UserId> = connects.iter().map(|connect| connect.identity.user).collect();
        users.sort_unstable();
        users.dedup();
        let Some((mut circles, mut lasts)) = self.read_circles(&users).await else {
            for connect in connects {
                let _ = connect.reply.send(Err(Refusal::Unavailable));
            }
            return Err(Refusal::Unavailable);
        };
        let friends = circles.values().flat_map(|circle| circle.friends.iter().map(|friend| friend.user));
        let unlearned = self.unlearned(users.iter().copied().chain(friends));
        self.learn(unlearned).await;
        let mut asked: Map<usize> = Map::default();
        for connect in &connects {
            *asked.entry(connect.identity.user).or_default() += 1;
        }
        for connect in connects {
            let user = connect.identity.user;
            // The last connection of a person in this batch takes what was read; those before it take copies.
            let left = asked.get_mut(&user).map_or(0, |left| {
                *left -= 1;
                *left
            });
            let circle = if left == 0 { circles.remove(&user) } else { circles.get(&user).cloned() };
            let last = if left == 0 { lasts.remove(&user) } else { lasts.get(&user).cloned() };
            let (Some(circle), Some(last)) = (circle, last) else {
                let _ = connect.reply.send(Err(Refusal::Unavailable));
                continue;
            };
            self.seat(connect, circle, last);
            // Thousands of friends take their time, and others on this thread want to go on too.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    async fn read_circles(&self, users: &[UserId]) -> Option<(Map<Circle>, Map<LastKnown>)> {
        let counters = &self.outside.counters.hub;
        let stopwatch = Stopwatch::start();
        let (circles, lasts) =
            tokio::join!(in_time(self.people.circles(users)), in_time(self.people.sights(users[0], users)));
        counters.loads.increment();
        counters.load_seconds.record(stopwatch.elapsed());
        let (Some(circles), Some(lasts)) = (circles, lasts) else {
            counters.load_failures.increment();
            return None;
        };
        counters.people_loaded.add(users.len() as u64);
        let circles = circles.into_iter().map(|circle| (circle.user, circle)).collect();
        Some((circles, lasts.into_iter().map(|own| (own.user, own.last)).collect()))
    }

    /// Gives somebody a place: they come, begin to watch their friends, and are given the snapshot.
    fn seat(self: &Arc<Self>, connect: Connect, circle: Circle, last: LastKnown) {
        let Connect { identity, hello, outbox, reply } = connect;
        // Whoever is gone already needs no place.
        if reply.is_closed() {
            return;
        }
        let user = identity.user;
        let Some(conn) = self.outside.table.write().take(user, outbox.clone()) else {
            let _ = reply.send(Err(Refusal::Unavailable));
            return;
        };
        let client = self.new_client();
        let seat =
            person::Seat { client, platform: hello.platform, info: identity.info, ..person::Seat::default() };
        let connection = Connection { conn: conn.conn, outbox: outbox.clone(), seat: Box::new(seat) };
        let Circle { privacy, friends: mut acquaintances, .. } = circle;
        acquaintances.sort_unstable_by_key(|friend| friend.user);
        let friends: Vec<UserId> = acquaintances.iter().map(|friend| friend.user).collect();
        let entered = self.enter(conn, connection, Entry { hello, last, privacy, friends });
        let (own, friends) = match entered {
            Ok(entered) => entered,
            Err(refusal) => {
                self.outside.table.write().release(conn);
                let _ = reply.send(Err(refusal));
                return;
            }
        };
        let mut shown = Vec::with_capacity(friends.len() + 1);
        shown.push(own);
        let mut read = acquaintances.into_iter().peekable();
        for friend in friends.iter() {
            while read.next_if(|one| one.user < *friend).is_some() {}
            // A friendship that has ended meanwhile: nothing is shown until that is applied.
            let (sight, last) = match read.next_if(|one| one.user == *friend) {
                Some(friend) => (friend.sight, friend.last),
                None => (Sight::default(), LastKnown::default()),
            };
            let watcher = Watcher {
                conn: conn.conn,
                viewer: user,
                outbox: outbox.clone(),
                is_friend: true,
                is_tracker: false,
                sight,
            };
            shown.push(self.begin_watch(*friend, watcher, last));
        }
        outbox.snapshot(shown.into_iter());
        let welcome = Welcome { conn, client: client_name(client), feed: feed::channel(user) };
        let _ = reply.send(Ok(Seat { hub: self.clone(), welcome: Some(welcome) }));
    }

    /// The connection is there, and so is the person. Gives what they see of themselves, and their friends.
    fn enter(
        &self,
        conn: ConnRef,
        connection: Connection,
        entry: Entry,
    ) -> Result<(FeedUser, Arc<Vec<UserId>>), Refusal> {
        let now = self.now();
        let user = conn.user;
        let Entry { hello, last, privacy, friends } = entry;
        let mut shard = self.shard(user);
        if self.is_stopping() {
            return Err(Refusal::Stopping);
        }
        // Disabling a user closes what is in the shard afterwards.
        if self.is_disabled(user) {
            return Err(Refusal::Disabled);
        }
        shard.recall(now, user, last, &self.outside);
        let input = Input::Connected { conn: conn.conn, hello };
        let Ok(after) = shard.input(now, user, input, &self.outside) else {
            return Err(Refusal::TooManyDevices);
        };
        // Only now: what the person's other devices were told just now, this one reads for itself.
        let view = shard.roster.own_view(user);
        self.outside.platform(connection.seat.platform).fetch_add(1, Ordering::Relaxed);
        shard.begin_asking(now, user);
        let person = shard.person(user, &self.outside);
        person.add_connection(connection);
        // Who is connected already has friends in place, which change one by one.
        let circle = person.circle.get_or_insert_with(|| {
            let shown = self.outside.shown(view.status == Status::Invisible, Arc::new(privacy));
            Box::new(person::Circle { friends: Arc::new(friends), shown })
        });
        let friends = circle.friends.clone();
        drop(shard);
        self.finish(after);
        Ok((feed::own(&view), friends))
    }

    /// Puts a watcher in place and reads the person, in one step.
    pub(super) fn begin_watch(&self, user: UserId, watcher: Watcher, last: LastKnown) -> FeedUser {
        let now = self.now();
        let sight = watcher.sight;
        let mut shard = self.shard(user);
        shard.watch(now, user, last, &self.outside).put_watcher(watcher);
        shard.seen(now, user, sight)
    }

    /// Brings what was last known of people into memory.
    pub(super) async fn recall_all(&self, recalls: Vec<(UserId, oneshot::Sender<Result<(), Refusal>>)>) {
        if recalls.is_empty() {
            return;
        }
        let users: Vec<UserId> = recalls.iter().map(|(user, _)| *user).collect();
        let Some(found) = in_time(self.people.sights(users[0], &users)).await else {
            self.outside.counters.hub.load_failures.increment();
            for (_, reply) in recalls {
                let _ = reply.send(Err(Refusal::Unavailable));
            }
            return;
        };
        for own in found {
            let now = self.now();
            self.shard(own.user).recall(now, own.user, own.last, &self.outside);
        }
        let unlearned = self.unlearned(users);
        self.learn(unlearned).await;
        for (_, reply) in recalls {
            let _ = reply.send(Ok(()));
        }
    }

    /// A name that nobody can guess: it tells connections in a room apart.
    fn new_client(&self) -> u128 {
        let mut bytes = [0; 16];
        if getrandom::fill(&mut bytes).is_err() {
            // Nothing depends on its being secret.
            let count = self.outside.epochs.fetch_add(1, Ordering::Relaxed);
            return u128::from(self.now().0) << 64 | u128::from(count);
        }
        u128::from_le_bytes(bytes)
    }
}

/// What somebody brings who connects.
struct Entry {
    hello: presence::Hello,
    last: LastKnown,
    privacy: presence::Privacy,
    friends: Vec<UserId>,
}
