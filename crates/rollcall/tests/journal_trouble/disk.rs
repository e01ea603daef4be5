//! The embedded journal's disk is full.

use crate::site::{DatabaseKind, Site, builder};
use crate::{assert_nothing_lost, meanwhile, populate};

#[test]
fn a_full_disk_under_the_embedded_journal_loses_nothing() {
    // No file of this process grows beyond this, which is soon.
    let builder = builder().file_kib_max(1024).set("journal.ack_timeout_ms", 500);
    let mut site = Site::start(builder, None, DatabaseKind::Sqlite);
    let mut population = populate(&site);
    meanwhile(&mut population, &mut site, |site| {
        let line = site.wait_logged(&["entries wait: the journal does not take them"]);
        eprintln!("the log says: {line}");
        site.wait_logged(&["not_stored_in_time"]);
        // Somebody makes room.
        site.server.kill();
        site.server.lift_file_limit();
        site.server.start_again();
    });
    assert_nothing_lost(&mut population, &site);
}
