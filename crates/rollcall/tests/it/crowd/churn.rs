//! People come and go at random, and leave nothing behind.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use fastrand::Rng;

use crate::crowd::site::{Site, builder, is_long_run};

/// Connects and disconnects per user.
const TURNS_PER_PERSON: usize = 3;

#[test]
fn p5_churn_leaves_nothing_behind() {
    let mut site = Site::full(builder().set("presence.flap_grace_s", 0));
    let mut random = Rng::with_seed(11);
    for turn in 0..TURNS_PER_PERSON * site.people.len() {
        let person = site.people[random.usize(..site.people.len())];
        if site.crowd.is_up(person) {
            site.crowd.close(person, random.bool());
        } else {
            site.crowd.open(person);
        }
        if turn % 50 == 0 {
            half_a_visit(&site, &mut random);
            site.listen(Duration::from_millis(5));
        }
    }
    site.all_up("those who are on their way");
    let here = site.people.iter().filter(|person| site.crowd.is_up(**person)).count();
    let connections = (here + site.watchers.len()) as f64;
    site.shows(&[
        ("rollcall_gateway_connections_open", connections),
        ("rollcall_presence_sessions{kind=\"connection\"}", connections),
    ]);
    let watched =
        |site: &Site| -> usize { site.watchers.iter().take(2).map(|watcher| watcher.count("online")).sum() };
    site.until("the watchers to see who is here", |site| watched(site) == here);

    for member in site.crowd.members() {
        site.crowd.close(member, random.bool());
    }
    site.shows(&[
        ("rollcall_gateway_connections_open", 0.0),
        ("rollcall_presence_sessions{kind=\"connection\"}", 0.0),
        ("rollcall_presence_users{status=\"online\"}", 0.0),
        ("rollcall_presence_users{status=\"away\"}", 0.0),
    ]);
    // Who left is remembered for a minute, which is too long for every run.
    if is_long_run() {
        site.shows(&[("rollcall_presence_users{status=\"offline\"}", 0.0)]);
    }
}

/// A client that aborts at a random point of connecting.
fn half_a_visit(site: &Site, random: &mut Rng) {
    let request = simulate::websocket::protocol::upgrade_request("rollcall");
    let mut stream = TcpStream::connect(site.server.site_addr()).unwrap();
    let some = random.usize(..=request.len());
    // The program may well have had enough of it.
    let _ = stream.write_all(&request.as_bytes()[..some]);
}
