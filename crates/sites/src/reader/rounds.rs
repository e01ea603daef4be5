//! Rounds over all rows, new rows, and single ones.

use std::collections::{BTreeMap, HashMap, HashSet};

use access::{ClientRule, SANDBOX_IDS, SiteTorrent, SiteUser, Torrent, User};
use database::{Database, FromRow, Value};
use domain::{InfoHash, TorrentId, UserId};

use super::Reader;
use super::site_row::{ClientRow, DiscountRow, Rank, SiteRow};
use crate::error::SitesError;
use crate::profile::{PAGE_ROWS, page_of, row_of};

/// Rounds after which a removal of many rows is believed.
const BELIEVED_AFTER: u32 = 3;
/// Fewer removals are believed at once.
const REMOVALS_FEW: usize = 10;
/// Our rows per page.
const OUR_PAGE: u32 = 4096;

/// A round over one table.
struct Round<T, I> {
    /// Rows that differ from ours.
    changed: Vec<T>,
    /// Ours, which the site does not have.
    gone: Vec<I>,
    /// Rows of the site.
    seen: usize,
    newest: u64,
}

impl<T, I> Round<T, I> {
    fn new() -> Self {
        Round { changed: Vec::new(), gone: Vec::new(), seen: 0, newest: 0 }
    }

    fn is_mass_removal(&self) -> bool {
        self.gone.len() > REMOVALS_FEW && self.gone.len() > self.seen
    }
}

impl Reader {
    /// Compares everything. What is new or changed comes first.
    pub(super) async fn round(&mut self, site: &Database) -> Result<(), SitesError> {
        let mut malformed = 0;
        let users = self.round_of_users(site, &mut malformed).await?;
        self.put_users(&users.changed).await?;
        let (torrents, holders) = self.round_of_torrents(site, &mut malformed).await?;
        self.put_torrents(&torrents.changed).await?;
        self.holders = holders;
        self.newest.user = users.newest;
        self.newest.torrent = torrents.newest;
        self.read_clients(site).await?;
        self.read_discounts(site, &mut malformed).await?;
        self.counters.malformed.set(malformed);
        if users.is_mass_removal() || torrents.is_mass_removal() {
            self.held += 1;
            if self.held < BELIEVED_AFTER {
                self.counters.removals_held.increment();
                tracing::warn!(
                    users = users.gone.len(),
                    torrents = torrents.gone.len(),
                    rounds = self.held,
                    "more than half of the site's rows vanished at once; they are removed after three such rounds in a row"
                );
                self.counters.rounds.increment();
                return Ok(());
            }
        }
        self.held = 0;
        self.store.remove_users(&users.gone).await?;
        self.store.remove_torrents(&torrents.gone).await?;
        self.counters.removed.add((users.gone.len() + torrents.gone.len()) as u64);
        self.counters.rounds.increment();
        Ok(())
    }

    async fn round_of_users(
        &self,
        site: &Database,
        malformed: &mut usize,
    ) -> Result<Round<SiteUser, UserId>, SitesError> {
        let (mut round, mut after) = (Round::new(), 0);
        loop {
            let page: Vec<SiteRow<SiteUser>> = read_page(site, &self.profile.read.users, after).await?;
            let is_last = page.len() < PAGE_ROWS as usize;
            round.seen += page.len();
            round.newest = page.last().map_or(round.newest, |row| row.id);
            let until = if is_last { u64::MAX } else { round.newest };
            let ours = self.our_users(after, until).await?;
            let present: HashSet<u64> = page.iter().map(|row| row.id).collect();
            let is_changed =
                |user: &SiteUser| ours.get(&user.id.get()).is_none_or(|our| !is_same_user(our, user));
            round.changed.extend(readable("user", page, malformed).filter(is_changed));
            let absent = ours.values().filter(|our| !present.contains(&our.id.get()) && !our.is_external);
            round.gone.extend(absent.map(|our| our.id));
            if is_last {
                return Ok(round);
            }
            after = until;
        }
    }

    async fn round_of_torrents(
        &self,
        site: &Database,
        malformed: &mut usize,
    ) -> Result<(Round<SiteTorrent, TorrentId>, HashMap<InfoHash, Rank>), SitesError> {
        let (mut round, mut after) = (Round::new(), 0);
        let mut holders: HashMap<InfoHash, Rank> = HashMap::new();
        loop {
            let page: Vec<SiteRow<SiteTorrent>> = read_page(site, &self.profile.read.torrents, after).await?;
            let is_last = page.len() < PAGE_ROWS as usize;
            round.seen += page.len();
            round.newest = page.last().map_or(round.newest, |row| row.id);
            let until = if is_last { u64::MAX } else { round.newest };
            let ours = self.our_torrents(after, until).await?;
            let present: HashSet<u64> = page.iter().map(|row| row.id).collect();
            for torrent in readable("torrent", page, malformed) {
                let rank = Rank::of(&torrent);
                holders.entry(torrent.info_hash).and_modify(|best| *best = rank.min(*best)).or_insert(rank);
                if ours.get(&torrent.id.get()).is_none_or(|our| !is_same_torrent(our, &torrent)) {
                    round.changed.push(torrent);
                }
            }
            round.gone.extend(ours.values().filter(|our| !present.contains(&our.id.get())).map(|our| our.id));
            if is_last {
                let is_holder = |torrent: &SiteTorrent| {
                    holders.get(&torrent.info_hash).is_some_and(|best| best.id == torrent.id)
                };
                round.changed.retain(is_holder);
                return Ok((round, holders));
            }
            after = until;
        }
    }

