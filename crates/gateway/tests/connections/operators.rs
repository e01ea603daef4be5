//! Operators who look on, frame by frame: what they are told, and what they and others are refused.

use domain::Seconds;
use gateway::counters::Ending;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

use crate::fixture::{Client, Fixture, SECRET, now, token};

/// A token as somebody would make it who signs the tokens of people.
fn forged(claims: &Value) -> String {
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    let header = Header { kid: Some("key-1".to_owned()), ..Header::new(Algorithm::HS256) };
    encode(&header, claims, &key).unwrap()
}

/// An operator who has been let in.
async fn look_on(fixture: &Fixture, is_admin: bool) -> Client {
    let mut client = fixture.open().await;
    let made = fixture.gateway.operators.token("key-1", is_admin).unwrap();
    client.send(&json!({"id": 1, "connect": {"token": made.token}})).await;
    let reply = client.next().await;
    assert_eq!(reply["connect"]["subs"], json!({"admin": {}}), "{reply}");
    let ttl = reply["connect"]["ttl"].as_u64().unwrap();
    assert!((290..=300).contains(&ttl), "{reply}");
    client
}

/// The next thing said to operators that is of this type.
async fn told(client: &mut Client, kind: &str) -> Value {
    loop {
        let message = client.next().await;
        assert!(message.get("push").is_none() || message["push"]["channel"] == "admin", "{message}");
        let data = &message["push"]["pub"]["data"];
        if data["type"] == kind {
            return data.clone();
        }
    }
}

