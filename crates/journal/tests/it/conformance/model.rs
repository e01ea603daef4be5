//! A trivial model of a journal that the adapters are compared with.

use std::collections::BTreeMap;

use journal::{EntryId, Fields, GroupStatus, Lane, LaneStatus, Stored, Trimmed};

#[derive(Default)]
pub struct Group {
    pub last_delivered: EntryId,
    /// Consumers of delivered, unacknowledged entries.
    pub pending: BTreeMap<EntryId, String>,
}

impl Group {
    /// The first id that this group may still need.
    fn needs_from(&self) -> EntryId {
        self.pending.keys().next().copied().unwrap_or_else(|| self.last_delivered.next())
    }
}

#[derive(Default)]
pub struct ModelLane {
    pub entries: BTreeMap<EntryId, Fields>,
    pub groups: BTreeMap<String, Group>,
    pub last: Option<EntryId>,
    pub appended: u64,
}

impl ModelLane {
    pub fn push(&mut self, id: EntryId, fields: Fields) {
        assert!(self.last < Some(id), "{id} is not greater than {:?}", self.last);
        self.entries.insert(id, fields);
        self.last = Some(id);
        self.appended += 1;
    }

    fn stored(&self, id: EntryId) -> Stored {
        Stored { id, fields: self.entries[&id].clone() }
    }

    pub fn read(&mut self, group: &str, consumer: &str, count: usize) -> Vec<Stored> {
        let group = self.groups.get_mut(group).unwrap();
        let unread = self.entries.range(group.last_delivered.next()..).take(count);
        let given: Vec<Stored> =
            unread.map(|(id, fields)| Stored { id: *id, fields: fields.clone() }).collect();
        for stored in &given {
            group.pending.insert(stored.id, consumer.to_owned());
            group.last_delivered = stored.id;
        }
        given
    }

    pub fn acknowledge(&mut self, group: &str, ids: &[EntryId]) {
        let group = self.groups.get_mut(group).unwrap();
        group.pending.retain(|id, _| !ids.contains(id));
    }

    pub fn take_over(&mut self, group: &str, from: &str, to: &str, count: usize) -> Vec<Stored> {
        let group = self.groups.get_mut(group).unwrap();
        let mut taken = Vec::new();
        for (id, consumer) in group.pending.iter_mut().filter(|(_, consumer)| *consumer == from).take(count) {
            *consumer = to.to_owned();
            taken.push(*id);
        }
        taken.into_iter().map(|id| self.stored(id)).collect()
    }

    pub fn delete(&mut self, group: &str, ids: &[EntryId]) -> u64 {
        self.acknowledge(group, ids);
        ids.iter().filter(|id| self.entries.remove(id).is_some()).count() as u64
    }

    /// Whether an entry can be moved out of this lane.
    pub fn has_to_move(&self, lane: Lane, group: &str, id: EntryId) -> bool {
        match lane {
            Lane::Traffic => self.groups[group].pending.contains_key(&id),
            _ => self.entries.contains_key(&id),
        }
    }

    /// Entries after one that is held back stay as well.
    pub fn trim(&mut self, lane: Lane, before: EntryId) -> Trimmed {
        if lane == Lane::Traffic && self.groups.is_empty() {
            return Trimmed::default();
        }
        let bound = self.groups.values().map(Group::needs_from).min().unwrap_or(EntryId::MAX);
        let kept = self.entries.split_off(&before.min(bound));
        let removed = std::mem::replace(&mut self.entries, kept).len() as u64;
        let is_held_back = self.entries.range(..before).next().is_some();
        let slowest = self.groups.iter().find(|(_, group)| group.needs_from() == bound);
        let held_back_by = slowest.filter(|_| is_held_back).map(|(name, _)| name.clone());
        Trimmed { removed, held_back_by }
    }

    /// Without the number of consumers: whether one without deliveries counts is up to the adapter.
    pub fn status(&self) -> LaneStatus {
        let groups = self.groups.iter().map(|(name, group)| GroupStatus {
            name: name.clone(),
            unread: self.entries.range(group.last_delivered.next()..).count() as u64,
            pending: group.pending.len() as u64,
            oldest_pending: group.pending.keys().next().copied(),
            last_delivered: group.last_delivered,
            consumers: 0,
        });
        LaneStatus {
            length: self.entries.len() as u64,
            first: self.entries.keys().next().copied(),
            last: self.last,
            appended: self.appended,
            groups: groups.collect(),
        }
    }
}
