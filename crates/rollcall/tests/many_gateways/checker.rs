//! Whether what watchers were shown was true, at every moment of a history.
//!
//! The rules, each with the bounds of the documentation:
//!
//! - **ghost**: no user is shown online, away or busy for longer than the TTL after the last activity. Only a stalled
//!   gateway of the watcher excuses it.
//! - **lost**: no user with a device connected to a working gateway is shown offline or pending. Excused if the
//!   user's or the watcher's gateway was stalled or could not reach Redis; between users of one gateway, Redis
//!   excuses nothing.
//! - **seen**: an invisible user is shown offline. Excused by a fault while the status was declared, never by a later
//!   one.
//! - **late**: without faults, a closed connection is shown soon, and a silent user, or one of a dead gateway, is
//!   offline once the TTL and the pending time are over.
//! - **back**: versions never decrease on one connection, and none is sent twice.
//!
//! Effects of a fault may last [`Bounds::mend`].

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{End, Fault, FaultKind, Gateway, History, Look, Said, Shown, Stay};
use crate::spans::{Ms, Spans};

/// What is promised, in milliseconds, with the room that a busy machine needs.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Longest time shown online after the last activity.
    pub ttl: Ms,
    /// Longest time a silently lost user may be pending.
    pub pending: Ms,
    /// Propagation of a change.
    pub settle: Ms,
    /// Recovery after a fault.
    pub mend: Ms,
    /// How soon others notice that a gateway is dead.
    pub lease: Ms,
}

/// Something that should not have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub rule: &'static str,
    pub viewer: u64,
    pub user: u64,
    pub from: Ms,
    pub to: Ms,
    pub why: String,
}

/// A status that means present.
fn is_here(status: &str) -> bool {
    matches!(status, "online" | "away" | "busy")
}

/// All that is wrong with a history.
pub fn violations(history: &History, bounds: &Bounds) -> Vec<Violation> {
    let checker = Checker::new(history, bounds);
    history.looks.iter().flat_map(|look| checker.look(look)).collect()
}

struct Checker<'a> {
    history: &'a History,
    bounds: &'a Bounds,
    stays: BTreeMap<u64, Vec<&'a Stay>>,
    said: BTreeMap<u64, Vec<Word<'a>>>,
}

/// A declared status, and whether it is certain to hold until the next one.
struct Word<'a> {
    said: &'a Said,
    to: Ms,
    is_firm: bool,
}

/// What one watcher was shown of one person, for a while.
struct Scene<'a> {
    look: &'a Look,
    user: u64,
    status: &'a str,
    span: Spans,
}