#[tokio::test]
async fn an_operator_is_told_what_happens_and_is_nobody_themselves() {
    let fixture = Fixture::with(|settings| settings.connections.connections_max = 2).await;
    fixture.gateway.operators.publish_overview(r#"{"n":1}"#, r#"{"n":"less"}"#);
    let mut reader = look_on(&fixture, false).await;
    assert_eq!(told(&mut reader, "overview").await["overview"], json!({"n": "less"}));
    fixture.gateway.operators.publish_overview(r#"{"n":1}"#, r#"{"n":"still less"}"#);
    assert_eq!(told(&mut reader, "overview").await["overview"], json!({"n": "still less"}));
    drop(reader);
    fixture.until("the reader is gone", || fixture.gateway.operators.count() == 0).await;
    let mut operator = look_on(&fixture, true).await;
    assert_eq!(
        told(&mut operator, "overview").await["overview"],
        json!({"n": 1}),
        "the last one comes first"
    );
    fixture.until("the place is free for people", || fixture.gateway.counters.accept.open.get() == 0).await;
    assert_eq!((fixture.connections(), fixture.gateway.operators.count()), (0, 1));
    assert_eq!(fixture.gateway.counters.sessions.connected.get(), 0);

    let member = fixture.member(7).await;
    let _other = fixture.member(8).await;
    let first = told(&mut operator, "people").await;
    let joined = &first["events"][0];
    assert_eq!((&joined["user"], &joined["event"]), (&json!(7), &json!("joined")));
    assert_eq!((&joined["from"], &joined["to"]), (&json!("offline"), &json!("online")));
    assert_eq!((&joined["platform"], &joined["cause"]), (&json!("web"), &json!("connect")));
    drop(member);
    fixture.until("they have gone", || fixture.connections() == 1).await;
    fixture.gateway.operators.publish_overview(r#"{"n":2}"#, "{}");
    assert_eq!(told(&mut operator, "overview").await["overview"], json!({"n": 2}));

    drop(operator);
    fixture.until("the operator is gone", || fixture.gateway.operators.count() == 0).await;
    let ended = &fixture.gateway.counters.sessions.ended;
    assert_eq!(ended.total(), ended.get(Ending::Dropped) + ended.get(Ending::Clean));
    assert_eq!(ended.total(), 1, "the end of an operator's connection is nobody's going");
}

#[tokio::test]
async fn an_operator_only_looks_on_and_stays_with_a_newer_token_of_the_same_key() {
    let fixture = Fixture::start().await;
    let mut operator = look_on(&fixture, false).await;
    for (id, command) in [
        (2, json!({"id": 2, "rpc": {"method": "devices.list"}})),
        (3, json!({"id": 3, "subscribe": {"channel": "room:x"}})),
        (4, json!({"id": 4, "publish": {"channel": "admin", "data": {}}})),
        (5, json!({"id": 5, "presence": {"channel": "admin"}})),
    ] {
        operator.send(&command).await;
        assert_eq!(operator.reply(id).await["error"]["code"], 103, "{command}");
    }
    let newer = fixture.gateway.operators.token("key-1", false).unwrap().token;
    operator.send(&json!({"id": 6, "refresh": {"token": newer}})).await;
    assert!(operator.reply(6).await["refresh"]["ttl"].as_u64() > Some(200));
    let of_another = fixture.gateway.operators.token("key-2", false).unwrap().token;
    operator.send(&json!({"id": 7, "refresh": {"token": of_another}})).await;
    assert_eq!(operator.closed().await.0, 3500);
    let mut operator = look_on(&fixture, false).await;
    operator.send(&json!({"id": 2, "refresh": {"token": token(7)}})).await;
    assert_eq!(operator.closed().await.0, 3500, "a person's token is no operator's");
}

#[tokio::test]
async fn tokens_of_operators_that_are_made_up_are_refused_and_none_is_a_persons() {
    let fixture = Fixture::start().await;
    let exp = (now() + Seconds(200)).0;
    for claims in [
        json!({"sub": "operator", "key": "key-1", "admin": true, "exp": exp}),
        json!({"sub": "operator", "exp": exp}),
        json!({"sub": "operator", "key": "k"}),
        json!({"sub": "operator", "key": "k", "exp": (now() + Seconds(3600)).0}),
        json!({"sub": "operator2", "key": "k", "exp": exp}),
        json!({"sub": "", "key": "k", "exp": exp}),
    ] {
        let mut client = fixture.open().await;
        client.send(&json!({"id": 1, "connect": {"token": forged(&claims)}})).await;
        assert_eq!(client.closed().await.0, 3500, "{claims}");
    }
    assert_eq!(fixture.gateway.operators.count(), 0);
    let made = fixture.gateway.operators.token("key-1", true).unwrap().token;
    assert!(fixture.gateway.tokens.identify(&made).is_err(), "it is nobody's own");
    let mut person = fixture.member(7).await;
    person.send(&json!({"id": 2, "refresh": {"token": made}})).await;
    assert_eq!(person.closed().await.0, 3500);
}

#[tokio::test]
async fn whose_key_is_revoked_is_sent_away_at_once_and_who_may_know_less_comes_back_to_less() {
    let fixture = Fixture::start().await;
    let (mut admin, mut reader) = (look_on(&fixture, true).await, look_on(&fixture, false).await);
    let old = fixture.gateway.operators.token("key-1", true).unwrap().token;
    fixture.keys.lock().unwrap().insert("key-1", false);
    assert_eq!(admin.closed().await.0, 3005, "an SDK comes back");
    let mut client = fixture.open().await;
    client.send(&json!({"id": 1, "connect": {"token": old}})).await;
    assert_eq!(client.next().await["error"]["code"], 109, "and gets itself another token");
    fixture.gateway.operators.publish_overview("{}", "{}");
    told(&mut reader, "overview").await;
    let kept = fixture.gateway.operators.token("key-1", false).unwrap().token;
    fixture.keys.lock().unwrap().remove("key-1");
    assert_eq!(reader.closed().await.0, 3500);
    let mut client = fixture.open().await;
    client.send(&json!({"id": 1, "connect": {"token": kept}})).await;
    assert_eq!(client.closed().await.0, 3500, "a token is worth nothing without its key");
    assert!(fixture.gateway.operators.token("key-1", false).is_err());
}

#[tokio::test]
async fn no_person_gets_into_the_operators_channel() {
    let fixture = Fixture::start().await;
    let mut person = fixture.member(7).await;
    let for_admin = crate::fixture::token_until(7, now() + Seconds(60), Some("admin"));
    for (id, token) in [(2, ""), (3, for_admin.as_str())] {
        person.send(&json!({"id": id, "subscribe": {"channel": "admin", "token": token}})).await;
        assert_eq!(person.reply(id).await["error"]["code"], 103);
    }
    fixture.gateway.operators.publish_overview("{}", "{}");
    person.send(&json!({"id": 4, "rpc": {"method": "devices.list"}})).await;
    let next = person.next().await;
    assert_eq!(next["id"], 4, "nothing of it was sent to them: {next}");
}

#[tokio::test]
async fn operators_have_a_bound_of_their_own() {
    let fixture = Fixture::with(|settings| settings.connections.operators_max = 1).await;
    let first = look_on(&fixture, false).await;
    let mut second = fixture.open().await;
    let made = fixture.gateway.operators.token("key-2", false).unwrap();
    second.send(&json!({"id": 1, "connect": {"token": made.token}})).await;
    assert_eq!(second.closed().await, (3504, "connection limit".to_owned()));
    assert_eq!(fixture.gateway.counters.operators.refused.get(), 1);
    drop(first);
    fixture.until("the place is free", || fixture.gateway.operators.count() == 0).await;
    look_on(&fixture, false).await;
}

#[tokio::test]
async fn without_a_shared_secret_operators_connect_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let file = folder.path().join("public.pem");
    std::fs::write(&file, pair.public_key_pem()).unwrap();
    let fixture = Fixture::with(|settings| {
        settings.tokens.hmac_secret = None;
        settings.tokens.public_key_file = Some(file);
    })
    .await;
    look_on(&fixture, true).await;
    let mut client = fixture.open().await;
    let claims = json!({"sub": "operator", "key": "k", "exp": (now() + Seconds(100)).0});
    client.send(&json!({"id": 1, "connect": {"token": forged(&claims)}})).await;
    assert_eq!(client.closed().await.0, 3500, "nobody else knows the secret");
}

#[tokio::test]
async fn a_client_that_does_not_answer_pings_is_closed() {
    let fixture =
        Fixture::with(|settings| settings.connections.ping = std::time::Duration::from_millis(300)).await;
    let mut operator = look_on(&fixture, false).await;
    assert_eq!(operator.closed().await.0, 3012);
}
