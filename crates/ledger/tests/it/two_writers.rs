//! Several processes that write the same rows, and an operator who edits them: none overwrites the other.

use database::Database;
use journal::{Batch, View as _};

use crate::support::simulator::{Size, simulate};
use crate::support::{Place, apply, batch, everything, figures, open};

/// Every account is written by both processes.
const SIZE: Size = Size { nodes: 2, users: 3, torrents: 3, clients_per_account: 2, announces_per_client: 30 };

async fn l6_two_processes_that_write_the_same_accounts_in_turns_lose_nothing(place: Place) {
    let world = simulate(41, SIZE);
    let processes = [open(&place).await, open(&place).await];
    for (number, chunk) in world.arrivals.chunks(13).enumerate() {
        // Sometimes one writes twice, so that it finds its own rows.
        let turn = number / 2 % 2;
        assert_eq!(apply(&processes[turn], &format!("c{turn}"), chunk).await, []);
    }
    let elsewhere = Place::sqlite();
    let expected = open(&elsewhere).await;
    apply(&expected, "only", &world.arrivals).await;
    for process in &processes {
        assert_eq!(
            everything(process, SIZE.users, SIZE.torrents).await,
            everything(&expected, SIZE.users, SIZE.torrents).await
        );
    }
}

async fn l6_a_batch_taken_over_by_another_process_continues_from_the_stored_rows(place: Place) {
    let world = simulate(42, SIZE);
    let (dead, successor) = (open(&place).await, open(&place).await);
    let chunks: Vec<_> = world.arrivals.chunks(40).collect();
    for (number, chunk) in chunks.iter().enumerate() {
        // Both have written before, and know each other's rows as they were then.
        let consumer = format!("dead-{number}");
        apply(&dead, &consumer, chunk).await;
        successor.fence(&consumer).await.unwrap();
        let taken = Batch { taken_from: Some(&consumer), ..batch("successor", chunk) };
        assert_eq!(successor.apply(&taken).await.unwrap(), []);
    }
    assert_eq!(successor.counts().repeated, world.arrivals.len() as u64);
    for owner in 1..=SIZE.users {
        let moved = figures(&successor, owner).await;
        assert_eq!((moved.uploaded, moved.downloaded), world.credited_to_user(owner), "user {owner}");
    }
}

async fn l2_an_edited_row_is_the_base_of_the_next_entry(place: Place) {
    let world = simulate(43, SIZE);
    let ledger = open(&place).await;
    let (early, late) = world.arrivals.split_at(world.arrivals.len() / 2);
    apply(&ledger, "a", early).await;
    let editor = Database::open(&place.url).await.unwrap();
    let before = figures(&ledger, 1).await;
    let given = before.uploaded + 1_000_000;
    let edit = format!("UPDATE ledger_users SET uploaded = '{given}' WHERE id = 1");
    editor.execute(edit.as_str(), &[]).await.unwrap();
    for chunk in late.chunks(17) {
        apply(&ledger, "a", chunk).await;
    }
    let (uploaded, _) = world.credited_to_user(1);
    assert_eq!(figures(&ledger, 1).await.uploaded, uploaded + 1_000_000);
}

async fn l6_a_restored_state_is_the_base_of_the_next_entry(place: Place) {
    let world = simulate(44, SIZE);
    let ledger = open(&place).await;
    let third = world.arrivals.len() / 3;
    apply(&ledger, "a", &world.arrivals[..third]).await;
    let operator = Database::open(&place.url).await.unwrap();
    let tables = ["ledger_users", "ledger_torrents", "ledger_accounts", "ledger_consumers"];
    for table in tables {
        operator
            .execute(format!("CREATE TABLE saved_{table} AS SELECT * FROM {table}").as_str(), &[])
            .await
            .unwrap();
    }
    apply(&ledger, "a", &world.arrivals[third..2 * third]).await;
    let mut restore = operator.begin().await.unwrap();
    for table in tables {
        restore.execute(format!("DELETE FROM {table}").as_str(), &[]).await.unwrap();
        restore
            .execute(format!("INSERT INTO {table} SELECT * FROM saved_{table}").as_str(), &[])
            .await
            .unwrap();
    }
    restore.commit().await.unwrap();
    // As after a restore: what was applied since comes again.
    for chunk in world.arrivals[third..].chunks(50) {
        apply(&ledger, "a", chunk).await;
    }
    for owner in 1..=SIZE.users {
        let moved = figures(&ledger, owner).await;
        assert_eq!((moved.uploaded, moved.downloaded), world.credited_to_user(owner), "user {owner}");
    }
}

on_every_database!(
    l6_two_processes_that_write_the_same_accounts_in_turns_lose_nothing,
    l6_a_batch_taken_over_by_another_process_continues_from_the_stored_rows,
    l2_an_edited_row_is_the_base_of_the_next_entry,
    l6_a_restored_state_is_the_base_of_the_next_entry,
);
