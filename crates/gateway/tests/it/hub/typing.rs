//! Typing.

use serde_json::{Value, json};

use super::fixture::{Client, Fixture, user};
use gateway::hub::CommandError;

/// Received typing messages, without their times (P18).
fn typing(client: &mut Client) -> Vec<Value> {
    let timeless = |push: &Value| {
        let mut data = push["push"]["pub"]["data"].clone();
        let at_ms = data.as_object_mut().unwrap().remove("at_ms").unwrap();
        assert!(at_ms.as_u64().unwrap() > 0);
        data
    };
    client.pushed().iter().map(timeless).collect()
}

#[tokio::test]
async fn p2_typing_is_throttled_and_ends_by_itself() {
    let fixture = Fixture::new().await;
    fixture.befriend(&[(1, 2)]).await;
    let (one, mut two) = (fixture.connect(1, "a").await, fixture.connect(2, "b").await);
    let on = json!({"type": "typing", "from": "1", "on": true});
    let off = json!({"type": "typing", "from": "1", "on": false});
    for _ in 0..5 {
        one.rpc("typing", json!({"to": 2, "on": true})).await.unwrap();
    }
    assert_eq!(typing(&mut two), std::slice::from_ref(&on));
    assert_eq!(fixture.counters.hub.typing_throttled.get(), 4);
    fixture.pass(3);
    one.rpc("typing", json!({"to": 2, "on": true})).await.unwrap();
    assert_eq!(typing(&mut two), std::slice::from_ref(&on));
    fixture.pass(5);
    assert!(typing(&mut two).is_empty(), "it lasts six seconds from the last message");
    fixture.pass(1);
    assert_eq!(typing(&mut two), std::slice::from_ref(&off));

    one.rpc("typing", json!({"to": 2, "on": true})).await.unwrap();
    one.rpc("typing", json!({"to": 2, "on": false})).await.unwrap();
    one.rpc("typing", json!({"to": 2, "on": false})).await.unwrap();
    assert_eq!(typing(&mut two), [on.clone(), off.clone()]);
    one.rpc("typing", json!({"to": 2, "on": true})).await.unwrap();
    one.drop_connection();
    assert_eq!(typing(&mut two), [on, off], "who left no longer types");
}

#[tokio::test]
async fn typing_is_for_friends_and_those_in_the_same_room() {
    let fixture = Fixture::new().await;
    fixture.befriend(&[(1, 2)]).await;
    let (one, mut two) = (fixture.connect(1, "a").await, fixture.connect(2, "b").await);
    let mut three = fixture.connect(3, "c").await;
    assert_eq!(one.rpc("typing", json!({"to": 3, "on": true})).await, Err(CommandError::PermissionDenied));
    assert_eq!(
        one.rpc("typing", json!({"room": "x", "on": true})).await,
        Err(CommandError::PermissionDenied)
    );
    one.enter("room:x").await;
    three.enter("room:x").await;
    three.pushed();
    one.rpc("typing", json!({"room": "x", "on": true})).await.unwrap();
    let on = json!({"type": "typing", "from": "1", "on": true, "room": "x"});
    assert!(typing(&mut three).contains(&on));
    assert!(two.receives_nothing());
    fixture.friend_store.remove_friends(&[(user(1), user(2))]).await.unwrap();
    fixture.hub.friends_changed(vec![friends::FriendsChange::Friends(user(1), user(2))]).await.unwrap();
    assert_eq!(one.rpc("typing", json!({"to": 2, "on": true})).await, Err(CommandError::PermissionDenied));
}

#[tokio::test]
async fn typing_in_a_large_room_is_not_sent() {
    let fixture = Fixture::new().await;
    let one = fixture.connect(1, "a").await;
    one.enter("room:x").await;
    let others = futures_util::future::join_all((2..=502).map(|number| fixture.connect(number, "b"))).await;
    for other in &others {
        other.enter("room:x").await;
    }
    let asked = one.rpc("typing", json!({"room": "x", "on": true})).await;
    assert_eq!(asked, Err(CommandError::LimitExceeded));
    fixture.hub.commands.unsubscribe(others[0].conn, "room:x").await.unwrap();
    one.rpc("typing", json!({"room": "x", "on": true})).await.unwrap();
    one.rpc("typing", json!({"room": "x", "on": false})).await.unwrap();
}