impl<'a> Checker<'a> {
    fn new(history: &'a History, bounds: &'a Bounds) -> Checker<'a> {
        let (mut stays, mut said) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, Vec<_>>::new());
        history.stays.iter().for_each(|stay| stays.entry(stay.user).or_default().push(stay));
        history.said.iter().for_each(|word| said.entry(word.user).or_default().push(word));
        let mut checker = Checker { history, bounds, stays, said: BTreeMap::new() };
        checker.said = said.into_iter().map(|(user, said)| (user, checker.words(&said))).collect();
        checker
    }

    /// A declaration is firm if there was no fault at the gateway that received it, nor at any that may still have to
    /// pass on an earlier one.
    fn words(&self, said: &[&'a Said]) -> Vec<Word<'a>> {
        let mut doubtful_until = 0;
        let firm = |said: &'a Said| {
            let trouble = self.trouble_of(said);
            let is_firm = trouble == 0 && said.sent >= doubtful_until;
            doubtful_until = doubtful_until.max(trouble);
            Word { said, to: self.history.end, is_firm }
        };
        let mut words: Vec<Word<'a>> = said.iter().copied().map(firm).collect();
        for position in 1..words.len() {
            words[position - 1].to = words[position].said.sent;
        }
        words
    }

    /// End of the uncertainty about this declaration; 0 without a fault.
    fn trouble_of(&self, said: &Said) -> Ms {
        if said.confirmed >= self.history.end {
            return said.sent + self.bounds.mend;
        }
        let saying = (said.sent.saturating_sub(self.bounds.mend), said.confirmed + self.bounds.settle);
        let faults = self.history.faults.iter().filter(|fault| {
            let is_theirs = fault.gateway.is_none_or(|gateway| gateway == said.gateway);
            is_theirs && fault.from < saying.1 && fault.to > saying.0
        });
        faults.map(|fault| fault.to.saturating_add(self.bounds.mend)).max().unwrap_or(0)
    }

    fn look(&self, look: &'a Look) -> Vec<Violation> {
        let mut of_user: BTreeMap<u64, Vec<&Shown>> = BTreeMap::new();
        look.shown.iter().for_each(|shown| of_user.entry(shown.user).or_default().push(shown));
        let mut found = Vec::new();
        for (user, shown) in of_user {
            found.extend(went_back(look, user, &shown));
            for (position, now) in shown.iter().enumerate() {
                let to = shown.get(position + 1).map_or(look.to, |next| next.at);
                let scene = Scene { look, user, status: &now.status, span: Spans::one(now.at, to) };
                found.extend(self.scene(&scene));
            }
        }
        found
    }

    fn scene(&self, scene: &Scene<'_>) -> Vec<Violation> {
        let is_wrong = if is_here(scene.status) {
            vec![
                ("ghost", self.surely_gone(scene)),
                ("seen", self.surely_hidden(scene)),
                ("late", self.surely_told(scene)),
            ]
        } else if scene.status == "pending" {
            let hidden = self.surely_hidden(scene);
            vec![("lost", self.surely_here(scene)), ("seen", hidden), ("late", self.surely_over(scene))]
        } else {
            vec![("lost", self.surely_here(scene))]
        };
        let at_fault = |(rule, wrong): (&'static str, Spans)| {
            let (from, to) = scene.span.and(&wrong).first()?;
            Some(self.violation(rule, scene, from, to))
        };
        is_wrong.into_iter().filter_map(at_fault).collect()
    }

    fn stays_of(&self, user: u64) -> &[&'a Stay] {
        self.stays.get(&user).map_or(&[], Vec::as_slice)
    }

    /// Time without any device: from the last activity until about the next, which the gateway receives before the
    /// device learns of it.
    fn absences(&self, user: u64) -> Spans {
        let early = self.bounds.settle;
        let stays = self.stays_of(user).iter();
        let here = Spans::of(stays.map(|stay| (stay.from.saturating_sub(early), stay.to)));
        Spans::one(0, self.history.end).without(&here)
    }

    fn faults(&self, is_it: impl Fn(&Fault) -> bool, longer: Ms) -> Spans {
        let faults = self.history.faults.iter().filter(|fault| is_it(fault));
        Spans::of(faults.map(|fault| (fault.from, fault.to.saturating_add(longer))))
    }

    /// When a gateway or the machine was stalled and could send nothing.
    fn stood_still(&self, gateway: Gateway) -> Spans {
        let is_still = |fault: &Fault| match fault.kind {
            FaultKind::Frozen => fault.gateway == Some(gateway),
            kind => kind == FaultKind::Stall,
        };
        self.faults(is_still, self.bounds.settle)
    }

    /// When what one gateway knows may not have reached the other.
    fn apart(&self, one: Gateway, other: Gateway) -> Spans {
        let is_apart = |fault: &Fault| {
            let is_theirs = fault.gateway.is_none_or(|gateway| gateway == one || gateway == other);
            match fault.kind {
                FaultKind::NoRedis => is_theirs && one != other,
                FaultKind::Frozen => is_theirs,
                FaultKind::Stall => true,
                FaultKind::Dead => false,
            }
        };
        self.faults(is_apart, self.bounds.mend)
    }

    /// Longer than the TTL after the last sign of life.
    fn surely_gone(&self, scene: &Scene<'_>) -> Spans {
        let still = self.stood_still(scene.look.gateway);
        let gone = self
            .absences(scene.user)
            .iter()
            .map(|(from, to)| (from + self.bounds.ttl, to))
            .collect::<Vec<_>>();
        Spans::of(gone).without(&still)
    }

    /// A device is connected to a working gateway that reaches the watcher's, and the user is visible.
    fn surely_here(&self, scene: &Scene<'_>) -> Spans {
        let mut here = Spans::default();
        for stay in self.stays_of(scene.user) {
            // The gateway may have known before the device that it was over.
            let known = if stay.end == End::ByGateway { self.bounds.settle } else { 0 };
            let span = Spans::one(stay.from + self.bounds.settle, stay.to.saturating_sub(known));
            here = here.or(&span.without(&self.apart(stay.gateway, scene.look.gateway)));
        }
        here.and(&self.surely_open(scene.user))
    }

    fn words_of(&self, user: u64) -> &[Word<'a>] {
        self.said.get(&user).map_or(&[], Vec::as_slice)
    }

    /// The user is certainly not invisible: the last declaration is visible, and was made without a fault.
    fn surely_open(&self, user: u64) -> Spans {
        let words = self.words_of(user);
        let before = (0, words.first().map_or(self.history.end, |word| word.said.sent));
        let open = words.iter().filter(|word| word.is_firm && word.said.what != Some("invisible"));
        let open = open.map(|word| (word.said.confirmed + self.bounds.settle, word.to));
        Spans::of([before].into_iter().chain(open))
    }

    /// The user firmly declared invisible, and the watcher's gateway can have received it.
    fn surely_hidden(&self, scene: &Scene<'_>) -> Spans {
        let secret = |word: &&Word<'_>| word.is_firm && word.said.what == Some("invisible");
        let hidden = self.words_of(scene.user).iter().filter(secret).map(|word| {
            let mut from = word.said.confirmed + self.bounds.settle;
            for (fault_from, fault_to) in self.apart(word.said.gateway, scene.look.gateway).iter() {
                if fault_from <= from && fault_to > from {
                    from = fault_to;
                }
            }
            (from, word.to)
        });
        Spans::of(hidden)
    }

    /// All devices closed their connections without a fault, long enough ago.
    fn surely_told(&self, scene: &Scene<'_>) -> Spans {
        let closed = |(from, to): (Ms, Ms)| {
            let last =
                self.stays_of(scene.user).iter().filter(|stay| stay.to <= from && stay.end != End::Closed);
            // A device that fell silent, or whose gateway died, is believed for a while longer.
            let believed =
                last.map(|stay| stay.to + self.bounds.ttl + self.bounds.pending).max().unwrap_or(0);
            (believed.max(from) + self.bounds.settle, to)
        };
        let absences: Vec<_> =
            self.absences(scene.user).iter().filter(|span| span.0 > 0).map(closed).collect();
        Spans::of(absences).without(&self.any_trouble())
    }

    /// Nobody was here for so long that there is nothing to wait for.
    fn surely_over(&self, scene: &Scene<'_>) -> Spans {
        let longest = self.bounds.ttl.max(self.bounds.lease) + self.bounds.pending + self.bounds.settle;
        let absences = self.absences(scene.user);
        let over: Vec<_> = absences.iter().map(|(from, to)| (from + longest, to)).collect();
        Spans::of(over).without(&self.any_trouble())
    }

    fn any_trouble(&self) -> Spans {
        // Dead gateways are noticed at the end of their lease; afterwards their users may still reconnect.
        let longest = self.bounds.lease + self.bounds.pending + self.bounds.mend;
        self.faults(|_| true, longest)
    }

    fn violation(&self, rule: &'static str, scene: &Scene<'_>, from: Ms, to: Ms) -> Violation {
        let stays = self.stays_of(scene.user).iter().map(|stay| {
            format!("d{} at {} {}..{} {:?}", stay.device, stay.gateway, stay.from, stay.to, stay.end)
        });
        let said = self.words_of(scene.user).iter().map(|word| {
            let Said { what, gateway, sent, .. } = word.said;
            format!(
                "{} at {gateway} {sent}{}",
                what.unwrap_or("nothing"),
                if word.is_firm { "" } else { "?" }
            )
        });
        let gateways: BTreeSet<_> = self.stays_of(scene.user).iter().map(|stay| stay.gateway).collect();
        let why = format!(
            "shown {} by gateway {} since {:?}; was {}; said {}; gateways {gateways:?}",
            scene.status,
            scene.look.gateway,
            scene.span.first(),
            stays.collect::<Vec<_>>().join(", "),
            said.collect::<Vec<_>>().join(", "),
        );
        Violation { rule, viewer: scene.look.viewer, user: scene.user, from, to, why }
    }
}

fn went_back(look: &Look, user: u64, shown: &[&Shown]) -> Option<Violation> {
    let is_back = |pair: &&[&Shown]| {
        // 0 means that one may not see them.
        let both = pair[0].version > 0 && pair[1].version > 0;
        both && (pair[1].version < pair[0].version || pair[1].is_change && pair[1].version == pair[0].version)
    };
    let pair = shown.windows(2).find(is_back)?;
    let why = format!("{:?}, then {:?}", pair[0], pair[1]);
    Some(Violation { rule: "back", viewer: look.viewer, user, from: pair[1].at, to: pair[1].at, why })
}
