//! The conformance suite of activity stores: every rule, on every store.

pub mod fixture;
mod histories;
mod limits;
mod lists;
mod rules;

use fixture::Backend;

/// Every case of the suite, by the name of its function.
macro_rules! for_every_case {
    ($each:ident) => {
        $each! {
            rules::a1_a_list_has_torrents_with_the_time_of_their_last_announce,
            rules::a2_completed_moves_a_torrent_from_leeching_to_seeding,
            rules::a2_left_decides_between_the_lists,
            rules::a2_stopped_removes_from_both_lists,
            rules::a2_a_stopped_client_does_not_hide_another,
            rules::a2_a_seeding_client_hides_a_leeching_one_until_it_stops,
            rules::a2_a_replayed_entry_neither_restores_nor_removes,
            rules::a2_within_a_second_the_later_entry_decides,
            rules::a2_within_a_second_the_later_entry_counts_in_any_order_of_arrival,
            rules::j3_entries_with_fourteen_fields_identify_their_client_by_peer_id,
            lists::a4_expired_reports_are_removed_before_a_read,
            lists::a4_an_expired_seeder_uncovers_a_leecher,
            lists::a4_a_sweep_removes_expired_reports_without_reads,
            lists::a4_a_sweep_is_bounded_and_reports_whether_it_is_behind,
            lists::a4_stopped_clients_expire_once_no_older_report_is_valid,
            lists::a4_a_sweep_keeps_clients_that_announce,
            lists::a4_a_client_with_a_longer_interval_expires_after_it_and_the_grace,
            lists::a5_lists_are_paged_newest_first,
            lists::a5_a_cursor_stays_valid_when_the_list_changes,
            lists::a5_counts_of_many_users_and_all_active_users,
            limits::entries_without_a_passkey_are_skipped_and_counted,
            limits::expired_entries_change_nothing_and_are_counted,
            limits::entries_from_the_future_are_rejected_until_their_time,
            limits::on_change_is_called_once_per_batch_for_users_with_an_event,
            limits::clients_beyond_the_maximum_are_evicted,
            limits::thousands_of_torrents_of_a_user_are_listed_and_expire,
            histories::a2_shuffled_and_repeated_histories_end_as_in_order,
            histories::a2_two_concurrent_consumers_end_as_one,
        }
    };
}

macro_rules! in_memory {
    ($($module:ident::$case:ident,)*) => {
        mod memory {
            $(#[tokio::test]
            async fn $case() {
                super::$module::$case(super::Backend::memory()).await;
            })*
        }
    };
}
for_every_case!(in_memory);

macro_rules! on_redis {
    ($($module:ident::$case:ident,)*) => {
        mod redis {
            $(#[tokio::test]
            async fn $case() {
                super::$module::$case(super::Backend::redis()).await;
            })*
        }
    };
}
for_every_case!(on_redis);

macro_rules! on_a_cluster {
    ($($module:ident::$case:ident,)*) => {
        /// Sequential: the user index is one key, and a sweep checks the users of all cases.
        #[tokio::test]
        async fn every_rule_holds_on_a_cluster() {
            let cluster = std::sync::Arc::new(testkit::RedisCluster::start());
            $(
                println!("{}", stringify!($case));
                for node in 0..3 {
                    cluster.node(node).cli(&["FLUSHALL"]);
                }
                $module::$case(Backend::Cluster(cluster.clone())).await;
            )*
        }
    };
}
for_every_case!(on_a_cluster);
