//! Who may see what of a person.

use domain::UserId;

/// To whom something is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Visibility {
    /// To everyone.
    Everyone,
    /// To friends.
    #[default]
    Friends,
    /// To nobody.
    Nobody,
}

impl Visibility {
    /// Every choice.
    pub const ALL: [Visibility; 3] = [Visibility::Everyone, Visibility::Friends, Visibility::Nobody];

    /// Its name, as the wire and the database have it.
    pub const fn name(self) -> &'static str {
        match self {
            Visibility::Everyone => "everyone",
            Visibility::Friends => "friends",
            Visibility::Nobody => "nobody",
        }
    }

    /// The choice of this name.
    pub fn from_name(name: &str) -> Option<Visibility> {
        Visibility::ALL.into_iter().find(|choice| choice.name() == name)
    }

    fn covers(self, is_friend: bool) -> bool {
        match self {
            Visibility::Everyone => true,
            Visibility::Friends => is_friend,
            Visibility::Nobody => false,
        }
    }
}

/// What a person has chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Privacy {
    /// Who sees their status, text, devices and what they seed.
    pub status: Visibility,
    /// Who sees when they were last here; only of those who see the status.
    pub last_seen: Visibility,
    /// Who never sees anything, whatever else is chosen. Sorted, each once.
    pub never: Vec<UserId>,
}

/// What somebody may see of a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sight {
    /// Status, text, devices, what they seed.
    pub status: bool,
    /// When they were last here.
    pub last_seen: bool,
}

impl Privacy {
    /// What `viewer`, who is a friend or not, may see.
    pub fn sight(&self, viewer: UserId, is_friend: bool) -> Sight {
        if self.never.binary_search(&viewer).is_ok() {
            return Sight::default();
        }
        let status = self.status.covers(is_friend);
        Sight { status, last_seen: status && self.last_seen.covers(is_friend) }
    }
}
