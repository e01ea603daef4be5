//! Random concurrent actions: in the end every feed shows the current state.

use std::sync::Arc;
use std::time::Duration;

use friends::FriendsChange;
use serde_json::json;

use super::fixture::{Client, Fixture, START, hello, user};

const USERS: u64 = 10;
const STEPS: usize = 60;

/// One user who connects and disconnects, sends commands, gains and loses friends, and becomes invisible, at random.
async fn live(fixture: Arc<Fixture>, number: u64, seed: u64) -> Client {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut client = fixture.connect(number, "a").await;
    for _ in 0..STEPS {
        let other = 1 + random.u64(..USERS);
        match random.u8(..9) {
            0 | 1 => {
                client.drop_connection();
                client = Client::connect(&fixture.hub, number, hello("a")).await.unwrap();
            }
            2 => client.set_status(random.choice(["online", "busy", "away", "invisible"]).unwrap()).await,
            3 => drop(client.rpc("track", json!({"users": [other]})).await.unwrap()),
            4 => drop(client.rpc("untrack", json!({"users": [other]})).await.unwrap()),
            5 => {
                let never: Vec<u64> = if random.bool() && other != number { vec![other] } else { Vec::new() };
                client.rpc("privacy.set", json!({ "never": never })).await.unwrap();
            }
            6 if other != number => {
                let pair = [(user(number), user(other))];
                if random.bool() {
                    fixture.friend_store.add_friends(&pair, START).await.unwrap();
                } else {
                    fixture.friend_store.remove_friends(&pair).await.unwrap();
                }
                let change = FriendsChange::Friends(user(number), user(other));
                fixture.hub.friends_changed(vec![change]).await.unwrap();
            }
            7 => {
                client.enter("room:x").await;
                client.hub.commands.unsubscribe(client.conn, "room:x").await.unwrap();
            }
            _ => client.read(),
        }
        tokio::time::sleep(Duration::from_micros(random.u64(..300))).await;
    }
    client.rpc("untrack", json!({"users": (1..=USERS).collect::<Vec<u64>>()})).await.unwrap();
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn p4_snapshots_and_changes_converge_to_the_truth_under_churn() {
    let fixture = Arc::new(Fixture::new().await);
    for one in 1..=USERS {
        fixture.befriend(&(one + 1..=USERS).map(|other| (one, other)).collect::<Vec<_>>()).await;
    }
    let lives: Vec<_> =
        (1..=USERS).map(|number| tokio::spawn(live(fixture.clone(), number, 100 + number))).collect();
    let mut clients = Vec::new();
    for life in lives {
        clients.push(life.await.unwrap());
    }
    // Whatever was changed last has been applied by the time that this has.
    let all_users: Vec<FriendsChange> =
        (1..=USERS).map(|number| FriendsChange::Privacy(user(number))).collect();
    fixture.hub.friends_changed(all_users).await.unwrap();
    for client in &mut clients {
        client.read();
        let number = client.conn.user.get();
        let mut fresh = fixture.connect(number, "fresh").await;
        client.read();
        fresh.read();
        assert_eq!(client.users, fresh.users, "user {number}");
        fresh.close();
        client.read();
        for (id, shown) in &client.users {
            let is_self = *id == number.to_string();
            let hidden = shown["version"] == 0;
            let friend_list =
                fixture.friend_store.view_users(user(number), &[user(id.parse().unwrap())]).await.unwrap();
            assert!(is_self || friend_list[0].is_friend, "{number} is shown {id}, who is no friend");
            assert_eq!(hidden, !is_self && !friend_list[0].visibility.status, "{number} of {id}");
        }
    }
    for client in clients {
        client.close();
    }
    assert_eq!(fixture.kept(), 0, "no entry is left");
    assert_eq!(fixture.hub.sizes().connections, 0);
}
