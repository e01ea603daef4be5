//! Random histories of three nodes against a naive model, user by user and key by key. The scripts compute the same
//! status as the presence table.

use std::collections::{BTreeMap, BTreeSet};

use domain::UnixTime;
use gateway::cluster::{ClusterStore, EntryChange, EntryUpdate, PublishOutcome, RecordChange};
use presence::remote::{NodeDevice, RemoteSessions};
use presence::{AppState, Declaration, Declared, Platform, Policy, PresenceTable, Status, View, WallTime};

use crate::cluster::fixture::*;

on_both!(p3_random_histories_are_as_a_naive_model_has_them);

const USERS: u64 = 3;
const STEPS: usize = 150;
const NAMES: [&str; 3] = ["gw-a", "gw-b", "gw-c"];

/// The expected state of one user.
#[derive(Clone, Default)]
struct Model {
    exists: bool,
    parts: BTreeMap<usize, Vec<NodeDevice>>,
    /// Nodes that rejoined under a new name and have not published the user since.
    renamed: BTreeSet<usize>,
    declaration: Option<Declaration>,
    /// Since the entry of this node was the last to be removed, for an unknown reason.
    pending_by: Option<usize>,
    is_hidden: bool,
    public_version: u64,
    own_version: u64,
}

impl Model {
    /// The own and the public view by the presence table, without versions and times.
    fn views(&self, id: u64) -> (View, View) {
        let mut roster = PresenceTable::new(Policy::default(), WallTime(1_000_000), 7);
        let elsewhere = RemoteSessions {
            devices: self.parts.values().flatten().cloned().collect(),
            pending_until: self.pending_by.map(|_| WallTime(9_000_000)),
            declaration: self.declaration.clone(),
            hidden_since: self.is_hidden.then_some(UnixTime(900)),
            ..RemoteSessions::none(user(id))
        };
        roster.set_remote(WallTime(1_000_000), elsewhere, &mut Vec::new());
        let bare = |view: View| View { version: 0, last_seen: None, ..view };
        (bare(roster.own_view(user(id))), bare(roster.public_view(user(id))))
    }

    fn is_here(&self) -> bool {
        self.pending_by.is_some() || !self.parts.is_empty()
    }

    /// Expected versions and hiding after a change, and the expected report.
    fn settle(&mut self, before: &Model, id: u64) -> (Status, Status) {
        let ((own_before, public_before), (own_after, _)) = (before.views(id), self.views(id));
        self.is_hidden = match own_after.status {
            Status::Invisible => true,
            Status::Pending => self.is_hidden,
            _ => false,
        };
        // The public view of an offline user does not change.
        let seen = |view: View| (view.status != Status::Offline).then_some(view);
        let public_after = self.views(id).1;
        self.public_version += u64::from(seen(public_before) != seen(public_after));
        self.own_version += 1;
        self.exists = true;
        (own_before.status, own_after.status)
    }

    /// The public keys.
    fn shown(&self, id: u64) -> (Option<String>, Option<String>) {
        let status = self.views(id).1.status;
        let names: Vec<&str> = self.parts.keys().map(|node| NAMES[*node]).collect();
        match status {
            Status::Offline | Status::Pending => (None, None),
            shown => (Some(shown.name().to_owned()), Some(names.join(","))),
        }
    }
}

struct Simulation<'a> {
    fixture: &'a Fixture,
    nodes: Vec<ClusterStore>,
    users: BTreeMap<u64, Model>,
    dice: fastrand::Rng,
}

async fn p3_random_histories_are_as_a_naive_model_has_them(fixture: &Fixture) {
    for seed in [1, 2] {
        fixture.lose_all().await;
        let mut nodes = Vec::new();
        for name in NAMES {
            nodes.push(fixture.join(name).await);
        }
        let users = (1..=USERS).map(|id| (id, Model::default())).collect();
        let mut simulation = Simulation { fixture, nodes, users, dice: fastrand::Rng::with_seed(seed) };
        for step in 0..STEPS {
            let what = match simulation.dice.u32(..20) {
                0 => simulation.die().await,
                1 => simulation.rejoin().await,
                _ => {
                    let node = simulation.dice.usize(..3);
                    simulation.publish(node).await
                }
            };
            simulation.compare(&format!("seed {seed}, step {step}: {what}")).await;
        }
    }
}

