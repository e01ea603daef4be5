//! External users, on every database: one account per passkey, and their conversion to users of the database.

use std::collections::BTreeSet;
use std::sync::Arc;

use access::{
    AccessError, ExternalUser, ExternalUserOptions, Gate, NewExternalUser, NewUser, Refusal, Store,
    UnknownPasskeys,
};
use domain::UserId;

use testkit::on_every_database;

use crate::fixture::{Fixture, NOW, OpenStore, new_user, passkey, user_id};

const OPTIONS: ExternalUserOptions =
    ExternalUserOptions { id_min: UserId::new(1_000_000).unwrap(), now: NOW };

on_every_database!(
    w4_ids_of_external_users_begin_where_configured,
    w4_the_sites_id_is_used_if_it_is_free,
    w4_a_user_with_another_passkey_keeps_account_and_ban,
    w4_a_passkey_is_replaced_only_for_external_users_with_an_id_of_the_site,
    w4_an_external_user_is_created_once,
    w4_concurrent_processes_agree_on_external_users,
    an_id_is_not_reused_after_a_removal,
    adding_a_user_with_the_passkey_of_an_external_user_keeps_the_account,
    an_external_user_keeps_id_and_passkey_together,
    a_bulk_insert_converts_external_users,
    the_gate_admits_external_users_only_with_a_verified_passkey,
    a_site_can_convert_external_users_by_sql,
);

fn external(number: u64) -> NewExternalUser {
    NewExternalUser { passkey: passkey(number), site_id: None }
}

async fn ensure(store: &Store, new: &[NewExternalUser]) -> Vec<ExternalUser> {
    let users = store.ensure_external_users(new, OPTIONS).await.unwrap();
    users.into_iter().collect::<Result<_, _>>().unwrap()
}

fn ids(users: &[ExternalUser]) -> Vec<u64> {
    users.iter().map(|one| one.user.id.get()).collect()
}

async fn w4_ids_of_external_users_begin_where_configured(fixture: Fixture) {
    let store = fixture.store().await;
    store.add_user(new_user(7)).await.unwrap();
    let users = ensure(&store, &[external(101), external(102)]).await;
    assert_eq!(ids(&users), [1_000_000, 1_000_001]);
    assert!(users.iter().all(|one| one.is_new && one.user.is_external && one.user.enabled));
    assert_eq!(ids(&ensure(&store, &[external(103)]).await), [1_000_002]);
    assert_eq!(store.count_users().await.unwrap(), 4, "no temporary rows");
    assert!(!store.user(user_id(7)).await.unwrap().unwrap().is_external);
}

async fn w4_the_sites_id_is_used_if_it_is_free(fixture: Fixture) {
    let store = fixture.store().await;
    store.add_user(new_user(7)).await.unwrap();
    let with_site_id =
        |number, wanted| NewExternalUser { site_id: Some(user_id(wanted)), ..external(number) };
    let users = ensure(&store, &[with_site_id(101, 7), with_site_id(102, 8), with_site_id(103, 8)]).await;
    assert_eq!(
        ids(&users),
        [1_000_000, 8, 8],
        "a user of the database keeps its id; an external user with this id is the same user"
    );
}

async fn w4_a_user_with_another_passkey_keeps_account_and_ban(fixture: Fixture) {
    let store = fixture.store().await;
    let with_site_id =
        |number, wanted| NewExternalUser { site_id: Some(user_id(wanted)), ..external(number) };
    ensure(&store, &[with_site_id(101, 8), with_site_id(102, 9)]).await;
    store.set_user_enabled(user_id(8), false).await.unwrap();
    let unknown_passkeys = UnknownPasskeys::new(std::time::Duration::from_secs(1)).0;
    let gate = Arc::new(Gate::with_verification(unknown_passkeys));
    let mut follower = access::load(store.clone(), Arc::clone(&gate)).await.unwrap();

    let again = ensure(
        &store,
        &[with_site_id(201, 8), with_site_id(202, 9), with_site_id(101, 8), with_site_id(301, 8)],
    )
    .await;
    assert_eq!(ids(&again), [8, 9, 8, 8]);
    let old: Vec<_> = again.iter().map(|one| one.old_passkey).collect();
    assert_eq!(old, [101, 102, 201, 101].map(|number| Some(passkey(number))));
    assert!(again.iter().all(|one| one.user.is_external && !one.is_new));
    assert_eq!([again[0].user.enabled, again[1].user.enabled], [false, true], "the ban persists");
    assert_eq!(store.count_users().await.unwrap(), 2);
    let row = store.user(user_id(8)).await.unwrap().unwrap();
    assert_eq!(row, again[3].user);
    assert_eq!((row.passkey, row.enabled), (passkey(301), false));

    follower.poll(&mut |_| ()).await.unwrap();
    let known = [101, 102, 201, 202, 301].map(|number| gate.user_of(&passkey(number)));
    assert_eq!(known, [None, None, None, Some(user_id(9)), Some(user_id(8))]);
    let refused = gate.admit_user(&passkey(301), NOW);
    assert_eq!(refused, Err(Refusal::UserDisabled));
}

