//! Random calls, compared with the model after each.

use std::collections::BTreeMap;

use super::model::ModelLane;
use super::*;

const STEPS: usize = 300;
const GROUPS: [&str; 3] = ["ledger", "activity", "mirror"];
const CONSUMERS: [&str; 3] = ["a", "b", "c"];

/// Set to the number that a failed test has printed, it repeats that test.
const SEED_VARIABLE: &str = "CONFORMANCE_SEED";

pub async fn any_sequence_of_calls_agrees_with_the_model<F: Fixture>() {
    let seed = std::env::var(SEED_VARIABLE).map_or_else(|_| fastrand::u64(..), |text| text.parse().unwrap());
    eprintln!("{SEED_VARIABLE}={seed}");
    let fixture = F::fresh().await;
    let mut driver = Driver {
        journal: fixture.open().await,
        lanes: Lane::ALL.map(|lane| (lane, ModelLane::default())).into(),
        random: fastrand::Rng::with_seed(seed),
        batches: 0,
        entries: 0,
    };
    for step in 0..STEPS {
        let call = driver.one_call(&fixture).await;
        driver.compare_status(&format!("step {step}, {call}")).await;
    }
    driver.compare_entries().await;
}

struct Driver {
    journal: Arc<dyn Journal>,
    lanes: BTreeMap<Lane, ModelLane>,
    random: fastrand::Rng,
    batches: u64,
    entries: u64,
}

