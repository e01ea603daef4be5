//! Why an account is what it is: which client contribution what, stretch by stretch.
//!
//! # Guarantees
//!
//! - The parts come to the account's raw bytes, exactly, however much of the journal is left: no entry is asked.
//! - They are the very parts of which the credit is the sum ([`mod@crate::credit`]); nothing is worked out twice.
//!
//! # Deliberately absent
//!
//! What nobody has kept: clients that were not heard of for longer than sessions are kept, clients beyond the bound of one
//! answer, and clients from before sums were kept. All of them together are the [`Explanation::rest`]. What was credited
//! under another ceiling than today's is in it, too, and may make it less than nothing.

use std::collections::BTreeSet;

use domain::{ClientId, RateCeiling, UnixTime};

use crate::account_state::{Client, ClientState};
use crate::credit::{Bridge, Stretch, parts_of, stretches};
use crate::figures::{Account, Figures};
use crate::run::Counters;
use crate::sums::{Moved, Sums};

/// Why an account is what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The account.
    pub account: Account,
    /// Its clients, those heard of last first.
    pub clients: Vec<ExplainedClient>,
    /// Whether there are more clients than are listed.
    pub is_cut: bool,
    /// What those contribution that are not listed, and those of whom no more is known: zero if all are.
    pub rest: Moved,
}

/// What a client contribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedClient {
    /// Which.
    pub client: ClientId,
    /// What it is doing.
    pub state: ClientState,
    /// When it was last heard of.
    pub last: UnixTime,
    /// Its counters, in the order of time.
    pub stretches: Vec<ExplainedStretch>,
    /// What is known only as a sum.
    pub sums: Sums,
}

/// Counters that went on without a break, as far as trackers watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExplainedStretch {
    /// When they were first heard.
    pub first: UnixTime,
    /// When they were last heard.
    pub last: UnixTime,
    /// The lowest they were seen.
    pub low: Counters,
    /// The highest they were seen.
    pub high: Counters,
    /// How many nodes heard them; lives of one tracker count each.
    pub nodes: usize,
    /// Whether it is the end of those that were put away, and nothing more is known of it.
    pub is_settled: bool,
    /// How far they went, as far as the client's rate limit allows: this is credited.
    pub moved: Counters,
    /// How far they went beyond that.
    pub withheld: Counters,
    /// What they had grown by since the stretch before; none if it is the first, if they began anew, and after a
    /// `stopped`.
    pub bridge: Option<Bridge>,
}

/// Explains an account by its clients, those heard of last first; `is_cut` if these are not all.
pub fn explain(
    account: Account,
    clients: Vec<(ClientId, Client)>,
    is_cut: bool,
    ceiling: RateCeiling,
) -> Explanation {
    let clients: Vec<ExplainedClient> =
        clients.into_iter().map(|(id, client)| explain_client(id, &client, ceiling)).collect();
    let known = clients.iter().map(ExplainedClient::contribution).fold(Moved::default(), Moved::with);
    let rest = in_all(&account.figures).without(known);
    Explanation { account, clients, is_cut, rest }
}

fn explain_client(client: ClientId, known: &Client, ceiling: RateCeiling) -> ExplainedClient {
    let stretches = stretches(&known.runs, ceiling);
    let parts = parts_of(&stretches, ceiling, known.sums.bucket);
    let explained = stretches.iter().zip(parts).map(|(stretch, part)| {
        let Stretch { first, last, low, high, is_settled, .. } = *stretch;
        let nodes = stretch.runs.iter().map(|run| run.key.node).collect::<BTreeSet<u64>>().len();
        let (moved, withheld, bridge) = (part.moved, part.withheld, part.bridge);
        ExplainedStretch { first, last, low, high, nodes, is_settled, moved, withheld, bridge }
    });
    ExplainedClient {
        client,
        state: known.state,
        last: known.latest.at,
        stretches: explained.collect(),
        sums: known.sums,
    }
}

impl ExplainedClient {
    /// What it contribution in all.
    pub fn contribution(&self) -> Moved {
        let stretches = self.stretches.iter().map(ExplainedStretch::contribution);
        stretches.fold(self.sums.contribution(), Moved::with)
    }
}

impl ExplainedStretch {
    /// What it contribution, with what was bridged before it.
    pub fn contribution(&self) -> Moved {
        let bridged = self.bridge.unwrap_or_default().granted;
        let both = |moved: u64, bridged: u64| i128::from(moved) + i128::from(bridged);
        Moved {
            uploaded: both(self.moved.uploaded, bridged.uploaded),
            downloaded: both(self.moved.downloaded, bridged.downloaded),
        }
    }
}

/// The raw bytes of an account: sums of 64-bit numbers, far from the limit.
fn in_all(figures: &Figures) -> Moved {
    let signed = |amount: u128| i128::try_from(amount).unwrap_or(i128::MAX);
    Moved { uploaded: signed(figures.uploaded), downloaded: signed(figures.downloaded) }
}
