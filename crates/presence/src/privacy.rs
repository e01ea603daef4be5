//! Privacy settings, and what they let a viewer see.

use domain::UserId;
use domain::named;

named! {
    /// Which users may see something.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum Audience {
        Everyone = "everyone",
        #[default]
        Friends = "friends",
        Nobody = "nobody",
    }
}

impl Audience {
    fn covers(self, is_friend: bool) -> bool {
        match self {
            Audience::Everyone => true,
            Audience::Friends => is_friend,
            Audience::Nobody => false,
        }
    }
}

/// A user's privacy settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Privacy {
    /// The audience of status, text, devices and torrent activity.
    pub status: Audience,
    /// The audience of the last activity; limited to users that may see the status.
    pub last_seen: Audience,
    /// Users that never see anything, whatever else is set. Sorted, without duplicates.
    pub never: Vec<UserId>,
}

/// What one viewer may see of one user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Visibility {
    /// Status, text, devices and torrent activity.
    pub status: bool,
    pub last_seen: bool,
}

impl Privacy {
    pub fn visibility_for(&self, viewer: UserId, is_friend: bool) -> Visibility {
        if self.never.binary_search(&viewer).is_ok() {
            return Visibility::default();
        }
        let status = self.status.covers(is_friend);
        Visibility { status, last_seen: status && self.last_seen.covers(is_friend) }
    }
}