    /// Rows with greater ids than all that were read.
    pub(super) async fn read_new(&mut self, site: &Database) -> Result<(), SitesError> {
        let mut malformed = 0;
        let users: Vec<SiteRow<SiteUser>> =
            read_page(site, &self.profile.read.users, self.newest.user).await?;
        self.newest.user = users.last().map_or(self.newest.user, |row| row.id);
        let users: Vec<SiteUser> = readable("user", users, &mut malformed).collect();
        self.put_users(&users).await?;
        let torrents: Vec<SiteRow<SiteTorrent>> =
            read_page(site, &self.profile.read.torrents, self.newest.torrent).await?;
        self.newest.torrent = torrents.last().map_or(self.newest.torrent, |row| row.id);
        let torrents: Vec<SiteTorrent> = readable("torrent", torrents, &mut malformed).collect();
        self.put_holders(torrents).await
    }

    /// Puts torrents, unless another one has the infohash rather.
    async fn put_holders(&mut self, mut torrents: Vec<SiteTorrent>) -> Result<(), SitesError> {
        torrents.retain(|torrent| {
            let rank = Rank::of(torrent);
            let best = self.holders.entry(torrent.info_hash).or_insert(rank);
            if best.id == rank.id || rank < *best {
                *best = rank;
            }
            best.id == rank.id
        });
        self.put_torrents(&torrents).await
    }

    /// One user, as it is now.
    pub(super) async fn read_user(&mut self, site: &Database, id: u64) -> Result<(), SitesError> {
        let rows: Vec<SiteRow<SiteUser>> = read_one(site, &self.profile.read.users, id).await?;
        let is_gone = rows.is_empty();
        let users: Vec<SiteUser> = readable("user", rows, &mut 0).collect();
        let ours = self.our_users(id.saturating_sub(1), id).await?;
        if is_gone {
            let gone: Vec<UserId> = ours.values().filter(|our| !our.is_external).map(|our| our.id).collect();
            return Ok(self.store.remove_users(&gone).await?);
        }
        let changed: Vec<SiteUser> = users
            .into_iter()
            .filter(|user| ours.get(&user.id.get()).is_none_or(|our| !is_same_user(our, user)))
            .collect();
        self.put_users(&changed).await
    }

    /// One torrent, as it is now.
    pub(super) async fn read_torrent(&mut self, site: &Database, id: u64) -> Result<(), SitesError> {
        let rows: Vec<SiteRow<SiteTorrent>> = read_one(site, &self.profile.read.torrents, id).await?;
        let is_gone = rows.is_empty();
        let torrents: Vec<SiteTorrent> = readable("torrent", rows, &mut 0).collect();
        let ours = self.our_torrents(id.saturating_sub(1), id).await?;
        if is_gone {
            let gone: Vec<TorrentId> = ours.values().map(|our| our.id).collect();
            return Ok(self.store.remove_torrents(&gone).await?);
        }
        let is_changed = |torrent: &SiteTorrent| {
            ours.get(&torrent.id.get()).is_none_or(|our| !is_same_torrent(our, torrent))
        };
        self.put_holders(torrents.into_iter().filter(is_changed).collect()).await
    }

    /// All rules about clients. Those of operators for other prefixes stay: nothing tells them apart from the site's.
    pub(super) async fn read_clients(&self, site: &Database) -> Result<(), SitesError> {
        let Some(select) = &self.profile.read.clients else { return Ok(()) };
        let rows: Vec<ClientRow> =
            site.query(select, &[]).await.map_err(SitesError::statement("reading clients"))?;
        let rules: Vec<ClientRule> = rows.into_iter().filter_map(|row| row.0).collect();
        let ours = self.store.list_clients().await?;
        for rule in &rules {
            let is_known = ours.iter().any(|our| our.prefix == rule.prefix && our.allowed == rule.allowed);
            match (is_known, rule.allowed) {
                (true, _) => {}
                (false, true) => self.store.allow_client(rule.prefix, SITE_RULE).await?,
                (false, false) => self.store.forbid_client(rule.prefix, SITE_RULE).await?,
            }
        }
        for our in ours.iter().filter(|our| our.name == SITE_RULE) {
            if !rules.iter().any(|rule| rule.prefix == our.prefix) {
                self.store.remove_client(our.prefix).await?;
            }
        }
        Ok(())
    }

