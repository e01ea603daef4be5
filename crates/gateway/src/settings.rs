//! What can be set.

/// Who may enter a room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoomAccess {
    /// Everyone who is signed in.
    #[default]
    Everyone,
    /// Who has a token for it.
    Token,
}
