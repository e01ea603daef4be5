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
//! Effects of a fault may last [`Bounds::recovery`].

use std::collections::{BTreeMap, BTreeSet};

use crate::many_gateways::history::{
    Declaration, DeviceSession, End, Fault, FaultKind, Gateway, History, Shown, WatchSession,
};
use crate::many_gateways::spans::{Ms, Spans};

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
    pub recovery: Ms,
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
    history.watch_sessions.iter().flat_map(|look| checker.check_session(look)).collect()
}

struct Checker<'a> {
    history: &'a History,
    bounds: &'a Bounds,
    stays: BTreeMap<u64, Vec<&'a DeviceSession>>,
    declared: BTreeMap<u64, Vec<FirmDeclaration<'a>>>,
}

/// A declared status, and whether it is certain to hold until the next one.
struct FirmDeclaration<'a> {
    declared: &'a Declaration,
    to: Ms,
    is_firm: bool,
}

/// What one watcher was shown of one person, for a while.
struct ShownSpan<'a> {
    look: &'a WatchSession,
    user: u64,
    status: &'a str,
    span: Spans,
}

impl<'a> Checker<'a> {
    fn new(history: &'a History, bounds: &'a Bounds) -> Checker<'a> {
        let (mut stays, mut declared) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, Vec<_>>::new());
        history.device_sessions.iter().for_each(|stay| stays.entry(stay.user).or_default().push(stay));
        history
            .declarations
            .iter()
            .for_each(|declaration| declared.entry(declaration.user).or_default().push(declaration));
        let mut checker = Checker { history, bounds, stays, declared: BTreeMap::new() };
        checker.declared = declared
            .into_iter()
            .map(|(user, declared)| (user, checker.firm_declarations(&declared)))
            .collect();
        checker
    }

    /// A declaration is firm if there was no fault at the gateway that received it, nor at any that may still have to
    /// pass on an earlier one.
    fn firm_declarations(&self, declared: &[&'a Declaration]) -> Vec<FirmDeclaration<'a>> {
        let mut doubtful_until = 0;
        let firm = |declared: &'a Declaration| {
            let uncertain = self.uncertain_until(declared);
            let is_firm = uncertain == 0 && declared.sent >= doubtful_until;
            doubtful_until = doubtful_until.max(uncertain);
            FirmDeclaration { declared, to: self.history.end, is_firm }
        };
        let mut firm_declarations: Vec<FirmDeclaration<'a>> = declared.iter().copied().map(firm).collect();
        for position in 1..firm_declarations.len() {
            firm_declarations[position - 1].to = firm_declarations[position].declared.sent;
        }
        firm_declarations
    }

    /// End of the uncertainty about this declaration; 0 without a fault.
    fn uncertain_until(&self, declared: &Declaration) -> Ms {
        if declared.confirmed >= self.history.end {
            return declared.sent + self.bounds.recovery;
        }
        let saying =
            (declared.sent.saturating_sub(self.bounds.recovery), declared.confirmed + self.bounds.settle);
        let faults = self.history.faults.iter().filter(|fault| {
            let is_theirs = fault.gateway.is_none_or(|gateway| gateway == declared.gateway);
            is_theirs && fault.from < saying.1 && fault.to > saying.0
        });
        faults.map(|fault| fault.to.saturating_add(self.bounds.recovery)).max().unwrap_or(0)
    }

    fn check_session(&self, look: &'a WatchSession) -> Vec<Violation> {
        let mut of_user: BTreeMap<u64, Vec<&Shown>> = BTreeMap::new();
        look.shown.iter().for_each(|shown| of_user.entry(shown.user).or_default().push(shown));
        let mut found = Vec::new();
        for (user, shown) in of_user {
            found.extend(went_back(look, user, &shown));
            for (position, now) in shown.iter().enumerate() {
                let to = shown.get(position + 1).map_or(look.to, |next| next.at);
                let shown_span = ShownSpan { look, user, status: &now.status, span: Spans::one(now.at, to) };
                found.extend(self.check_span(&shown_span));
            }
        }
        found
    }

    fn check_span(&self, shown_span: &ShownSpan<'_>) -> Vec<Violation> {
        let is_wrong = if is_here(shown_span.status) {
            vec![
                ("ghost", self.surely_gone(shown_span)),
                ("seen", self.surely_hidden(shown_span)),
                ("late", self.surely_told(shown_span)),
            ]
        } else if shown_span.status == "pending" {
            let hidden = self.surely_hidden(shown_span);
            vec![
                ("lost", self.surely_here(shown_span)),
                ("seen", hidden),
                ("late", self.surely_over(shown_span)),
            ]
        } else {
            vec![("lost", self.surely_here(shown_span))]
        };
        let at_fault = |(rule, wrong): (&'static str, Spans)| {
            let (from, to) = shown_span.span.and(&wrong).first()?;
            Some(self.violation(rule, shown_span, from, to))
        };
        is_wrong.into_iter().filter_map(at_fault).collect()
    }

    fn stays_of(&self, user: u64) -> &[&'a DeviceSession] {
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
        self.faults(is_apart, self.bounds.recovery)
    }

    /// Longer than the TTL after the last activity.
    fn surely_gone(&self, shown_span: &ShownSpan<'_>) -> Spans {
        let still = self.stood_still(shown_span.look.gateway);
        let gone = self
            .absences(shown_span.user)
            .iter()
            .map(|(from, to)| (from + self.bounds.ttl, to))
            .collect::<Vec<_>>();
        Spans::of(gone).without(&still)
    }

    /// A device is connected to a working gateway that reaches the watcher's, and the user is visible.
    fn surely_here(&self, shown_span: &ShownSpan<'_>) -> Spans {
        let mut here = Spans::default();
        for stay in self.stays_of(shown_span.user) {
            // The gateway may have known before the device that it was over.
            let known = if stay.end == End::ByGateway { self.bounds.settle } else { 0 };
            let span = Spans::one(stay.from + self.bounds.settle, stay.to.saturating_sub(known));
            here = here.or(&span.without(&self.apart(stay.gateway, shown_span.look.gateway)));
        }
        here.and(&self.surely_open(shown_span.user))
    }

    fn declarations_of(&self, user: u64) -> &[FirmDeclaration<'a>] {
        self.declared.get(&user).map_or(&[], Vec::as_slice)
    }

    /// The user is certainly not invisible: the last declaration is visible, and was made without a fault.
    fn surely_open(&self, user: u64) -> Spans {
        let firm_declarations = self.declarations_of(user);
        let before =
            (0, firm_declarations.first().map_or(self.history.end, |declaration| declaration.declared.sent));
        let open = firm_declarations
            .iter()
            .filter(|declaration| declaration.is_firm && declaration.declared.what != Some("invisible"));
        let open =
            open.map(|declaration| (declaration.declared.confirmed + self.bounds.settle, declaration.to));
        Spans::of([before].into_iter().chain(open))
    }

    /// The user firmly declared invisible, and the watcher's gateway can have received it.
    fn surely_hidden(&self, shown_span: &ShownSpan<'_>) -> Spans {
        let secret = |declaration: &&FirmDeclaration<'_>| {
            declaration.is_firm && declaration.declared.what == Some("invisible")
        };
        let hidden = self.declarations_of(shown_span.user).iter().filter(secret).map(|declaration| {
            let mut from = declaration.declared.confirmed + self.bounds.settle;
            for (fault_from, fault_to) in
                self.apart(declaration.declared.gateway, shown_span.look.gateway).iter()
            {
                if fault_from <= from && fault_to > from {
                    from = fault_to;
                }
            }
            (from, declaration.to)
        });
        Spans::of(hidden)
    }

    /// All devices closed their connections without a fault, long enough ago.
    fn surely_told(&self, shown_span: &ShownSpan<'_>) -> Spans {
        let closed = |(from, to): (Ms, Ms)| {
            let last = self
                .stays_of(shown_span.user)
                .iter()
                .filter(|stay| stay.to <= from && stay.end != End::Closed);
            // A device that fell silent, or whose gateway died, is believed for a while longer.
            let believed =
                last.map(|stay| stay.to + self.bounds.ttl + self.bounds.pending).max().unwrap_or(0);
            (believed.max(from) + self.bounds.settle, to)
        };
        let absences: Vec<_> =
            self.absences(shown_span.user).iter().filter(|span| span.0 > 0).map(closed).collect();
        Spans::of(absences).without(&self.any_trouble())
    }

    /// The user was offline for so long that there is nothing to wait for.
    fn surely_over(&self, shown_span: &ShownSpan<'_>) -> Spans {
        let longest = self.bounds.ttl.max(self.bounds.lease) + self.bounds.pending + self.bounds.settle;
        let absences = self.absences(shown_span.user);
        let over: Vec<_> = absences.iter().map(|(from, to)| (from + longest, to)).collect();
        Spans::of(over).without(&self.any_trouble())
    }

    fn any_trouble(&self) -> Spans {
        // Dead gateways are noticed at the end of their lease; afterwards their users may still reconnect.
        let longest = self.bounds.lease + self.bounds.pending + self.bounds.recovery;
        self.faults(|_| true, longest)
    }

    fn violation(&self, rule: &'static str, shown_span: &ShownSpan<'_>, from: Ms, to: Ms) -> Violation {
        let stays = self.stays_of(shown_span.user).iter().map(|stay| {
            format!("d{} at {} {}..{} {:?}", stay.device, stay.gateway, stay.from, stay.to, stay.end)
        });
        let declared = self.declarations_of(shown_span.user).iter().map(|declaration| {
            let Declaration { what, gateway, sent, .. } = declaration.declared;
            format!(
                "{} at {gateway} {sent}{}",
                what.unwrap_or("nothing"),
                if declaration.is_firm { "" } else { "?" }
            )
        });
        let gateways: BTreeSet<_> = self.stays_of(shown_span.user).iter().map(|stay| stay.gateway).collect();
        let why = format!(
            "shown {} by gateway {} since {:?}; was {}; declared {}; gateways {gateways:?}",
            shown_span.status,
            shown_span.look.gateway,
            shown_span.span.first(),
            stays.collect::<Vec<_>>().join(", "),
            declared.collect::<Vec<_>>().join(", "),
        );
        Violation { rule, viewer: shown_span.look.viewer, user: shown_span.user, from, to, why }
    }
}

fn went_back(look: &WatchSession, user: u64, shown: &[&Shown]) -> Option<Violation> {
    let is_back = |pair: &&[&Shown]| {
        // 0 means that one may not see them.
        let both = pair[0].version > 0 && pair[1].version > 0;
        both && (pair[1].version < pair[0].version || pair[1].is_change && pair[1].version == pair[0].version)
    };
    let pair = shown.windows(2).find(is_back)?;
    let why = format!("{:?}, then {:?}", pair[0], pair[1]);
    Some(Violation { rule: "back", viewer: look.viewer, user, from: pair[1].at, to: pair[1].at, why })
}
