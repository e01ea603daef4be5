//! What a demo begins with: its users, torrents and friendships, bonuses, and a key to look at it with.

use access::audit::Subject;
use access::{ApiKeys, Scope as KeyScope, Store};
use domain::UnixTime;
use domain::clock::{Clock, SystemClock};
use ledger::{NewMultiplier, Percent, Scope};
use simulate::catalogue::Progress;
use simulate::{Plan, catalogue};

use crate::command::CommandContext;
use crate::command::audited::record;
use crate::wiring::stores;

/// How long uploads count twice.
const DOUBLE_UPLOAD_S: u32 = 2 * 3_600;

/// With more torrents than this, a person waits.
const WORTH_TELLING: u32 = 10_000;

/// What is needed to look at it.
pub(super) struct Filled {
    /// A key with all rights.
    pub(super) key: String,
}

/// Fills the database. What is there already stays.
pub(super) async fn fill(context: &CommandContext, plan: &Plan) -> anyhow::Result<Filled> {
    let now = SystemClock.now();
    let store = Store::open(&context.config.database_url(&context.data)).await?;
    let people = stores::open_friends(&context.config, &store).await?;
    catalogue::insert(plan, &store, &people, now, say_progress).await?;
    add_bonuses(context, plan, now).await?;
    let keys = ApiKeys::on(&store);
    let creating = keys.create("demo", KeyScope::Admin.into(), now);
    let key = context
        .audited(record("key.create", Subject::key("")).with("name", "demo"), creating, |record, key| {
            record.about(Subject::key(key.id))
        })
        .await?;
    store.close().await;
    if plan.torrents > WORTH_TELLING {
        eprintln!("starting the server");
    }
    Ok(Filled { key: key.text })
}

/// Tells on standard error, where no script looks for results. A small world is there before anybody could read it.
fn say_progress(Progress { torrents, of }: Progress) {
    if of > WORTH_TELLING {
        eprintln!("making up the world: {torrents} of {of} torrents");
    }
}

/// The most wanted torrent costs nothing, and for two hours uploads of everybody count twice.
async fn add_bonuses(context: &CommandContext, plan: &Plan, now: UnixTime) -> anyhow::Result<()> {
    let ledger = context.open_ledger().await?;
    if ledger.multipliers().await?.is_empty() {
        for terms in bonuses(plan, now) {
            let record =
                record("multiplier.add", Subject::new("multiplier", "")).with("note", terms.note.as_str());
            let adding = ledger.add_multiplier(terms);
            context
                .audited(record, adding, |record, added| record.about(Subject::new("multiplier", added.id)))
                .await?;
        }
    }
    // Left to itself it would be closed at some later moment, while the server opens the same file.
    ledger.database().close().await;
    Ok(())
}

fn bonuses(plan: &Plan, now: UnixTime) -> [NewMultiplier; 2] {
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
