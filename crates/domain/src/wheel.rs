//! A timing wheel over dense slots, for deadlines that heartbeats extend.
//!
//! Peers and sessions have deadlines, which a heartbeat moves into the future. Heartbeats are a million times more
//! frequent than expiries, so a heartbeat costs the wheel *nothing*: the owner stores the true deadline in its record,
//! and the wheel only stores when to check. At a check the owner returns a [`Verdict`]: done, or the next check.
//!
//! # Guarantees
//!
//! - A slot armed for a later second is checked by the first [`TimingWheel::advance`] at or after that second, never
//!   before it unless it lies beyond the wheel's horizon or the clock went far back (then the owner returns `RearmAt`,
//!   once per revolution or once).
//! - An advance costs what is due plus one step for each elapsed second, however many slots are armed.
//! - Four bytes per slot, no allocation for slots seen before, no pointers.
//!
//! # Deliberately absent
//!
//! Cancelling: an owner that frees a slot leaves it armed, and returns `Done` (or the deadline of the slot's next
//! occupant) at the check. Moving a deadline *forward*: a slot's deadlines only grow, also from one occupant to the
//! next; an owner that needs an earlier check arms a second slot.

use crate::time::{Seconds, UnixTime};

/// The owner's decision when the wheel checks a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The slot is no longer armed.
    Done,
    /// Check again then.
    RearmAt(UnixTime),
}

/// A clock that steps back by at most this much is waited for. After a larger step the previous time was wrong: then
/// every slot is checked once, so that no deadline waits for the wrong time.
const STEP_BACK_MAX: Seconds = Seconds(60);

const END: u32 = u32::MAX;
/// A slot in no bucket.
const NOT_ARMED: u32 = u32::MAX - 1;

/// One bucket per second, each a singly linked list through `next`.
#[derive(Debug)]
pub struct TimingWheel {
    /// The first slot of each bucket; the number of buckets is a power of two.
    first: Box<[u32]>,
    /// For each slot, the next one in its bucket.
    next: Vec<u32>,
    /// Every second up to and including this one has been checked.
    checked_until: UnixTime,
    armed: usize,
}

impl TimingWheel {
    pub const MAX_SLOTS: usize = NOT_ARMED as usize;

    /// A wheel that starts at `now` with a horizon of at least `horizon_s` seconds.
    ///
    /// Deadlines beyond the horizon work as well, at the cost of one check per revolution.
    pub fn new(now: UnixTime, horizon_s: u32) -> Self {
        let buckets = horizon_s.clamp(1, 1 << 20).next_power_of_two() as usize;
        TimingWheel { first: vec![END; buckets].into(), next: Vec::new(), checked_until: now, armed: 0 }
    }

    pub fn armed(&self) -> usize {
        self.armed
    }

    pub fn is_armed(&self, slot: u32) -> bool {
        self.next.get(slot as usize).is_some_and(|next| *next != NOT_ARMED)
    }

    /// Checks `slot` at `deadline`, or a second from now if that has passed.
    ///
    /// A slot that is armed already keeps its position: its owner knows the true deadline.
    pub fn arm(&mut self, slot: u32, deadline: UnixTime) {
        assert!((slot as usize) < Self::MAX_SLOTS, "a slot number that the wheel needs for itself");
        if self.is_armed(slot) {
            return;
        }
        if slot as usize >= self.next.len() {
            // Grows by an eighth rather than twofold, to save memory with a million slots.
            let wanted = slot as usize + 1;
            self.next.reserve_exact((wanted + wanted / 8).max(64) - self.next.len());
            self.next.resize(wanted, NOT_ARMED);
        }
        self.armed += 1;
        self.link(slot, deadline);
    }

    /// Advances to `now` and calls `judge` for every slot that is due.
    ///
    /// A clock that stands still or steps back a little changes nothing.
    pub fn advance(&mut self, now: UnixTime, mut judge: impl FnMut(u32) -> Verdict) {
        let revolution = self.first.len() as u32;
        let came_back = self.checked_until.since(now) > STEP_BACK_MAX;
        // One revolution visits every bucket once: a clock that leaps ahead costs no more than that.
        let buckets_to_visit =
            if came_back { revolution } else { now.since(self.checked_until).0.min(revolution) };
        if buckets_to_visit == 0 {
            return;
        }
        self.checked_until = now;
        let mut due = END;
        for back in 0..buckets_to_visit {
            let bucket = self.bucket(now.0.wrapping_sub(back));
            let head = std::mem::replace(&mut self.first[bucket], END);
            due = self.splice(head, due);
        }
        while due != END {
            let slot = due;
            due = self.next[slot as usize];
            match judge(slot) {
                Verdict::Done => {
                    self.next[slot as usize] = NOT_ARMED;
                    self.armed -= 1;
                }
                Verdict::RearmAt(deadline) => self.link(slot, deadline),
            }
        }
    }

    fn bucket(&self, second: u32) -> usize {
        second as usize & (self.first.len() - 1)
    }

    /// Adds a slot to the bucket of its deadline, or of the next second, or of the farthest one.
    fn link(&mut self, slot: u32, deadline: UnixTime) {
        let ahead = deadline.since(self.checked_until).0.clamp(1, self.first.len() as u32);
        let bucket = self.bucket(self.checked_until.0.wrapping_add(ahead));
        self.next[slot as usize] = self.first[bucket];
        self.first[bucket] = slot;
    }

    /// Appends `rest` to the list that starts at `head`.
    fn splice(&mut self, head: u32, rest: u32) -> u32 {
        if head == END {
            return rest;
        }
        if rest != END {
            let mut last = head;
            while self.next[last as usize] != END {
                last = self.next[last as usize];
            }
            self.next[last as usize] = rest;
        }
        head
    }
}
