//! Operator settings of consumption (J10, J11), and entries that are malformed for every view.

use std::sync::Arc;
use std::time::Duration;

use domain::Seconds;
use domain::clock::{Clock, Stopwatch, SystemClock};
use journal::consumer::foreign_consumers;
use journal::pause::{PausedView, pause, resume};
use journal::rewind::requeue_skipped;
use journal::{Journal, Lane, Skipped};

use crate::consumer::rig::*;

const PAUSED_VIEW: PausedView<'static> =
    PausedView { name: VIEW, group: GROUP, dead_after: Duration::from_secs(60) };
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn j5_an_entry_from_the_future_is_malformed_until_its_time_has_come() {
    let rig = Rig::new().await;
    let now = SystemClock.now();
    let dated = |number, ahead| fields_with(number, "ts", &(now + Seconds(ahead)).to_string());
    rig.append(&[dated(1, 0), dated(2, 50), dated(3, 75), dated(4, 3600)]).await;
    let running = rig.start("a", |settings| settings.retry_delay = Seconds(3600));
    rig.wait_lag_0().await;
    assert_eq!(rig.view.applied_uploads(), [1, 2]);
    let dead_letters = rig.dead_letters(Lane::Dead).await;
    assert_eq!(dead_letters.len(), 2);
    for dead_letter in &dead_letters {
        assert!(dead_letter.reason.contains("ahead of this machine's clock"), "{}", dead_letter.reason);
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn j10_a_pause_that_was_confirmed_holds() {
    let rig = Rig::new().await;
    let running = rig.start("a", |settings| settings.consumers = 4);
    let other = rig.start("b", |settings| settings.consumers = 2);
    let numbers: Vec<u64> = (0..2000).collect();
    for page in numbers.chunks(100) {
        rig.append(&page.iter().map(|number| entry(*number)).collect::<Vec<_>>()).await;
    }
    rig.wait_for("the view to begin", async || !rig.view.applied_uploads().is_empty()).await;
    for round in 0..3 {
        let token = format!("pause {round}");
        let unconfirmed = pause(&*rig.journal, PAUSED_VIEW, &token, PATIENCE).await.unwrap();
        assert!(unconfirmed.is_empty(), "{unconfirmed:?}");
        let applied = rig.view.applied_uploads().len();
        // Readers now find the pause; new entries wait.
        rig.append(&[entry(10_000 + round)]).await;
        let late = rig.start("late", |_| {});
        rig.wait_for("the late process to find the pause", async || {
            let notes = rig.journal.notes().await.unwrap();
            notes.keys().any(|name| name.starts_with(&format!("held {VIEW} late.")))
        })
        .await;
        // Every process looks again after the entry was appended: it confirms another token.
        let token = format!("still pause {round}");
        let unconfirmed = pause(&*rig.journal, PAUSED_VIEW, &token, PATIENCE).await.unwrap();
        assert!(unconfirmed.is_empty(), "{unconfirmed:?}");
        assert_eq!(rig.view.applied_uploads().len(), applied, "nothing is applied in round {round}");
        late.stop().await;
        resume(&*rig.journal, VIEW).await.unwrap();
        let goes_on = async || rig.view.applied_uploads().contains(&(10_000 + round));
        rig.wait_for("the view to go on", goes_on).await;
    }
    rig.wait_lag_0().await;
    assert_eq!(rig.view.applied_uploads().len(), 2003);
    running.stop().await;
    other.stop().await;
    let unconfirmed = pause(&*rig.journal, PAUSED_VIEW, "no process runs", Duration::ZERO).await.unwrap();
    assert!(unconfirmed.is_empty(), "processes that ended are not waited for: {unconfirmed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn j10_a_process_that_does_not_confirm_is_reported() {
    let rig = Rig::new().await;
    rig.ensure_groups().await;
    rig.journal.read(Lane::Traffic, GROUP, "other.1f.reader-0.0", 1, Duration::ZERO).await.unwrap();
    rig.journal.read(Lane::Traffic, GROUP, "a script", 1, Duration::ZERO).await.unwrap();
    let unconfirmed = pause(&*rig.journal, PAUSED_VIEW, "1", Duration::from_millis(100)).await.unwrap();
    assert_eq!(unconfirmed.into_iter().collect::<Vec<_>>(), ["other.1f"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn j10_no_more_entries_a_second_than_the_operator_allows() {
    let rig = Rig::new().await;
    rig.append(&(0..60).map(entry).collect::<Vec<_>>()).await;
    let watch = Stopwatch::start();
    let running = rig.start("a", |settings| (settings.entries_per_s_max, settings.consumers) = (20, 3));
    rig.wait_lag_0().await;
    // Twenty at once, then twenty per second.
    assert!(watch.elapsed() >= Duration::from_secs(2), "{:?}", watch.elapsed());
    assert!(rig.view.largest_batch() <= 20);
    running.change(|settings| settings.entries_per_s_max = 0);
    rig.append(&(60..5060).map(entry).collect::<Vec<_>>()).await;
    rig.wait_lag_0().await;
    assert_eq!(rig.view.applied_uploads().len(), 5060);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn j11_entries_older_than_the_installation_are_skipped_and_can_be_requeued() {
    let rig = Rig::new().await;
    rig.append(&(0..5).map(entry).collect::<Vec<_>>()).await;
    rig.clock.advance(Seconds(100));
    let installed_ms = rig.clock.now_ms();
    rig.append(&(5..8).map(entry).collect::<Vec<_>>()).await;
    let running = rig.start("a", |settings| settings.not_before_ms = installed_ms);
    rig.wait_lag_0().await;
    rig.wait_for("the later entries", async || rig.view.applied_uploads() == [5, 6, 7]).await;
    let skipped = Skipped::of_group(&rig.journal.notes().await.unwrap(), GROUP).unwrap();
    assert_eq!((skipped.count, skipped.before_ms), (5, installed_ms));
    assert_eq!(running.counters.skipped_old(), 5);

    assert_eq!(requeue_skipped(&*rig.journal, "another group").await.unwrap(), None);
    assert_eq!(requeue_skipped(&*rig.journal, GROUP).await.unwrap(), Some(5));
    let taken = (0..8).collect::<Vec<_>>();
    rig.wait_for("the old entries", async || rig.view.applied_uploads() == taken).await;
    rig.wait_for("no dead letter to be left", async || rig.dead_letters(Lane::Dead).await.is_empty()).await;
    assert_eq!(requeue_skipped(&*rig.journal, GROUP).await.unwrap(), None);
    running.stop().await;
}

/// The group was in use, and its consumer died while it held entries.
#[tokio::test(flavor = "multi_thread")]
async fn j11_old_entries_of_a_dead_consumer_are_skipped_as_well() {
    let rig = Rig::new().await;
    rig.ensure_groups().await;
    rig.append(&(0..5).map(entry).collect::<Vec<_>>()).await;
    rig.journal.read(Lane::Traffic, GROUP, "consumer-1", 2, Duration::ZERO).await.unwrap();
    rig.clock.advance(Seconds(7200));
    let installed_ms = rig.clock.now_ms();
    rig.append(&[entry(5)]).await;
    let running = rig.start("a", |settings| settings.not_before_ms = installed_ms);
    rig.wait_lag_0().await;
    assert_eq!(rig.view.applied_uploads(), [5]);
    assert_eq!(running.counters.skipped_old(), 5);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn j11_nothing_is_trimmed_for_a_day_after_entries_were_skipped() {
    use journal::maintenance::{self, MaintenanceSettings};
    let rig = Rig::new().await;
    rig.append(&(0..5).map(entry).collect::<Vec<_>>()).await;
    let running = rig.start("a", |settings| settings.not_before_ms = rig.clock.now_ms() + 1000);
    rig.wait_lag_0().await;
    rig.wait_for("the note", async || !rig.journal.notes().await.unwrap().is_empty()).await;
    running.stop().await;
    let settings = MaintenanceSettings { keep: Seconds(0), keep_risks: Seconds(0), length_alarm: 100 };
    for (later, left) in [(Seconds(0), 5), (Seconds(25 * 60 * 60), 0)] {
        let clock = Arc::new(domain::clock::ManualClock::at(SystemClock.now() + later));
        let counters = Arc::new(maintenance::MaintenanceCounters::default());
        let (_settings, settings) = tokio::sync::watch::channel(settings);
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let journal = Arc::clone(&rig.journal) as Arc<dyn Journal>;
        let task = tokio::spawn(maintenance::run(journal, clock, settings, counters.clone(), stopped));
        let has_run = async || {
            let alarm = counters.length_alarm.load(std::sync::atomic::Ordering::SeqCst);
            alarm == 100
        };
        rig.wait_for("a round", has_run).await;
        stop.send_replace(true);
        task.await.unwrap();
        assert_eq!(rig.journal.status(Lane::Traffic).await.unwrap().length, left);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn j11_another_program_in_the_group_is_reported() {
    let rig = Rig::new().await;
    rig.ensure_groups().await;
    rig.journal.read(Lane::Traffic, GROUP, "consumer-1", 1, Duration::ZERO).await.unwrap();
    let running = rig.start("a", |_| {});
    rig.wait_for("it to be counted", async || running.counters.foreign() == 1).await;
    let consumers = rig.journal.consumers(Lane::Traffic, GROUP).await.unwrap();
    let foreign: Vec<&str> = foreign_consumers(&consumers, Duration::from_secs(3600)).collect();
    assert_eq!(foreign, ["consumer-1"]);
    running.stop().await;
}
