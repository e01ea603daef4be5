//! Several trackers on one Redis and one database serve the same swarms.

use domain::AnnounceEvent;
use testkit::{RedisServer, Server, eventually, http};

use crate::many_processes::warm_start::{counts, register, say, wait_known};
use crate::site::{DatabaseKind, PATIENCE, Site, builder, quoted};

/// The site's own server, and two trackers more.
struct Nodes {
    site: Site,
    others: [Server; 2],
}

impl Nodes {
    fn start() -> Nodes {
        let site = Site::start(builder(), Some(RedisServer::start()), DatabaseKind::Sqlite);
        register(&site);
        let database = format!("sqlite://{}", site.server.data_folder().join("rollcall.db").display());
        let other = || {
            let other = builder()
                .set("redis.url", quoted(&site.redis().url()))
                .set("database.url", quoted(&database))
                .set("site.metrics_open", true)
                .roles("tracker,site")
                .start();
            wait_known(&other);
            other
        };
        let others = [other(), other()];
        Nodes { site, others }
    }

    fn all(&self) -> [&Server; 3] {
        [&self.site.server, &self.others[0], &self.others[1]]
    }

    #[track_caller]
    fn wait_counts(&self, complete: i64, incomplete: i64) {
        eventually("all nodes to agree", PATIENCE, || {
            let agrees = |node: &&Server| {
                let counts = counts(node);
                (counts.complete, counts.incomplete) == (complete, incomplete)
            };
            self.all().iter().all(agrees).then_some(())
        });
    }
}

fn metric(server: &Server, sample: &str) -> f64 {
    let page = String::from_utf8(http::get(server.site_addr(), "/metrics").body).unwrap();
    page.lines().find_map(|line| line.strip_prefix(sample)?.trim().parse().ok()).unwrap()
}

#[test]
fn t3_a_peer_of_one_node_is_a_peer_of_all_and_its_bytes_count_once() {
    let nodes = Nodes::start();
    let [one, two, three] = nodes.all();
    say(one, 1, AnnounceEvent::Started, (0, 0, 0));
    nodes.wait_counts(1, 0);
    let reply = say(two, 2, AnnounceEvent::Started, (0, 0, 3000));
    assert_eq!(reply.all_peers().len(), 1, "handed out by another node");

    nodes.wait_counts(1, 1);

    // One client announces to all of them in turn, as fast as it can.
    for step in 1..=30 {
        let node = nodes.all()[step as usize % 3];
        say(node, 2, AnnounceEvent::None, (7 * step, 100 * step, 3000 - 100 * step));
    }
    say(three, 2, AnnounceEvent::Completed, (210, 3000, 0));
    nodes.wait_counts(2, 0);
    say(three, 1, AnnounceEvent::Stopped, (900, 0, 0));
    nodes.wait_counts(1, 0);
    for node in nodes.all() {
        assert_eq!(counts(node).downloaded, 1, "one client completed, once");
    }
    let status = nodes.site.settle();
    nodes.site.assert_nothing_failed(&status);
    let books = nodes.site.books();
    assert_eq!((books.users[&2].uploaded, books.users[&2].downloaded), (210, 3000));
    assert_eq!(books.users[&1].uploaded, 900);
    assert!(metric(two, "rollcall_replication_delay_seconds_count") > 0.0);
    assert!(metric(two, "rollcall_replication_entries_total{outcome=\"applied\"}") > 0.0);
}

#[test]
fn t3_a_node_that_starts_anew_knows_the_swarms_of_the_others() {
    let mut nodes = Nodes::start();
    say(&nodes.site.server, 1, AnnounceEvent::Started, (0, 0, 0));
    nodes.others[0].kill();
    say(&nodes.others[1], 2, AnnounceEvent::Started, (0, 0, 50));
    nodes.others[0].start_again();
    let known = counts(&nodes.others[0]);
    assert_eq!((known.complete, known.incomplete), (1, 1));
    nodes.wait_counts(1, 1);
}

#[test]
fn entries_that_were_trimmed_before_a_node_read_them_are_noticed() {
    let mut nodes = Nodes::start();
    say(&nodes.site.server, 1, AnnounceEvent::Started, (0, 0, 0));
    nodes.wait_counts(1, 0);
    // It reads nothing while it is stopped.
    let frozen = nodes.others[0].pid().to_string();
    let signal = |name: &str| {
        assert!(std::process::Command::new("kill").args([name, &frozen]).status().unwrap().success())
    };
    signal("-STOP");
    say(&nodes.site.server, 2, AnnounceEvent::Started, (0, 0, 50));
    say(&nodes.site.server, 3, AnnounceEvent::Started, (0, 0, 50));
    nodes.site.redis().cli(&["XTRIM", "tracker:traffic", "MAXLEN", "=", "2"]);
    signal("-CONT");
    nodes.wait_counts(1, 2);
    assert!(metric(&nodes.others[0], "rollcall_replication_resyncs_total") >= 1.0);
    assert!(nodes.others[0].log().contains("journal entries are missing"));
    nodes.others[1].stop();
}
