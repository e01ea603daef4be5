//! Bounds the clients that an account stores, and so the size of its row.
//!
//! A user may start a client every minute, each under an id of its own. Of too many, those not seen for longest are
//! removed, as after the retention time: their amounts stay. As a consequence an entry of a removed client cannot be
//! distinguished from a new one: it counts without its bytes.

use crate::account_state::{AccountState, Client, ClientState};
use crate::figures::{AccountKey, Stamp};
use crate::run::ClientRef;

/// Runs of all clients of an account; a client without runs counts as one.
pub(crate) const ACCOUNT_RUNS_MAX: usize = 512;

fn weight(client: &Client) -> usize {
    client.runs.len().max(1)
}

/// Returns the number of removed clients.
pub(super) fn apply(state: &mut AccountState, key: AccountKey) -> usize {
    let mut runs: usize = state.clients_of(key).map(|(_, client)| weight(client)).sum();
    if runs <= ACCOUNT_RUNS_MAX {
        return 0;
    }
    let of = |client| ClientRef { user: key.user, torrent: key.torrent, client };
    let mut by_age: Vec<(Stamp, ClientRef)> =
        state.clients_of(key).map(|(client, known)| (known.latest, of(client))).collect();
    by_age.sort_unstable();
    // The newest stays: alone it is bounded by its own limit.
    by_age.pop();
    let mut removed = 0;
    for (latest, client) in by_age {
        if runs <= ACCOUNT_RUNS_MAX {
            break;
        }
        let Some(known) = state.clients.remove(&client) else { continue };
        let account = state.accounts.entry(key).or_default();
        account.move_client(known.state, ClientState::Inactive);
        account.clients_removed_until = account.clients_removed_until.max(latest.at);
        runs -= weight(&known);
        removed += 1;
    }
    removed
}