async fn w4_a_passkey_is_replaced_only_for_external_users_with_an_id_of_the_site(fixture: Fixture) {
    let store = fixture.store().await;
    store.add_user(new_user(7)).await.unwrap();
    let assigned = ensure(&store, &[external(101)]).await;
    assert_eq!(ids(&assigned), [1_000_000]);
    let with_site_id =
        |number, wanted| NewExternalUser { site_id: Some(user_id(wanted)), ..external(number) };
    let others = ensure(&store, &[with_site_id(201, 7), with_site_id(202, 1_000_000)]).await;
    assert_eq!(
        ids(&others),
        [1_000_001, 1_000_002],
        "neither a user of the database nor an id assigned here"
    );
    assert!(others.iter().all(|one| one.is_new && one.old_passkey.is_none()));
    assert_eq!(store.user(user_id(7)).await.unwrap().unwrap().passkey, passkey(7));
    assert_eq!(store.user(user_id(1_000_000)).await.unwrap().unwrap(), assigned[0].user);
}

async fn w4_an_external_user_is_created_once(fixture: Fixture) {
    let store = fixture.store().await;
    store.add_user(new_user(7)).await.unwrap();
    store.set_user_enabled(user_id(7), false).await.unwrap();
    let first = ensure(&store, &[external(101), external(101)]).await;
    assert_eq!(ids(&first), [1_000_000, 1_000_000]);
    assert_eq!(first.iter().filter(|one| one.is_new).count(), 1);
    let again = ensure(&store, &[external(101), external(7)]).await;
    assert_eq!(ids(&again), [1_000_000, 7]);
    assert!(again.iter().all(|one| !one.is_new));
    assert!(!again[1].user.is_external && !again[1].user.enabled, "a user of the database is not changed");
}

async fn w4_concurrent_processes_agree_on_external_users(fixture: Fixture) {
    let fixture = Arc::new(fixture);
    let trackers: Vec<_> = (0..4_u64)
        .map(|tracker| {
            let fixture = Arc::clone(&fixture);
            tokio::spawn(async move {
                let store = fixture.store().await;
                let mut seen = Vec::new();
                for round in 0..5 {
                    // Overlapping sets, in different orders.
                    let mut batch: Vec<NewExternalUser> = (0..20)
                        .map(|number| external(1000 + (number * 7 + tracker * 11 + round * 13) % 60))
                        .collect();
                    batch.rotate_left(tracker as usize);
                    for users in ensure(&store, &batch).await {
                        seen.push((users.user.passkey, users.user.id, users.is_new));
                    }
                }
                seen
            })
        })
        .collect();
    let mut seen = Vec::new();
    for tracker in trackers {
        seen.extend(tracker.await.unwrap());
    }
    let passkeys: BTreeSet<_> = seen.iter().map(|(passkey, ..)| *passkey).collect();
    let accounts: BTreeSet<_> = seen.iter().map(|(passkey, id, _)| (*passkey, *id)).collect();
    let numbers: BTreeSet<_> = seen.iter().map(|(_, id, _)| *id).collect();
    assert_eq!((accounts.len(), numbers.len()), (passkeys.len(), passkeys.len()));
    assert_eq!(seen.iter().filter(|(.., is_new)| *is_new).count(), passkeys.len());
    assert!(numbers.iter().all(|id| *id >= OPTIONS.id_min));
    assert_eq!(fixture.store().await.count_users().await.unwrap(), passkeys.len() as u64);
}

async fn an_id_is_not_reused_after_a_removal(fixture: Fixture) {
    let store = fixture.store().await;
    assert_eq!(ids(&ensure(&store, &[external(101)]).await), [1_000_000]);
    store.remove_user(user_id(1_000_000)).await.unwrap();
    assert_eq!(ids(&ensure(&store, &[external(102)]).await), [1_000_001]);
}

