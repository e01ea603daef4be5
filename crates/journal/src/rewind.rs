//! Requeues entries that were skipped because they are older than the installation (J11).

use crate::dead_letter::DeadLetter;
use crate::error::JournalError;
use crate::fields::Fields;
use crate::id::EntryId;
use crate::notes::Skipped;
use crate::port::{AppendToken, Journal, Lane};

/// Entries per request.
const PAGE: usize = 500;

/// Appends every entry that a group skipped, and that the journal still has, to that group's dead letters, due at once.
/// A dead letter is applied once, by its origin, so this may be repeated. Returns how many; none if the group has
/// skipped nothing.
pub async fn requeue_skipped(journal: &dyn Journal, group: &str) -> Result<Option<u64>, JournalError> {
    let notes = journal.notes().await?;
    let Some(Skipped { before_ms, .. }) = Skipped::of_group(&notes, group) else {
        return Ok(None);
    };
    let mut token = AppendToken { producer: format!("rewind.{group}.{before_ms:x}"), number: 0 };
    let (mut after, mut taken) = (EntryId::ZERO, 0);
    loop {
        let mut page = journal.list(Lane::Traffic, after, PAGE).await?;
        page.retain(|stored| stored.id.ms < before_ms);
        let Some(last) = page.last() else { break };
        after = last.id;
        let dead_letter = |origin, original: &Fields| DeadLetter {
            original: original.clone(),
            group: group.to_owned(),
            retry: 0,
            reason: "older than the installation".to_owned(),
            origin,
            failed_at: domain::UnixTime(0),
            due_at: domain::UnixTime(0),
        };
        let dead_letters: Vec<Fields> =
            page.iter().map(|stored| dead_letter(stored.id, &stored.fields).to_fields()).collect();
        token.number += 1;
        journal.append(Lane::Dead, &dead_letters, &token).await?;
        taken += dead_letters.len() as u64;
    }
    for (name, _) in Skipped::notes_of(&notes, group) {
        journal.set_note(name, None).await?;
    }
    Ok(Some(taken))
}
