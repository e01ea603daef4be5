//! Tables that are not as the profile needs them are found before anything is written.

use sites::check;

use crate::support::open;
use crate::support::tables::Site;

async fn problems(site: &Site) -> Vec<String> {
    let findings = check(&open(&site.url).await, &site.profile()).await.unwrap();
    findings.into_iter().filter(|finding| finding.is_problem).map(|finding| finding.found).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_the_tables_of_every_profile_fit() {
    for site in [Site::unit3d(), Site::xbt(), Site::nexusphp(), Site::prisma()] {
        assert_eq!(problems(&site).await, Vec::<String>::new(), "{}", site.profile);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_every_missing_column_is_named() {
    let site = Site::unit3d();
    site.sql("ALTER TABLE history DROP COLUMN seedtime, DROP COLUMN immune; DROP TABLE blacklist_clients");
    assert_eq!(
        problems(&site).await,
        [
            "there is no table blacklist_clients, or this user may not see it",
            "the table history has no column seedtime, immune"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_a_table_without_transactions_is_refused() {
    let site = Site::xbt();
    site.sql("ALTER TABLE xbt_users ENGINE = MyISAM");
    let found = problems(&site).await;
    assert!(found.len() == 1 && found[0].contains("engine MyISAM"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_a_missing_grant_and_schema_are_found_without_writing() {
    let site = Site::xbt();
    let database = site.url.rsplit('/').next().unwrap().to_owned();
    site.sql(&format!(
        "CREATE USER {database}@'127.0.0.1'; GRANT SELECT, INSERT ON {database}.* TO {database}@'127.0.0.1'"
    ));
    let url = site.url.replace("root@", &format!("{database}@"));
    let restricted = site.at(url);
    let found = problems(&restricted).await;
    assert!(found.iter().any(|found| found.starts_with("write.users fails")), "{found:?}");
    assert!(found.iter().any(|found| found.contains("no schema rollcall")), "{found:?}");
    assert_eq!(restricted.totals(1), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_an_unknown_time_zone_is_found() {
    let site = Site::nexusphp();
    let text = sites::profile::text_of("nexusphp").unwrap().replace("\"+08:00\"", "\"Mars/Olympus\"");
    let profile = sites::Profile::parse("mars", &text).unwrap();
    let found = check(&open(&site.url).await, &profile).await.unwrap();
    assert!(found.iter().any(|finding| finding.found.contains("time zone Mars/Olympus")), "{found:?}");
}
