//! Connects users.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use domain::UserId;
use domain::clock::Stopwatch;
use friends::FriendList;
use hashbrown::HashMap;
use presence::{CloseKind, Input, LastKnown, Status, Visibility};
use tokio::sync::oneshot;

use super::{Connect, WatchTask, in_time};
use crate::feed;
use crate::hub::user::{self, Connection, Watcher, client_name};
use crate::hub::users::Users;
use crate::hub::{ConnRef, ConnectAccepted, ConnectRefusal};
use crate::outbox::FeedUser;

/// A connected user, until the session takes over. Dropping it disconnects: the session may be gone by the time of
/// the reply.
pub(super) struct PendingConnection {
    users: Arc<Users>,
    accepted: Option<ConnectAccepted>,
}

impl PendingConnection {
    /// From now on the session must report the end.
    pub(super) fn take(mut self) -> Option<ConnectAccepted> {
        self.accepted.take()
    }
}

impl Drop for PendingConnection {
    fn drop(&mut self) {
        if let Some(accepted) = self.accepted.take() {
            self.users.closed(accepted.conn, CloseKind::Dropped);
        }
    }
}

type Map<T> = HashMap<UserId, T, foldhash::fast::RandomState>;

impl WatchTask {
    /// Connects a batch of users with one read.
    pub(super) async fn connect_all(&self, mut connects: Vec<Connect>) -> Result<(), ConnectRefusal> {
        // Clients that gave up are skipped. In a storm there are many, and reading for them would feed it.
        connects.retain(|connect| !connect.reply.is_closed());
        if connects.is_empty() {
            return Ok(());
        }
        let mut users: Vec<UserId> = connects.iter().map(|connect| connect.identity.user).collect();
        users.sort_unstable();
        users.dedup();
        let Some((mut friend_lists, mut lasts)) = self.read_friend_lists(&users).await else {
            for connect in connects {
                let _ = connect.reply.send(Err(ConnectRefusal::Unavailable));
            }
            return Err(ConnectRefusal::Unavailable);
        };
        let friends = friend_lists
            .values()
            .flat_map(|friend_list| friend_list.friends.iter().map(|friend| friend.user));
        let unread = self.unread(users.iter().copied().chain(friends));
        self.load_records(unread).await;
        let mut asked: Map<usize> = Map::default();
        for connect in &connects {
            *asked.entry(connect.identity.user).or_default() += 1;
        }
        for connect in connects {
            let user = connect.identity.user;
            // The last connection of a user in this batch takes the data; earlier ones take copies.
            let left = asked.get_mut(&user).map_or(0, |left| {
                *left -= 1;
                *left
            });
            let friend_list =
                if left == 0 { friend_lists.remove(&user) } else { friend_lists.get(&user).cloned() };
            let last = if left == 0 { lasts.remove(&user) } else { lasts.get(&user).cloned() };
            let (Some(friend_list), Some(last)) = (friend_list, last) else {
                let _ = connect.reply.send(Err(ConnectRefusal::Unavailable));
                continue;
            };
            self.connect_one(connect, friend_list, last);
            // Thousands of friends take long: yield to other tasks of this thread.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    async fn read_friend_lists(&self, users: &[UserId]) -> Option<(Map<FriendList>, Map<LastKnown>)> {
        let counters = &self.users.context.counters.hub;
        let stopwatch = Stopwatch::start();
        let (friend_lists, lasts) = tokio::join!(
            in_time(self.friend_store.friend_lists(users)),
            in_time(self.friend_store.view_users(users[0], users))
        );
        counters.loads.increment();
        counters.load_seconds.record(stopwatch.elapsed());
        let (Ok(friend_lists), Ok(lasts)) = (friend_lists, lasts) else {
            counters.load_failures.increment();
            return None;
        };
        counters.people_loaded.add(users.len() as u64);
        let friend_lists =
            friend_lists.into_iter().map(|friend_list| (friend_list.user, friend_list)).collect();
        Some((friend_lists, lasts.into_iter().map(|own| (own.user, own.last)).collect()))
    }

    /// Connects one user: marks them online, adds watches of their friends, and queues the snapshot.
    fn connect_one(&self, connect: Connect, friend_list: FriendList, last: LastKnown) {
        let Connect { identity, hello, outbox, reply } = connect;
        // The client gave up.
        if reply.is_closed() {
            return;
        }
        let user = identity.user;
        let Some(conn) = self.users.context.table.write().take(user, outbox.clone()) else {
            let _ = reply.send(Err(ConnectRefusal::Unavailable));
            return;
        };
        let client = self.new_client();
        let details = user::ConnectionDetails {
            client,
            platform: hello.platform,
            info: identity.info,
            ..user::ConnectionDetails::default()
        };
        let connection = Connection { conn: conn.conn, outbox: outbox.clone(), details: Box::new(details) };
        let FriendList { privacy, friends: mut viewed_users, .. } = friend_list;
        viewed_users.sort_unstable_by_key(|friend| friend.user);
        let friends: Vec<UserId> = viewed_users.iter().map(|friend| friend.user).collect();
        let entered = self.enter(conn, connection, ConnectingUser { hello, last, privacy, friends });
        let (own, friends) = match entered {
            Ok(entered) => entered,
            Err(refusal) => {
                self.users.context.table.write().release(conn);
                let _ = reply.send(Err(refusal));
                return;
            }
        };
        let mut shown = Vec::with_capacity(friends.len() + 1);
        shown.push(own);
        let mut read = viewed_users.into_iter().peekable();
        for friend in friends.iter() {
            while read.next_if(|one| one.user < *friend).is_some() {}
            // The friendship ended meanwhile: nothing is shown until that change is applied.
            let (visibility, last) = match read.next_if(|one| one.user == *friend) {
                Some(friend) => (friend.visibility, friend.last),
                None => (Visibility::default(), LastKnown::default()),
            };
            let watcher = Watcher {
                conn: conn.conn,
                viewer: user,
                outbox: outbox.clone(),
                is_friend: true,
                is_tracker: false,
                visibility,
            };
            shown.push(self.begin_watch(*friend, watcher, last));
        }
        outbox.snapshot(shown.into_iter());
        let accepted = ConnectAccepted { conn, client: client_name(client), feed: feed::channel(user) };
        let _ = reply.send(Ok(PendingConnection { users: self.users.clone(), accepted: Some(accepted) }));
    }

    /// Adds the connection to the shard. Returns the user's own state, and their friends.
    fn enter(
        &self,
        conn: ConnRef,
        connection: Connection,
        connecting: ConnectingUser,
    ) -> Result<(FeedUser, Arc<Vec<UserId>>), ConnectRefusal> {
        let (users, user) = (&self.users, conn.user);
        let ConnectingUser { hello, last, privacy, friends } = connecting;
        users.change(user, |shard, now| {
            if users.is_stopping() {
                return Err(ConnectRefusal::Stopping);
            }
            // Under the lock: a user disabled later is closed by what is in the shard.
            if users.is_disabled(user) {
                return Err(ConnectRefusal::Disabled);
            }
            shard.load(now, user, last);
            let input = Input::Connected { conn: conn.conn, hello };
            shard.input(now, user, input).map_err(|_| ConnectRefusal::TooManyDevices)?;
            // After the input: other devices of the user were notified of it, this one reads it here.
            let view = shard.roster.own_view(user);
            users.context.platform(connection.details.platform).fetch_add(1, Ordering::Relaxed);
            shard.watch_record(now, user);
            let entry = shard.user_entry(user);
            entry.add_connection(connection);
            // A user who is connected already has friends in place, which change one by one.
            let connected = entry.connected.get_or_insert_with(|| {
                let is_invisible = view.status == Status::Invisible;
                let visibility = users.context.visibility(is_invisible, Arc::new(privacy));
                Box::new(user::ConnectedUser { friends: Arc::new(friends), visibility })
            });
            Ok((feed::own(&view), connected.friends.clone()))
        })
    }

    /// Adds a watcher and reads the user's state, in one step.
    pub(super) fn begin_watch(&self, user: UserId, watcher: Watcher, last: LastKnown) -> FeedUser {
        let (now, visibility) = (self.users.now(), watcher.visibility);
        let mut shard = self.users.shard(user);
        shard.watch(now, user, last).watchers.put(watcher);
        shard.feed_user_for(now, user, visibility)
    }

    /// Loads the last known state of users into memory.
    pub(super) async fn load_all(&self, loads: Vec<(UserId, oneshot::Sender<Result<(), ConnectRefusal>>)>) {
        if loads.is_empty() {
            return;
        }
        let users: Vec<UserId> = loads.iter().map(|(user, _)| *user).collect();
        let Ok(found) = in_time(self.friend_store.view_users(users[0], &users)).await else {
            self.users.context.counters.hub.load_failures.increment();
            for (_, reply) in loads {
                let _ = reply.send(Err(ConnectRefusal::Unavailable));
            }
            return;
        };
        for own in found {
            let now = self.users.now();
            self.users.shard(own.user).load(now, own.user, own.last);
        }
        let unread = self.unread(users);
        self.load_records(unread).await;
        for (_, reply) in loads {
            let _ = reply.send(Ok(()));
        }
    }

    /// An unguessable id that distinguishes connections in a room.
    fn new_client(&self) -> u128 {
        let mut bytes = [0; 16];
        if getrandom::fill(&mut bytes).is_err() {
            // Nothing depends on its being secret.
            let count = self.users.context.next_epoch();
            return u128::from(self.users.now().0) << 64 | u128::from(count);
        }
        u128::from_le_bytes(bytes)
    }
}

struct ConnectingUser {
    hello: presence::Hello,
    last: LastKnown,
    privacy: presence::Privacy,
    friends: Vec<UserId>,
}