impl Simulation<'_> {
    /// One update by one node.
    async fn publish(&mut self, node: usize) -> String {
        let id = self.dice.u64(1..=USERS);
        let before = self.users[&id].clone();
        let mut after = before.clone();
        // Its next publish replaces the entry under its former name.
        let was_renamed = after.renamed.remove(&node);
        let change = match self.dice.u32(..10) {
            0..6 => {
                let devices = self.devices();
                after.parts.insert(node, devices.clone());
                after.pending_by = None;
                EntryChange::Put(presence::remote::NodeEntry { devices, ..part(&[]) })
            }
            6 if before.parts.contains_key(&node) => {
                let devices = before.parts[&node].clone();
                EntryChange::Put(presence::remote::NodeEntry { devices, ..part(&[]) })
            }
            7 => {
                if after.parts.remove(&node).is_some() && after.parts.is_empty() {
                    after.pending_by = Some(node);
                }
                EntryChange::Abandon
            }
            _ => {
                after.parts.remove(&node);
                after.pending_by = before.pending_by.filter(|by| *by != node);
                EntryChange::Remove { last_alive: now() }
            }
        };
        let declaration = (self.dice.u32(..4) == 0).then(|| self.declaration());
        if let Some(declared) = &declaration {
            after.declaration = declared.clone();
        }
        let what = format!("{} {id} {change:?} {declaration:?}", NAMES[node]);
        let is_put = matches!(change, EntryChange::Put(_));
        let is_same = !was_renamed
            && (&before.parts, &before.declaration, before.pending_by)
                == (&after.parts, &after.declaration, after.pending_by);
        let update = EntryUpdate { declaration: declaration.clone(), ..update(id, change) };
        match publish(&self.nodes[node], update).await {
            PublishOutcome::Unknown => {
                assert!(!before.exists && !is_put && !matches!(declaration, Some(Some(_))), "{what}");
                return what;
            }
            PublishOutcome::Unchanged { public_version, own_version } => {
                assert!(is_same, "{what}");
                assert_eq!(
                    (public_version, own_version),
                    (before.public_version, before.own_version),
                    "{what}"
                );
            }
            PublishOutcome::Changed(outcome) => {
                assert!(!is_same, "{what}");
                check(&outcome, &before, &mut after, &what);
            }
            PublishOutcome::Fenced => panic!("{what}: no node was declared dead"),
        }
        self.users.insert(id, after);
        what
    }

    /// A node rejoins under another name, and publishes before the others have reaped.
    async fn rejoin(&mut self) -> String {
        let node = self.dice.usize(..3);
        let what = format!("{} joins anew", NAMES[node]);
        self.nodes[node].rejoin().await.unwrap();
        for model in self.users.values_mut().filter(|model| model.parts.contains_key(&node)) {
            model.renamed.insert(node);
        }
        for _ in 0..2 {
            let declared = self.publish(node).await;
            self.compare(&format!("{what}: {declared}")).await;
        }
        self.clear_up(node, &[0, 1, 2], &what).await;
        what
    }

    /// A node leaves, the others reap, and it rejoins under another name.
    async fn die(&mut self) -> String {
        let dead = self.dice.usize(..3);
        let what = format!("{} dies", NAMES[dead]);
        self.nodes[dead].leave().await.unwrap();
        let others: Vec<usize> = (0..3).filter(|number| *number != dead).collect();
        self.clear_up(dead, &others, &what).await;
        assert!(self.users.values().all(|model| !model.parts.contains_key(&dead)), "{what}");
        self.nodes[dead].rejoin().await.unwrap();
        for node in &self.nodes {
            node.renew("{}").await.unwrap();
        }
        what
    }

    /// These reap the entries under the former name of a node.
    async fn clear_up(&mut self, gone: usize, by: &[usize], what: &str) {
        for node in by {
            // All of them agree by then on the owners of the shards.
            self.nodes[*node].renew("{}").await.unwrap();
        }
        for node in by {
            for (user, outcome) in self.nodes[*node].reap(100).await.unwrap() {
                let before = self.users[&user.get()].clone();
                let mut after = before.clone();
                after.renamed.remove(&gone);
                assert!(after.parts.remove(&gone).is_some(), "{what}");
                after.pending_by = after.parts.is_empty().then_some(gone);
                check(&outcome, &before, &mut after, what);
                self.users.insert(user.get(), after);
            }
        }
        assert!(self.users.values().all(|model| model.renamed.is_empty()), "{what}");
    }

    fn devices(&mut self) -> Vec<NodeDevice> {
        let count = self.dice.usize(1..=3);
        let mut numbers = [0, 1, 2, 3];
        self.dice.shuffle(&mut numbers);
        let mut devices: Vec<NodeDevice> = numbers[..count]
            .iter()
            .map(|number| {
                let online = self.dice.bool();
                let declared =
                    [None, None, None, Some(Declared::Away), Some(Declared::Busy), Some(Declared::Invisible)];
                let mut declared = declared[self.dice.usize(..6)];
                if online && self.dice.u32(..4) == 0 {
                    declared = Some(Declared::Online);
                }
                NodeDevice {
                    platform: Platform::ALL[number % 3],
                    app: AppState::ALL[self.dice.usize(..3)],
                    online,
                    declared,
                    ..device(&format!("~{number}:%"))
                }
            })
            .collect();
        devices.sort_by(|one, other| one.id.cmp(&other.id));
        devices
    }

    fn declaration(&mut self) -> Option<Declaration> {
        let status = Declared::ALL[self.dice.usize(..4)];
        let text = [None, Some("+ ☕\n"), Some("-")][self.dice.usize(..3)].map(Into::into);
        let until = [None, Some(UnixTime(4_000_000_000))][self.dice.usize(..2)];
        (self.dice.u32(..3) > 0).then_some(Declaration { status, text, until })
    }

    /// The records and public keys of all users.
    async fn compare(&self, what: &str) {
        let users: Vec<_> = self.users.keys().map(|id| user(*id)).collect();
        let records = self.nodes[0].read(&users).await;
        for ((id, model), record) in self.users.iter().zip(records) {
            let Some(record) = record.unwrap() else {
                assert!(!model.exists, "{what}: {id} is not there");
                continue;
            };
            let parts: BTreeMap<usize, Vec<NodeDevice>> = record
                .entries
                .into_iter()
                .map(|of| (NAMES.iter().position(|name| *name == of.node.name()).unwrap(), of.entry.devices))
                .collect();
            assert_eq!(parts, model.parts, "{what}: {id}");
            assert_eq!(record.declaration, model.declaration, "{what}: {id}");
            let is = (record.pending.is_some(), record.hidden_since.is_some());
            assert_eq!(is, (model.pending_by.is_some(), model.is_hidden), "{what}: {id}");
            let versions = (record.public_version, record.own_version);
            assert_eq!(versions, (model.public_version, model.own_version), "{what}: {id}");
            assert_eq!(self.fixture.shown(*id).await, model.shown(*id), "{what}: {id}");
        }
    }
}

fn check(outcome: &RecordChange, before: &Model, after: &mut Model, what: &str) {
    let (from, to) = after.settle(before, outcome.record.user.get());
    assert_eq!((outcome.from, outcome.to), (from, to), "{what}");
    let (was_here, is_here) = (before.is_here(), after.is_here());
    assert_eq!((outcome.arrived, outcome.left), (!was_here && is_here, was_here && !is_here), "{what}");
}
