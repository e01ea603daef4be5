//! Decides which users are marked dirty, by the input and by the effects of the presence table.

use domain::UserId;
use presence::{Cause, CloseKind, DeviceId, Effect, Input, PresenceTable, WallTime};

use super::ShardSync;
use super::sync_state::DirtyReason;

/// Whether an input makes a user dirty.
pub(crate) enum MarkDirty {
    /// Also if there is no cluster.
    Never,
    /// Only if the presence table reports a change.
    IfChanged,
    /// Also changes that are not visible here.
    Always(DirtyReason),
}

impl MarkDirty {
    pub(crate) fn for_input(now: WallTime, input: &Input) -> MarkDirty {
        let (cause, device) = match input {
            // Every gateway reads torrent counts itself.
            Input::TorrentCounts { .. } => return MarkDirty::Never,
            Input::Message { .. } | Input::ProbeAnswered { .. } => return MarkDirty::IfChanged,
            Input::Connected { hello, .. } => (Cause::Connect, Some(hello.device.clone())),
            Input::Heartbeat { hello } => (Cause::Heartbeat, Some(hello.device.clone())),
            Input::Goodbye { device } => (Cause::Goodbye, Some(device.clone())),
            Input::SignOut { device } => (Cause::SignedOut, Some(device.clone())),
            Input::App { .. } => (Cause::AppState, None),
            Input::Declare { .. } => (Cause::Declared, None),
            Input::ProbeFailed { .. } => (Cause::Silence, None),
            Input::Closed { how: CloseKind::Clean, .. } => (Cause::Close, None),
            Input::Closed { how: CloseKind::Dropped, .. } => (Cause::Drop, None),
        };
        let declared = matches!(input, Input::Declare { .. }).then_some(now);
        MarkDirty::Always(DirtyReason { cause, device, declared })
    }
}

impl ShardSync {
    /// Marks a user to be published.
    pub(super) fn mark_dirty(&mut self, user: UserId, mark: DirtyReason) {
        self.state.mark_dirty(user, mark);
        self.context.dirty_added.notify_one();
    }

    /// Marks the user of an input.
    pub(crate) fn mark_changed(&mut self, user: UserId, mark: MarkDirty, effects: &[Effect]) {
        let mut mark = match mark {
            MarkDirty::Never => return,
            MarkDirty::IfChanged => {
                if !effects.iter().any(|effect| matches!(effect, Effect::Changed { own: true, .. })) {
                    return;
                }
                DirtyReason { cause: Cause::Heartbeat, device: None, declared: None }
            }
            MarkDirty::Always(mark) => mark,
        };
        if let Some((_, cause, device)) = effects.iter().rev().find_map(reason) {
            (mark.cause, mark.device) = (cause, device.clone());
        }
        self.mark_dirty(user, mark);
    }

    /// Marks users that changed by the passage of time.
    pub(crate) fn mark_all_changed(&mut self, roster: &PresenceTable, effects: &[Effect]) {
        for effect in effects {
            if let Effect::Changed { user, own: true, .. } = effect {
                self.mark_local(roster, *user, (Cause::Silence, None));
            }
        }
        for (user, cause, device) in effects.iter().filter_map(reason) {
            self.mark_local(roster, user, (cause, device.clone()));
        }
    }

    /// Users with remote sessions only are published by their own gateway.
    fn mark_local(
        &mut self,
        roster: &PresenceTable,
        user: UserId,
        (cause, device): (Cause, Option<DeviceId>),
    ) {
        if self.state.is_published(user) || !roster.is_remote_only(user) {
            // The store ends expired declarations itself; this must not end a newer one of another gateway.
            self.mark_dirty(user, DirtyReason { cause, device, declared: None });
        }
    }
}

/// The user of an effect, and the cause.
fn reason(effect: &Effect) -> Option<(UserId, Cause, &Option<DeviceId>)> {
    match effect {
        Effect::Arrived { user, cause, device }
        | Effect::Left { user, cause, device, .. }
        | Effect::Transition { user, cause, device, .. } => Some((*user, *cause, device)),
        _ => None,
    }
}
