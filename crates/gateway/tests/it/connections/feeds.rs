//! When changes are written to a feed.

use std::time::Duration;

use domain::UserId;
use serde_json::{Value, json};

use crate::connections::fixture::{Client, Fixture, now};

/// Longer than any test: a change that waits for its end is not sent.
const WINDOW: Duration = Duration::from_secs(3600);

/// The users of the next message of the feed.
async fn next_changes(client: &mut Client) -> Vec<Value> {
    loop {
        let message = client.next().await;
        let data = &message["push"]["pub"]["data"];
        if data["type"] == "changes" {
            return data["users"].as_array().unwrap().clone();
        }
    }
}

/// Waits for a change that shows the user so, and gives the statuses that were shown until then.
async fn until_shown(client: &mut Client, user: &str, status: &str) -> Vec<String> {
    let mut shown = Vec::new();
    loop {
        let changes = next_changes(client).await;
        let of_user = changes.iter().filter(|change| change["id"] == user);
        shown.extend(of_user.map(|change| change["status"].as_str().unwrap().to_owned()));
        if shown.last().is_some_and(|last| last == status) {
            return shown;
        }
    }
}

/// The feed was written to a moment ago, by its snapshot and by each of these changes.
#[tokio::test]
async fn p5_from_and_to_offline_is_sent_at_once_also_where_the_feed_was_not_quiet() {
    let fixture = Fixture::with(|settings| settings.connections.batch = WINDOW).await;
    let user = |number| UserId::new(number).unwrap();
    fixture.friend_store.add_friends(&[(user(1), user(2))], now()).await.unwrap();
    let mut one = fixture.member(1).await;
    for _ in 0..2 {
        let mut two = fixture.member(2).await;
        assert_eq!(until_shown(&mut one, "2", "online").await, ["online"]);
        // Changes that are not urgent wait, and are sent with urgent ones.
        two.send(&json!({"id": 2, "rpc": {"method": "app.state", "data": {"state": "inactive"}}})).await;
        two.reply(2).await;
        two.socket.close(None).await.unwrap();
        assert_eq!(until_shown(&mut one, "2", "offline").await, ["offline"]);
    }
}