async fn adding_a_user_with_the_passkey_of_an_external_user_keeps_the_account(fixture: Fixture) {
    let store = fixture.store().await;
    let users = ensure(&store, &[external(101), external(102)]).await;
    let by_passkey = NewUser { id: None, passkey: Some(passkey(101)), created_at: NOW };
    let own = store.add_user(by_passkey).await.unwrap();
    assert_eq!((own.id, own.is_external, own.enabled), (users[0].user.id, false, true));
    store.set_user_enabled(users[1].user.id, false).await.unwrap();
    let by_both = NewUser { id: Some(users[1].user.id), passkey: Some(passkey(102)), created_at: NOW };
    let own = store.add_user(by_both).await.unwrap();
    assert_eq!(
        (own.id, own.is_external, own.enabled),
        (users[1].user.id, false, false),
        "a disabled user stays disabled"
    );
    assert_eq!(store.user(own.id).await.unwrap().unwrap(), own);
    let again = store.add_user(by_both).await.unwrap_err();
    assert!(matches!(again, AccessError::UserIdTaken(_)), "{again}");
}

async fn an_external_user_keeps_id_and_passkey_together(fixture: Fixture) {
    let store = fixture.store().await;
    ensure(&store, &[external(101)]).await;
    let other_id = NewUser { id: Some(user_id(5)), passkey: Some(passkey(101)), created_at: NOW };
    let error = store.add_user(other_id).await.unwrap_err();
    assert!(matches!(error, AccessError::PasskeyExternal { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("--id 1000000") && !text.contains(&passkey(101).to_string()), "{text}");
    let other_passkey = NewUser { id: Some(OPTIONS.id_min), passkey: Some(passkey(9)), created_at: NOW };
    let error = store.add_user(other_passkey).await.unwrap_err();
    assert!(matches!(error, AccessError::UserIdExternal(_)), "{error}");
    assert!(error.to_string().contains("user remove 1000000"), "{error}");
    let error = store.rotate_passkey(OPTIONS.id_min, None).await.unwrap_err();
    assert!(matches!(error, AccessError::NotRotatable(_)), "{error}");
}

async fn a_bulk_insert_converts_external_users(fixture: Fixture) {
    let store = fixture.store().await;
    let with_site_id = |number| NewExternalUser { site_id: Some(user_id(number)), ..external(number) };
    ensure(&store, &[with_site_id(3), with_site_id(900)]).await;
    assert_eq!(store.add_users((1..=1000).map(new_user)).await.unwrap(), 1000);
    assert_eq!(store.count_users().await.unwrap(), 1000);
    for number in [1, 3, 900, 1000] {
        assert!(!store.user(user_id(number)).await.unwrap().unwrap().is_external);
    }
}

async fn the_gate_admits_external_users_only_with_a_verified_passkey(fixture: Fixture) {
    let store = fixture.store().await;
    let users = ensure(&store, &[external(101)]).await;
    let gate = Arc::new(Gate::default());
    let mut follower = access::load(store.clone(), Arc::clone(&gate)).await.unwrap();
    assert_eq!(gate.user_of(&passkey(101)), Some(users[0].user.id));
    assert!(gate.admit_user(&passkey(101), NOW).is_err(), "the row alone is not enough");
    store.add_user(NewUser { id: None, passkey: Some(passkey(101)), created_at: NOW }).await.unwrap();
    follower.poll(&mut |_| ()).await.unwrap();
    assert_eq!(gate.admit_user(&passkey(101), NOW), Ok(users[0].user.id), "now a user of the database");
}

async fn a_site_can_convert_external_users_by_sql(fixture: Fixture) {
    let store = fixture.store().await;
    ensure(&store, &[external(101)]).await;
    let gate = Arc::new(Gate::default());
    let mut follower = access::load(store.clone(), Arc::clone(&gate)).await.unwrap();
    let mut site = fixture.raw().await;
    site.execute(fixture.pick(
        "UPDATE users SET vouched = 0",
        "UPDATE users SET vouched = FALSE",
        "UPDATE users SET vouched = 0",
    ))
    .await;
    follower.poll(&mut |_| ()).await.unwrap();
    assert!(gate.admit_user(&passkey(101), NOW).is_ok());
}
