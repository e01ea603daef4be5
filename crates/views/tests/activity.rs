//! The conformance suite of activity stores: every rule, on every store.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "activity/fixture.rs"]
mod fixture;
#[path = "activity/histories.rs"]
mod histories;
#[path = "activity/limits.rs"]
mod limits;
#[path = "activity/lists.rs"]
mod lists;
#[path = "activity/rules.rs"]
mod rules;

use fixture::Place;

/// Every case of the suite, by the name of its function.
macro_rules! for_every_case {
    ($each:ident) => {
        $each! {
            rules::a1_a_list_holds_torrents_with_the_time_of_their_last_announce,
            rules::a2_completed_moves_a_torrent_from_leeching_to_seeding,
            rules::a2_what_is_left_decides_between_the_lists,
            rules::a2_stopped_removes_from_both_lists,
            rules::a2_the_first_clients_goodbye_does_not_hide_the_second,
            rules::a2_a_seeding_client_hides_a_leeching_one_until_it_goes,
            rules::a2_a_replayed_entry_neither_revives_nor_removes,
            rules::a2_within_a_second_the_later_entry_decides,
            rules::a2_within_a_second_the_later_entry_counts_in_any_order_of_arrival,
            rules::j3_fourteen_field_entries_work_and_know_their_client_by_peer_id,
            lists::a4_what_is_too_old_is_gone_before_it_is_read,
            lists::a4_a_seeder_that_fell_silent_uncovers_a_leecher,
            lists::a4_a_sweep_removes_what_is_old_from_users_nobody_asks_about,
            lists::a4_a_sweep_takes_bounded_steps_and_says_whether_it_is_behind,
            lists::a4_goodbyes_are_forgotten_once_nothing_older_counts,
            lists::a4_a_sweep_leaves_the_living_alone_for_ever,
            lists::a4_a_client_that_was_told_a_longer_interval_is_gone_after_that_and_the_grace,
            lists::a5_lists_come_newest_first_in_pages,
            lists::a5_a_page_goes_on_where_the_last_one_ended_though_the_list_changed,
            lists::a5_many_users_are_counted_at_once_and_all_active_ones_are_found,
            limits::entries_without_a_passkey_are_skipped_and_counted,
            limits::entries_that_are_too_old_change_nothing_and_are_counted,
            limits::entries_from_far_ahead_are_rejected_until_their_time_has_come,
            limits::who_begins_completes_or_stops_is_told_once_a_batch_and_a_heartbeat_is_not,
            limits::a_client_that_changes_its_name_all_the_time_fills_no_memory,
            limits::a_user_with_thousands_of_torrents_is_listed_and_forgotten,
            histories::a2_shuffled_and_repeated_histories_end_as_in_order,
            histories::a2_two_consumers_at_once_end_as_one,
        }
    };
}

macro_rules! on_sqlite {
    ($($module:ident::$case:ident,)*) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $case() {
                super::$module::$case(super::Place::sqlite()).await;
            })*
        }
    };
}
for_every_case!(on_sqlite);

macro_rules! on_redis {
    ($($module:ident::$case:ident,)*) => {
        mod redis {
            $(#[tokio::test]
            async fn $case() {
                super::$module::$case(super::Place::redis()).await;
            })*
        }
    };
}
for_every_case!(on_redis);

macro_rules! on_a_cluster {
    ($($module:ident::$case:ident,)*) => {
        /// One after another: the index of users is one key, and sweeps find everybody.
        #[tokio::test]
        async fn every_rule_holds_on_a_cluster() {
            let cluster = std::sync::Arc::new(testkit::RedisCluster::start());
            $(
                println!("{}", stringify!($case));
                for node in 0..3 {
                    cluster.node(node).cli(&["FLUSHALL"]);
                }
                $module::$case(Place::Cluster(cluster.clone())).await;
            )*
        }
    };
}
for_every_case!(on_a_cluster);
