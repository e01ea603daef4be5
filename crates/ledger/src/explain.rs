//! The parts of an account: the contribution of each client, stretch by stretch.
//!
//! # Guarantees
//!
//! - The parts add up to the account's raw bytes, exactly, however much of the journal was trimmed: no entry is read.
//! - They are the same parts that the credit is the sum of ([`mod@crate::credit`]); nothing is computed twice.
//!
//! # Deliberately absent
//!
//! Data that is not stored: clients beyond the session retention time, clients beyond the limit of one reply, and
//! clients from before sums were stored. Together they are the [`Explanation::rest`]. It also contains what was
//! credited under another ceiling than the present one, and may be negative.

use std::collections::BTreeSet;

use domain::{ClientId, RateCeiling, UnixTime};

use crate::account_state::{Client, ClientState};
use crate::credit::{Bridge, Stretch, parts_of, stretches};
use crate::figures::{Account, Figures};
use crate::run::Counters;
use crate::sums::{Moved, Sums};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub account: Account,
    /// Most recently seen first.
    pub clients: Vec<ExplainedClient>,
    /// Whether there are more clients than are listed.
    pub is_cut: bool,
    /// Contribution of clients that are not listed or not stored any more: zero if all are listed.
    pub rest: Moved,
}

/// The contribution of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedClient {
    pub client: ClientId,
    pub state: ClientState,
    /// When it was last seen.
    pub last: UnixTime,
    /// In the order of time.
    pub stretches: Vec<ExplainedStretch>,
    /// Amounts that no run accounts for.
    pub sums: Sums,
}

/// Counters that grew without a restart, as far as trackers received announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExplainedStretch {
    pub first: UnixTime,
    pub last: UnixTime,
    /// The lowest reported counters.
    pub low: Counters,
    /// The highest reported counters.
    pub high: Counters,
    /// Nodes that reported them; each process start counts.
    pub nodes: usize,
    /// Whether it stands for the end of settled stretches, of which no more is known.
    pub is_settled: bool,
    /// Growth of the counters, as far as the client's rate limit allows: this is credited.
    pub moved: Counters,
    /// Growth beyond that.
    pub withheld: Counters,
    /// Growth since the previous stretch; none for the first, after a restart, and after a `stopped`.
    pub bridge: Option<Bridge>,
}

/// Explains an account by its clients, most recently seen first; `is_cut` if these are not all.
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
    pub fn contribution(&self) -> Moved {
        let stretches = self.stretches.iter().map(ExplainedStretch::contribution);
        stretches.fold(self.sums.contribution(), Moved::with)
    }
}

impl ExplainedStretch {
    /// Including the bridge before it.
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
