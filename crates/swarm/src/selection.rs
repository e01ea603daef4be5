//! A uniform random choice of peers, in time proportional to how many are wanted.
//!
//! Every set of peers is equally likely. A small crowd is shuffled as far as needed (Fisher–Yates on a list of
//! places); in a large one, places are drawn and repetitions drawn again, which are rare there.

use fastrand::Rng;

use crate::announce::{CLIENTS_PER_USER_MAX, Families, PeerLists, WANTED_MAX};
use crate::members::Member;

/// Up to this many times the wanted number, a crowd is small enough to be shuffled.
const SHUFFLE_FACTOR: usize = 4;
/// Places the shuffle can hold.
const SHUFFLE_MAX: usize = SHUFFLE_FACTOR * (WANTED_MAX + CLIENTS_PER_USER_MAX);
/// Buckets of the table of places already drawn; never more than half full.
const DRAWN_BUCKETS: usize = 1024;

const _: () = assert!(DRAWN_BUCKETS >= 2 * draws_max(WANTED_MAX));

/// Places drawn in a large crowd. Enough if most peers have an address that the asker can use.
const fn draws_max(wanted: usize) -> usize {
    2 * wanted + CLIENTS_PER_USER_MAX
}

/// Where few peers can be used (of the rarer address family), so many times the wanted number are looked at in a row.
const WALK_FACTOR: usize = 8;

/// Whom to choose for.
pub(crate) struct Asker<'a> {
    pub(crate) wanted: usize,
    pub(crate) families: Families,
    /// Slots of the asker's own peers, which it is never given.
    pub(crate) own: &'a [u32],
}

impl Asker<'_> {
    fn give(&self, member: &Member, lists: &mut PeerLists) -> bool {
        !self.own.contains(&member.slot) && member.hand_out(self.families, lists)
    }
}

/// Writes the addresses of up to `asker.wanted` of `crowd` to `lists`.
pub(crate) fn choose(crowd: &[Member], asker: &Asker<'_>, random: &mut Rng, lists: &mut PeerLists) {
    let wanted = asker.wanted.min(WANTED_MAX);
    if wanted == 0 {
        return;
    }
    if crowd.len() <= wanted {
        for member in crowd {
            asker.give(member, lists);
        }
    } else if crowd.len() <= SHUFFLE_FACTOR * wanted {
        choose_by_shuffle(crowd, wanted, asker, random, lists);
    } else {
        choose_by_drawing(crowd, wanted, asker, random, lists);
    }
}

fn choose_by_shuffle(
    crowd: &[Member],
    wanted: usize,
    asker: &Asker<'_>,
    random: &mut Rng,
    lists: &mut PeerLists,
) {
    let mut places = [0_u16; SHUFFLE_MAX];
    let places = &mut places[..crowd.len()];
    for (place, index) in places.iter_mut().zip(0..) {
        *place = index;
    }
    let mut given = 0;
    for turn in 0..crowd.len() {
        let drawn = turn + random.u32(..(crowd.len() - turn) as u32) as usize;
        places.swap(turn, drawn);
        given += usize::from(asker.give(&crowd[places[turn] as usize], lists));
        if given == wanted {
            return;
        }
    }
}

fn choose_by_drawing(
    crowd: &[Member],
    wanted: usize,
    asker: &Asker<'_>,
    random: &mut Rng,
    lists: &mut PeerLists,
) {
    let mut drawn = DrawnPlaces([0; DRAWN_BUCKETS]);
    let mut given = 0;
    for _ in 0..draws_max(wanted) {
        let place = random.u32(..crowd.len() as u32);
        if drawn.insert(place) {
            given += usize::from(asker.give(&crowd[place as usize], lists));
            if given == wanted {
                return;
            }
        }
    }
    walk_on(crowd, wanted - given, &drawn, asker, random, lists);
}

/// Looks for the missing peers in a row, from a random place on.
fn walk_on(
    crowd: &[Member],
    mut missing: usize,
    drawn: &DrawnPlaces,
    asker: &Asker<'_>,
    random: &mut Rng,
    lists: &mut PeerLists,
) {
    let start = random.usize(..crowd.len());
    for step in 0..crowd.len().min(WALK_FACTOR * asker.wanted) {
        let place = (start + step) % crowd.len();
        if !drawn.contains(place as u32) {
            missing -= usize::from(asker.give(&crowd[place], lists));
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
