//! Three gateways are restarted one after the other, with users on all of them and the published SDKs connected
//! through a simulated load balancer: no online user is shown offline.

use bench::friends;
use serde_json::json;
use testkit::{Proxy, eventually};

use crate::many_gateways::faults::{self, PlannedFault};
use crate::many_gateways::gateways::{COUNT, Gateways, PATIENCE, SECRET, Store};
use crate::many_gateways::population::Population;
use crate::presence_clients::agent::{Agent, Kind};

const PEOPLE: u64 = 100;
/// Users with SDKs, friends of each other.
const OF_JAVASCRIPT: u64 = 500;
const OF_PYTHON: u64 = 501;

/// An SDK's user behind a door of their own.
struct SdkUser {
    agent: Agent,
    door: Proxy,
    friend: String,
}

impl SdkUser {
    fn arrive(kind: Kind, user: u64, friend: u64, gateways: &Gateways, gateway: usize) -> SdkUser {
        let door = Proxy::start(gateways.address(gateway));
        let mut agent = Agent::start(kind, &user.to_string());
        let start = json!({
            "url": format!("ws://{}/connection/websocket", door.address()),
            "identity": {"secret": SECRET, "user": user.to_string()},
            "data": {"device": "laptop", "platform": "computer", "app_state": "foreground"},
        });
        agent.ask("start", start);
        agent.wait_event("connected");
        SdkUser { agent, door, friend: friend.to_string() }
    }

    /// Everything that was shown of the friend since the last look.
    fn shown(&mut self) -> Vec<String> {
        let friend = self.friend.clone();
        let events = self.agent.drain();
        let users =
            events.iter().flat_map(|event| event.said["data"]["users"].as_array().into_iter().flatten());
        let of_friend = users.filter(|user| user["id"] == friend.as_str());
        of_friend.map(|user| user["status"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

#[test]
fn p15_a_rolling_restart_shows_no_online_user_offline() {
    let set = |builder: testkit::ServerBuilder| builder.set("presence.pending_s", 30);
    let mut gateways = Gateways::start_with(Store::single(), set);
    let mut people = Population::new(&gateways, PEOPLE, 7);
    friends::write_to(&gateways.database, &[(OF_JAVASCRIPT, OF_PYTHON)]).unwrap();
    people.until(&gateways, "every client to be connected", PATIENCE, Population::is_settled);
    let mut guests = [
        SdkUser::arrive(Kind::JavaScriptSdk, OF_JAVASCRIPT, OF_PYTHON, &gateways, 0),
        SdkUser::arrive(Kind::PythonSdk, OF_PYTHON, OF_JAVASCRIPT, &gateways, 1),
    ];
    for guest in &mut guests {
        let friend = guest.friend.clone();
        guest.agent.wait_status(&friend, "online");
    }
    let right = |people: &Population| people.differences().is_empty();
    people.until(&gateways, "every view to be right", PATIENCE, right);
    let (began, truth) = (people.now(), people.truth());

    for gateway in 0..COUNT {
        // The balancer sends no client to a gateway that is about to stop.
        let next = gateways.address((gateway + 1) % COUNT);
        guests.iter().for_each(|guest| guest.door.redirect_to(next));
        faults::play(&mut people, &mut gateways, &[vec![PlannedFault::Restart(gateway)]]);
        people.until(&gateways, "every client to be connected again", PATIENCE, Population::is_settled);
        people.until(&gateways, "every view to be right", PATIENCE, right);
    }
    for look in &people.history.watch_sessions {
        let false_farewells = look
            .shown
            .iter()
            .filter(|shown| shown.at > began && shown.status == "offline" && truth[&shown.user] != "offline");
        let example = false_farewells.clone().next();
        assert_eq!(false_farewells.count(), 0, "gateway {}, {example:?}", look.gateway);
    }
    for guest in &mut guests {
        let mut shown = Vec::new();
        eventually("nobody to be pending", PATIENCE, || {
            shown.extend(guest.shown());
            (shown.last().map(String::as_str) != Some("pending")).then_some(())
        });
        assert!(!shown.is_empty(), "each had to reconnect, and got a snapshot");
        assert!(shown.iter().all(|status| ["online", "pending"].contains(&status.as_str())), "{shown:?}");
    }
}