    /// All discounts. Those that are gone end.
    async fn read_discounts(&self, site: &Database, malformed: &mut usize) -> Result<(), SitesError> {
        let Some(select) = &self.profile.read.discounts else { return Ok(()) };
        let rows: Vec<DiscountRow> =
            site.query(select, &[]).await.map_err(SitesError::statement("reading discounts"))?;
        *malformed += rows.iter().filter(|row| row.0.is_none()).count();
        let discounts = rows.into_iter().filter_map(|row| row.0).filter(DiscountRow::has_effect).collect();
        self.counters.changed.add(self.ledger.set_discounts(&discounts).await? as u64);
        Ok(())
    }

    async fn put_users(&self, users: &[SiteUser]) -> Result<(), SitesError> {
        self.store.put_site_users(users, self.clock.now()).await?;
        self.counters.changed.add(users.len() as u64);
        Ok(())
    }

    async fn put_torrents(&self, torrents: &[SiteTorrent]) -> Result<(), SitesError> {
        self.store.put_site_torrents(torrents, self.clock.now()).await?;
        self.counters.changed.add(torrents.len() as u64);
        Ok(())
    }

    /// Our users with ids above `after` up to `until`, without the sandbox.
    async fn our_users(&self, after: u64, until: u64) -> Result<BTreeMap<u64, User>, SitesError> {
        let (mut found, mut after) = (BTreeMap::new(), UserId::new(after));
        loop {
            let page = self.store.list_users(after, OUR_PAGE).await?;
            let is_last = page.len() < OUR_PAGE as usize;
            after = page.last().map(|user| user.id);
            let is_beyond = after.is_none_or(|last| last.get() >= until);
            found.extend(
                page.into_iter().map(|user| (user.id.get(), user)).filter(|(id, _)| is_compared(*id, until)),
            );
            if is_last || is_beyond {
                return Ok(found);
            }
        }
    }

    async fn our_torrents(&self, after: u64, until: u64) -> Result<BTreeMap<u64, Torrent>, SitesError> {
        let (mut found, mut after) = (BTreeMap::new(), TorrentId::new(after));
        loop {
            let page = self.store.list_torrents(after, OUR_PAGE).await?;
            let is_last = page.len() < OUR_PAGE as usize;
            after = page.last().map(|torrent| torrent.id);
            let is_beyond = after.is_none_or(|last| last.get() >= until);
            let page = page.into_iter().map(|torrent| (torrent.id.get(), torrent));
            found.extend(page.filter(|(id, _)| is_compared(*id, until)));
            if is_last || is_beyond {
                return Ok(found);
            }
        }
    }
}

/// The name of rules that were read from the site.
const SITE_RULE: &str = "from the site";

fn is_compared(id: u64, until: u64) -> bool {
    id <= until && !SANDBOX_IDS.contains(&id)
}

fn is_same_user(our: &User, site: &SiteUser) -> bool {
    our.passkey == site.passkey
        && our.enabled == site.enabled
        && our.leech_slots == site.leech_slots
        && !our.is_external
}

fn is_same_torrent(our: &Torrent, site: &SiteTorrent) -> bool {
    our.info_hash == site.info_hash
        && our.info_hash_v2 == site.info_hash_v2
        && our.enabled == site.enabled
        && our.approved == site.approved
        && our.total_bytes == site.total_bytes
        && our.name == site.name
}

/// Logs and counts rows that cannot be used.
fn readable<T>(
    subject: &'static str,
    rows: Vec<SiteRow<T>>,
    malformed: &mut usize,
) -> impl Iterator<Item = T> {
    let mut usable = Vec::with_capacity(rows.len());
    for row in rows {
        match row.value {
            Ok(value) => usable.push(value),
            Err(reason) => {
                *malformed += 1;
                tracing::debug!(subject, id = row.id, reason, "a row of the site cannot be used");
            }
        }
    }
    usable.into_iter()
}

async fn read_page<T: FromRow>(site: &Database, select: &str, after: u64) -> Result<Vec<T>, SitesError> {
    let values = [Value::Integer(i64::try_from(after).unwrap_or(i64::MAX)), PAGE_ROWS.into()];
    site.query(&page_of(select), &values).await.map_err(SitesError::statement("reading rows"))
}

async fn read_one<T: FromRow>(site: &Database, select: &str, id: u64) -> Result<Vec<T>, SitesError> {
    let values = [Value::Integer(i64::try_from(id).unwrap_or(i64::MAX))];
    site.query(&row_of(select), &values).await.map_err(SitesError::statement("reading a row"))
}
