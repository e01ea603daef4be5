//! Initial data of a demo: users, torrents, friendships, multipliers, an API key.

use access::Store;
use admin::audit::Subject;
use admin::{ApiKeys, Scope as KeyScope};
use domain::UnixTime;
use domain::clock::{Clock, SystemClock};
use ledger::{NewMultiplier, Percent, Scope};
use simulate::{Plan, catalogue};

use crate::command::CommandContext;
use crate::command::audited::record;
use crate::demo_data::{self, Progress};
use crate::wiring::stores;

/// Duration of the double upload.
const DOUBLE_UPLOAD_S: u32 = 2 * 3_600;

/// Progress is printed above this many torrents.
const PROGRESS_TORRENTS_MIN: u32 = 10_000;

pub(super) struct DemoData {
    /// An API key with all scopes.
    pub(super) key: String,
}

/// Existing rows are kept.
pub(super) async fn fill(context: &CommandContext, plan: &Plan) -> anyhow::Result<DemoData> {
    let now = SystemClock.now();
    let store = Store::open(&context.config.database_url(&context.data)).await?;
    let friends = stores::open_friends(&context.config, &store).await?;
    demo_data::insert(plan, &store, &friends, now, print_progress).await?;
    add_multipliers(context, plan, now).await?;
    let keys = ApiKeys::on(store.database());
    let creating = keys.create("demo", KeyScope::Admin.into(), now);
    let key = context
        .audited(record("key.create", Subject::key("")).with("name", "demo"), creating, |record, key| {
            record.about(Subject::key(key.id))
        })
        .await?;
    store.close().await;
    if plan.torrents > PROGRESS_TORRENTS_MIN {
        eprintln!("starting the server");
    }
    Ok(DemoData { key: key.text })
}

/// To standard error, which scripts do not parse.
fn print_progress(Progress { torrents, of }: Progress) {
    if of > PROGRESS_TORRENTS_MIN {
        eprintln!("creating the demo: {torrents} of {of} torrents");
    }
}

/// The most popular torrent is freeleech, and uploads count double for two hours.
async fn add_multipliers(context: &CommandContext, plan: &Plan, now: UnixTime) -> anyhow::Result<()> {
    let ledger = context.open_ledger().await?;
    if ledger.multipliers().await?.is_empty() {
        for terms in multipliers(plan, now) {
            let record =
                record("multiplier.add", Subject::new("multiplier", "")).with("note", terms.note.as_str());
            let adding = ledger.add_multiplier(terms);
            context
                .audited(record, adding, |record, added| record.about(Subject::new("multiplier", added.id)))
                .await?;
        }
    }
    // Closed explicitly: otherwise it would be closed later, while the server opens the same file.
    ledger.database().close().await;
    Ok(())
}

fn multipliers(plan: &Plan, now: UnixTime) -> [NewMultiplier; 2] {
    let free = plan.torrents.saturating_sub(u32::from(catalogue::pending_torrent(plan).is_some())).max(1);
    let percent = |percent| Percent::new(percent).unwrap_or(Percent::HUNDRED);
    let freeleech = NewMultiplier {
        scope: Scope::Torrent(catalogue::torrent_id(free)),
        upload: Percent::HUNDRED,
        download: percent(0),
        starts_at: now,
        ends_at: None,
        note: "freeleech 免费下载 🎉".to_owned(),
    };
    let double = NewMultiplier {
        scope: Scope::Site,
        upload: percent(200),
        download: Percent::HUNDRED,
        starts_at: now,
        ends_at: Some(UnixTime(now.0.saturating_add(DOUBLE_UPLOAD_S))),
        note: "double upload, for two hours".to_owned(),
    };
    [freeleech, double]
}
