//! The stage: the later announce wins, and nothing that was taken is passed over.

use std::net::IpAddr;

use domain::AnnounceEvent::{None, Started, Stopped};
use sites::Stage;

use crate::support::{Step, Tracker};

fn from(ip: &str) -> Step {
    Step { ip: ip.parse::<IpAddr>().unwrap(), ..Step::new(1, 1, 5, 0).event(None) }
}

async fn open_tracker() -> Tracker {
    let tracker = Tracker::with_stage(Stage::with_bound(100)).await;
    tracker.stage.open();
    tracker.stage.follow();
    tracker
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_a_client_on_two_addresses_is_one_row_with_both() {
    let mut tracker = open_tracker().await;
    tracker.announce(&[from("192.0.2.1").event(Started), from("2001:db8::1")]).await;
    tracker.apply_to_view().await;
    let staged = tracker.stage.take().unwrap().staged;
    assert_eq!(
        (staged.users.len(), staged.torrents.len(), staged.accounts.len(), staged.peers.len()),
        (1, 1, 1, 1)
    );
    let peer = staged.peers.values().next().unwrap();
    assert_eq!(
        (peer.ip, peer.other_ip),
        ("2001:db8::1".parse().unwrap(), Some("192.0.2.1".parse().unwrap()))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_the_later_announce_wins_in_whichever_order_they_come() {
    let mut tracker = open_tracker().await;
    tracker.announce(&[from("192.0.2.1")]).await;
    tracker.apply_to_view().await;
    let older = tracker.stage.take().unwrap().staged;
    tracker.stage.put_back(Default::default());
    tracker.pass(1);
    tracker.announce(&[from("192.0.2.2").event(Stopped)]).await;
    tracker.apply_to_view().await;
    // As after a flush that failed.
    tracker.stage.put_back(older);
    let staged = tracker.stage.take().unwrap().staged;
    let peer = staged.peers.values().next().unwrap();
    assert_eq!((peer.ip, peer.gone), ("192.0.2.2".parse().unwrap(), Some("stopped")));
    let account = staged.accounts.values().next().unwrap();
    assert!(account.span.first < account.span.last);
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_what_was_taken_and_not_put_back_is_not_passed_over() {
    let mut tracker = open_tracker().await;
    tracker.announce(&[from("192.0.2.1")]).await;
    tracker.apply_to_view().await;
    let taken = tracker.stage.take().unwrap();
    tracker.announce(&[from("192.0.2.1")]).await;
    tracker.apply_to_view().await;
    assert!(tracker.stage.take().is_none(), "the writer would note a position beyond what it lost");
    tracker.stage.put_back(taken.staged);
    assert!(tracker.stage.take().unwrap().position > taken.position);
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_a_stage_that_is_not_followed_takes_only_what_the_writer_reads() {
    let mut tracker = Tracker::start().await;
    tracker.stage.open();
    tracker.announce(&[from("192.0.2.1")]).await;
    tracker.apply_to_view().await;
    assert!(tracker.stage.is_empty() && !tracker.stage.is_following());
}
