//! A uniform random choice of peers, in time proportional to the number wanted.
//!
//! Every set of peers is equally likely. Few candidates are shuffled as far as needed (Fisher–Yates on a list of
//! indices); among many, indices are drawn, and rare repetitions drawn again.

use fastrand::Rng;

use crate::announce::{CLIENTS_PER_USER_MAX, PeerLists, WANTED_MAX};
use crate::members::Candidates;

/// Up to this many times the wanted number, candidates are shuffled.
const SHUFFLE_FACTOR: usize = 4;
/// A repeatable choice draws from a multiple of this many indices, so that a few peers more or less change little.
const SPAN_STEP: usize = 16;
/// Capacity of the shuffle.
const SHUFFLE_MAX: usize = SHUFFLE_FACTOR * (WANTED_MAX + CLIENTS_PER_USER_MAX);
/// Buckets of the set of drawn indices; never more than half full.
const DRAWN_BUCKETS: usize = 1024;

const _: () = assert!(SHUFFLE_MAX >= (SHUFFLE_FACTOR * WANTED_MAX).next_multiple_of(SPAN_STEP));
const _: () = assert!(DRAWN_BUCKETS >= 2 * draws_max(WANTED_MAX));

/// Indices drawn among many candidates. Enough if most peers have a usable address.
const fn draws_max(wanted: usize) -> usize {
    2 * wanted + CLIENTS_PER_USER_MAX
}

/// If few peers are usable (of the rarer address family), up to so many times the wanted number are examined
/// sequentially.
const WALK_FACTOR: usize = 8;

pub(crate) struct Requester<'a> {
    pub(crate) wanted: usize,
    /// Slots of the requester's own peers, which are never returned.
    pub(crate) own: &'a [u32],
    /// If the same random numbers should lead to the same peers, even if a few candidates have changed: the position of
    /// the first candidate in the swarm.
    pub(crate) repeatable_from: Option<usize>,
}

impl Requester<'_> {
    /// False for a candidate without an address for the requester, and beyond the last one.
    #[inline]
    fn append(&self, candidates: &Candidates<'_>, index: usize, lists: &mut PeerLists) -> bool {
        candidates.append(index, self.own, lists)
    }

    fn span<const REPEATABLE: bool>(&self, candidates: &Candidates<'_>) -> Span {
        if !REPEATABLE {
            return Span { places: candidates.len(), shift: 0 };
        }
        let places = candidates.len().next_multiple_of(SPAN_STEP);
        Span { places, shift: places - self.repeatable_from.unwrap_or_default() % places }
    }
}

/// The indices to draw from, and where among them the candidates begin.
#[derive(Clone, Copy)]
struct Span {
    places: usize,
    shift: usize,
}

impl Span {
    /// May lie beyond the candidates.
    fn index<const REPEATABLE: bool>(self, place: usize) -> usize {
        let shifted = if REPEATABLE { place + self.shift } else { place };
        if shifted >= self.places { shifted - self.places } else { shifted }
    }
}

/// Writes the addresses of up to `requester.wanted` of `candidates` to `lists`.
pub(crate) fn choose(
    candidates: &Candidates<'_>,
    requester: &Requester<'_>,
    random: &mut Rng,
    lists: &mut PeerLists,
) {
    let wanted = requester.wanted.min(WANTED_MAX);
    if wanted == 0 {
        return;
    }
    if candidates.len() <= wanted {
        candidates.append_all(requester.own, lists);
    } else if requester.repeatable_from.is_some() {
        choose_some::<true>(candidates, wanted, requester, random, lists);
    } else {
        choose_some::<false>(candidates, wanted, requester, random, lists);
    }
}

/// `REPEATABLE` is a constant: most choices are not repeatable, and should not pay for it.
fn choose_some<const REPEATABLE: bool>(
    candidates: &Candidates<'_>,
    wanted: usize,
    requester: &Requester<'_>,
    random: &mut Rng,
    lists: &mut PeerLists,
) {
    if candidates.len() <= SHUFFLE_FACTOR * wanted {
        choose_by_shuffle::<REPEATABLE>(candidates, wanted, requester, random, lists);
    } else {
        choose_by_drawing::<REPEATABLE>(candidates, wanted, requester, random, lists);
    }
}

fn choose_by_shuffle<const REPEATABLE: bool>(
    candidates: &Candidates<'_>,
    wanted: usize,
    requester: &Requester<'_>,
    random: &mut Rng,
    lists: &mut PeerLists,
) {
    let mut places = [0_u16; SHUFFLE_MAX];
    let span = requester.span::<REPEATABLE>(candidates);
    let places = &mut places[..span.places];
    for (place, index) in places.iter_mut().zip(0..) {
        *place = index;
    }
    let mut given = 0;
    for step in 0..span.places {
        let drawn = step + random.u32(..(span.places - step) as u32) as usize;
        places.swap(step, drawn);
        let index = span.index::<REPEATABLE>(places[step] as usize);
        given += usize::from(requester.append(candidates, index, lists));
        if given == wanted {
            return;
        }
    }
}

fn choose_by_drawing<const REPEATABLE: bool>(
    candidates: &Candidates<'_>,
    wanted: usize,
    requester: &Requester<'_>,
    random: &mut Rng,
    lists: &mut PeerLists,
) {
    let mut drawn = DrawnIndices([0; DRAWN_BUCKETS]);
    let mut given = 0;
    let span = requester.span::<REPEATABLE>(candidates);
    for _ in 0..draws_max(wanted) {
        let place = random.u32(..span.places as u32);
        if drawn.insert(place) {
            let index = span.index::<REPEATABLE>(place as usize);
            given += usize::from(requester.append(candidates, index, lists));
            if given == wanted {
                return;
            }
        }
    }
    walk_on::<REPEATABLE>(candidates, wanted - given, &drawn, requester, random, lists);
}

/// Searches for the missing peers sequentially, from a random index.
fn walk_on<const REPEATABLE: bool>(
    candidates: &Candidates<'_>,
    mut missing: usize,
    drawn: &DrawnIndices,
    requester: &Requester<'_>,
    random: &mut Rng,
    lists: &mut PeerLists,
) {
    let span = requester.span::<REPEATABLE>(candidates);
    let start = random.usize(..span.places);
    for step in 0..span.places.min(WALK_FACTOR * requester.wanted) {
        let place = (start + step) % span.places;
        if !drawn.contains(place as u32) {
            let index = span.index::<REPEATABLE>(place);
            missing -= usize::from(requester.append(candidates, index, lists));
            if missing == 0 {
                return;
            }
        }
    }
}

/// A small set of indices on the stack; zero means empty.
struct DrawnIndices([u32; DRAWN_BUCKETS]);

impl DrawnIndices {
    /// False if it was present.
    fn insert(&mut self, place: u32) -> bool {
        let bucket = self.bucket_of(place);
        let is_new = self.0[bucket] == 0;
        self.0[bucket] = place + 1;
        is_new
    }

    fn contains(&self, place: u32) -> bool {
        self.0[self.bucket_of(place)] != 0
    }

    /// The bucket that holds the index, or the empty one where it would go.
    fn bucket_of(&self, place: u32) -> usize {
        let mut bucket = (place.wrapping_mul(0x9e37_79b1) >> 8) as usize % DRAWN_BUCKETS;
        while self.0[bucket] != 0 && self.0[bucket] != place + 1 {
            bucket = (bucket + 1) % DRAWN_BUCKETS;
        }
        bucket
    }
}
