//! The same on a Redis Cluster of three nodes, as far as the document applies: keys that change places together carry a
//! hash tag there.

use testkit::RedisCluster;

use crate::site_integration::accounts::xadd;
use crate::site_integration::environment::{
    API_KEY, Environment, INFOHASH, Variables, is_admitted, is_unknown,
};

fn start(cluster: &RedisCluster) -> Environment {
    let nodes: Vec<String> = (0..3).map(|node| format!("127.0.0.1:{}", cluster.node(node).port())).collect();
    let variables: Variables = [
        ("TRACKER_API_KEY".to_owned(), API_KEY.to_owned()),
        ("ROLLCALL_REDIS__URL".to_owned(), format!("redis+cluster://{}", nodes.join(","))),
    ]
    .into();
    let mut environment = Environment::start(variables, &[]);
    environment.shell.set("REDIS_PORT", &cluster.node(0).port().to_string());
    environment.shell.set("REDIS_FLAGS", "-c");
    environment
}

#[test]
fn w2_j3_a1_the_document_on_a_cluster() {
    let cluster = RedisCluster::start();
    let mut environment = start(&cluster);
    let passkey = environment.add_user(1);
    environment.shell.set("P1", "aaaaaaaa00000001");
    environment.shell.set("P2", "aaaaaaaa00000002");
    let sh = &environment.shell;
    sh.run("redis SADD pt:passkeys $P1");
    sh.wait("announce $P1 1 'uploaded=0&downloaded=0&left=9'", is_admitted);
    // The refresh by hand: the same two steps, with tags that keep the three sets on one node.
    sh.run("redis SADD '{pt:passkeys}:new' $P2 aaaaaaaa00000009");
    sh.run("redis RENAME pt:passkeys '{pt:passkeys}:old'\nredis RENAME '{pt:passkeys}:new' pt:passkeys");
    sh.wait("announce $P2 2 'uploaded=0&downloaded=0&left=9'", is_admitted);
    sh.run("redis PUBLISH t:ch:user $P1");
    sh.wait("announce $P1 1 'uploaded=0&downloaded=0&left=9'", is_unknown);
    sh.run("redis SREM pt:passkeys $P2\nredis PUBLISH t:ch:user $P2");
    sh.wait("announce $P2 2 'uploaded=0&downloaded=0&left=9'", is_unknown);

    assert_eq!(sh.run("redis XGROUP CREATE tracker:traffic my-site '$'"), "OK");
    sh.run(&xadd(&passkey, "du 123 dd 4 left 0", "none", "dt 60"));
    let read =
        sh.run("redis XREADGROUP GROUP my-site consumer-1 COUNT 100 BLOCK 5000 STREAMS tracker:traffic '>'");
    assert!(read.contains(&passkey), "{read}");
    sh.wait(r#"api "$SITE/api/v1/users/1""#, |user| user.contains(r#""uploaded":"123""#));
    sh.wait(&format!("redis ZREVRANGE 'tracker:user:seed:{{{passkey}}}' 0 -1"), |listed| listed == INFOHASH);
}

#[test]
fn m1_m3_the_layouts_keys_count_beside_the_whitelist_on_a_cluster() {
    let cluster = RedisCluster::start();
    let mut environment = start(&cluster);
    environment.shell.set("P1", "aaaaaaaa00000001");
    environment.shell.set("P2", "aaaaaaaa00000002");
    let sh = &environment.shell;
    sh.run("redis SADD pt:passkeys $P1\nredis HSET t:user:$P2 user_id 7");
    // Another infohash than that of both databases.
    let other = "announce() { curl -s \"http://$TRACKER/$1/announce?info_hash=%5a%5a%5a%5a%5a%5a%5a%5a%5a%5a%5a%5a%5a%5a%5a%5a%5a%5a%5a%5a&peer_id=-XX0001-00000000000$2&port=5141$2&compact=1&left=9\"; }";
    sh.run("redis SET t:info_hash:5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a 12");
    sh.wait(&format!("{other}\nannounce $P1 1"), is_admitted);
    sh.wait(&format!("{other}\nannounce $P2 2"), is_admitted);
    sh.wait("announce $P2 2 'uploaded=0&downloaded=0&left=9'", is_admitted);
    sh.run("redis DEL t:user:$P2\nredis PUBLISH t:ch:user $P2");
    sh.wait("announce $P2 2 'uploaded=0&downloaded=0&left=9'", is_unknown);
}