impl Driver {
    async fn one_call<F: Fixture>(&mut self, fixture: &F) -> &'static str {
        match self.random.u8(0..100) {
            0..20 => self.append().await,
            20..26 => self.ensure_group().await,
            26..50 => self.read().await,
            50..65 => self.acknowledge().await,
            65..72 => self.take_over().await,
            72..84 => self.transfer().await,
            84..88 => self.delete().await,
            88..92 => self.trim().await,
            92..95 => self.forget().await,
            _ => {
                self.journal = fixture.open().await;
                "open"
            }
        }
    }

    /// Most often the traffic lane.
    fn any_lane(&mut self) -> Lane {
        match self.random.u8(0..10) {
            0..6 => Lane::Traffic,
            6..8 => Lane::Dead,
            8 => Lane::Failed,
            _ => Lane::Risk,
        }
    }

    fn lane(&mut self, lane: Lane) -> &mut ModelLane {
        self.lanes.get_mut(&lane).unwrap()
    }

    /// A lane and one of its groups; None if it has none yet.
    fn any_group(&mut self) -> Option<(Lane, &'static str)> {
        let lane = self.any_lane();
        let group = GROUPS[self.random.usize(..GROUPS.len())];
        self.lanes[&lane].groups.contains_key(group).then_some((lane, group))
    }

    fn any_consumer(&mut self) -> &'static str {
        CONSUMERS[self.random.usize(..CONSUMERS.len())]
    }

    /// Some ids of a lane; sometimes a deleted or unassigned one.
    fn some_ids(&mut self, lane: Lane) -> Vec<EntryId> {
        let mut chosen: Vec<EntryId> = self.lanes[&lane].entries.keys().copied().collect();
        self.random.shuffle(&mut chosen);
        chosen.truncate(self.random.usize(..8));
        if self.random.bool() {
            chosen.push(EntryId { ms: self.random.u64(..), seq: self.random.u64(..) });
        }
        chosen
    }

    fn new_entry(&mut self) -> Fields {
        self.entries += 1;
        entry(self.entries)
    }

    /// Adds new entries of a lane to the model: ids are chosen by the journal.
    async fn learn(&mut self, lane: Lane, expected: Vec<Fields>) {
        let last = self.lanes[&lane].last.unwrap_or(EntryId::ZERO);
        let new = self.journal.list(lane, last, ALL).await.unwrap();
        assert!(new.iter().map(|stored| &stored.fields).eq(&expected), "{lane:?}: {new:?}, not {expected:?}");
        for stored in new {
            self.lane(lane).push(stored.id, stored.fields);
        }
    }

    async fn append(&mut self) -> &'static str {
        let lane = self.any_lane();
        let batch: Vec<Fields> = (0..self.random.usize(1..12)).map(|_| self.new_entry()).collect();
        self.batches += 1;
        let token = token("producer", self.batches);
        for _ in 0..self.random.usize(1..3) {
            self.journal.append(lane, &batch, &token).await.unwrap();
        }
        self.learn(lane, batch).await;
        "append"
    }

    async fn ensure_group(&mut self) -> &'static str {
        let (lane, group) = (self.any_lane(), GROUPS[self.random.usize(..GROUPS.len())]);
        let first_ids = self.some_ids(lane);
        let existing = first_ids.iter().copied().find(|id| self.lanes[&lane].entries.contains_key(id));
        let start = existing.filter(|_| self.random.bool()).map_or(StartAt::Beginning, StartAt::After);
        let is_new = !self.lanes[&lane].groups.contains_key(group);
        assert_eq!(self.journal.ensure_group(lane, group, start).await.unwrap(), is_new);
        let entry = self.lane(lane).groups.entry(group.to_owned());
        entry.or_insert_with(|| super::model::Group {
            last_delivered: match start {
                StartAt::Beginning => EntryId::ZERO,
                StartAt::After(id) => id,
            },
            ..Default::default()
        });
        "ensure_group"
    }

    async fn read(&mut self) -> &'static str {
        let Some((lane, group)) = self.any_group() else { return "nothing" };
        let (consumer, count) = (self.any_consumer(), self.random.usize(..10));
        let given = self.journal.read(lane, group, consumer, count, NO_WAIT).await.unwrap();
        assert_eq!(given, self.lane(lane).read(group, consumer, count));
        "read"
    }

    async fn acknowledge(&mut self) -> &'static str {
        let Some((lane, group)) = self.any_group() else { return "nothing" };
        let mut chosen = self.some_ids(lane);
        let pending = self.lanes[&lane].groups[group].pending.keys().copied();
        chosen.extend(pending.take(self.random.usize(..8)));
        self.journal.acknowledge(lane, group, &chosen).await.unwrap();
        self.lane(lane).acknowledge(group, &chosen);
        "acknowledge"
    }

    async fn take_over(&mut self) -> &'static str {
        let Some((lane, group)) = self.any_group() else { return "nothing" };
        let (from, count) = (self.random.usize(..CONSUMERS.len()), self.random.usize(..6));
        let (from, to) = (CONSUMERS[from], CONSUMERS[(from + 1) % CONSUMERS.len()]);
        let given = self.journal.take_over(lane, group, from, to, count).await.unwrap();
        assert_eq!(given, self.lane(lane).take_over(group, from, to, count));
        "take_over"
    }

    async fn transfer(&mut self) -> &'static str {
        let Some((from, group)) = self.any_group() else { return "nothing" };
        let to = if self.random.bool() { Lane::Dead } else { Lane::Failed };
        let mut chosen = self.some_ids(from);
        chosen.retain(|id| !self.is_pending_elsewhere(from, group, *id));
        let dead_letters: Vec<Transfer> =
            chosen.into_iter().map(|id| Transfer { id, fields: self.new_entry() }).collect();
        let moved = self.journal.transfer(from, to, Some(group), &dead_letters).await.unwrap();
        let (mut ids, mut expected) = (Vec::new(), Vec::new());
        for dead_letter in dead_letters {
            if self.lanes[&from].has_to_move(from, group, dead_letter.id) {
                ids.push(dead_letter.id);
                expected.push(dead_letter.fields);
            }
        }
        assert_eq!(moved, ids.len() as u64);
        match from {
            Lane::Traffic => self.lane(from).acknowledge(group, &ids),
            _ => assert_eq!(self.lane(from).delete(group, &ids), moved),
        }
        self.learn(to, expected).await;
        "transfer"
    }

    /// The effect of deleting a dead letter that is pending for another group shows only at a take-over.
    fn is_pending_elsewhere(&self, lane: Lane, group: &str, id: EntryId) -> bool {
        let mut groups = self.lanes[&lane].groups.iter();
        lane != Lane::Traffic && groups.any(|(name, other)| name != group && other.pending.contains_key(&id))
    }

    async fn delete(&mut self) -> &'static str {
        let Some((lane, group)) = self.any_group() else { return "nothing" };
        if lane == Lane::Traffic {
            return "nothing";
        }
        let mut chosen = self.some_ids(lane);
        chosen.retain(|id| !self.is_pending_elsewhere(lane, group, *id));
        let deleted = self.journal.delete(lane, Some(group), &chosen).await.unwrap();
        assert_eq!(deleted, self.lane(lane).delete(group, &chosen));
        "delete"
    }

    async fn trim(&mut self) -> &'static str {
        let lane = self.any_lane();
        let before = self.some_ids(lane).first().copied().unwrap_or(EntryId::MAX);
        let mut trimmed = self.journal.trim(lane, before).await.unwrap();
        let mut expected = self.lane(lane).trim(lane, before);
        if trimmed.held_back_by.is_some() && expected.held_back_by.is_some() {
            // Of several groups that hold back equally, any may be reported.
            (trimmed.held_back_by, expected.held_back_by) = (None, None);
        }
        assert_eq!(trimmed, expected);
        "trim"
    }

    async fn forget(&mut self) -> &'static str {
        let Some((lane, group)) = self.any_group() else { return "nothing" };
        let consumer = self.any_consumer();
        self.journal.delete_consumer(lane, group, consumer).await.unwrap();
        "delete_consumer"
    }

    async fn compare_status(&self, when: &str) {
        for (lane, model) in &self.lanes {
            let mut status = self.journal.status(*lane).await.unwrap();
            for group in &mut status.groups {
                group.consumers = 0;
            }
            assert_eq!(status, model.status(), "{lane:?} after {when}");
        }
    }

    async fn compare_entries(&self) {
        for (lane, model) in &self.lanes {
            let stored = all(&self.journal, *lane).await;
            assert!(stored.iter().map(|stored| (&stored.id, &stored.fields)).eq(&model.entries), "{lane:?}");
            for (name, group) in &model.groups {
                for consumer in self.journal.consumers(*lane, name).await.unwrap() {
                    let own = group.pending.values().filter(|owner| **owner == consumer.name).count();
                    assert_eq!(consumer.pending, own as u64, "{lane:?} {name} {}", consumer.name);
                }
            }
        }
    }
}
