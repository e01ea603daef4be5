//! A uniform random choice of peers, in time proportional to how many are wanted.
//!
//! Every set of peers is equally likely. A small crowd is shuffled as far as needed (Fisher–Yates on a list of
//! places); in a large one, places are drawn and repetitions drawn again, which are rare there.

use fastrand::Rng;

use crate::announce::{CLIENTS_PER_USER_MAX, Families, PeerLists, WANTED_MAX};
use crate::members::Member;

/// Up to this many times the wanted number, a crowd is small enough to be shuffled.
const SHUFFLE_FACTOR: usize = 4;
/// A repeatable choice draws from a multiple of this many places, so that a few peers more or less change little.
const SPAN_STEP: usize = 16;
/// Places the shuffle can hold.
const SHUFFLE_MAX: usize = SHUFFLE_FACTOR * (WANTED_MAX + CLIENTS_PER_USER_MAX);
/// Buckets of the table of places already drawn; never more than half full.
const DRAWN_BUCKETS: usize = 1024;

const _: () = assert!(SHUFFLE_MAX >= (SHUFFLE_FACTOR * WANTED_MAX).next_multiple_of(SPAN_STEP));
const _: () = assert!(DRAWN_BUCKETS >= 2 * draws_max(WANTED_MAX));

/// Places drawn in a large crowd. Enough if most peers have an address that the requester can use.
const fn draws_max(wanted: usize) -> usize {
    2 * wanted + CLIENTS_PER_USER_MAX
}

/// Where few peers can be used (of the rarer address family), so many times the wanted number are looked at in a row.
const WALK_FACTOR: usize = 8;

/// Whom to choose for.
pub(crate) struct Requester<'a> {
    pub(crate) wanted: usize,
    pub(crate) families: Families,
    /// Slots of the requester's own peers, which it is never given.
    pub(crate) own: &'a [u32],
    /// Where the same random numbers should lead to the same peers, also when the crowd has changed a little: the
    /// position of its first member in the swarm.
    pub(crate) repeatable_from: Option<usize>,
}

impl Requester<'_> {
    fn give(&self, member: &Member, lists: &mut PeerLists) -> bool {
        !self.own.contains(&member.slot) && member.hand_out(self.families, lists)
    }

    fn span<const REPEATABLE: bool>(&self, crowd: &[Member]) -> Span {
        if !REPEATABLE {
            return Span { places: crowd.len(), shift: 0 };
        }
        let places = crowd.len().next_multiple_of(SPAN_STEP);
        Span { places, shift: places - self.repeatable_from.unwrap_or_default() % places }
    }
}

/// The places to draw from, and where among them the crowd begins.
#[derive(Clone, Copy)]
struct Span {
    places: usize,
    shift: usize,
}

impl Span {
    /// Who is at a place; a place beyond the crowd is empty.
    fn member<const REPEATABLE: bool>(self, crowd: &[Member], place: usize) -> Option<&Member> {
        if !REPEATABLE {
            return crowd.get(place);
        }
        let shifted = place + self.shift;
        crowd.get(if shifted >= self.places { shifted - self.places } else { shifted })
    }
}

/// Writes the addresses of up to `requester.wanted` of `crowd` to `lists`.
pub(crate) fn choose(crowd: &[Member], requester: &Requester<'_>, random: &mut Rng, lists: &mut PeerLists) {
    let wanted = requester.wanted.min(WANTED_MAX);
    if wanted == 0 {
        return;
    }
    if crowd.len() <= wanted {
        for member in crowd {
            requester.give(member, lists);
        }
    } else if requester.repeatable_from.is_some() {
        choose_some::<true>(crowd, wanted, requester, random, lists);
    } else {
        choose_some::<false>(crowd, wanted, requester, random, lists);
    }
}

/// `REPEATABLE` is known to the compiler: most choices are not, and should not pay for it.
fn choose_some<const REPEATABLE: bool>(
    crowd: &[Member],
    wanted: usize,
    requester: &Requester<'_>,
    random: &mut Rng,
    lists: &mut PeerLists,
) {
    if crowd.len() <= SHUFFLE_FACTOR * wanted {
        choose_by_shuffle::<REPEATABLE>(crowd, wanted, requester, random, lists);
    } else {
        choose_by_drawing::<REPEATABLE>(crowd, wanted, requester, random, lists);
    }
}

fn choose_by_shuffle<const REPEATABLE: bool>(
    crowd: &[Member],
    wanted: usize,
    requester: &Requester<'_>,
    random: &mut Rng,
    lists: &mut PeerLists,
) {
    let mut places = [0_u16; SHUFFLE_MAX];
    let span = requester.span::<REPEATABLE>(crowd);
    let places = &mut places[..span.places];
    for (place, index) in places.iter_mut().zip(0..) {
        *place = index;
    }
    let mut given = 0;
    for turn in 0..span.places {
        let drawn = turn + random.u32(..(span.places - turn) as u32) as usize;
        places.swap(turn, drawn);
        let Some(member) = span.member::<REPEATABLE>(crowd, places[turn] as usize) else { continue };
        given += usize::from(requester.give(member, lists));
        if given == wanted {
            return;
        }
    }
}

fn choose_by_drawing<const REPEATABLE: bool>(
    crowd: &[Member],
    wanted: usize,
    requester: &Requester<'_>,
    random: &mut Rng,
    lists: &mut PeerLists,
) {
    let mut drawn = DrawnPlaces([0; DRAWN_BUCKETS]);
    let mut given = 0;
    let span = requester.span::<REPEATABLE>(crowd);
    for _ in 0..draws_max(wanted) {
        let place = random.u32(..span.places as u32);
        let Some(member) = span.member::<REPEATABLE>(crowd, place as usize) else { continue };
        if drawn.insert(place) {
            given += usize::from(requester.give(member, lists));
            if given == wanted {
                return;
            }
        }
    }
    walk_on::<REPEATABLE>(crowd, wanted - given, &drawn, requester, random, lists);
}

/// Looks for the missing peers in a row, from a random place on.
fn walk_on<const REPEATABLE: bool>(
    crowd: &[Member],
    mut missing: usize,
    drawn: &DrawnPlaces,
    requester: &Requester<'_>,
    random: &mut Rng,
    lists: &mut PeerLists,
) {
    let span = requester.span::<REPEATABLE>(crowd);
    let start = random.usize(..span.places);
    for step in 0..span.places.min(WALK_FACTOR * requester.wanted) {
        let place = (start + step) % span.places;
        let Some(member) = span.member::<REPEATABLE>(crowd, place) else { continue };
        if !drawn.contains(place as u32) {
            missing -= usize::from(requester.give(member, lists));
            if missing == 0 {
                return;
            }
        }
    }
}

/// A small set of places on the stack; zero means empty.
struct DrawnPlaces([u32; DRAWN_BUCKETS]);

impl DrawnPlaces {
    /// Adds a place; false if it was there.
    fn insert(&mut self, place: u32) -> bool {
        let bucket = self.bucket_of(place);
        let is_new = self.0[bucket] == 0;
        self.0[bucket] = place + 1;
        is_new
    }

    fn contains(&self, place: u32) -> bool {
        self.0[self.bucket_of(place)] != 0
    }

    /// The bucket that holds the place, or the empty one where it would go.
    fn bucket_of(&self, place: u32) -> usize {
        let mut bucket = (place.wrapping_mul(0x9e37_79b1) >> 8) as usize % DRAWN_BUCKETS;
        while self.0[bucket] != 0 && self.0[bucket] != place + 1 {
            bucket = (bucket + 1) % DRAWN_BUCKETS;
        }
        bucket
    }
}
